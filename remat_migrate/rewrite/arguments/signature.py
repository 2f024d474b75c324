"""The source code of signatures and calls, without the parameters that a function closes over."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass

from ...analysis import Module
from ...analysis.names.scopes import FunctionNode
from ...analysis.values.bind import default_of, positional_parameters


@dataclass(frozen=True, slots=True)
class Signature:
    """The source code of parameters.

    Attributes:
        written: each in a `def` or `lambda`.
        passed: each in a call that passes it on under its own name.
    """

    written: tuple[str, ...]
    passed: tuple[str, ...]

    @property
    def arguments(self) -> str:
        """The arguments of a call."""
        return ", ".join(self.passed)


def words_in(module: Module) -> set[str]:
    """Return all words of a file: a name that is none of them is neither seen nor hidden."""
    return set(re.findall(r"\w+", module.source.text))


def free_name(wanted: str, taken: Collection[str]) -> str:
    """Return `wanted`, with a number if it is taken."""
    names = (wanted if i == 1 else f"{wanted}_{i}" for i in itertools.count(1))
    return next(name for name in names if name not in taken)


def signature(
    function: FunctionNode,
    *,
    without: Collection[str] = (),
    defaults: Callable[[ast.expr], str] | None = ast.unparse,
) -> Signature:
    """Return the parameters of a function, without some of them.

    `defaults` returns the source code of a default; None leaves defaults out.
    """
    a = function.args
    written: list[str] = []
    passed: list[str] = []

    def add(parameter: ast.arg, stars: str, argument: str) -> None:
        default = default_of(function, parameter)
        text = "" if default is None or defaults is None else f"={defaults(default)}"
        written.append(f"{stars}{parameter.arg}{text}")
        passed.append(argument)

    for index, parameter in enumerate(positional_parameters(function)):
        if parameter.arg not in without:
            add(parameter, "", parameter.arg)
        if index == len(a.posonlyargs) - 1 and written:
            written.append("/")
    keywords = [p for p in a.kwonlyargs if p.arg not in without]
    if a.vararg is not None and a.vararg.arg not in without:
        add(a.vararg, "*", f"*{a.vararg.arg}")
    elif keywords:
        written.append("*")
    for parameter in keywords:
        add(parameter, "", f"{parameter.arg}={parameter.arg}")
    if a.kwarg is not None and a.kwarg.arg not in without:
        add(a.kwarg, "**", f"**{a.kwarg.arg}")
    return Signature(tuple(written), tuple(passed))
