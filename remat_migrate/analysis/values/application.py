"""How an Api is applied: through partials, with which subject and options."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...libraries.apis import Api, ApiTable
from ..names.module import Module, Place
from .values import External, Partial, Value


def api_of(apis: ApiTable, callee: Value) -> Api | None:
    """Return the Api that calling a value applies, looking through `functools.partial`."""
    callee = without_partials(callee)
    return apis.find(callee.name) if isinstance(callee, External) else None


def without_partials(value: Value) -> Value:
    """Return what a `functools.partial` calls in the end; other values unchanged."""
    while isinstance(value, Partial):
        value = value.func
    return value


def argument_calls(
    callee: Value, module: Module, node: ast.Call | None
) -> Iterator[tuple[Module, ast.Call, list[ast.expr]]]:
    """Yield the calls that supply arguments, innermost partial first, with their positional
    arguments.
    """
    chain: list[tuple[Module, ast.Call, list[ast.expr]]] = []
    if node is not None:
        chain.append((module, node, list(node.args)))
    while isinstance(callee, Partial):
        # A factory called without a subject (`nnx.remat(prevent_cse=False)`) is also a Partial,
        # created by a call of the Api itself: all its arguments are options.
        args = callee.call.args[1:] if callee.by_functools else callee.call.args
        chain.append((callee.module, callee.call, list(args)))
        callee = callee.func
    yield from reversed(chain)


def subject_of(
    apis: ApiTable, callee: Value, module: Module, node: ast.Call | None
) -> Place | None:
    """Return the function or class that an application wraps; None if it passes none."""
    api = api_of(apis, callee)
    if api is None:
        return None
    index = api.subject_index
    for owner, call, args in argument_calls(callee, module, node):
        if any(isinstance(arg, ast.Starred) for arg in args[: index + 1]):
            return None
        if index < len(args):
            return owner, args[index]
        index -= len(args)
        for keyword in call.keywords:
            if keyword.arg == api.subject:
                return owner, keyword.value
    return None
