"""Fingerprints: what changes them, and above all what does not."""

from __future__ import annotations

import ast
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import findings

from remat_migrate.engine.fingerprint import Identity, fingerprints, identities, relative_path
from remat_migrate.rule import Finding
from remat_migrate.text import SourceFile, Span

ROOT = Path("/project")


def at(text: str, *words: str, code: str = "RMT101", name: str = "a.py") -> list[Finding]:
    """Findings at words of a text."""
    source = SourceFile(ROOT / name, text)
    spans = [Span(start := text.index(word), start + len(word)) for word in words]
    return [Finding(code, "made-up", "found", source, span) for span in spans]


def identity(text: str, word: str, **options: str) -> Identity:
    [found] = identities(at(text, word, **options), ROOT).values()
    return found


def fingerprint(text: str, word: str, **options: str) -> str:
    return identity(text, word, **options).fingerprint


SPELLINGS = {
    "call": [
        "f = jax.checkpoint(g, concrete=True)\n",
        "f=jax.checkpoint( g,concrete=True )   # a comment\n",
        "f = jax.checkpoint(\n    g,\n    concrete=True,\n)\n",
        "f = (jax.checkpoint)(g, concrete=(True))\n",
        "f = (\n    jax.checkpoint(g, concrete=True)  # noqa\n)\n",
        "f = \\\n    jax.checkpoint(g, concrete=True)\n",
        "import a; f = jax.checkpoint(g, concrete=True); h = 1\n",
        "# more\n\n\nx = 1\n\nf = jax.checkpoint(g, concrete=True)\n",
    ],
    "strings": [
        "f = jax.checkpoint(g, concrete=True, a='x', b=u'é' 'z', c=0XFF, d=1E5)\n",
        'f = jax.checkpoint(g, concrete=True, a="x", b="éz", c=0xff, d=1e5)\n',
        'f = jax.checkpoint(g, concrete=True, a=("x"), b="\\xe9" "z", c=255, d=100000.0)\n',
    ],
    "tuples": [
        "for f, g in jax.checkpoint(g, concrete=True), 2: pass\n",
        "for (f, g) in (jax.checkpoint(g, concrete=True), 2):\n    print(f)\n    print(g)\n",
    ],
    "delete": [
        "del a[concrete], b\n",
        "del (a[concrete], b)\n",
        "del (\n    a[concrete],\n    b,\n)\n",
    ],
    "f-string": [
        "f(f'a{x!r:>{w}}b' 'c', concrete=True)\n",
        'f(f"a{x!r:>{w}}b" "c", concrete=True)\n',
        'f(f"a{x!r:>{w}}bc", concrete=True)\n',
    ],
    "import": [
        "from jax.ad_checkpoint import concrete\n",
        "from jax.ad_checkpoint import (\n    a,\n    concrete,\n    checkpoint_name,\n)\n",
        "from jax.ad_checkpoint import b, concrete\n",
    ],
    "decorator": [
        "@partial(checkpoint, concrete=True)\ndef f(x): return x\n",
        "@other\n\n@partial(\n    checkpoint, concrete=True\n)\ndef f(x, y=1):\n    return x + y\n",
    ],
    "comment": [
        "x = 1  # noqa: concrete\n",
        "x = (\n    1\n)  #noqa:  concrete\n".replace(":  ", ": "),
    ],
    "class": ["class A(concrete): pass\n", "class A(\n    concrete\n):\n    x = 1\n"],
    "handler": [
        "try:\n  x\nexcept concrete.Error as e: pass\n",
        "try:\n    y\nexcept ValueError:\n    pass\nexcept (concrete.Error) as e:\n    z\n",
    ],
    "case": [
        "match x:\n  case concrete(): pass\n",
        "match y:\n    case [a]:\n        pass\n    case concrete():\n        z = 1\n",
    ],
    "docstring": [
        'def f():\n    """One concrete\n    two."""\n',
        'def f():\n  """One concrete\n  two.\n  """\n',
    ],
    "elif": [
        "if a:\n    pass\nelif concrete:\n    pass\n",
        "if b:\n    x\nelif c:\n    pass\nelif (concrete):\n    y\nelse:\n    z\n",
    ],
}


@pytest.mark.parametrize("spellings", SPELLINGS.values(), ids=SPELLINGS)
def test_what_a_formatter_changes_does_not_count(spellings: list[str]) -> None:
    assert len({fingerprint(text, "concrete") for text in spellings}) == 1


OTHERS = {
    "another option": ("f(g, concrete=True)\n", "f(g, concrete=False)\n"),
    "another operator": ("x = concrete + 1\n", "x = concrete - 1\n"),
    "another name in the store": ("x = concrete\n", "y = concrete\n"),
    "a starred argument": ("f(concrete, *a)\n", "f(concrete, **a)\n"),
    "a key that is unpacked": ("x = {**a, b: concrete}\n", "x = {a: b, b: concrete}\n"),
    "another definition around it": ("def f():\n  concrete\n", "def g():\n  concrete\n"),
    "a class around it": ("def f():\n  concrete\n", "class A:\n  def f(): concrete\n"),
    "another import": ("from a import concrete\n", "from b import concrete\n"),
    "a relative import": ("from a import concrete\n", "from .a import concrete\n"),
    "an await": (
        "async def f():\n  for concrete in y: p\n",
        "async def f():\n  async for concrete in y: p\n",
    ),
    "a number that is a truth": ("f(concrete, 1)\n", "f(concrete, True)\n"),
    "bytes": ("f(concrete, 'a')\n", "f(concrete, b'a')\n"),
    "another comment": ("x  # noqa: concrete\n", "x  # noqa: concrete, A1\n"),
    "another decorator": ("@p(concrete=True)\ndef f(): p\n", "@p(concrete=False)\ndef f(): p\n"),
    "a decorator and its function": ("@concrete\ndef f(): p\n", "@p\ndef f(concrete): p\n"),
    "an f-string's value": ("f(f'{concrete}{x}')\n", "f(f'{concrete}{y}')\n"),
}


@pytest.mark.parametrize(("one", "other"), OTHERS.values(), ids=OTHERS)
def test_what_counts(one: str, other: str) -> None:
    assert fingerprint(one, "concrete") != fingerprint(other, "concrete")


def test_code_and_path_count() -> None:
    text = "x = concrete\n"
    known = {
        fingerprint(text, "concrete", code=code, name=name)
        for code in ("RMT101", "RMT102")
        for name in ("a.py", "b.py", "c/a.py")
    }
    assert len(known) == 6


def test_what_a_reader_sees() -> None:
    text = (
        "class A:\n    @dec\n    def f(self, x):\n"
        "        return concrete(  # why\n            x,\n        )\n"
    )
    found = identity(text, "concrete", name="pkg/é.py")
    assert (found.path, found.code, found.within) == ("pkg/é.py", "RMT101", "A.f")
    assert found.statement == "return concrete(x)"
    assert identity(text, "dec").statement == "@dec"
    assert identity(text, "dec").within == "A.f"
    assert identity(text, "x").statement == "def f(self, x):"
    assert identity(text, "x").within == "A"
    assert identity(f"x = concrete({', '.join('abcdefgh' * 30)})\n", "concrete").statement.endswith(
        "…"
    )


def test_compound_statements_count_by_their_heads() -> None:
    one = "def f(x):\n    if concrete:\n        return 1\n    while x: pass\n"
    other = (
        "def f(x):\n    y = 2\n    if concrete:\n        return 2\n    else:\n        return 3\n"
    )
    assert fingerprint(one, "concrete") == fingerprint(other, "concrete")
    assert fingerprint(one, "x") == fingerprint(other, "x")


def test_equal_ones_are_numbered_as_they_stand() -> None:
    text = "def f():\n    concrete\n    x = 1\n    concrete\n    concrete\n"
    source = SourceFile(ROOT / "a.py", text)
    starts = [at for at in range(len(text)) if text.startswith("concrete", at)]
    found = [Finding("RMT101", "n", "m", source, Span(at, at + 8)) for at in starts]
    named = identities(found[::-1], ROOT)
    assert list(named) == found[::-1]
    assert [named[one].number for one in found] == [1, 2, 3]
    assert len({one.fingerprint for one in named.values()}) == 3
    assert len({one.alike for one in named.values()}) == 1
    assert fingerprints(found[:1], ROOT)[found[0]] == named[found[0]].fingerprint


@pytest.mark.parametrize("name", ["run.sh", "a.yaml", "Dockerfile", "pyproject.toml", "notes.txt"])
def test_other_files_count_by_the_line(name: str) -> None:
    one = fingerprint("x: 1\nJAX: concrete\n", "concrete", name=name)
    assert one == fingerprint("\n  JAX:   concrete,  \nmore\n", "concrete", name=name)
    assert one != fingerprint("JAX: concrete 2\n", "concrete", name=name)
    # One that could be read as Python is none.
    assert identity("a: concrete\n", "concrete", name=name).statement == "a: concrete"


def test_scripts_are_python() -> None:
    text = "#!/usr/bin/env python3\ndef f(): return concrete(1)\n"
    assert identity(text, "concrete", name="tool").within == "f"


def test_files_that_cannot_be_read() -> None:
    broken = "def f(:\n    concrete\n"
    assert fingerprint(broken, "concrete") == fingerprint("\n\n" + broken, "concrete")
    empty = Finding("RMT000", "n", "gone", SourceFile(ROOT / "a.py", ""), Span(0, 0))
    other = Finding("RMT000", "n", "gone", SourceFile(ROOT / "b\udcff.py", ""), Span(0, 0))
    first, second = fingerprints([empty, other], ROOT).values()
    assert first != second


def test_a_place_between_statements() -> None:
    text = "x = 1\n\n\n# concrete\n\ny = 2\n"
    assert fingerprint(text, "concrete") == fingerprint("#   concrete\n", "concrete")
    blank = Finding("RMT101", "n", "m", SourceFile(ROOT / "a.py", "\n\nx = 1\n"), Span(0, 0))
    assert identities([blank], ROOT)[blank].statement == ""


def test_deep_code_has_one_too() -> None:
    long_sum = " + ".join(["x"] * 900)
    text = f"y = concrete + {long_sum}\n"
    assert fingerprint(text, "concrete") != fingerprint(text.replace("+ x\n", "- x\n"), "concrete")
    branches = "if a: pass\n" + "elif b: pass\n" * 400 + "elif concrete: pass\n"
    assert fingerprint(branches, "concrete") == fingerprint("if concrete: pass\n", "concrete")


def test_numbers_without_decimal_digits() -> None:
    assert fingerprint(f"f(concrete, 0x{'f' * 9000})\n", "concrete")


def test_stays_the_same_from_release_to_release() -> None:
    """Baselines are kept for years: this changes only with the baseline's version."""
    text = "def f():\n    return jax.checkpoint(g, concrete=True, policy=f'{p!r:>3}', n=-1.5)\n"
    assert fingerprint(text, "concrete") == "27ef8fdeb9241a6a1f10620dff4928f3"
    text = (
        "x = concrete(f'a{b=}' f'' 'c' f'{d:{e}.{f}}{{x', lambda *a, k=1, **q: [i async for i in"
        " y], x[1:2, ...], 1j, b'\\xff', not -a)\n"
    )
    assert fingerprint(text, "concrete") == "c11eb987c8160bb5f39c8b3bb2b40b81"
    text = "a: concrete\n"
    assert fingerprint(text, "concrete", name="a.yaml") == "b52435d9c29b1d85f22d97800198448d"


def test_paths_outside_the_root() -> None:
    assert relative_path(Path("/project/a/b.py"), ROOT) == "a/b.py"
    assert relative_path(Path("/other/b.py"), ROOT) == "../other/b.py"


PIECES = [
    "@jax.checkpoint\ndef one(x, n=(1, 2)):\n    return jax.checkpoint(g, concrete=True)(x)\n",
    "class A:\n    def two(self):\n        with a as b, c as d:\n"
    "            f = checkpoint(g, concrete=True)\n"
    "        # concrete here\n        return f, checkpoint(g, concrete=True)\n",
    "f = jax.checkpoint(lambda x: x if x else -x, concrete=True)  # concrete\n",
    "try:\n    h = jax.checkpoint(g, concrete=True)\nexcept* E:\n    h = None\n",
    "for i in range(3):\n    fs[i] = jax.checkpoint(g, concrete=True)\n"
    "    fs[i] = jax.checkpoint(g, concrete=True)\n",
]


def everywhere(text: str) -> Counter[str]:
    """The fingerprints of findings at every `concrete` of a text."""
    source = SourceFile(ROOT / "a.py", text)
    starts = [at for at in range(len(text)) if text.startswith("concrete", at)]
    found = [Finding("RMT101", "n", "m", source, Span(at, at + 8)) for at in starts]
    named = fingerprints(found, ROOT)
    assert len(set(named.values())) == len(found)
    return Counter(named.values())


@given(st.permutations(PIECES), st.lists(st.sampled_from(["", "# x", "y = 1", "import os"])))
def test_definitions_may_move(order: Sequence[str], between: Sequence[str]) -> None:
    moved = []
    for number, piece in enumerate(order):
        moved += [*(line + "\n" for line in between[number::5]), piece]
    assert everywhere("".join(moved)) == everywhere("".join(PIECES))


@given(st.integers(0, 2**32), st.integers(0, 40))
def test_blanks_and_comments_may_come_and_go(seed: int, width: int) -> None:
    """Every blank and every line end between brackets is drawn anew."""
    chance = random.Random(seed)
    text = "".join(PIECES)
    spread = []
    depth = 0
    for letter in text:
        depth += (letter in "([{") - (letter in ")]}")
        if depth and letter in "(,":
            letter += chance.choice(["", " ", "  ", "\n", "  # why\n", "\n\n" + " " * width])
        spread.append(letter)
    assert everywhere("".join(spread)) == everywhere(text)


def test_a_formatter_may_run() -> None:
    """`ast.unparse` is the most thorough of all: of comments and layout nothing is left."""
    text = "".join(PIECES).replace("# concrete here", "").replace("# concrete", "")
    assert everywhere(ast.unparse(ast.parse(text))) == everywhere(text)


def test_real_findings_have_their_own() -> None:
    found = findings(
        "import jax\n\n@jax.remat(concrete=True)\ndef f(x, n):\n  if n: return x\n"
        "g = jax.remat(f, concrete=True)\ng = jax.remat(f, concrete=True)\n"
    )
    assert len(found) > 2
    assert len(set(fingerprints(found, found[0].path.parent).values())) == len(found)
