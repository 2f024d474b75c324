"""Which arguments of a library function must be concrete: a table that probing JAX produced.

`library_needs.txt` holds one line per function, its parameters in order:

    jax.numpy.sum a axis! dtype! out? keepdims! initial where promote_integers!
    jax.numpy.repeat a repeats!total_repeat_length axis! * total_repeat_length!
    jax.numpy.shape a -> static

Parameters after `*` are keyword-only; `*xs` and `**xs` take any number of arguments. The mark of a
parameter tells what it accepts at trace time:

    x           a traced value
    x!          a concrete value; with `x!option`, also a traced one if `option` is passed
    x()         a function
    x~          a traced value, depending on its type or the version of JAX
    x?          unknown

`-> static` marks a result that is concrete even if the arguments are traced.
`python -m benchmarks.library_needs` writes the file.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from .library_arguments import TRACED_MODULES

Takes = Literal["traced", "concrete", "function", "depends", "unknown"]
_MARKS: dict[str, Takes] = {
    "": "traced", "!": "concrete", "()": "function", "~": "depends", "?": "unknown",
}  # fmt: skip
_PARAMETER = re.compile(r"(\*{0,2})(\w*)(\(\)|[!~?])?(\w*)")


@dataclass(frozen=True, slots=True)
class LibraryParameter:
    """A parameter of a library function.

    Attributes:
        name: its name.
        takes: what it accepts at trace time.
        unless: the option with which a concrete parameter may be traced.
    """

    name: str
    takes: Takes
    unless: str = ""


UNKNOWN = LibraryParameter("", "unknown")


@dataclass(frozen=True, slots=True)
class LibraryFunction:
    """What a library function accepts at trace time.

    Attributes:
        positional: the parameters that can be passed by position, in order.
        variadic: the parameter for further positional arguments, if any.
        keywords: every parameter that can be passed by keyword, by name.
        others: the parameter for further keyword arguments, if any.
        static_result: whether the result is concrete even if the arguments are traced.
        receiver: the array, for a method of arrays.
    """

    positional: tuple[LibraryParameter, ...]
    variadic: LibraryParameter | None
    keywords: dict[str, LibraryParameter]
    others: LibraryParameter | None
    static_result: bool
    receiver: LibraryParameter | None = None

    def passed(self, node: ast.Call) -> Iterator[tuple[ast.expr, LibraryParameter]]:
        """Yield the arguments of a call with their parameters; UNKNOWN if the table has none."""
        rest = self.variadic or UNKNOWN
        given = {k.arg for k in node.keywords}
        starred = False
        for position, argument in enumerate(node.args):
            starred = starred or isinstance(argument, ast.Starred)
            if starred:
                later = {*self.positional[position:], *([self.variadic] if self.variadic else [])}
                alike = len({(p.takes, p.unless) for p in later}) == 1
                parameter = next(iter(later)) if alike else UNKNOWN
            else:
                own = self.positional[position : position + 1]
                parameter = own[0] if own else rest
            yield argument, _with_options(parameter, given)
        for keyword in node.keywords:
            parameter = self.keywords.get(keyword.arg or "", self.others or UNKNOWN)
            if parameter.takes == "unknown" and always_concrete(keyword.arg):
                parameter = LibraryParameter(keyword.arg or "", "concrete")
            yield keyword.value, _with_options(parameter, given)


def _with_options(parameter: LibraryParameter, given: set[str | None]) -> LibraryParameter:
    if parameter.unless in given:
        return LibraryParameter(parameter.name, "traced")
    return UNKNOWN if parameter.unless and None in given else parameter


@cache
def needs_of(name: str) -> LibraryFunction | None:
    """Return what a library function accepts; None if the table does not list it.

    Methods of arrays have names like `jax.Array.reshape` and `jax.Array.at.set`.
    """
    name = re.sub(r"^jax\.tree_(?!util\.)", "jax.tree_util.tree_", name)
    table = _table()
    start = max(table.find(f"\n{name} "), table.find(f"\n{name}\n"))
    if start < 0:
        return None
    line = table[start + 1 : table.index("\n", start + 1)]
    line, _, result = line.partition(" -> ")
    positional: list[LibraryParameter] = []
    keywords: dict[str, LibraryParameter] = {}
    variadic = others = None
    by_position = True
    for word in line.split()[1:]:
        match = _PARAMETER.fullmatch(word)
        assert match is not None, line
        stars, own, mark, unless = match.groups(default="")
        parameter = LibraryParameter(own, _MARKS[mark], unless)
        if stars == "**":
            others = parameter
        elif stars:
            by_position = False
            variadic = parameter if own else None
        else:
            keywords[own] = parameter
            if by_position:
                positional.append(parameter)
    receiver = keywords.pop("self", None)
    if receiver is not None:
        del positional[0]
    return LibraryFunction(
        tuple(positional), variadic, keywords, others, result == "static", receiver
    )


def functions() -> Iterator[str]:
    """Yield the qualified names of all functions in the table."""
    for line in _table().splitlines():
        if line and not line.startswith("#"):
            yield line.partition(" ")[0]


@cache
def always_concrete(keyword: str | None) -> bool:
    """Return whether nine of ten functions with such a parameter need a concrete value for it."""
    marks = re.findall(rf" {keyword}(\(\)|[!~]|)(?=\w*[ \n])", _table()) if keyword else []
    return marks.count("!") > 1 and marks.count("!") >= 0.9 * len(marks)


def has_static_result(name: str) -> bool:
    """Return whether the result of a function is concrete even if its arguments are traced."""
    function = needs_of(name)
    return function is not None and function.static_result


@cache
def computes_array(name: str) -> bool:
    """Return whether the result of a JAX function is an array, which a checkpoint traces."""
    function = needs_of(name)
    if function is None or function.static_result or name.startswith("jax.nn.initializers."):
        return False
    if name == "jax.lax.psum":
        return False  # `psum(1, axis)` is the size of the axis, a Python integer
    known = [p for p in function.keywords.values() if p.takes != "unknown"]
    return name.startswith(TRACED_MODULES) and (bool(known) or function.variadic is not None)


def array_method(func: ast.Attribute) -> LibraryFunction | None:
    """Return what a method of arrays accepts, or None: `x.reshape`, `x.at[i].set`."""
    is_at = isinstance(func.value, ast.Subscript) and getattr(func.value.value, "attr", "") == "at"
    return needs_of(f"jax.Array.{'at.' if is_at else ''}{func.attr}")


@cache
def is_array_method(name: str) -> bool:
    """Return whether traced arrays have a method that strings and containers do not have."""
    method = needs_of(f"jax.Array.{name}")
    if method is None or any(hasattr(cls, name) for cls in (str, list, dict, set)):
        return False
    return method.receiver is not None and method.receiver.takes == "traced"


@cache
def _table() -> str:
    return "\n" + Path(__file__).with_name("library_needs.txt").read_text(encoding="utf-8")
