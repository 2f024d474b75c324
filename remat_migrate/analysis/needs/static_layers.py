"""Arguments that a transformation around a function declares static.

`jax.jit(f, static_argnames="mode")` hashes what is passed for `mode`, so it must not be traced.
The same holds for `static_broadcasted_argnums` of `jax.pmap`, and for `nondiff_argnums`:
https://docs.jax.dev/en/latest/_autosummary/jax.jit.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..names.module import Module
from ..values.bind import bind_call, positional_parameters, with_partials
from ..values.containers import elements
from ..values.evaluator import Evaluator
from ..values.values import (
    Bound,
    Constant,
    Container,
    Function,
    Partial,
    Value,
    Wrapped,
    layers,
    underlying,
)

_OPTIONS = (
    *("static_argnums", "static_broadcasted_argnums", "nondiff_argnums"),
    *("static_argnames", "nondiff_argnames"),
)


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
                    if option.arg in _OPTIONS:
                        reason = f"`{option.arg}` of {how}"
                        listed = listed_items(evaluator, layer.module, option.value)
                        named = _named(value, listed, args, keywords, bound)
                        if named is None:
                            passed = [*args, *(k.value for k in keywords)]
                            yield from ((arg, f"perhaps {reason}", False) for arg in passed)
                        else:
                            yield from ((arg, reason, True) for arg in named)


def _named(
    value: Value,
    listed: list[object] | None,
    args: list[ast.expr],
    keywords: list[ast.keyword],
    bound: int,
) -> list[ast.expr] | None:
    """Return the arguments that indices or names select; None if they are not known.

    `bound` leading parameters are not passed.
    """
    function = underlying(value)
    if listed is None or not isinstance(function, Function):
        return None
    names = [p.arg for p in positional_parameters(function.node)]
    passed = bind_call(function.node, args, keywords, bound).by_name
    selected = [
        names[item] if isinstance(item, int) and -len(names) <= item < len(names) else item
        for item in listed
    ]
    return [passed[name] for name in selected if isinstance(name, str) and name in passed]


def listed_items(
    evaluator: Evaluator, module: Module, node: ast.expr, depth: int = 3
) -> list[object] | None:
    """Return the indices or names that an option lists; None if they are not known."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        items = listed_items(evaluator, module, node.operand, 0)
        return items and [-item for item in items if isinstance(item, int)]
    match list(evaluator.values(module, node)):
        case [Constant(value=None)]:
            return []
        case [Constant(value=int() | str() as item)] if not isinstance(item, bool):
            return [item]
        case [Container() as container] if depth and not isinstance(container.node, ast.Dict):
            parts = [listed_items(evaluator, *place, depth - 1) for place in elements(container)]
            known = [part for part in parts if part is not None]
            return [item for part in known for item in part] if known == parts else None
    return None


def gradient_places(evaluator: Evaluator, wrapped: Wrapped) -> list[int]:
    """Return the `argnums` of `jax.grad(f, argnums=...)`; the first argument unless known."""
    call = wrapped.node if isinstance(wrapped.node, ast.Call) else ast.Call(wrapped.node, [], [])
    options = [*call.args[1:2], *(k.value for k in call.keywords if k.arg == "argnums")]
    listed = listed_items(evaluator, wrapped.module, options[-1]) if options else None
    return [item for item in listed or () if isinstance(item, int)] or [0]
