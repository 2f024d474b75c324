"""Removes a checkpoint in any form, or sets an option of it.

    @jax.checkpoint                      f = jax.checkpoint(f)  ->  (the statement goes)
    def loss(...):   ->  def loss(...):  jax.grad(jax.checkpoint(loss))  ->  jax.grad(loss)

Unused imports are removed, too. A Flax class without `nn.remat` gets the `name=` under which its
parameters are stored.
"""

from __future__ import annotations

import ast
from collections.abc import Collection

from ...analysis import Module, Project
from ...analysis.sites.find_sites import sites_with
from ...analysis.sites.references import is_used_elsewhere
from ...analysis.sites.site import Option, Site, decorates
from ...codemod.changes import Change, Code, Keep, Remove, Replace, SetArgument
from ..checkpoint_code import CheckpointCode
from ..flax_names import kept_names
from ..refusal import Refused, check_editable


def remove_site(project: Project, site: Site, *, kept: Collection[str] = ()) -> list[Change]:
    """Return the changes that remove the checkpoint of a site.

    Args:
        project: the project.
        site: the application.
        kept: module-level names whose imports stay, because later changes use them.

    Raises:
        Refused: the site applies nothing, or the rest has another meaning.
    """
    module = site.module
    if site.application is None:
        reason = "the checkpoint is only named here: remove it where it is applied"
        raise Refused(reason, module, site.reference)
    if not site.certain:
        raise Refused("it is not always a checkpoint", module, site.reference)
    if not site.definition.same_function:
        reason = f"`{site.api}` repeats one layer many times: write out the layers first"
        raise Refused(reason, module, site.reference)
    check_editable(module, [site.application])
    named = kept_names(project, module, site.application) if site.definition.wraps_classes else []
    return [_removal(project, site, kept), *named]


def _removal(project: Project, site: Site, kept: Collection[str]) -> Change:
    module, application = site.module, site.application
    assert application is not None

    def is_used(name: str) -> bool:
        return name in kept or is_used_elsewhere(project, module, name)

    if decorates(module, application):
        return Remove(module, application, is_used)
    if site.subject is None or site.subject[0] is not module:
        raise Refused("the wrapped function is unknown", module, site.reference)
    subject = site.subject[1]
    assert isinstance(application, ast.Call)
    if not isinstance(subject, ast.expr) or all(n is not subject for n in ast.walk(application)):
        raise Refused("the wrapped function is passed elsewhere", module, site.reference)
    chosen = module.parent(application)
    if isinstance(chosen, ast.IfExp):
        # `jax.checkpoint(block) if i < 7 else block` selects iterations, not a setting.
        if isinstance(chosen.test, ast.Compare) and ast.dump(chosen.orelse) == ast.dump(subject):
            return Keep(module, chosen, chosen.orelse, is_used)
        reason = "an `if` selects the checkpoint: remove the `if` and the checkpoint"
        raise Refused(reason, module, site.reference)
    statement = _restating(module, application, subject)
    if statement is not None:
        return Remove(module, statement, is_used)
    return Keep(module, application, subject, is_used)


def _restating(module: Module, whole: ast.expr, part: ast.expr) -> ast.Assign | None:
    """Return the statement that would become `f = f`, if it can be removed."""
    statement = module.parent(whole)
    match statement, part:
        # `self.f = self.f` gives the instance an attribute of its class, so it stays.
        case ast.Assign(targets=[ast.Name(id=target)]), ast.Name(id=name) if target == name:
            scope, bindings = module.scope_at(statement), module.reaching(part)
            # In a class body it gives the class an attribute.
            if bindings and all(b.scope is scope for b in bindings):
                return statement
    return None


def set_option(project: Project, site: Site, name: str, value: object) -> list[Change]:
    """Return the changes that set an option of one application to a literal.

    A checkpoint that is passed on as a wrapper becomes a partial with the option.

    Raises:
        Refused: the site applies nothing, or other sites share the option.
    """
    module, application = site.module, site.application
    if application is None:
        application = site.reference
        if site.form == "partial":
            holder = module.parent(application)
            assert isinstance(holder, ast.Call)
            application = holder
        elif site.form != "reference":
            reason = "the checkpoint is only named here: pass the option where it is applied"
            raise Refused(reason, module, site.reference)
    code = Code(repr(value))
    option = site.arguments.get(name)
    if option is not None and option.module is module and _is_own(project, site, option):
        return [Replace(module, option.value, code)]
    if option is None and site.spread:
        reason = f"options are unpacked with `**`, and `{name}` may be among them"
        raise Refused(reason, module, site.reference)
    if isinstance(application, ast.Call):
        if any(k.arg is None for k in application.keywords) and option is not None:
            reason = f"`{name}` is among options that are unpacked with `**`"
            raise Refused(reason, option.module, option.value)
        return [SetArgument(module, application, name, code)]
    code_of_partial = CheckpointCode("{checkpoint}", (f"{name}={value!r}",))
    partial = code_of_partial.decorator(project, module, application)
    new = Code.of(partial.text, checkpoint=application)
    return [Replace(module, application, new), *partial.changes]


def _is_own(project: Project, site: Site, option: Option) -> bool:
    """Return whether an option belongs to this application alone."""
    if option.call is site.application or site.form == "partial":
        return True
    sharing = [other for other in sites_with(project, option) if other.application is not None]
    return sharing == [site] and option.module.is_own
