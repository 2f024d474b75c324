"""Taking a checkpoint off, in whatever form it is applied; options of the one that stays.

    @jax.checkpoint                      f = jax.checkpoint(f)  ->  (the statement goes)
    def loss(...):   ->  def loss(...):  jax.grad(jax.checkpoint(loss))  ->  jax.grad(loss)

Imports that nothing uses any more go; a Flax class without `nn.remat` gets the `name=` that its
parameters are stored under.
"""

from __future__ import annotations

import ast
from collections.abc import Collection

from ...analysis import Module, Project
from ...analysis.sites.forms import decorates
from ...analysis.sites.references import is_used_elsewhere
from ...analysis.sites.site import Option, Site, sites_of
from ...codemod.changes import Change, Code, Keep, Remove, Replace, SetArgument
from ...codemod.tree.reductions import is_pure
from ..flax_names import names_without_remat
from ..imports import written
from ..refusal import Refused, check_editable


def remove_site(project: Project, site: Site, *, kept: Collection[str] = ()) -> list[Change]:
    """Take the checkpoint of a site off.

    Args:
        project: the project.
        site: the application.
        kept: names at the top of the module whose imports stay, because later changes use them.

    Raises:
        Refused: nothing is applied there, or what is left would not mean the same.
    """
    module = site.module
    if site.application is None:
        raise Refused(
            "the checkpoint is only named here: it is taken off where it is applied",
            module,
            site.reference,
        )
    if not module.editable:
        raise Refused("it stands in a file that is not to be changed", module, site.reference)
    if not site.certain:
        raise Refused("what is applied there is not always a checkpoint", module, site.reference)
    if not site.definition.same_function:
        raise Refused(
            f"`{site.api}` makes many layers of one: write the layers out first",
            module,
            site.reference,
        )
    check_editable(module, [site.application])
    names = names_without_remat(project, site)
    return [_taken_off(project, site, kept), *names]


def _taken_off(project: Project, site: Site, kept: Collection[str]) -> Change:
    module, application = site.module, site.application
    assert application is not None

    def is_used(name: str) -> bool:
        return name in kept or is_used_elsewhere(project, module, name)

    if decorates(module, application):
        return Remove(module, application, is_used)
    if site.subject is None or site.subject[0] is not module:
        raise Refused("what is wrapped cannot be seen", module, site.reference)
    subject = site.subject[1]
    assert isinstance(application, ast.Call)
    if not isinstance(subject, ast.expr) or all(n is not subject for n in ast.walk(application)):
        raise Refused("what is wrapped is given in another place", module, site.reference)
    whole, part = _one_of_two(module, application, subject)
    statement = _restating(module, whole, part)
    if statement is not None:
        return Remove(module, statement, is_used)
    return Keep(module, whole, part, is_used)


def _one_of_two(
    module: Module, application: ast.expr, subject: ast.expr
) -> tuple[ast.expr, ast.expr]:
    """`jax.checkpoint(f) if remat else f` comes down to `f` as a whole."""
    holder = module.parent(application)
    if isinstance(holder, ast.IfExp) and is_pure(holder.test):
        other = holder.orelse if application is holder.body else holder.body
        if application is not holder.test and ast.dump(other) == ast.dump(subject):
            return holder, other
    return application, subject


def _restating(module: Module, whole: ast.expr, part: ast.expr) -> ast.Assign | None:
    """The statement `f = f` that would be left, where it can go."""
    statement = module.parent(whole)
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    target = statement.targets[0]
    if not isinstance(part, ast.Name | ast.Attribute):
        return None
    if ast.unparse(target) != ast.unparse(part):
        return None
    scope = module.scope_at(statement)
    if isinstance(target, ast.Attribute):
        # `self.f = self.f` gives the instance an attribute of its own class.
        return None
    own = list(module.reaching(part)) if isinstance(part, ast.Name) else []
    if any(b.scope is not scope for b in own) or not own:
        return None  # in a class body it gives the class an attribute
    return statement


# -- options


def set_option(project: Project, site: Site, name: str, value: object) -> list[Change]:
    """Give one application an option: changed where it is there, else added.

    A checkpoint that is passed on as a wrapper becomes a partial with the option.

    Args:
        project: the project.
        site: the application, or the place where the checkpoint is passed on.
        name: the option.
        value: a literal.

    Raises:
        Refused: nothing is applied there, or the option is given in a place that others share.
    """
    module, application = site.module, site.application
    if application is None:
        application = site.reference
        if site.form == "partial":
            holder = module.parent(application)
            assert isinstance(holder, ast.Call)
            application = holder
        elif site.form != "reference":
            raise Refused(
                "the checkpoint is only named here: the option is given where it is applied",
                module,
                site.reference,
            )
    if not module.editable:
        raise Refused("it stands in a file that is not to be changed", module, site.reference)
    code = Code(repr(value))
    option = site.arguments.get(name)
    if option is not None:
        if option.module is module and _is_own(project, site, option):
            return [Replace(module, option.value, code)]
        if option.call is application:
            raise Refused("the option is spread into the call", module, application)
    elif site.spread:
        raise Refused(
            f"options are spread with `**`, and `{name}` may be among them", module, site.reference
        )
    if isinstance(application, ast.Call):
        if any(k.arg is None for k in application.keywords) and option is not None:
            raise Refused(
                f"`{name}` is among options that are spread with `**`", option.module, option.value
            )
        return [SetArgument(module, application, name, code)]
    partial = written(project, module, "functools.partial", application)
    new = Code.of(f"{partial.text}({{checkpoint}}, {name}={value!r})", checkpoint=application)
    return [Replace(module, application, new), *partial.changes]


def _is_own(project: Project, site: Site, option: Option) -> bool:
    """Whether an option is written for this application alone."""
    if option.call is site.application or site.form == "partial":
        return True
    sharing = [
        other
        for other in sites_of(project)
        if other.application is not None
        and any(o.value is option.value for o in other.arguments.values())
    ]
    return sharing == [site] and option.module.editable
