"""Arguments that a transformation around a function declares static.

`jax.jit(f, static_argnames="mode")` hashes what is passed for `mode`, so it must not be traced.
The same holds for `static_broadcasted_argnums` of `jax.pmap`, and for `nondiff_argnums`:
https://docs.jax.dev/en/latest/_autosummary/jax.jit.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..names.module import Module
from ..values.bind import positional_parameters, with_partials
from ..values.callees import layers, underlying
from ..values.evaluator import Evaluator
from ..values.values import Bound, Constant, Container, Function, Partial, Value, Wrapped

_BY_INDEX = ("static_argnums", "static_broadcasted_argnums", "nondiff_argnums")
_BY_NAME = ("static_argnames", "nondiff_argnames")


def static_passed(
    evaluator: Evaluator, value: Value, call: ast.Call
) -> Iterator[tuple[ast.expr, str, bool]]:
    """Yield what a call passes for arguments that a transformation must not trace.

    Args:
        evaluator: evaluates the options.
        value: what is called: a function with transformations around it.
        call: the call.

    Yields:
        The argument, the option and its transformation, and whether the option certainly names it.
    """
    partials: list[ast.Call] = []
    bound = 0
    for layer in layers(value):
        match layer:
            case Partial(call=partial):
                partials.append(partial)
            case Bound():
                bound = 1
            case Wrapped(how=how, node=ast.Call(keywords=options)) if how.startswith("jax."):
                args, keywords = with_partials(call.args, call.keywords, partials)
                for option in options:
                    if option.arg in (*_BY_INDEX, *_BY_NAME):
                        reason = f"`{option.arg}` of {how}"
                        listed = listed_items(evaluator, layer.module, option.value)
                        if listed is None:
                            passed = [*args, *(k.value for k in keywords)]
                            yield from ((arg, f"perhaps {reason}", False) for arg in passed)
                            continue
                        for found in _named(value, listed, args, keywords, bound):
                            yield found, reason, True


def _named(
    value: Value,
    listed: list[object],
    args: list[ast.expr],
    keywords: list[ast.keyword],
    bound: int,
) -> Iterator[ast.expr]:
    """Yield the arguments that indices or names select; `bound` leading ones are not passed."""
    function = underlying(value)
    names: list[str] = []
    if isinstance(function, Function):
        names = [p.arg for p in positional_parameters(function.node)]
    spread = next((i for i, arg in enumerate(args) if isinstance(arg, ast.Starred)), len(args))
    for item in listed:
        index = names.index(item) if isinstance(item, str) and item in names else item
        if isinstance(index, int) and index < 0:
            index += len(names) or len(args) + bound
        name = item if isinstance(item, str) else ""
        if isinstance(index, int):
            if 0 <= index - bound < spread:
                yield args[index - bound]
            if index < len(names):
                name = names[index]
        yield from (keyword.value for keyword in keywords if name and keyword.arg == name)


def listed_items(
    evaluator: Evaluator, module: Module, node: ast.expr, depth: int = 3
) -> list[object] | None:
    """Return the indices or names that an option lists; None if they are not known."""
    match node:
        case ast.Constant(value=None):
            return []
        case ast.Constant(value=int() | str() as item) if not isinstance(item, bool):
            return [item]
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(number))):
            return [-number]
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
            found: list[object] = []
            for part in parts:
                items = listed_items(evaluator, module, part, depth - 1) if depth else None
                if items is None:
                    return None
                found += items
            return found
    values = evaluator.values(module, node)
    if depth and len(values) == 1:
        match next(iter(values)):
            case Constant(value=int() | str() as item) if not isinstance(item, bool):
                return [item]
            case Container(module=owner, node=inner) if not isinstance(inner, ast.Dict):
                return listed_items(evaluator, owner, inner, depth - 1)
    return None
