"""Integrity: right edits pass, edits that change what stands beside them do not."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remat_migrate.engine.integrity import check_integrity
from remat_migrate.text import Edit, SourceFile, Span, apply_edits

PATH = Path("/project/model.py")
_MARK = re.compile(r"⟦(.*?)→(.*?)⟧", re.DOTALL)


def marked(text: str, path: Path = PATH) -> tuple[SourceFile, list[Edit]]:
    """A file and edits of it, written as `⟦old→new⟧` in its text."""
    plain, edits, at = "", [], 0
    for mark in _MARK.finditer(text):
        plain += text[at : mark.start()]
        edits.append(Edit(path, len(plain), len(plain) + len(mark[1]), mark[2]))
        plain += mark[1]
        at = mark.end()
    return SourceFile(path, plain + text[at:]), edits


def fault(text: str, path: Path = PATH) -> str | None:
    before, edits = marked(text, path)
    return check_integrity(before, apply_edits(before.text, edits), edits)


RIGHT = {
    "argument dropped": "f = jax.remat(f⟦, concrete=True→⟧, policy=p)\n",
    "default written out": "y = f(x⟦→, False⟧)\n",
    "decorator replaced": "@⟦partial(jax.remat, concrete=True)→jax.remat⟧\ndef f(x): return x\n",
    "decorator added above another": "class A:\n    x = 1\n⟦→    @b\n⟧    @c\n    def f(x): pass\n",
    "name qualified": "f = ⟦→jax.⟧checkpoint(f)(x)\n",
    "name wrapped": "f = ⟦→jax.checkpoint(⟧f⟦→)⟧\n",
    "partial unwrapped": "f = ⟦partial(→⟧jax.remat⟦, concrete=True)→⟧(g)\n",
    "last dict entry dropped": "OPTS = {'policy': p⟦, 'concrete': True→⟧}\n",
    "import deleted": "import os\n⟦import sys\n→⟧x = 1  # c\n",
    "import added in front of a changed one": (
        "⟦→import jax\n⟧⟦from jax.ad_checkpoint import→from jax import⟧ checkpoint\n"
    ),
    "statement deleted": "def f():\n    a()\n⟦    b()\n→⟧    c()\n",
    "statement by two": "if a:\n    ⟦b()→b = 1\n    c(b)⟧\nelse:\n    d()\n",
    "if folded to its else": "⟦if not flag:\n    a()\nelse:\n    →⟧b()\n⟦    →⟧c()\nd()\n",
    "else dropped": "if a:\n    x()\n⟦else:\n    y()\n→⟧\nz()\n",
    "last operand dropped": "x = a⟦ and flag→⟧\n",
    "target dropped": "x = ⟦y = →⟧z\n",
    "parameter dropped": "def f(x⟦, concrete=False→⟧, *, k=1):\n    return x\n",
    "body wrapped in with": (
        "def f(x):\n    a = 1\n⟦→    with q():\n    ⟧    for i in a:\n"
        "⟦→    ⟧        b(i)  # c\n⟦→    ⟧    d = (1,\n⟦→    ⟧         2)\n    return d\n"
    ),
    "body moved line by line": (
        "def f(x, flag):\n⟦→    def inner(x):\n    ⟧    if flag:\n⟦→    ⟧        x = g(x)\n"
        "⟦→    ⟧    return x\n⟦→    return inner(x)\n⟧\ndef g(x): return x\n"
    ),
    "statement appended to a handler": (
        "try:\n    a()\nexcept E:\n    b()\n⟦→    raise\n⟧finally:\n    c()\n"
    ),
    "two statements inserted between": "a = 1\n⟦→b = 2\nc = 3\n⟧d = 4\n",
    "comment put at the end": "x = 1⟦→  # remat⟧\ny = 2\n",
    "lambda body": "f = lambda x: ⟦g(x, flag)→g(x)⟧ + 1\n",
    "with item dropped": "with a() as b⟦, flag()→⟧:\n    c()\n",
    "keyword given another name": "f(x, ⟦checkpoint_policy→policy⟧=p.q)\n",
    "adjacent edits": "x = ⟦a→b⟧⟦ + c→⟧ * d\n",
    "no final newline": "x = 1\n⟦y = 2→y = 3⟧",
    "global": "def f():\n    global a⟦, b→⟧\n    a = 1\n",
}


@pytest.mark.parametrize("text", RIGHT.values(), ids=RIGHT.keys())
def test_right_edits_pass(text: str) -> None:
    assert fault(f"from names import *\n{text}") is None


WRONG = {
    "does not parse": "f(⟦x→x]⟧)\ny = 1\n",
    "string left open": "a = ⟦'x'→'''x⟧\nb = 2\nc = '''d'''\n",
    "next statement commented out": "⟦import os\n→# gone⟧b = 2\nc = 3\n",
    "next statement joined": "x = 1  # c⟦\n→⟧y = 2\nz = 3\n",
    "comment swallowed": "a = ⟦1→'''1⟧\n# note\nb = 2\nc = ⟦3→'''⟧\n",
    "import of a used name deleted": "⟦import sys\n→⟧def f():\n    return sys.path\n",
    "definition of a used name deleted": "⟦def f(x): return x\n→⟧y = f(1)\n",
    "parameter of a used name deleted": "def f(x⟦, y→⟧):\n    return y\n",
    "name of a class body in a method": (
        "class A:\n    b = 1\n    ⟦c = b→def c(self):\n        return b⟧\n"
    ),
    "name deleted in a closure": (
        "def f(n):\n    ⟦del n→def g():\n        x = n\n        del n\n    g()⟧\n"
    ),
    "name read before it is assigned": "def f():\n    ⟦a = 1\n    b = a→b = a\n    a = 1⟧\n",
    "name of another function": "def f(x):\n    return x\ndef g():\n    return ⟦1→x⟧\n",
    "nonlocal of nothing": "def f():\n    ⟦pass→nonlocal a⟧\n",
    "return outside of a function": "⟦a = 1→return 1⟧\n",
    "docstring swallowed": "⟦x = 1→x = (⟧\n'''doc'''\n⟦y = 2→)⟧\n",
}


@pytest.mark.parametrize("text", WRONG.values(), ids=WRONG.keys())
def test_wrong_edits_do_not_pass(text: str) -> None:
    assert fault(text) is not None


def test_the_reason_names_line_and_code() -> None:
    assert fault("⟦import os\n→# gone⟧b = 2\nc = 3\n") == (
        "the code on line 2 would change: `b = 2`"
    )
    assert fault("y = f(⟦a→'''⟧,  # note\n  ⟦b→'''⟧)\n") == (
        "the comment on line 1 would be lost: `# note`"
    )
    assert fault("a = 1\nb = ⟦2→(⟧\n") == (
        "the new text does not parse: '(' was never closed (line 2)"
    )


def test_a_file_that_does_not_parse_is_not_edited() -> None:
    reason = fault("x = ⟦1→2⟧\nprint 'python 2'\n")
    assert reason is not None
    assert "under Python 3" in reason


@pytest.mark.parametrize(
    ("name", "text", "is_fine"),
    [
        ("a.json", '{"a": ⟦1, "b": 2→3⟧}', True),
        ("a.json", '{"a": 1⟦, "b": 2→,⟧}', False),
        ("broken.json", "{⟦1→2⟧", True),
        ("a.toml", "[a]\nb = ⟦1→2⟧\n", True),
        ("a.toml", "[a]\nb = ⟦1→⟧\n", False),
    ],
)
def test_other_kinds_of_files(name: str, text: str, is_fine: bool) -> None:
    assert (fault(text, Path("/project") / name) is None) is is_fine


@pytest.mark.parametrize(
    ("encoding", "text", "is_fine"),
    [
        ("iso8859-1", "x = 'π'\n", False),
        ("utf-8", "x = '\0'\n", False),
        ("utf-8", "x = '\ud800'\n", False),
    ],
)
def test_the_encoding_must_hold_the_new_text(encoding: str, text: str, is_fine: bool) -> None:
    cookie = f"# coding: {encoding}\n"
    before = SourceFile(PATH, cookie + "x = 1\n", encoding)
    edits = [Edit(PATH, len(cookie), len(before.text), text)]
    reason = check_integrity(before, apply_edits(before.text, edits), edits)
    assert (reason is None) is is_fine


def test_an_edit_of_the_coding_line_must_fit_the_bytes() -> None:
    before = SourceFile(PATH, "# coding: latin-1\nx = 'é'\n", "iso8859-1")
    edits = [Edit(PATH, 10, 17, "utf-8")]
    reason = check_integrity(before, apply_edits(before.text, edits), edits)
    assert reason is not None
    assert "cannot be read back" in reason


PROGRAM = '''"""Doc."""
import functools, os  # here
from names import *
from jax import (checkpoint,  # first
                 numpy as jnp)

FLAGS = {"a": 1, **{"b": [2, 3]}}


# The block.
@functools.partial(checkpoint, static_argnums=(1,))
@other
def block(x, flag=False, *rest, key: "K" = None, **opts) -> int:
    """What
    it does."""
    if flag and x.ndim > 1 or not rest:
        x = x @ FLAGS["a"] + jnp.sin(-x) ** 2  # square
    elif opts:
        with scope(x) as y, other():
            return [f(i)[0] for i in y if i] or (yield)
    else:
        pass
    for i, j in enumerate(rest): x += i if flag else j * (x - 1)
    text = """one
  two"""; more = f"a {x} b"
    return lambda z, *a: z(x, *a, k=more, **opts)


class Block(Base, metaclass=Meta):
    x: int = 1
    async def __call__(self):
        try:
            while await self.go(): ...
        except (A, B) as error:
            raise C from error
        finally:
            del self.x, self.y[1:2, ::3]

    # last
assert block, "größe"
'''
SOURCE = SourceFile(PATH, PROGRAM)
TREE = ast.parse(PROGRAM)


def statements() -> list[tuple[list[ast.stmt], int]]:
    """Every statement that has lines of its own, as a block and the place in it."""
    found = []
    for node in ast.walk(TREE):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                found += [(block, n) for n, stmt in enumerate(block) if stands_alone(stmt)]
    return found


def span_of(node: ast.stmt) -> Span:
    """The characters of a statement, its decorators counted."""
    start, end = SOURCE.span(node)
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    if decorators:
        start = PROGRAM.rindex("@", 0, SOURCE.span(decorators[0]).start)
    return Span(start, end)


def lines_of(node: ast.stmt) -> tuple[int, int]:
    span = span_of(node)
    start = SOURCE.line_starts[SOURCE.position(span.start)[0] - 1]
    return start, SOURCE.line_starts[SOURCE.position(span.end)[0]]


def stands_alone(node: ast.stmt) -> bool:
    span = span_of(node)
    start, end = lines_of(node)
    if PROGRAM.startswith("elif", span.start):
        return False
    rest = PROGRAM[span.end : end].strip()
    return not PROGRAM[start : span.start].strip() and (not rest or rest.startswith("#"))


STATEMENTS = statements()


def apart(edits: list[Edit]) -> list[Edit]:
    """Those of `edits` that do not overlap an earlier one."""
    kept: list[Edit] = []
    for edit in edits:
        if not any(edit.span.overlaps(other.span) for other in kept):
            kept.append(edit)
    return kept


JUNK = [*"()[]'#*;:\n\\", "'''", "    ", "if q:\n", "def q():\n", "else:\n", "q + ", "not "]


@settings(max_examples=300)
@given(
    st.lists(
        st.tuples(
            st.one_of(st.sampled_from(SOURCE.line_starts), st.integers(0, len(PROGRAM))),
            st.sampled_from((0, 0, 1, 2, 5, 20, 60)),
            st.sampled_from(("", *JUNK)),
        ),
        min_size=1,
        max_size=3,
    )
)
def test_what_passes_keeps_every_statement_away_from_the_edits(
    junk: list[tuple[int, int, str]],
) -> None:
    end = len(PROGRAM)
    edits = apart([Edit(PATH, at, min(end, at + width), text) for at, width, text in junk])
    after = apply_edits(PROGRAM, edits)
    if check_integrity(SOURCE, after, edits) is not None:
        return
    now = Counter(ast.dump(node) for node in ast.walk(ast.parse(after)))
    assert not away_from(edits) - now


def away_from(edits: list[Edit]) -> Counter[str]:
    """The statements whose lines, and the line before and after, no edit touches."""
    found: Counter[str] = Counter()
    for block, number in STATEMENTS:
        start, end = lines_of(block[number])
        start = PROGRAM.rfind("\n", 0, max(0, start - 1)) + 1
        end = (PROGRAM.find("\n", end) + 1) or len(PROGRAM)
        if not any(edit.start <= end and edit.end >= start for edit in edits):
            found[ast.dump(block[number])] += 1
    return found
