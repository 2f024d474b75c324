"""Fingerprints: what changes them, and above all what does not."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

from remat_migrate.engine.fingerprint import Identity, fingerprints, identities
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
    "case": [
        "match x:\n  case concrete(): pass\n",
        "match y:\n    case [a]:\n        pass\n    case concrete():\n        z = 1\n",
    ],
    "docstring": [
        'def f():\n    """One concrete\n    two."""\n',
        'def f():\n  """One concrete\n  two.\n  """\n',
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


def test_deep_code_has_one_too() -> None:
    long_sum = " + ".join(["x"] * 900)
    text = f"y = concrete + {long_sum}\n"
    assert fingerprint(text, "concrete") != fingerprint(text.replace("+ x\n", "- x\n"), "concrete")
    branches = "if a: pass\n" + "elif b: pass\n" * 400 + "elif concrete: pass\n"
    assert fingerprint(branches, "concrete") == fingerprint("if concrete: pass\n", "concrete")


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


def test_a_formatter_may_run() -> None:
    """`ast.unparse` is the most thorough of all: of comments and layout nothing is left."""
    text = "".join(PIECES).replace("# concrete here", "").replace("# concrete", "")
    assert everywhere(ast.unparse(ast.parse(text))) == everywhere(text)
