"""Tests that the fuzzer detects errors: each of its checks rejects something."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from fuzz.checkpoint_programs import program
from fuzz.drawing import Draw, smallest
from fuzz.execution import Workers, difference
from fuzz.kept import lost
from fuzz.patching import patched
from fuzz.subject import Subject, Wrong
from fuzz.trial import Counts, Trial
from hypothesis import given
from hypothesis import strategies as st

from remat_migrate.text import Edit, SourceFile
from remat_migrate.text.diff import unified_diff

PATH = Path("/project/example.py")


def problems(text: str, *edits: tuple[int, int, str]) -> list[str]:
    made = [Edit(PATH, *edit) for edit in edits]
    after = text
    for edit in reversed(made):
        after = after[: edit.start] + edit.text + after[edit.end :]
    return list(lost(SourceFile(PATH, text), SourceFile(PATH, after), made))


def test_detects_edits_that_change_grouping() -> None:
    assert problems("x = a * d\n", (4, 5, "b")) == []
    assert problems("x = a * d\ny = 1\n", (4, 5, "b"), (10, 10, "z = 2\n")) == []
    assert problems("def f():\n    a()\nb()\n", (17, 17, "    ")) != []
    assert problems("a = 1\nb()\n", (5, 6, "  # ")) != []
    assert problems("a()\nb()\nc()\n", (0, 0, "'''"), (8, 8, "'''\n")) != []


lines = st.lists(st.sampled_from(["a\n", "b\n", "c\r\n", "\n", "\r", "d"]), max_size=12)


@given(lines, lines)
def test_diff_applies(one: list[str], other: list[str]) -> None:
    before, after = "".join(one), "".join(other)
    shown = unified_diff(SourceFile(PATH, before), SourceFile(PATH, after), "example.py")
    assert patched(before.encode(), shown.encode()) == (after if shown else before).encode()


def test_diff_of_another_file_is_rejected() -> None:
    shown = unified_diff(SourceFile(PATH, "a\nb\n"), SourceFile(PATH, "a\nc\n"), "example.py")
    with pytest.raises(ValueError, match="line 1"):
        patched(b"x\nb\n", shown.encode())


def leaf(*entries: float, dtype: str = "float32", weak: bool = False) -> dict[str, object]:
    return {"leaves": [["['y']", dtype, [len(entries)], weak, list(entries)]]}


def test_results_are_compared() -> None:
    assert difference(leaf(1.0, 2.0), leaf(1.0, 2.000001)) is None
    assert difference(leaf(float("nan")), leaf(float("nan"))) is None
    assert difference(leaf(1.0, 2.0), leaf(1.0, 2.1)) is not None
    assert difference(leaf(1.0), leaf(1.0, dtype="int32")) is not None
    assert difference(leaf(1.0), leaf(1.0, weak=True)) is not None
    assert difference(leaf(1.0), {"leaves": []}) is not None
    assert difference(leaf(1, dtype="int32"), leaf(2, dtype="int32")) is not None


def test_choices_are_minimised() -> None:
    def still(given: object) -> list[int] | None:
        draw = Draw("", given)  # type: ignore[arg-type]
        numbers = [draw.count(0, 9) for _ in range(draw.count(0, 20))]
        return draw.made if sum(numbers) >= 12 else None

    big = [15, 3, 9, 0, 4, 7, 1, 2, 9, 9, 1, 0, 0, 5, 8, 2]
    assert still(big) == big
    small = smallest(big, still, 500)
    assert still(small) == small
    assert len(small) < 7
    assert sum(small[1:]) == 12


def test_programs_are_reproducible() -> None:
    draw = Draw("1/2")
    made = program(draw)
    assert program(Draw("1/2")) == made == program(Draw("", draw.made))
    assert made != program(Draw("1/3"))


FLAG = """\
import jax
import jax.numpy as jnp


def block(x, flag):
    return jnp.sin(x) if flag else x


block = jax.checkpoint(block, concrete=True)


def use_0():
    return jax.grad(lambda x: block(x, True))(1.0)
"""


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("", "", None),
        ("jnp.sin(x) if", "jnp.cos(x) if", "result differs"),
        ("static_argnums=(1,)", "", "fails after the fix: TracerBoolConversionError"),
    ],
)
def test_detects_wrong_fixes(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    workers: Workers,
    old: str,
    new: str,
    problem: str | None,
) -> None:
    """Apply the fix and then break it."""
    from fuzz import trial

    checked = trial.check_fixing

    def broken(*arguments: object, **options: object) -> object:
        fixed = checked(*arguments, **options)  # type: ignore[arg-type]
        text = fixed.files["main.py"].decode()
        assert old in text
        fixed.files["main.py"] = text.replace(old, new).encode()
        return fixed

    monkeypatch.setattr(trial, "check_fixing", broken)
    counts = Counts()
    attempt = Trial(Subject(tmp_path), workers, counts)
    if problem is None:
        attempt({"main.py": FLAG}, unsafe=False)
    else:
        with pytest.raises(Wrong, match=re.escape(problem)):
            attempt({"main.py": FLAG}, unsafe=False)
    assert (counts.executed, counts.fixed, counts.equal) == (1, 1, problem is None)
