"""Fingerprints: what changes them, and above all what does not."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

from remat_migrate.engine.fingerprint import fingerprints, identities
from remat_migrate.rule import Finding
from remat_migrate.text import SourceFile, Span

ROOT = Path("/project")


def at(text: str, *words: str, code: str = "RMT101", name: str = "a.py") -> list[Finding]:
    """Findings at words of a text."""
    source = SourceFile(ROOT / name, text)
    spans = [Span(start := text.index(word), start + len(word)) for word in words]
    return [Finding(code, "made-up", "found", source, span) for span in spans]


def fingerprint(text: str, word: str, **options: str) -> str:
    [found] = fingerprints(at(text, word, **options), ROOT).values()
    return found


def test_what_a_formatter_changes_does_not_count() -> None:
    one = "def f():\n    return g('a', concrete=True)  # here\n"
    other = 'import os\n\ndef f():\n  return g(\n    "a",\n    concrete = True,\n  )\n'
    assert fingerprint(one, "concrete") == fingerprint(other, "concrete")


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
        "async def f():\n  for concrete in y:\n    p\n",
        "async def f():\n  async for concrete in y:\n    p\n",
    ),
    "a number that is a truth": ("f(concrete, 1)\n", "f(concrete, True)\n"),
    "bytes": ("f(concrete, 'a')\n", "f(concrete, b'a')\n"),
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
    assert list(named) == found
    assert len(set(named.values())) == 1
    digests = fingerprints(found[::-1], ROOT)
    assert len(set(digests.values())) == 3
    assert fingerprints(found[:1], ROOT)[found[0]] == digests[found[0]]


@pytest.mark.parametrize("name", ["run.sh", "a.yaml", "Dockerfile", "pyproject.toml", "notes.txt"])
def test_other_files_count_by_the_line(name: str) -> None:
    one = fingerprint("x: 1\nJAX: concrete\n", "concrete", name=name)
    assert one == fingerprint("\n  JAX:   concrete,  \nmore\n", "concrete", name=name)
    assert one != fingerprint("JAX: concrete 2\n", "concrete", name=name)
    # One that could be read as Python is none.
    [found] = identities(at("a: concrete\n", "concrete", name=name), ROOT).values()
    assert found[-1] == "a: concrete"


def test_deep_code_has_one_too() -> None:
    assert fingerprint("y = concrete" + " + x" * 9_000 + "\n", "concrete")
    branches = "if a: pass\n" + "elif b: pass\n" * 400 + "elif concrete: pass\n"
    assert fingerprint(branches, "concrete") == fingerprint("if concrete: pass\n", "concrete")


def test_stays_the_same_from_release_to_release() -> None:
    """Baselines are kept for years: this changes only with the baseline's version."""
    text = "def f():\n    return jax.checkpoint(g, concrete=True, n=-1.5)\n"
    assert fingerprint(text, "concrete") == "fc189579a34121520ed4d3f834a8f8df"
    text = "a: concrete\n"
    assert fingerprint(text, "concrete", name="a.yaml") == "0d976844d13caf722f4272b5c6108ed7"


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
