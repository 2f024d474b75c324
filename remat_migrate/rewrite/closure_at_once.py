"""Closing over what Python must know where a checkpoint is applied and called at once.

jax.checkpoint(f, concrete=True)(x, train)   ->   jax.checkpoint(lambda x: f(x, train))(x)
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..model import Module, Project
from ..model.bind import Arguments, default_of, positional_parameters
from ..model.library import ARRAY_ATTRIBUTES
from ..model.scopes import parameters
from ..model.sites import Site
from ..model.statics import Statics
from ..source import Edit
from ..source.layout import layout_of
from .indent import indent_unit, indentation
from .signature import laid_out, lambda_text

_EFFECTS = (ast.Call, ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)


@dataclass(frozen=True, slots=True)
class _Argument:
    """An argument of the call: `name=`, if it is passed by keyword, and the parameter."""

    node: ast.expr
    keyword: str
    parameter: str


def close_over_at_once(
    site: Site, statics: Statics, checkpoint: str, options: Sequence[str]
) -> list[Edit] | None:
    """The edits of a checkpoint that is called where it is applied; None for other forms."""
    module, outer = site.module, _call_at_once(site)
    if outer is None or site.subject is None:
        return None
    subject = site.subject[1]
    bound = next((b for call, b in statics.bound if call.node is outer), None)
    if bound is None or bound.wrong or bound.star or not isinstance(subject, ast.expr):
        return None
    if statics.target is None:
        return None
    closed = {r.name for r in statics.required}
    kwarg = statics.target.function.node.args.kwarg
    if kwarg is not None and kwarg.arg in closed:
        closed |= {k.arg for k in bound.double_star if k.arg is not None}
    arguments = list(_arguments(outer, bound))
    traced = [a for a in arguments if a.parameter and a.parameter not in closed]
    kept = [a for a in arguments if a not in traced]
    if _order_matters(kept, traced):
        return None
    if isinstance(subject, ast.Lambda):
        function = _of_lambda(module, subject, kept, traced, bound)
    else:
        function = _of_call(module, subject, arguments, traced)
    if function is None:
        return None
    return _written(module, outer, checkpoint, [function, *options], traced)


def close_over_all_at_once(
    project: Project, site: Site, checkpoint: str, options: Sequence[str]
) -> list[Edit] | None:
    """The same where the wrapped function cannot be seen: only arrays stay arguments."""
    module, outer = site.module, _call_at_once(site)
    if outer is None or site.subject is None or not isinstance(site.subject[1], ast.expr):
        return None
    given = [("", arg) for arg in outer.args]
    given += [(f"{k.arg}=" if k.arg else "**", k.value) for k in outer.keywords]
    taken = set().union(*(_names(node) for _, node in given), _names(site.subject[1]))
    arguments: list[_Argument] = []
    for prefix, node in given:
        if isinstance(node, ast.Name) and all(a.parameter != node.id for a in arguments):
            parameter = node.id
        else:
            parameter = free_name(prefix.strip("*=") or "x", taken)
            taken.add(parameter)
        arguments.append(_Argument(node, prefix, parameter))
    traced = [a for a in arguments if project.kinds.of(module, a.node) == "array"]
    if _order_matters([a for a in arguments if a not in traced], traced):
        return None
    function = _of_call(module, site.subject[1], arguments, traced)
    if function is None:
        return None
    return _written(module, outer, checkpoint, [function, *options], traced)


def _call_at_once(site: Site) -> ast.Call | None:
    """The call of what an application makes, where it stands around it and has no comment."""
    module, application = site.module, site.application
    outer = module.parent(application) if application is not None else None
    if not isinstance(outer, ast.Call) or outer.func is not application:
        return None
    return None if layout_of(module.source).comments_in(*module.span(outer)) else outer


def free_name(wanted: str, taken: Collection[str]) -> str:
    """`wanted`, with a number if it is taken."""
    names = (wanted if i == 1 else f"{wanted}_{i}" for i in itertools.count(1))
    return next(name for name in names if name not in taken)


def _arguments(call: ast.Call, bound: Arguments) -> Iterator[_Argument]:
    names = {id(node): name for name, node in bound.by_name.items()}
    names |= {id(k.value): k.arg for k in bound.double_star if k.arg is not None}
    for arg in call.args:
        yield _Argument(arg, "", names.get(id(arg), ""))
    for keyword in call.keywords:
        prefix = f"{keyword.arg}=" if keyword.arg is not None else "**"
        yield _Argument(keyword.value, prefix, names.get(id(keyword.value), ""))


def _order_matters(kept: Iterable[_Argument], traced: Iterable[_Argument]) -> bool:
    """Whether arguments that are closed over do something, and others do, too."""
    kept_effects = sum(_has_effects(a.node) for a in kept)
    return bool(kept_effects) and kept_effects + sum(_has_effects(a.node) for a in traced) > 1


def _has_effects(node: ast.expr) -> bool:
    if isinstance(node, ast.Lambda):
        return False
    return any(isinstance(inner, _EFFECTS) for inner in ast.walk(node))


def _of_call(
    module: Module, subject: ast.expr, arguments: Sequence[_Argument], traced: Sequence[_Argument]
) -> str | None:
    """`lambda x: f(x, train)`; what must be evaluated before is a default: `n=sizes[i]`."""
    own = {a.parameter for a in traced}
    if any(isinstance(n, ast.Call) for n in ast.walk(subject)) or own & _names(subject):
        return None
    plain = {a for a in arguments if _is_plain(a.node) and not own & _names(a.node)}
    taken = own.union(_names(subject), *(_names(a.node) for a in plain))
    names = [a.parameter for a in traced]
    given: list[str] = []
    for argument in arguments:
        text = argument.parameter
        if argument not in traced:
            text = module.segment(argument.node)
            if argument not in plain:
                if not argument.parameter or argument.parameter in taken:
                    return None
                names.append(f"{argument.parameter}={text}")
                text = argument.parameter
        given.append(argument.keyword + text)
    return lambda_text(names, f"{module.segment(subject)}({', '.join(given)})")


def _of_lambda(
    module: Module,
    subject: ast.Lambda,
    kept: Sequence[_Argument],
    traced: Sequence[_Argument],
    bound: Arguments,
) -> str | None:
    """The same lambda without the parameters that are closed over under their own names."""
    if bound.unclear or len(parameters(subject)) > len(positional_parameters(subject)):
        return None
    names = [a.parameter for a in traced]
    for argument in kept:
        if not isinstance(argument.node, ast.Name) or argument.node.id != argument.parameter:
            names.append(f"{argument.parameter}={module.segment(argument.node)}")
    for parameter in positional_parameters(subject):
        default = default_of(subject, parameter)
        if parameter.arg not in bound.by_name and default is not None:
            names.append(f"{parameter.arg}={module.segment(default)}")
    return lambda_text(names, module.segment(subject.body))


def _names(node: ast.expr) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def _is_plain(node: ast.expr) -> bool:
    """Whether an expression means the same inside the checkpoint, where operations are traced."""
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


def _written(
    module: Module,
    outer: ast.Call,
    checkpoint: str,
    arguments: Sequence[str],
    traced: Sequence[_Argument],
) -> list[Edit]:
    passed = ", ".join(module.segment(a.node) for a in traced)
    source, span = module.source, module.span(outer)
    before = source.text[source.line_starts[outer.lineno - 1] : span.start]
    around = before, source.text[span.end :].partition("\n")[0]
    indent, unit = indentation(module, outer.lineno), indent_unit(module)
    lines = laid_out(checkpoint, arguments, f"({passed})", around, indent, unit)
    return [Edit(source.path, *span, source.newline.join(lines))]
