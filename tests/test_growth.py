"""Twice the input takes about twice the steps, for shapes of input that once took many more.

Twice as much takes four times the steps if each step looks at everything.
"""

from __future__ import annotations

import importlib
import sys
import threading
from pathlib import Path
from types import FrameType

import pytest
from support import findings, fixed

ROOT = Path(__file__).parent.parent

# The shapes with sizes from which on the steps for more input outweigh those for any.
SHAPES = {
    "for loops in each other": 80,
    "while loops in each other": 100,
    "dictionaries of options": 30,
    "functions that rebind a global name": 150,
    "the same names swapped in branches": 20,
    "rebindings of one function": 50,
    "parameters of a function": 50,
    "parameters that a function hands on by name": 50,
    "functions that call each other": 50,
    "calls of one checkpointed function": 25,
    "checkpoints in one function": 25,
    "decorators of a function": 40,
    "methods of a class": 50,
    "a diamond of classes": 15,
    "stages of a gradient": 20,
    "scans of a gradient": 20,
    "a chain of calls": 100,
    "subclasses of one class": 40,
    "findings as gitlab": 30,
    "lines of a .env file": 100,
    "files with an old call": 20,
    "cells of a notebook": 20,
    "changes of the flag": 40,
}


@pytest.mark.parametrize("shape", SHAPES)
def test_twice_the_input_takes_about_twice_the_steps(
    shape: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    generator = importlib.import_module("benchmarks.growth.generators").GENERATORS[shape]
    steps(generator.files(1))  # what a first run imports and caches
    some, more = (steps(generator.files(SHAPES[shape] * times)) for times in (1, 2))
    assert more < 3 * some


def steps(files: dict[str, str]) -> int:
    """Return how many functions are called to check some files."""
    count = 0

    def note(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        findings(files)
    finally:
        sys.setprofile(before)
        threading.setprofile(None)
    return count


@pytest.mark.parametrize(("modules", "is_fixed"), [(20, True), (40, False)])
def test_a_function_is_followed_through_so_many_modules(modules: int, is_fixed: bool) -> None:
    handed_on = {
        f"m{i}.py": f"import jax\nfrom m{i + 1} import name{i + 1}\n"
        f"name{i} = jax.jit(name{i + 1})\n"
        for i in range(modules)
    }
    made = {
        f"m{modules}.py": "import jax\n\n\ndef f(x, k):\n    return x if k else -x\n\n\n"
        f"name{modules} = jax.checkpoint(f, concrete=True)\n"
    }
    used = {"main.py": "from m0 import name0\n\ny = name0(1.0, True)\n"}
    written = fixed({**handed_on, **made, **used})
    assert ("static_argnums" in written[f"m{modules}.py"]) == is_fixed


def test_a_file_with_too_many_assignments_is_unreadable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("remat_migrate.analysis.names.module._MOST_SEEN", 400)
    head, end = "import jax\ndef f(x, k):\n", "    return x\ng = jax.checkpoint(f, concrete=True)\n"
    branch = "    if k:\n        x = x + 1\n"
    found = findings({"few.py": head + 10 * branch + end, "many.py": head + 40 * branch + end})
    assert [(finding.path.name, finding.code) for finding in found] == [
        ("few.py", "RMT101"),
        ("many.py", "RMT000"),
    ]
    assert "more than 400 assignments may reach the uses of names" in found[1].message


# The shapes with sizes beyond a bound.
BOUNDED = {
    "decorators of a function": (300, "more than 200 checkpoints, transforms, and partials"),
    "partials of partials": (300, "more than 200 checkpoints, transforms, and partials"),
    "rebindings of one function": (300, "more than 200 checkpoints, transforms, and partials"),
    "a diamond of classes": (150, "a class inherits from more than 200 others"),
}


@pytest.mark.parametrize("shape", BOUNDED)
def test_a_shape_beyond_a_bound_is_unreadable_and_takes_twice_the_steps(
    shape: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    generator = importlib.import_module("benchmarks.growth.generators").GENERATORS[shape]
    size, message = BOUNDED[shape]
    inside = findings(generator.files(size // 10))
    assert {finding.code for finding in inside} != {"RMT000"}
    found = findings(
        {**generator.files(size), "n.py": "import jax\njax.checkpoint(f, concrete=1)\n"}
    )
    assert message in found[0].message
    assert [(one.path.name, one.code) for one in found] == [("m.py", "RMT000"), ("n.py", "RMT101")]
    some, more = (steps(generator.files(size * times)) for times in (1, 2))
    assert more < 3 * some
