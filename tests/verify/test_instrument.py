"""Every definition of a unit gets a recorder, nothing else changes, the text still runs."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable
from typing import Any

import pytest

from remat_migrate.errors import VerificationError
from remat_migrate.verify.instrument import RECORDER, instrument

F = "trainer/blocks.py::f"


def recorded(text: str, *units: str) -> tuple[dict[str, Any], list[tuple[str, int, str]]]:
    """Run the instrumented text. Return its names, and what is recorded: unit, bound, name."""
    made = checked(text, *units)
    wrapped: list[tuple[str, int, str]] = []

    def recorder(unit: str, bound: int) -> Callable[[Any], Any]:
        def wrap(function: Any) -> Any:
            wrapped.append((unit, bound, function.__name__))
            return function

        return wrap

    setattr(builtins, RECORDER, recorder)
    try:
        defined: dict[str, Any] = {"__name__": "trainer.blocks"}
        exec(compile(made, "blocks.py", "exec"), defined)
    finally:
        delattr(builtins, RECORDER)
    return defined, wrapped


def checked(text: str, *units: str) -> str:
    """Return `text` with recorders, after checking what must hold of any."""
    made = instrument(text, units, "trainer/blocks.py")
    tree = WithoutRecorders().visit(ast.parse(made))
    assert ast.unparse(tree) == ast.unparse(ast.parse(text))
    plain: dict[str, Any] = {"__name__": "trainer.blocks"}
    exec(compile(made, "blocks.py", "exec"), plain)  # nothing records
    return made


class WithoutRecorders(ast.NodeTransformer):
    def visit_FunctionDef(self, node: Any) -> Any:
        node.decorator_list = [d for d in node.decorator_list if RECORDER not in ast.unparse(d)]
        return self.generic_visit(node)

    visit_AsyncFunctionDef = visit_FunctionDef


@pytest.mark.parametrize(
    "text",
    [
        "def f(x): return x",
        "def f(x):\r\n\treturn x\r\n",
        "async def f(x):\n  return x\n",
        "if 1:\n\tdef f(x):\n\t\treturn x\n",
        "try:\n    import nothing_such\nexcept ImportError:\n    def f(x):\n        return x\n",
        "match 1:\n    case 1:\n        def f(x): return x\n",
        "#!/usr/bin/env python\n# -*- coding: latin-1 -*-\ndef f(x):\n    return '\xe9'\n",
        "import functools\n@functools.cache\n@functools.wraps(abs)\ndef f(x):\n    return x\n",
    ],
)
def test_forms_of_definitions(text: str) -> None:
    assert recorded(text, "f")[1] == [(F, 0, "f")]


METHODS = """
class Block:
    def __call__(self, x):
        return x

    @staticmethod
    def still(x):
        return x

    @classmethod
    def make(cls, x):
        return cls, x

    @property
    def width(self):
        return 1

    @width.setter
    def width(self, value):
        pass

    class Inner:
        def f(self):
            pass

def other():
    def still(): pass
"""


def test_methods() -> None:
    names = ["__call__", "still", "make", "width", "Inner.f"]
    defined, found = recorded(METHODS, *[f"Block.{name}" for name in names])
    bound = {unit.partition("::Block.")[2]: count for unit, count, _ in found}
    assert bound == {name: int(name == "make") for name in names}
    assert len(found) == len(names)
    assert defined["Block"].make(3) == (defined["Block"], 3)


def test_nothing_to_record() -> None:
    text = "f = abs  # a comment\n"
    assert instrument(text, ["f", "g"], "blocks.py") == text


def test_what_cannot_be_parsed() -> None:
    with pytest.raises(VerificationError, match="cannot be parsed"):
        instrument("def f(:\n", ["f"], "blocks.py")
