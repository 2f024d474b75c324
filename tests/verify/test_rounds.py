"""Rounds of fixing and running: a unit runs again only if code that it runs changed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from support import cli, write_files

from remat_migrate.verify import fixes
from remat_migrate.verify.copies.sides import Task
from remat_migrate.verify.evidence import Outcome, Proof, Verdict

pytestmark = pytest.mark.slow

BLOCK = """\
import jax
{imports}

def _inner(x, train):
    return -x if train else x


def {name}(x, train):
    return jax.checkpoint(_inner, concrete=True)(x, train)
"""


def rounds(
    patch: pytest.MonkeyPatch, folder: Path, wrong: str, arguments: Sequence[str] = ()
) -> list[list[str]]:
    """The units that ran in each round, where one is said to differ while its file is changed."""
    ran: list[list[str]] = []

    def prove(task: Task, *rest: object) -> Proof:
        ran.append([unit.name for unit in task.units])
        said = [Outcome.DIFFERS if u.name == wrong else Outcome.EQUAL for u in task.units]
        pairs = zip(task.units, said, strict=True)
        return Proof(tuple(Verdict(unit, outcome, detail="it does") for unit, outcome in pairs))

    patch.setattr(fixes, "prove", prove)
    assert cli(folder, "--fix", "--verify", *arguments).code == 3
    return ran


FILES = {
    "pyproject.toml": "",
    "a.py": BLOCK.format(name="f", imports=""),
    "b.py": BLOCK.format(name="g", imports="import a\n"),
    "c.py": BLOCK.format(name="h", imports=""),
}


def test_unchanged_units_do_not_run_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    write_files(tmp_path, FILES)
    assert rounds(monkeypatch, tmp_path, "a.f") == [["a.f", "b.g", "c.h"], ["b.g"]]
    assert "concrete" in (tmp_path / "a.py").read_text()
    assert "concrete" not in (tmp_path / "c.py").read_text()


def test_verdicts_of_every_round_are_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    write_files(tmp_path, FILES)
    assert rounds(monkeypatch, tmp_path, "b.g") == [["a.f", "b.g", "c.h"]]
    assert "concrete" in (tmp_path / "b.py").read_text()


def test_command_is_rerun_as_a_whole(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    write_files(tmp_path, FILES)
    ran = rounds(monkeypatch, tmp_path, "b.g", ("--command", "true"))
    assert ran == [["a.f", "b.g", "c.h"], ["a.f", "c.h"]]
