"""Removes options, writes `static_argnums`, and gives a function to a call that has none."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import partial

from ..analysis import Module, Project
from ..analysis.names.module import find_mentions
from ..analysis.sites.find_sites import sites_with
from ..analysis.sites.references import is_used_elsewhere, reference_to
from ..analysis.sites.site import Option, Site
from ..analysis.values.bind import api_of
from ..analysis.values.values import Container
from ..codemod.changes import (
    Change,
    Code,
    InsertArgument,
    Keep,
    NameArgument,
    Remove,
    Replace,
    SetArgument,
)
from .refusal import Refused, check_editable


def drop_option(project: Project, option: Option) -> list[Change]:
    """Return the changes that remove an option.

    `functools.partial(jax.checkpoint, concrete=True)` without other options becomes
    `jax.checkpoint`. Options that follow by position must be named as well, see `naming_changes`.
    """
    call, module = option.call, option.module
    if isinstance(call, ast.Dict):
        key = next(k for k, v in zip(call.keys, call.values, strict=True) if v is option.value)
        assert key is not None
        return remove(project, module, [key])
    if option.keyword is None:
        return remove(project, module, [option.value])
    # As an attribute of a class, a function would be bound to `self`, and a partial is not.
    held = isinstance(module.parent(call), ast.Assign | ast.AnnAssign)
    is_method = held and module.scope_at(call).is_class
    if len(call.args) == 1 and len(call.keywords) == 1 and not is_method:
        if project.evaluator.is_partial(module, call):
            return keep(project, module, call, call.args[0])
    return remove(project, module, [option.keyword])


def check_only_checkpoints_get(project: Project, option: Option) -> None:
    """Raise Refused if another option applies where this one is removed, or if the dict with it is
    used for more than the options of checkpoints.
    """
    for site in sites_with(project, option):
        hidden = site.arguments[option.name].overrides
        if hidden is not None:
            reason = f"without it, this `{option.name}` applies: take that out first"
            raise Refused(reason, hidden.module, hidden.value, "applies instead")
    held = project.values(option.module, option.call)
    if any(isinstance(value, Container) for value in held):
        _check_dict(project, option)


def _check_dict(project: Project, option: Option) -> None:
    """Raise Refused unless a dict is only unpacked into checkpoints, at once or by its name."""
    module, node = option.module, option.call
    holder = module.parent(node)
    match holder:
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            pass
        case _:
            return _check_unpacked(project, module, node)
    for other in dict.fromkeys((module, *project.mentioning([name]))):
        mentions = find_mentions(other)
        for known in (name, *mentions.renamed.get(name, ())):
            for read in mentions.reads(known):
                values = project.values(other, read)
                if any(isinstance(v, Container) and v.node is node for v in values):
                    _check_unpacked(project, other, read)
    return None


def _check_unpacked(project: Project, module: Module, node: ast.expr) -> None:
    keyword = module.parent(node)
    call = module.parent(keyword) if keyword is not None else None
    if not (isinstance(keyword, ast.keyword) and isinstance(call, ast.Call) and not keyword.arg):
        raise Refused(
            "other code reads the dictionary with the option, too: check that code, and remove"
            " `concrete` by hand",
            module,
            node,
            "also reads the options",
        )
    called = [v for n in (call.func, *call.args) for v in project.values(module, n)]
    if not any(api_of(project.apis, value) for value in called):
        reason = "its options are passed to another function, too: give each its own"
        raise Refused(reason, module, call, "also gets the options")


def naming_changes(option: Option) -> list[Change]:
    """Return the changes that name the options that follow one by position in the same call."""
    if option.position is None or not isinstance(option.call, ast.Call):
        return []
    values = option.call.args[option.position + 1 :]
    named = zip(option.behind, values, strict=False)
    return [NameArgument(option.module, value, name) for name, value in named]


def remove(project: Project, module: Module, nodes: Sequence[ast.AST]) -> list[Change]:
    """Return the changes that remove nodes of a module, and imports that become unused."""
    check_editable(module, nodes)
    is_used = partial(is_used_elsewhere, project, module)
    return [Remove(module, node, is_used) for node in nodes]


def keep(project: Project, module: Module, whole: ast.expr, part: ast.expr) -> list[Change]:
    """Return the same for an expression that is reduced to one of its parts."""
    check_editable(module, [whole])
    return [Keep(module, whole, part, partial(is_used_elsewhere, project, module))]


def static_argnums_changes(
    site: Site, indices: Sequence[int], instead_of: Option | None
) -> list[Change]:
    """Return the changes that add `static_argnums` to an application.

    Args:
        site: the application; it is a call, or a decorator that is one.
        indices: the arguments to add to those that are static already.
        instead_of: an option of the same call to replace.

    Raises:
        Refused: the present `static_argnums` are computed.
    """
    if site.application is not None:
        check_editable(site.module, [site.application])
    named = site.arguments.get("static_argnums")
    if named is not None:
        return [Replace(named.module, named.value, Code(repr(_with_present(named, indices))))]
    code = Code(repr(tuple(indices)))
    if instead_of is not None:
        assert isinstance(instead_of.call, ast.Call)
        place = instead_of.keyword or instead_of.value
        return [SetArgument(instead_of.module, instead_of.call, "static_argnums", code, place)]
    assert isinstance(site.application, ast.Call)
    return [SetArgument(site.module, site.application, "static_argnums", code)]


def _with_present(option: Option, indices: Sequence[int]) -> tuple[int, ...]:
    """Return indices together with those of a literal `static_argnums`."""
    try:
        value = ast.literal_eval(option.value)
        return tuple(sorted({*([value] if isinstance(value, int) else value), *indices}))
    except (TypeError, ValueError):
        reason = "`static_argnums` is computed, so no argument can be added to it"
        raise Refused(reason, option.module, option.value) from None


def supply_subject(project: Project, site: Site, factory: ast.Call) -> list[Change]:
    """Return the changes of a `factory` call that passes options to an Api but no function.

    `@jax.checkpoint()` becomes `@jax.checkpoint`, `jax.checkpoint(policy=p)(f)` becomes
    `jax.checkpoint(f, policy=p)`, and any other a `functools.partial`.
    """
    module = site.module
    check_editable(module, [factory])
    if not factory.keywords and not factory.args:
        return [Keep(module, factory, factory.func)]
    match module.parent(factory):
        case ast.Call(func=func, args=[subject], keywords=[]) as outer if (
            func is factory
            and not isinstance(subject, ast.Starred)
            and factory.end_lineno == outer.end_lineno  # keep the layout and comments otherwise
        ):
            first = Code.of("{subject}", subject=subject)
            return [InsertArgument(module, factory, first), Keep(module, outer, factory)]
    partial = reference_to(module, project, "functools.partial", factory)
    return [
        Replace(module, factory.func, Code(partial.text)),
        InsertArgument(module, factory, Code.of("{wrapper}", wrapper=factory.func)),
        *partial.changes,
    ]
