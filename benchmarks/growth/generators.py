"""Programs that write inputs of any size, each of a shape that an analysis may stumble over."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass

Files = dict[str, str]

_HEAD = """import functools
import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name

@jax.checkpoint
def g(x):
    return jnp.sin(x)

"""
_STATIC = "def h(x, k):\n    return x if k else -x\n\n"
_OLD = "    return jax.checkpoint(f, concrete=True)(x, 1)\n"


@dataclass(frozen=True)
class Generator:
    """One shape of input.

    Attributes:
        files: returns the files of an input of size n, by name.
        arguments: of the run, after `remat-migrate`.
        first: the smallest size.
        most: the largest size, where Python or a file format limits it.
    """

    files: Callable[[int], Files]
    arguments: tuple[str, ...] = ("check", "--no-cache")
    first: int = 100
    most: int = 1_000_000


GENERATORS: dict[str, Generator] = {}


def _adding(
    name: str,
    *arguments: str,
    file: str = "m.py",
    head: str = _HEAD,
    first: int = 100,
    most: int = 1_000_000,
) -> Callable[[Callable[[int], str]], Callable[[int], str]]:
    """Add a generator whose files are one, with the text that the decorated function returns."""

    def add(text: Callable[[int], str]) -> Callable[[int], str]:
        options = Generator(lambda n: {file: head + text(n)}, first=first, most=most)
        if arguments:
            options = Generator(options.files, arguments, first, most)
        GENERATORS[name] = options
        return text

    return add


def _each(text: str, numbers: Iterable[int]) -> str:
    """Return a text for each number i, where `{j}` is the next number and `{h}` is i // 2."""
    return "".join(text.format(i=i, j=i + 1, h=i // 2) for i in numbers)


def _nested(head: str, depth: int, last: str, around: int = 0, each: str = "") -> str:
    """Return `depth` blocks in each other, with the statement `each` in each of them."""
    lines = []
    for i in range(depth):
        lines.append(" " * (around + i) + head.format(i=i) + "\n")
        if each:
            lines.append(" " * (around + i + 1) + each.format(i=i) + "\n")
    return "".join(lines) + " " * (around + depth) + last + "\n"


# A function whose first parameter is an array, and whose second one may have to be concrete.
_CHECKED = "@functools.partial(jax.checkpoint, concrete=True)\ndef f{i}(x, k):\n"
_CALLED = " return x\n\ny{i} = f{i}(1.0, 2)\n"


# Statements and control flow. CPython does not compile deeper nesting than of 20 blocks.


def _blocks(head: str, n: int) -> str:
    body = _nested(head, 18, "x = g(x)", around=1, each="x = jnp.sin(x) + k")
    return "".join(f"{_CHECKED}{body}{_CALLED}".replace("{i}", str(i)) for i in range(n // 40))


for _name, _head in {
    "for loops in each other": "for i{i} in range(k):",
    "while loops in each other": "while k < {i}:",
}.items():
    _adding(_name)(lambda n, head=_head: _blocks(head, n))  # type: ignore[misc]


def _one(statements: str) -> str:
    """Return one function with some statements, which has to know `k`."""
    return f"{_CHECKED}{statements}{_CALLED}".replace("{i}", "0")


@_adding("the same names swapped in branches")
def _swaps(n: int) -> str:
    branches = _each("    if k == {i}:\n        x, y = y, x\n", range(n))
    return f"def f(x, y, k):\n{branches}    return jax.checkpoint(x, concrete=True)(y)\n"


@_adding("rebindings of one function")
def _rebound(n: int) -> str:
    return _each("g = functools.partial(jax.checkpoint(g), {i})\n", range(n))


# Functions, calls and their arguments.


@_adding("parameters of a function")
def _parameters(n: int) -> str:
    names = [f"a{i}" for i in range(n)]
    body = _each("    if a{i}:\n        x = x + 1\n", range(n))
    return (
        f"@functools.partial(jax.checkpoint, concrete=True)\ndef f(x, {', '.join(names)}):\n"
        f"{body}    return x\n\ny = f(1.0, {', '.join(str(i % 2) for i in range(n))})\n"
    )


@_adding("parameters that a function hands on by name")
def _handed_on(n: int) -> str:
    names = ", ".join(f"a{i}" for i in range(n))
    passed = ", ".join(f"a{i}=a{i}" for i in range(n))
    body = _each("    if a{i}:\n        x = x + 1\n", range(n))
    return (
        f"def h(x, {names}):\n{body}    return x\n\n"
        f"def f(x, {names}):\n    return jax.checkpoint(h, concrete=True)(x, {passed})\n"
    )


@_adding("functions that call each other")
def _recursive(n: int) -> str:
    return "".join(
        f"def r{i}(x, k):\n    if k:\n        x = g(x)\n"
        f"    return r{(i + 1) % n}(x, k) + r{i * 7 % n}(x, k)\n\n"
        for i in range(n)
    ) + ("def f(x, k):\n    return r0(x, k)\n\ndef h(x):\n" + _OLD)


@_adding("a chain of calls")
def _chain(n: int) -> str:
    functions = _each("def c{j}(x, k):\n    return c{i}(x, k)\n\n", range(n))
    first = "def c0(x, k):\n    return x if k else g(x)\n\n"
    return f"{first}{functions}y = jax.checkpoint(c{n}, concrete=True)(1.0, True)\n"


@_adding("calls of one checkpointed function")
def _calls(n: int) -> str:
    return (
        "@functools.partial(jax.checkpoint, concrete=True)\n"
        "def f(x, k):\n    return x if k else -x\n\ndef h(x):\n"
        + _each("    x = f(x, {i} > 3)\n", range(n))
        + "    return x\n"
    )


@_adding("checkpoints in one function")
def _sites(n: int) -> str:
    sites = _each("    x = jax.checkpoint(g, concrete=True)(x)\n", range(n))
    return f"def f(x):\n{sites}    return x\n"


@_adding("partials of partials")
def _partials(n: int) -> str:
    return (
        "p0 = functools.partial(jax.checkpoint, concrete=True)\n"
        + _each("p{j} = functools.partial(p{i}, prevent_cse=False)\n", range(n))
        + f"f = p{n}(g)\n"
    )


@_adding("decorators of a function", most=100_000)
def _decorators(n: int) -> str:
    return "@jax.checkpoint\n" * n + "def f(x):\n    return x\n"


@_adding("functions that rebind a global name")
def _globals(n: int) -> str:
    rebound = "    global c\n    c = jax.checkpoint(g, concrete=True)\n    return c(x)\n\n"
    return "c = g\n" + _each(f"def f{{i}}(x):\n{rebound}", range(n))


@_adding("dictionaries of options")
def _options(n: int) -> str:
    return _each("o{i} = {{'concrete': True}}\nf{i} = jax.checkpoint(g, **o{i})\n", range(n))


# Classes and frameworks.


@_adding("methods of a class")
def _methods(n: int) -> str:
    methods = "".join(
        f"    def m{i}(self, x, k):\n        return jax.checkpoint(self.m{(i + 1) % n})(x, k)\n"
        for i in range(n)
    )
    return f"class A:\n{methods}"


@_adding("a diamond of classes")
def _diamond(n: int) -> str:
    return "class A0: pass\nclass B0: pass\n" + _each(
        "class A{j}(A{i}, B{i}):\n    def m(self, x):\n        return jax.checkpoint(self.m)(x)\n"
        "class B{j}(A{i}):\n    pass\n",
        range(n),
    )


@_adding("subclasses of one class")
def _subclasses(n: int) -> str:
    return (
        "class A:\n    def m(self, x, k): return x\n"
        "    def c(self, x): return jax.checkpoint(self.m, concrete=True)(x, True)\n"
    ) + _each("class B{i}(A):\n    def m(self, x, k): return -x if k else x\n", range(n))


# Transformations, which placement follows.


@_adding("stages of a gradient")
def _stages(n: int) -> str:
    stages = _each("@jax.checkpoint\ndef s{i}(x):\n    return jnp.sin(x) @ x\n\n", range(n))
    calls = _each("    x = s{i}(x)\n", range(n))
    return f"{stages}def loss(x):\n{calls}    return x.sum()\n\ngrad = jax.grad(loss)\n"


@_adding("scans of a gradient")
def _scans(n: int) -> str:
    scans = _each(
        "    x, _ = jax.lax.scan(lambda c, _: (g(c), None), x, None, length={j})\n", range(n)
    )
    return f"def loss(x):\n{scans}    return x.sum()\n\ngrad = jax.grad(loss)\n"


@_adding("changes of the flag")
def _flags(n: int) -> str:
    return "jax.config.update('jax_new_checkpoint', True)\n" * n


# Modules.


def _modules(name: str, files: Callable[[int], Files], first: int = 50) -> None:
    GENERATORS[name] = Generator(files, first=first)


def _numbered(text: str, n: int) -> Files:
    return {f"m{i}.py": _each(text, [i]) for i in range(n)}


_modules(
    "modules that import each other's names",
    lambda n: {
        **_numbered("import jax\nfrom m{j} import f{j}\nf{i} = jax.checkpoint(f{j})\n", n),
        f"m{n}.py": f"def f{n}(x, k):\n    return x if k else -x\n",
    },
)
_modules(
    "modules that import each other in a circle",
    lambda n: {
        f"m{i}.py": f"{_HEAD}import m{(i + 1) % n}\nf = jax.checkpoint(m{(i + 1) % n}.g)\n"
        for i in range(n)
    },
)
_modules("files with an old call", lambda n: _numbered(_HEAD + "def f(x):\n" + _OLD, n))


# Notebooks and text.


def _notebook(cells: Iterable[str]) -> str:
    shape: dict[str, object] = {"cell_type": "code", "execution_count": None, "metadata": {}}
    code = [{**shape, "outputs": [], "source": cell.splitlines(keepends=True)} for cell in cells]
    return json.dumps({"cells": code, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


@_adding("cells of a notebook", file="m.ipynb", head="")
def _cells(n: int) -> str:
    return _notebook([_HEAD, *["f = jax.checkpoint(g, concrete=True)\nf(1.0)\n"] * n])


@_adding("lines of a .env file", file=".env", head="")
def _settings(n: int) -> str:
    return "A=1\nJAX_NEW_CHECKPOINT=1\n" * n


# What is written.

_FINDINGS = "f{i} = jax.checkpoint(g, concrete=True)\n"
for _format in ("full", "json", "gitlab", "html"):
    _adding(f"findings as {_format}", "check", "--no-cache", "--output-format", _format)(
        lambda n: _each(_FINDINGS, range(n))
    )
_adding("sites of a report", "report", "--no-cache")(lambda n: _each(_FINDINGS, range(n)))
_adding("findings of a baseline", "check", "--no-cache", "--write-baseline", "baseline.json")(
    lambda n: _each(_FINDINGS, range(n))
)
for _name, _option in (("fixes", "--fix"), ("fixes as a diff", "--diff")):
    _adding(_name, "check", "--no-cache", _option)(lambda n: _each(_FINDINGS, range(n)))


GENERATORS["fixes of files"] = Generator(
    lambda n: _numbered(_HEAD + "def f(x):\n" + _OLD, n), ("check", "--no-cache", "--fix"), 25
)
