"""Recorders around units: every definition gets one, no other line changes, the text still runs."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remat_migrate.errors import VerificationError
from remat_migrate.verify.instrument import RECORDER, Instrumented, instrument


def recorded(text: str, *units: str) -> tuple[dict[str, Any], list[str]]:
    """What the instrumented text defines, and the units in the order in which they were wrapped."""
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
        exec(compile(made.text, "blocks.py", "exec"), defined)
    finally:
        delattr(builtins, RECORDER)
    return defined, wrapped


def checked(text: str, *units: str) -> Instrumented:
    """`text` with recorders, after all that must hold of any."""
    made = instrument(text, units, "trainer/blocks.py")
    compile(made.text, "blocks.py", "exec")
    ast.parse(made.text, feature_version=(3, 8))
    assert without(made) in (text, text + "\n", text + "\r\n")
    originals = [made.original_line(n) for n in range(1, len(lines(made.text)) + 1)]
    assert originals == sorted(originals)
    kept = [n for n in range(1, len(lines(made.text)) + 1) if n not in made.inserted]
    assert [made.original_line(n) for n in kept] == list(range(1, len(kept) + 1))
    plain: dict[str, Any] = {"__name__": "trainer.blocks"}
    exec(compile(made.text, "blocks.py", "exec"), plain)  # nothing records
    return made


def lines(text: str) -> list[str]:
    return text.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n").split("\n")


def without(made: Instrumented) -> str:
    pieces = re.findall(r"[^\r\n]*(?:\r\n|\n)|[^\r\n]+", made.text)
    return "".join(line for n, line in enumerate(pieces, 1) if n not in made.inserted)


F = "trainer/blocks.py::f"


def test_a_function():
    made = checked(
        '"""Doc."""\nfrom __future__ import annotations\n\ndef f(x):\n    return x\n', "f"
    )
    assert lines(made.text)[3].startswith(f"{RECORDER} = __import__")
    assert lines(made.text)[4:6] == [f'@{RECORDER}("{F}")', "def f(x):"]
    assert made.inserted == (4, 5)
    assert [made.original_line(n) for n in (3, 6, 7)] == [3, 4, 5]


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


def test_it_is_the_outermost_decorator():
    made = checked(DECORATED, "f")
    assert lines(made.text)[5] == f'@{RECORDER}("{F}")'
    assert lines(made.text)[6] == "@deco(  # why"
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
def test_where_it_can_stand(text):
    defined, wrapped = recorded(text, "f")
    assert set(wrapped) == {F}  # twice if it may have been bound in two ways
    assert callable(defined["f"])


def test_a_lone_carriage_return_ends_a_line():
    made = instrument("x = 1\rdef f(x):\r    return x\r", ["f"], "a.py")
    assert made.text.split("\r")[2] == f'@{RECORDER}("a.py::f")'
    ast.parse(made.text)


def test_match_needs_no_old_python():
    made = instrument("match 1:\n    case 1: f = abs\n", ["f"], "a.py")
    assert made.text.endswith(f'if "f" in locals(): f = {RECORDER}("a.py::f")(f)\n')


def test_parenthesised_decorators():
    text = "g = lambda f: f\n@(\n  # which\n  g\n)\ndef f(x):\n    return x\n"
    made = instrument(text, ["f"], "trainer/blocks.py")
    assert lines(made.text)[1:4] == [lines(made.text)[1], f'@{RECORDER}("{F}")', "@("]
    exec(compile(made.text, "blocks.py", "exec"), {})


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
    assert checked(CLASSES, *units).missing == ("Other.nothing",)


def test_every_definition_of_a_name():
    text = "def f(x):\n    return x\nf = f\nif 1:\n    def f(x):\n        return -x\n"
    assert recorded(text, "f")[1] == [F] * 3


def test_a_name_deleted_again_on_its_line():
    assert recorded("f = abs; del f\n", "f")[1] == []


def test_what_is_no_definition():
    text = (
        "import os as f\ndef g():\n    f = 1\n    def f(): pass\nclass A: f = 1\nx = lambda f: f\n"
    )
    made = instrument(text, ["f", "A.f", "A", "g.f"], "a.py")
    assert made.text == text
    assert made.inserted == ()
    assert made.missing == ("f", "A.f", "A", "g.f")


def test_odd_paths():
    made = instrument("def f(): pass\n", ["f"], 'a"b\\é.py')
    seen: list[str] = []
    setattr(builtins, RECORDER, lambda unit: seen.append(unit) or (lambda g: g))
    try:
        exec(compile(made.text.encode("ascii"), "x.py", "exec"), {})
    finally:
        delattr(builtins, RECORDER)
    assert seen == ['a"b\\é.py::f']


def test_no_python():
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
def test_any_mixture(pieces, windows, unended):
    text = "".join(pieces)
    if windows:
        text = text.replace("\n", "\r\n")
    if unended:
        text = text.rstrip("\r\n")
    checked(text, "f", "A.f")
