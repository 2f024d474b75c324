"""Signatures and calls as text: parameters without those that are closed over."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from ...analysis.names.scopes import FunctionNode
from ...analysis.values.bind import default_of, positional_parameters


@dataclass(frozen=True, slots=True)
class Signature:
    """Parameters as text.

    Attributes:
        written: each as written in a `def` or `lambda`.
        passed: each as written in a call that passes it on under its own name.
    """

    written: tuple[str, ...]
    passed: tuple[str, ...]

    @property
    def arguments(self) -> str:
        """The arguments on one line."""
        return ", ".join(self.passed)


def lambda_text(parameters: Sequence[str], body: str) -> str:
    """`lambda parameters: body`."""
    return f"lambda {', '.join(parameters)}: {body}" if parameters else f"lambda: {body}"


def names_in(node: ast.AST) -> set[str]:
    """The names that a node reads, writes or takes as parameters."""
    walked = list(ast.walk(node))
    names = {n.id for n in walked if isinstance(n, ast.Name)}
    return names | {n.arg for n in walked if isinstance(n, ast.arg)}


def free_name(wanted: str, taken: Collection[str]) -> str:
    """`wanted`, with a number if it is taken."""
    names = (wanted if i == 1 else f"{wanted}_{i}" for i in itertools.count(1))
    return next(name for name in names if name not in taken)


def signature(
    function: FunctionNode,
    *,
    skip: int = 0,
    without: Collection[str] = (),
    by_keyword: Collection[str] = (),
    defaults: Callable[[ast.expr], str] | None = ast.unparse,
    annotations: Callable[[ast.expr], str] | None = None,
) -> Signature:
    """The parameters of a function from number `skip` on, without some of them.

    What stands behind one of `by_keyword`, which a partial has given, is passed by keyword.
    `defaults` and `annotations` say how those are written; None leaves them out.
    """
    a = function.args
    written: list[str] = []
    passed: list[str] = []
    positional = positional_parameters(function)
    after_keyword = False

    def one(parameter: ast.arg, stars: str = "") -> str:
        text = stars + parameter.arg
        if annotations is not None and parameter.annotation is not None:
            text += f": {annotations(parameter.annotation)}"
        default = default_of(function, parameter)
        if defaults is not None and default is not None:
            equals = " = " if annotations is not None and parameter.annotation else "="
            text += equals + defaults(default)
        return text

    gap = False
    for index, parameter in enumerate(positional):
        gap = gap or parameter.arg in by_keyword
        if index >= skip and parameter.arg not in without:
            written.append(one(parameter))
            passed.append(f"{parameter.arg}={parameter.arg}" if gap else parameter.arg)
        if index == len(a.posonlyargs) - 1 and written:
            written.append("/")
    if a.vararg is not None and a.vararg.arg not in without:
        written.append(one(a.vararg, "*"))
        passed.append(f"*{a.vararg.arg}")
        after_keyword = True
    for parameter in a.kwonlyargs:
        if parameter.arg in without:
            continue
        if not after_keyword:
            written.append("*")
            after_keyword = True
        written.append(one(parameter))
        passed.append(f"{parameter.arg}={parameter.arg}")
    if a.kwarg is not None and a.kwarg.arg not in without:
        written.append(one(a.kwarg, "**"))
        passed.append(f"**{a.kwarg.arg}")
    return Signature(tuple(written), tuple(passed))
