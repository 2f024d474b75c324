"""Binds arguments as Python does: those of a call to parameters, and those of calls and partials
that apply an Api to its subject (the function or class that it wraps) and to its options.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from ...libraries.apis import Api, ApiTable
from ..names.module import FunctionNode, Module, Place
from .values import External, Partial, Value


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of a call by parameter.

    Attributes:
        by_name: the expression for each named parameter; absent ones keep their default.
        by_position: the names in `by_name` that are passed by position.
        star: expressions that go into `*args`.
        double_star: keywords that go into `**kwargs`.
        unclear: the call unpacks `*x` or `**x`, so it may pass more parameters than `by_name`.
        wrong: the call does not match the signature.
        skip: how many leading parameters are bound already (`self`).
    """

    by_name: dict[str, ast.expr] = field(default_factory=dict)
    by_position: frozenset[str] = frozenset()
    star: tuple[ast.expr, ...] = ()
    double_star: tuple[ast.keyword, ...] = ()
    unclear: bool = False
    wrong: bool = False
    skip: int = 0


def positional_parameters(function: FunctionNode) -> list[ast.arg]:
    """Return the parameters that may be passed by position, without `*args`."""
    return [*function.args.posonlyargs, *function.args.args]


def first_parameter(function: FunctionNode) -> ast.arg | None:
    """Return the first parameter that may be passed by position: `self`, for a method."""
    return next(iter(positional_parameters(function)), None)


def bind_call(
    function: FunctionNode,
    args: Sequence[ast.expr],
    keywords: Sequence[ast.keyword],
    skip: int = 0,
) -> Arguments:
    """Bind a call to a function whose first `skip` parameters are bound already."""
    positional = positional_parameters(function)[skip:]
    names = {p.arg for p in (*function.args.args, *function.args.kwonlyargs)}
    by_name: dict[str, ast.expr] = {}
    by_position: set[str] = set()
    star: list[ast.expr] = []
    double_star: list[ast.keyword] = []
    unclear = wrong = False
    for index, arg in enumerate(args):
        if isinstance(arg, ast.Starred):
            unclear = True
            break
        if index < len(positional):
            by_name[positional[index].arg] = arg
            by_position.add(positional[index].arg)
        elif function.args.vararg is not None:
            star.append(arg)
        else:
            wrong = True
    for keyword in keywords:
        if keyword.arg is None:
            unclear = True
        elif keyword.arg in names and keyword.arg not in by_name:
            by_name[keyword.arg] = keyword.value
        elif function.args.kwarg is not None:
            double_star.append(keyword)
        else:
            wrong = True
    return Arguments(
        by_name, frozenset(by_position), tuple(star), tuple(double_star), unclear, wrong, skip
    )


def with_partials(
    args: Sequence[ast.expr], keywords: Sequence[ast.keyword], partials: Iterable[ast.Call]
) -> tuple[list[ast.expr], list[ast.keyword]]:
    """Return the arguments together with those of `functools.partial` calls, outermost first."""
    args, keywords = list(args), list(keywords)
    for call in partials:
        args = [*call.args[1:], *args]
        named = {k.arg for k in keywords}
        keywords = [
            *(k for k in call.keywords if k.arg is None or k.arg not in named),
            *keywords,
        ]
    return args, keywords


def argument(
    args: Sequence[ast.expr],
    keywords: Sequence[ast.keyword],
    name: str,
    position: int | None,
) -> ast.expr | None:
    """Return the argument of a call for a parameter."""
    for keyword in keywords:
        if keyword.arg == name:
            return keyword.value
    return args[position] if position is not None and position < len(args) else None


def call_order(function: FunctionNode) -> tuple[tuple[str, str], ...]:
    """Return the names and defaults of positional parameters, which positional calls depend on."""
    return tuple(
        (p.arg, ast.dump(d) if (d := default_of(function, p)) is not None else "")
        for p in positional_parameters(function)
    )


def default_of(function: FunctionNode, parameter: ast.arg) -> ast.expr | None:
    """Return the default of a parameter, or None."""
    a = function.args
    positional = positional_parameters(function)
    if parameter in positional:
        index = positional.index(parameter) - (len(positional) - len(a.defaults))
        return a.defaults[index] if index >= 0 else None
    if parameter in a.kwonlyargs:
        return a.kw_defaults[a.kwonlyargs.index(parameter)]
    return None


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
