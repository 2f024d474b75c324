"""Removes a `concrete` parameter of a wrapper, and the arguments that its callers pass for it."""

from __future__ import annotations

import ast

from ..analysis import Module, Project
from ..analysis.sites.options import Forwarded, forwarded, passed_options
from ..analysis.sites.site import Option
from ..codemod.changes import Change, Remove
from .options import remove
from .refusal import Refused, check_own


def drop_parameter(project: Project, option: Option) -> tuple[str, list[Change], str]:
    """Return the title and changes that remove an option and the parameter that it passes on.

    Also returns why callers outside the project may break; "" if there can be none.

    Raises:
        Refused: a caller passes another value than False, or the parameter has another use.
    """
    first = forwarded(option.module, option.value)
    assert first is not None
    dropped = [first]
    removed: dict[Module, list[ast.AST]] = {}
    for one in dropped:
        _check_droppable(one)
        for node in ast.walk(one.function):
            if isinstance(node, ast.Name) and node.id == one.parameter.arg:
                removed.setdefault(one.module, []).append(_reading(option, one, node))
        passed, hiding = passed_options(project, one)
        if hiding is not None:
            reason = f"`{one.function.name}` is passed on as a value, so not all callers are known"
            raise Refused(reason, *hiding)
        for other in passed:
            removed.setdefault(other.module, []).append(other.keyword or other.value)
            onward = forwarded(other.module, other.value)
            if onward is None:
                if not isinstance(other.value, ast.Constant) or other.value.value:
                    given = f"{one.parameter.arg}={other.module.segment(other.value)}"
                    reason = f"a caller passes `{given}`: migrate it first"
                    raise Refused(reason, other.module, other.value)
            elif all(onward.parameter is not known.parameter for known in dropped):
                dropped.append(onward)
    changes: list[Change] = []
    for module, nodes in removed.items():
        changes += remove(project, module, list(dict.fromkeys(nodes)))
    changes += [Remove(one.module, one.parameter) for one in dropped]
    names = ", ".join(f"`{one.function.name}`" for one in dropped)
    title = f"drop `concrete`, which no caller sets, and the parameter of {names}"
    for one in dropped:
        name, function = one.parameter.arg, one.function
        if not function.name.startswith("_") and one.module.enclosing_function(function) is None:
            after = "" if one.parameter in function.args.kwonlyargs else ", or more by position,"
            breaks = (
                f"`{function.name}` is public: callers elsewhere that pass `{name}`{after} break"
            )
            return title, changes, breaks
    return title, changes, ""


def _check_droppable(handed: Forwarded) -> None:
    """Raise Refused unless a parameter is False by default, and others cannot pass it."""
    module, name, function = handed.module, handed.parameter.arg, handed.function
    check_own(module, function, "the wrapper")
    default = handed.default
    if not isinstance(default, ast.Constant) or default.value:
        raise Refused(
            f"`{name}` of `{function.name}` is not False by default: remove it once"
            " `static_argnums` names the arguments that must be concrete",
            module,
            handed.parameter,
        )


def _reading(option: Option, handed: Forwarded, node: ast.Name) -> ast.AST:
    """Return the argument that passes a parameter on."""
    holder = handed.module.parent(node)
    if node is option.value and option.keyword is None:
        return node
    if not isinstance(holder, ast.keyword) or holder.arg is None:
        reason = f"`{node.id}` of `{handed.function.name}` is used for more than the option"
        raise Refused(reason, handed.module, node)
    return holder
