"""Every definition of a unit gets a recorder, nothing else changes, the text still runs."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remat_migrate.errors import VerificationError
from remat_migrate.verify.instrument import RECORDER, instrument


def recorded(text: str, *units: str) -> tuple[dict[str, Any], list[str]]:
    """Run the instrumented text. Return its names, and the recorded units in order."""
    made = checked(text, *units)
    wrapped: list[str] = []

    def recorder(unit: str) -> Callable[[Any], Any]:
        def wrap(function: Any) -> Any:
            wrapped.append(unit)
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
    def visit_If(self, node: ast.If) -> ast.If | None:
        return None if RECORDER in ast.unparse(node.body[0]) else self.generic_visit(node)  # type: ignore[return-value]


F = "trainer/blocks.py::f"


def test_function():
    made = checked("def f(x):\n    return x\n", "f")
    assert made.splitlines()[-1].endswith(f"('{F}')(f)")


DECORATED = """
def deco(*a):
    return lambda g: g

@deco(  # why
    1,
)
# a comment
@deco(2)
def f(x):
    return x
"""


def test_the_decorated_function_is_recorded():
    assert recorded(DECORATED, "f")[1] == [F]


@pytest.mark.parametrize(
    "text",
    [
        "def f(x): return x",
        "def f(x):\r\n\treturn x\r\n",
        "async def f(x):\n  return x\n",
        "if 1:\n\tdef f(x):\n\t\treturn x\n",
        "try:\n    import nothing_such\nexcept ImportError:\n    def f(x):\n        return x\n",
        "\\\n\\\ndef f(x):\n    return x\n",
        "x = '''\n\\\n'''\ndef f(x):\n    return x\n",
        "#!/usr/bin/env python\n# -*- coding: latin-1 -*-\ndef f(x):\n    return '\xe9'\n",
        "\x0cdef f(x):\n    return x\n\x0c\n",
        "f = abs",
        "f = abs  # \\\n",
        "f: object = abs\n",
        "g = f = abs\n",
        "f, g = abs, max\n",
        "(f := abs)\n",
        "f = (\n    abs\n)  # end",
        "f = abs; g = f; del f; f = g\n",
        "match 1:\n    case 1: f = abs\n",
        "x = 1\rdef f(x):\r    return x\r",
        "import os; f = abs; g = f\n",
        "'''Doc.'''; from __future__ import annotations; f = abs\n",
        "if 1: f = abs\n",
        "if 0: pass\nelif 1: f = abs\nelse: f = max\n",
        "if 0: f = max\nelse:\n    f = abs\n",
        "try: f = abs\nfinally: pass\n",
        "for f in ():\n    pass\nelse:\n    f = abs\n",
        "while 1:\n    if 1: f = abs\n    break\n",
        "with open(__import__('os').devnull): f = abs\n",
        "if 1:\n    x = 1; \\\n    f = abs\n",
        "x = 1; \\\nf = abs\n",
    ],
)
def test_forms_of_definitions(text):
    defined, wrapped = recorded(text, "f")
    assert set(wrapped) == {F}  # twice if it may have been bound in two ways
    assert callable(defined["f"])


CLASSES = """
class Block:
    if True:
        def __call__(self, x):
            return x
    else:
        __call__ = None
    inner = abs

    class Part:
        def run(self): return 1

    @staticmethod
    def still(x): return x
class Other:
    def __call__(self): pass
"""


def test_methods():
    units = ["Block.__call__", "Block.inner", "Block.Part.run", "Block.still", "Other.nothing"]
    _, wrapped = recorded(CLASSES, *units)
    assert [unit.partition("::")[2] for unit in wrapped] == units[:4]


def test_every_definition_of_a_name():
    text = "def f(x):\n    return x\nf = f\nif 1:\n    def f(x):\n        return -x\n"
    assert recorded(text, "f")[1] == [F] * 3


def test_non_definitions():
    text = (
        "import os as f\ndef g():\n    f = 1\n    def f(): pass\nclass A: f = 1\nx = lambda f: f\n"
    )
    assert instrument(text, ["f", "A", "g.f"], "a.py") == text


def test_path_with_special_characters():
    made = instrument("def f(): pass\n", ["f"], 'a"b\\é.py')
    seen: list[str] = []
    setattr(builtins, RECORDER, lambda unit: seen.append(unit) or (lambda g: g))
    try:
        exec(compile(made, "x.py", "exec"), {})
    finally:
        delattr(builtins, RECORDER)
    assert seen == ['a"b\\é.py::f']


def test_syntax_error():
    with pytest.raises(VerificationError, match=r"a\.py cannot be parsed"):
        instrument("def f(:\n", ["f"], "a.py")


PIECES = [
    "def f(x):\n    return x\n",
    "@staticmethod\ndef f(x): return x\n",
    "f = abs\n",
    "if 1: f = abs\n",
    "if 1:\n\tf = abs\nelif 0: f = max\n",
    "class A:\n  def f(self): pass\n  f = f; g = f\n",
    "import os\n",
    "# note\n",
    "x = 1; f = max\n",
    "s = '''\ndef f(): pass\n'''\n",
    "\n",
    "try:\n  f = abs\nexcept E: f = max\n",
    "async def f(): pass\n",
]


@given(st.lists(st.sampled_from(PIECES), max_size=6), st.booleans(), st.booleans())
def test_any_combination(pieces, windows, unended):
    text = "".join(pieces)
    if windows:
        text = text.replace("\n", "\r\n")
    if unended:
        text = text.rstrip("\r\n")
    checked(text, "f", "A.f")
