"""Removes an option of an application, or writes its `static_argnums`."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from functools import partial

from ..analysis import Module, Project
from ..analysis.sites.concrete_options import holder_names
from ..analysis.sites.references import is_used_elsewhere
from ..analysis.sites.site import Option, Site
from ..analysis.values.application import api_of
from ..analysis.values.values import Container
from ..codemod.changes import Change, Code, Keep, NameArgument, Remove, Replace, SetArgument
from .refusal import Refused, check_editable


def literal_indices(option: Option) -> tuple[int, ...]:
    """Return the value of a literal `static_argnums`; raise Refused if it is computed."""
    try:
        value = ast.literal_eval(option.value)
    except ValueError:
        value = None
    if isinstance(value, int):
        return (value,)
    if isinstance(value, tuple | list) and all(isinstance(i, int) for i in value):
        return tuple(value)
    reason = "`static_argnums` is computed, so no argument can be added to it"
    raise Refused(reason, option.module, option.value)


def indices_text(indices: Sequence[int]) -> str:
    """Return the literal of a tuple of indices."""
    return repr(tuple(indices))


def drop_option(project: Project, option: Option, *, shorten: bool = True) -> list[Change]:
    """Return the changes that remove an option.

    With `shorten`, `functools.partial(jax.checkpoint, concrete=True)` without other options becomes
    `jax.checkpoint`. Options that follow by position must be named as well, see `naming_changes`.
    """
    call, module = option.call, option.module
    if isinstance(call, ast.Dict):
        key = next(k for k, v in zip(call.keys, call.values, strict=True) if v is option.value)
        assert key is not None
        return remove(project, module, [key])
    if option.keyword is None:
        return remove(project, module, [option.value])
    if shorten and len(call.args) == 1 and len(call.keywords) == 1:
        if project.evaluator.is_partial(module, call):
            return keep(project, module, call, call.args[0])
    return remove(project, module, [option.keyword])


def check_only_checkpoints_get(project: Project, option: Option) -> None:
    """Raise Refused if the dict with an option is also unpacked for another function."""
    held = project.values(option.module, option.call)
    if not any(isinstance(value, Container) for value in held):
        return
    names = sorted(holder_names(option))
    for module in dict.fromkeys((option.module, *(project.mentioning(names) if names else ()))):
        for call in (node for node in module.nodes if isinstance(node, ast.Call)):
            for keyword in call.keywords:
                if keyword.arg is None and any(
                    isinstance(value, Container) and value.node is option.call
                    for value in project.values(module, keyword.value)
                ):
                    called = (call.func, *call.args)
                    values = [v for node in called for v in project.values(module, node)]
                    if not any(api_of(project.apis, v) for v in values):
                        reason = (
                            "its options are passed to another function, too: give each its own"
                        )
                        raise Refused(reason, module, call, "also gets the options")


def given_behind(option: Option) -> list[tuple[str, ast.expr]]:
    """Return the options that follow one by position in the same call, with their names."""
    if option.position is None or not isinstance(option.call, ast.Call):
        return []
    return list(zip(option.behind, option.call.args[option.position + 1 :], strict=False))


def naming_changes(module: Module, named: Iterable[tuple[str, ast.expr]]) -> list[Change]:
    """Return the changes that pass positional arguments by keyword."""
    return [NameArgument(module, value, name) for name, value in named]


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
        together = tuple(sorted({*literal_indices(named), *indices}))
        return [Replace(named.module, named.value, Code(indices_text(together)))]
    code = Code(indices_text(indices))
    if instead_of is not None:
        assert isinstance(instead_of.call, ast.Call)
        place = instead_of.keyword or instead_of.value
        return [SetArgument(instead_of.module, instead_of.call, "static_argnums", code, place)]
    assert isinstance(site.application, ast.Call)
    return [SetArgument(site.module, site.application, "static_argnums", code)]
