"""Integrity: right edits pass, edits that change what stands beside them do not."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remat_migrate.engine.integrity import check_integrity, is_python
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
    "argument replaced": "f = jax.remat(f, ⟦concrete=True→static_argnums=(1,), policy=p⟧)\n",
    "keyword becomes positional, replaced": "y = f(x, ⟦flag=True→True⟧)\n",
    "keyword becomes positional, name deleted": "y = f(x, ⟦flag=→⟧True, k=3)\n",
    "default written out": "y = f(x⟦→, False⟧)\n",
    "argument put first": "y = f(⟦→key, ⟧x)\n",
    "first of two equal statements changed": "f = a(f⟦, c=1→⟧)\ndef f(): pass\nf = a(f, c=1)\n",
    "only argument gone": "y = f(⟦x→⟧)\n",
    "decorator replaced": "@⟦partial(jax.remat, concrete=True)→jax.remat⟧\ndef f(x): return x\n",
    "decorator deleted": "@a\n⟦@b\n→⟧def f(x):\n    return x\n",
    "only decorator deleted": "⟦@b\n→⟧def f(x):\n    # c\n    return x\n",
    "decorator added": "a = 1\n\n\n# above\n⟦→@jax.remat\n⟧def f(x):\n    return x\n",
    "decorator added above another": "class A:\n    x = 1\n⟦→    @b\n⟧    @c\n    def f(x): pass\n",
    "name qualified": "f = ⟦→jax.⟧checkpoint(f)(x)\n",
    "name wrapped": "f = ⟦→jax.checkpoint(⟧f⟦→)⟧\n",
    "call unwrapped": "f = ⟦jax.checkpoint(→⟧g⟦, concrete=True)→⟧\n",
    "partial unwrapped": "f = ⟦partial(→⟧jax.remat⟦, concrete=True)→⟧(g)\n",
    "spread of a list undone": "run(⟦*[→⟧'a', 'b'⟦]→⟧)\n",
    "spread of a dict undone": "d = {⟦**{→⟧'a': 1⟦}→⟧, 'b': 2}\n",
    "dict entry dropped": "OPTS = {⟦'concrete': True, →⟧'policy': p}\n",
    "last dict entry dropped": "OPTS = {'policy': p⟦, 'concrete': True→⟧}\n",
    "dict emptied": "OPTS = {⟦'concrete': True→⟧}\n",
    "import replaced by an assignment": "⟦import sys\n→sys = 1⟧\nx = sys\n",
    "one of two imports deleted": "import os\ndef f():\n    ⟦import os\n    →⟧return os\n",
    "import deleted": "import os\n⟦import sys\n→⟧x = 1  # c\n",
    "all deleted": "⟦import sys\n→⟧",
    "name of an import dropped": "from jax.ad_checkpoint import ⟦checkpoint, →⟧checkpoint_name\n",
    "mixed import split": (
        "⟦from jax.ad_checkpoint import checkpoint, checkpoint_name"
        "→import jax\nfrom jax.ad_checkpoint import checkpoint_name⟧\nx = 1\n"
    ),
    "import added in front of a changed one": (
        "⟦→import jax\n⟧⟦from jax.ad_checkpoint import→from jax import⟧ checkpoint\n"
    ),
    "import added on top": "⟦→import jax\n⟧import os\nx = 1\n",
    "import added after the docstring": '"""Doc."""\n⟦→import jax\n⟧\nx = 1\n',
    "import added below, after a comment": "import os  # c\n# d\n⟦→import jax\n⟧\nx = 1\n",
    "statement deleted": "def f():\n    a()\n⟦    b()\n→⟧    c()\n",
    "last statement deleted": "def f():\n    a()\n⟦    b()\n→⟧\ndef g(): pass\n",
    "only statement replaced": "def f():\n    ⟦b()→pass⟧\n\ndef g(): pass\n",
    "one of a line deleted": "a(); ⟦b(); →⟧c()\n",
    "statement by two": "if a:\n    ⟦b()→b = 1\n    c(b)⟧\nelse:\n    d()\n",
    "if emptied and deleted": "a()\n⟦if flag:\n    b()\n→⟧c()\n",
    "if folded to its body": "⟦if flag:\n    →⟧a()\n⟦    →⟧b()\n⟦else:\n    c()\n→⟧d()\n",
    "if folded, nested": (
        "def f():\n    ⟦if flag:\n        →⟧for i in a:\n    ⟦    →⟧    b(i)\n"
        "    ⟦    →⟧    if c:\n    ⟦    →⟧        d()\n    e()\n"
    ),
    "if folded to its else": "⟦if not flag:\n    a()\nelse:\n    →⟧b()\n⟦    →⟧c()\nd()\n",
    "if turned round": "if ⟦a→not a⟧:\n    ⟦x()\nelse:\n    →⟧y()\nz()\n",
    "elif becomes else": "if a:\n    x()\n⟦elif flag→else⟧:\n    y()\n⟦else:\n    z()\n→⟧w()\n",
    "if gone, elif becomes if": "⟦if flag:\n    x()\nel→⟧if b:\n    y()\nelse:\n    z()\n",
    "else dropped": "if a:\n    x()\n⟦else:\n    y()\n→⟧\nz()\n",
    "else added": "if a:\n    x()\n⟦→else:\n    y()\n⟧z()\n",
    "condition folded": "x = ⟦a if flag else →⟧b\n",
    "operand of and dropped": "x = a ⟦and flag →⟧and b\n",
    "last operand dropped": "x = a⟦ and flag→⟧\n",
    "first operand dropped": "x = ⟦flag and →⟧b or c\n",
    "operand by two of the same kind": "x = ⟦a→b and c⟧ and d\n",
    "operand in parentheses": "x = ⟦a→(b + c)⟧ * d\n",
    "target dropped": "x = ⟦y = →⟧z\n",
    "annotation dropped": "x⟦: bool→⟧ = True\n",
    "return added": "def f():\n    ⟦→return ⟧g(x)\n",
    "return value gone": "def f():\n    return⟦ x→⟧\n",
    "parameter dropped": "def f(x⟦, concrete=False→⟧, *, k=1):\n    return x\n",
    "parameter added": "def f(⟦→x⟧):\n    return 1\n",
    "parameter and body": "def f(x⟦, c=True→⟧):\n    y = ⟦g(x, c)→g(x)⟧\n    return y\n",
    "def becomes async": "⟦→async ⟧def f(x):\n    return x\n",
    "body wrapped in with": (
        "def f(x):\n    a = 1\n⟦→    with q():\n    ⟧    for i in a:\n"
        "⟦→    ⟧        b(i)  # c\n⟦→    ⟧    d = (1,\n⟦→    ⟧         2)\n    return d\n"
    ),
    "one statement wrapped": "def f(x):\n    ⟦→with q():\n        ⟧y = g(x)\n    return y\n",
    "wrapped and changed": "⟦→with q():\n    ⟧y = g(⟦x→z⟧)\nw = 1\n",
    "body moved into a nested def": (
        "def f(x, flag):\n    # why\n    ⟦if flag:\n        x = g(x)\n    return x→"
        "@jax.checkpoint\n    def inner(x):\n        if flag:\n            x = g(x)\n"
        "        return x\n    return inner(x)⟧\n\ndef g(x): return x\n"
    ),
    "body moved line by line": (
        "def f(x, flag):\n⟦→    def inner(x):\n    ⟧    if flag:\n⟦→    ⟧        x = g(x)\n"
        "⟦→    ⟧    return x\n⟦→    return inner(x)\n⟧\ndef g(x): return x\n"
    ),
    "statement appended to a body": "def f(x):\n    y = x  # c\n⟦→    return y\n⟧\ndef g(): pass\n",
    "statement appended to a handler": (
        "try:\n    a()\nexcept E:\n    b()\n⟦→    raise\n⟧finally:\n    c()\n"
    ),
    "statement appended to a case": (
        "match a:\n    case 1:\n        b()\n⟦→        c()\n⟧    case _:\n        d()\n"
    ),
    "two statements inserted between": "a = 1\n⟦→b = 2\nc = 3\n⟧d = 4\n",
    "string changed": "run('python a.py ⟦--jax_new_checkpoint=1 →⟧--x')\n",
    "string in an f-string": "run(f'a {b} ⟦--jax_new_checkpoint=1→⟧ {c}')\n",
    "expression in an f-string": "run(f'a {⟦b→d⟧} {c}')\n",
    "comment put at the end": "x = 1⟦→  # remat⟧\ny = 2\n",
    "comment lengthened": "x = 1  # noqa: A⟦→, B⟧\ny = 2\n",
    "comment deleted": "x = 1⟦  # noqa: RMT301→⟧\ny = 2\n",
    "commented line deleted": "x = 1\n⟦# noqa: RMT301\n→⟧y = 2  # c\n",
    "lambda body": "f = lambda x: ⟦g(x, flag)→g(x)⟧ + 1\n",
    "comprehension": "fs = [⟦jax.remat(f, concrete=True)→jax.remat(f)⟧ for f in ⟦gs→hs⟧ if f]\n",
    "with item dropped": "with a() as b⟦, flag()→⟧:\n    c()\n",
    "class base": "class A(nn.Module⟦, B→⟧):\n    x = 1\n    ⟦y = 2→z = 3⟧\n",
    "keyword given another name": "f(x, ⟦checkpoint_policy→policy⟧=p.q)\n",
    "attribute replaced": "f = jax.⟦ad_checkpoint.checkpoint→checkpoint⟧(g)\n",
    "attribute shortened": "f = jax⟦.ad_checkpoint→⟧.checkpoint(g)\n",
    "operator": "x = a ⟦+→-⟧ b\n",
    "adjacent edits": "x = ⟦a→b⟧⟦ + c→⟧ * d\n",
    "windows lines": "a = 1\r\n⟦import os\r\n→⟧b = (1, # c\r\n  ⟦2→3⟧)\r\n",
    "other letters": "größe = 'π ∂'; y = ⟦größe→λ⟧ + 1  # é\nz = '💡'⟦.x→⟧.y  # ü\n",
    "form feed": "a = 1\n\f\n# c\nclass B:\n    x = ⟦1→2⟧\n\f\n    y = 2  # d\n",
    "no final newline": "x = 1\n⟦y = 2→y = 3⟧",
    "backslash": "x = a + \\\n    ⟦b→c⟧\nassert y, \\\n  'z'\n",
    "nested in a long else chain": "if a:\n    x()\nelif b:\n    y(⟦c→d⟧)\nelif e:\n    z()\n",
    "while true": "while ⟦flag→True⟧:\n    x()\nelse:\n    y()\n",
    "global": "def f():\n    global a⟦, b→⟧\n    a = 1\n",
    "star target": "a, *b = ⟦c→d, e⟧\n",
    "type parameters": "x: list[⟦int→float⟧] = []\n",
    "subscript": "x[⟦0→1, 2⟧] = y[a:⟦b→⟧]\n",
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
    assert reason.startswith("the old text is not Python")


@pytest.mark.parametrize(
    ("name", "text", "is_fine"),
    [
        ("run.sh", "export A=⟦1→'⟧\n", True),
        ("Makefile", "a:\n\t⟦b→(⟧\n", True),
        ("a.json", '{"a": ⟦1, "b": 2→3⟧}', True),
        ("a.json", '{"a": 1⟦, "b": 2→,⟧}', False),
        ("a.ipynb", '{"cells": [⟦"import os\\n", →⟧"x"]}', True),
        ("a.ipynb", '{"cells": ["import os⟦\\n"→⟧, "x"]}', False),
        ("broken.json", "{⟦1→2⟧", True),
        ("a.toml", "[a]\nb = ⟦1→2⟧\n", True),
        ("a.toml", "[a]\nb = ⟦1→⟧\n", False),
        ("script", "#!/usr/bin/env python3\nx = ⟦1→(⟧\n", False),
        ("script", "#!/bin/sh\nx=⟦1→(⟧\n", True),
        ("stub.pyi", "x: ⟦int→(⟧\n", False),
    ],
)
def test_other_kinds_of_files(name: str, text: str, is_fine: bool) -> None:
    assert (fault(text, Path("/project") / name) is None) is is_fine


def test_what_is_python() -> None:
    assert is_python(SourceFile(Path("/a/b.py"), ""))
    assert is_python(SourceFile(Path("/a/train"), "#! /usr/bin/python3 -u\n"))
    assert not is_python(SourceFile(Path("/a/train"), "#!/bin/sh\n# python\n"))
    assert not is_python(SourceFile(Path("/a/b.sh"), "#!/usr/bin/env python\n"))


@pytest.mark.parametrize(
    ("encoding", "text", "is_fine"),
    [
        ("iso8859-1", "x = 'é'\n", True),
        ("iso8859-1", "x = 'π'\n", False),
        ("utf-8", "x = 'π'\n", True),
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


def test_a_long_sum_is_compared() -> None:
    terms = " + ".join(["1"] * 900)
    assert fault(f"x = {terms}\ny = ⟦1→2⟧\n") is None


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


def expressions() -> list[Span]:
    found = []
    for parent in ast.walk(TREE):
        for node in ast.iter_child_nodes(parent):
            replaceable = isinstance(getattr(node, "ctx", ast.Load()), ast.Load)
            if isinstance(node, ast.expr) and replaceable and not isinstance(node, ast.Starred):
                if not isinstance(parent, ast.JoinedStr | ast.FormattedValue):
                    if not isinstance(node, ast.Slice) and not is_slice_tuple(node):
                        found.append(SOURCE.span(node))
    return found


def is_slice_tuple(node: ast.expr) -> bool:
    return isinstance(node, ast.Tuple) and any(isinstance(e, ast.Slice) for e in node.elts)


STATEMENTS = statements()
EXPRESSIONS = expressions()


def apart(edits: list[Edit]) -> list[Edit]:
    """Those of `edits` that do not overlap an earlier one."""
    kept: list[Edit] = []
    for edit in edits:
        if not any(edit.span.overlaps(other.span) for other in kept):
            kept.append(edit)
    return kept


@given(st.lists(st.sampled_from(EXPRESSIONS), min_size=1, max_size=6))
def test_expressions_put_in_parentheses_pass(spans: list[Span]) -> None:
    edits = apart([Edit(PATH, start, end, "(q + r)") for start, end in spans])
    assert check_integrity(SOURCE, apply_edits(PROGRAM, edits), edits) is None


@given(st.sampled_from(STATEMENTS))
def test_deleted_statements_pass(place: tuple[list[ast.stmt], int]) -> None:
    block, number = place
    span = span_of(block[number])
    edit = Edit(PATH, *lines_of(block[number]), "")
    if len(block) == 1:
        edit = Edit(PATH, *span, "pass")
    after = apply_edits(PROGRAM, [edit])
    reason = check_integrity(SOURCE, after, [edit])
    tree = SourceFile(PATH, after).parse()
    names = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    bound = _bound(block[number])
    if (bound & names - _bound(tree)) or "*" in bound:
        assert reason is not None
    if reason is not None:
        assert bound
        assert reason.endswith("would not be defined")


def _bound(tree: ast.AST) -> set[str]:
    """What imports, definitions, parameters and assignments bind."""
    nodes = list(ast.walk(tree))
    found = {n.name for n in nodes if isinstance(n, ast.FunctionDef | ast.ClassDef)}
    found |= {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    found |= {n.arg for n in nodes if isinstance(n, ast.arg)}
    return found | {(n.asname or n.name.split(".")[0]) for n in nodes if isinstance(n, ast.alias)}


@given(st.sampled_from(STATEMENTS), st.data())
def test_wrapped_statements_pass(place: tuple[list[ast.stmt], int], data: st.DataObject) -> None:
    block, number = place
    last = data.draw(st.sampled_from(range(number, len(block))))
    start, _ = lines_of(block[number])
    _, end = lines_of(block[last])
    indent = " " * (len(PROGRAM[start:end]) - len(PROGRAM[start:end].lstrip(" ")))
    edits = [
        Edit(PATH, at, at, "    ")
        for at in SOURCE.line_starts
        if start < at < end and PROGRAM[at:].partition("\n")[0] not in ("", '    it does."""')
        if not PROGRAM.startswith('  two"""', at)
    ]
    edits.append(Edit(PATH, start, start, f"{indent}with q():\n    "))
    assert check_integrity(SOURCE, apply_edits(PROGRAM, edits), edits) is None


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
