"""Closes over values needed at trace time where a checkpoint is called as it is applied.

jax.checkpoint(f, concrete=True)(x, train)   ->   jax.checkpoint(lambda x: f(x, train))(x)
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ...analysis import Project
from ...analysis.names.scopes import parameters
from ...analysis.sites.site import Site
from ...analysis.statics.argument_kinds import kinds_of
from ...analysis.statics.statics import Statics
from ...analysis.values.bind import Arguments, default_of, positional_parameters
from ...codemod.changes import Change, Code, Replace
from ...libraries.library_arguments import ARRAY_ATTRIBUTES
from ..arguments.signature import free_name, lambda_text, names_in
from ..checkpoint_code import CheckpointCode
from ..literals import has_side_effects


@dataclass(frozen=True, slots=True)
class _Argument:
    """An argument of the call: `name=` if it is passed by keyword, and its parameter."""

    node: ast.expr
    keyword: str
    parameter: str


def close_over_at_once(
    site: Site, statics: Statics, checkpoint: CheckpointCode
) -> list[Change] | None:
    """Return the changes for `jax.checkpoint(f)(x)`; None for other forms."""
    outer = _call_at_once(site)
    bound = next((b for call, b in statics.bound if call.node is outer), None)
    if outer is None or statics.target is None or bound is None or bound.wrong or bound.star:
        return None
    closed = {r.name for r in statics.required}
    kwarg = statics.target.function.node.args.kwarg
    if kwarg is not None and kwarg.arg in closed:
        closed |= {k.arg for k in bound.double_star if k.arg is not None}
    arguments = list(_arguments(outer, bound))
    traced = [a for a in arguments if a.parameter and a.parameter not in closed]
    return _closed_over(site, outer, checkpoint, arguments, traced, bound)


def close_over_all_at_once(
    project: Project, site: Site, checkpoint: CheckpointCode
) -> list[Change] | None:
    """Return the same where the wrapped function is unknown: only arrays stay arguments."""
    outer = _call_at_once(site)
    if outer is None or site.subject is None:
        return None
    given = [("", arg) for arg in outer.args]
    given += [(f"{k.arg}=" if k.arg else "**", k.value) for k in outer.keywords]
    taken = set().union(*(names_in(node) for _, node in given), names_in(site.subject[1]))
    arguments: list[_Argument] = []
    for prefix, node in given:
        if isinstance(node, ast.Name) and all(a.parameter != node.id for a in arguments):
            parameter = node.id
        else:
            parameter = free_name(prefix.strip("*=") or "x", taken)
            taken.add(parameter)
        arguments.append(_Argument(node, prefix, parameter))
    traced = [a for a in arguments if kinds_of(project).of(site.module, a.node) == "array"]
    return _closed_over(site, outer, checkpoint, arguments, traced)


def _call_at_once(site: Site) -> ast.Call | None:
    """Return the call around an application that wraps an expression: `jax.checkpoint(f)(x)`."""
    if site.application is None or site.subject is None:
        return None
    outer = site.module.parent(site.application)
    if not isinstance(outer, ast.Call) or outer.func is not site.application:
        return None
    return outer if isinstance(site.subject[1], ast.expr) else None


def _closed_over(
    site: Site,
    outer: ast.Call,
    checkpoint: CheckpointCode,
    arguments: Sequence[_Argument],
    traced: Sequence[_Argument],
    bound: Arguments | None = None,
) -> list[Change] | None:
    """Return the checkpoint of a function of the `traced` arguments; None if that differs.

    With `bound`, a lambda is written without the parameters that it closes over.
    """
    assert site.subject is not None
    subject = site.subject[1]
    assert isinstance(subject, ast.expr)
    kept = [a for a in arguments if a not in traced]
    if _order_matters(kept, traced):
        return None
    if bound is not None and isinstance(subject, ast.Lambda):
        function = _of_lambda(subject, kept, traced, bound)
    else:
        function = _of_call(subject, arguments, traced)
    if function is None:
        return None
    parts = {f"traced{number}": argument.node for number, argument in enumerate(traced)}
    passed = ", ".join(f"{{{name}}}" for name in parts)
    text = f"{checkpoint.around(function.text)}({passed})"
    return [Replace(site.module, outer, Code(text, (*function.parts, *parts.items())))]


def _arguments(call: ast.Call, bound: Arguments) -> Iterator[_Argument]:
    names = {id(node): name for name, node in bound.by_name.items()}
    names |= {id(k.value): k.arg for k in bound.double_star if k.arg is not None}
    for arg in call.args:
        yield _Argument(arg, "", names.get(id(arg), ""))
    for keyword in call.keywords:
        prefix = f"{keyword.arg}=" if keyword.arg is not None else "**"
        yield _Argument(keyword.value, prefix, names.get(id(keyword.value), ""))


def _order_matters(kept: Iterable[_Argument], traced: Iterable[_Argument]) -> bool:
    """Return whether closing over arguments changes the order of side effects."""
    kept_effects = sum(has_side_effects(a.node) for a in kept)
    return bool(kept_effects) and kept_effects + sum(has_side_effects(a.node) for a in traced) > 1


def _of_call(
    subject: ast.expr, arguments: Sequence[_Argument], traced: Sequence[_Argument]
) -> Code | None:
    """Return `lambda x: f(x, train)`; values that must be computed first become defaults."""
    own = {a.parameter for a in traced}
    if any(isinstance(n, ast.Call) for n in ast.walk(subject)) or own & names_in(subject):
        return None
    plain = {a for a in arguments if _is_plain(a.node) and not own & names_in(a.node)}
    taken = own.union(names_in(subject), *(names_in(a.node) for a in plain))
    names = [a.parameter for a in traced]
    given: list[str] = []
    parts = {"subject": subject}
    for number, argument in enumerate(arguments):
        text = argument.parameter
        if argument not in traced:
            value = argument.node
            star = "*" if isinstance(value, ast.Starred) else ""
            parts[f"argument{number}"] = value.value if isinstance(value, ast.Starred) else value
            text = f"{{argument{number}}}"
            if argument not in plain:
                if not argument.parameter or argument.parameter in taken:
                    return None
                names.append(f"{argument.parameter}={text}")
                text = argument.parameter
            text = star + text
        given.append(argument.keyword + text)
    return Code.of(lambda_text(names, f"{{subject}}({', '.join(given)})"), **parts)


def _of_lambda(
    subject: ast.Lambda, kept: Sequence[_Argument], traced: Sequence[_Argument], bound: Arguments
) -> Code | None:
    """Return the lambda without the parameters that are closed over under their own names."""
    if bound.unclear or len(parameters(subject)) > len(positional_parameters(subject)):
        return None
    names = [a.parameter for a in traced]
    parts: dict[str, ast.expr] = {"body": subject.body}
    for argument in kept:
        if not isinstance(argument.node, ast.Name) or argument.node.id != argument.parameter:
            parts[f"value_{argument.parameter}"] = argument.node
            names.append(f"{argument.parameter}={{value_{argument.parameter}}}")
    for parameter in positional_parameters(subject):
        default = default_of(subject, parameter)
        if parameter.arg not in bound.by_name and default is not None:
            parts[f"value_{parameter.arg}"] = default
            names.append(f"{parameter.arg}={{value_{parameter.arg}}}")
    return Code.of(lambda_text(names, "{body}"), **parts)


def _is_plain(node: ast.expr) -> bool:
    """Return whether an expression has the same value inside the checkpoint, which traces."""
    match node:
        case ast.Name() | ast.Constant() | ast.Lambda():
            return True
        case ast.Attribute():
            return node.attr not in ARRAY_ATTRIBUTES and _is_plain(node.value)
        case ast.Starred():
            return _is_plain(node.value)
        case ast.UnaryOp():
            return isinstance(node.operand, ast.Constant)
    return False
