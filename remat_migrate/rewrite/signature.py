"""Signatures and calls as text: a function's parameters split into those closed over and the rest."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection
from dataclasses import dataclass

from ..model.bind import default_of
from ..model.scopes import FunctionNode


@dataclass(frozen=True, slots=True)
class Signature:
    """Parameters as text.

    Attributes:
        parameters: as written in a `def` or `lambda`.
        arguments: as written in a call that passes each parameter on under its own name.
    """

    parameters: str
    arguments: str


def signature(
    function: FunctionNode,
    *,
    skip: int = 0,
    without: Collection[str] = (),
    defaults: Callable[[ast.expr], str] | None = ast.unparse,
    annotations: Callable[[ast.expr], str] | None = None,
) -> Signature:
    """The parameters of a function from number `skip` on, without some of them.

    `defaults` and `annotations` say how those are written; None leaves them out.
    """
    a = function.args
    written: list[str] = []
    passed: list[str] = []
    positional = [*a.posonlyargs, *a.args]
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

    for index, parameter in enumerate(positional):
        if index >= skip and parameter.arg not in without:
            written.append(one(parameter))
            # Behind a parameter that is left out nothing changes: the order stays.
            passed.append(parameter.arg)
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
    return Signature(", ".join(written), ", ".join(passed))
