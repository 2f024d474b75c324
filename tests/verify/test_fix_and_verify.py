"""`--fix --verify`: which fixes are kept and which are reverted, with the output."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support import Ran, cli, read_files, write_files

import remat_migrate.engine.run
from remat_migrate.analysis import Module, Project
from remat_migrate.engine.rules import load_rules
from remat_migrate.rule import Finding, Fix, Rule, Safety
from remat_migrate.text import Edit, Span


class Swap(Rule):
    """A third-party rule with a wrong fix: replaces one text by another."""

    name = "swap"

    def __init__(self, number: int, old: str, new: str) -> None:
        self.code = f"SWAP{number:03}"
        self.old, self.new = old, new

    def check(self, module: Module, project: Project) -> Iterator[Finding]:
        """A finding wherever the text stands."""
        at = module.source.text.find(self.old)
        if at >= 0:
            span = Span(at, at + len(self.old))
            fix = Fix("swapped", Safety.SAFE, (Edit(module.source.path, *span, self.new),))
            yield self.finding(module.source, span, "swap", fix=fix)


@dataclass(frozen=True, slots=True)
class Fixed:
    """What a run did to a folder."""

    folder: Path
    ran: Ran
    before: Mapping[str, bytes]

    @property
    def document(self) -> dict[str, Any]:
        return json.loads(self.ran.out)

    @property
    def verdicts(self) -> dict[str, list[dict[str, Any]]]:
        """The verdicts by unit, in order."""
        found: dict[str, list[dict[str, Any]]] = {}
        for verdict in self.document["verdicts"]:
            found.setdefault(verdict["unit"], []).append(verdict)
        return found

    def text(self, name: str = "model.py") -> str:
        return (self.folder / name).read_text()


def run(folder: Path, files: Mapping[str, str], *arguments: str | Path, rules: Any = ()) -> Fixed:
    """Write a project and run `remat-migrate` in it, with further rules."""
    write_files(folder, {"pyproject.toml": "", **files})
    before = read_files(folder)
    with pytest.MonkeyPatch.context() as patch:
        if rules:
            both = (*load_rules(), *rules)
            patch.setattr(remat_migrate.engine.run, "load_rules", lambda: both)
        return Fixed(folder, cli(folder, *arguments), before)


MODEL = """\
import jax
import jax.numpy as jnp


def _block(x, train):
    return jnp.sin(x) if train else x * 3.0


def right(x, train: bool):
    return jax.checkpoint(_block, concrete=True)(x, train)


def scaled(x):
    return x * 2.0  # scaled


def flagged(x, flag: bool = False):
    return jnp.sin(x) if flag else jnp.cos(x)


def renamed(x):
    return jnp.tanh(x)


def cut(x):
    return x * jnp.exp(x)


def both(x, train: bool):
    y = jax.checkpoint(_block, concrete=True)(x, train)
    return y + 5.0


def by_hand(x, unknown, **options):
    return jax.checkpoint(unknown, **options, concrete=True)(x)
"""
TWO = """\
from jax import checkpoint


def f(x):
    return x * 2.0


def g(x):
    return x + 1.0
"""
FAULTS = (
    Swap(1, "x * 2.0  # scaled", "x * 2.001  # scaled"),
    Swap(2, "jnp.sin(x) if flag else jnp.cos(x)", "jnp.sin(x) if not flag else jnp.cos(x)"),
    Swap(3, "jnp.tanh(x)", "jnp.no_such_function(x)"),
    Swap(4, "x * jnp.exp(x)", "x * jax.lax.stop_gradient(jnp.exp(x))"),
    Swap(5, "y + 5.0", "y + 6.0"),
)


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Fixed:
    """Right and wrong fixes in one module, two in one function."""
    return run(
        tmp_path_factory.mktemp("faulty"),
        {"model.py": MODEL},
        *("--fix", "--verify", "--output-format", "json"),
        rules=FAULTS,
    )


@pytest.mark.slow
class TestReverted:
    """Only the wrong ones of several fixes are reverted."""

    def test_only_right_fixes_are_written(self, faulty: Fixed) -> None:
        assert faulty.text() == MODEL.replace(
            "(_block, concrete=True)", "(_block, static_argnums=(1,))", 1
        )
        assert faulty.ran.code == 3

    def test_right_fixes_are_proved(self, faulty: Fixed) -> None:
        (equal,) = faulty.verdicts["model.right"]
        assert (equal["verdict"], equal["inputs"], equal["max_abs"]) == ("equal", "made", 0.0)
        assert "both values of train" in equal["detail"]
        assert equal["calls"] >= 2

    @pytest.mark.parametrize(
        ("unit", "verdict", "words"),
        [
            ("model.scaled", "differs", "entry"),
            ("model.flagged", "differs", "flag="),
            ("model.renamed", "fails-after", "no_such_function"),
            ("model.cut", "differs", "in the gradient"),
            ("model.both", "differs", "entry"),
        ],
    )
    def test_wrong_fixes_are_reported(
        self, faulty: Fixed, unit: str, verdict: str, words: str
    ) -> None:
        (said,) = faulty.verdicts[unit]
        assert said["verdict"] == verdict
        assert words in said["detail"]

    def test_finding_of_a_reverted_fix_has_the_reason(self, faulty: Fixed) -> None:
        left = {f["code"]: f for f in faulty.document["findings"] if f["code"].startswith("SWAP")}
        assert sorted(left) == [rule.code for rule in FAULTS]
        for finding in left.values():
            assert finding["fix"] is None
            assert finding["reason"].startswith("the fix was reverted: model.")

    def test_the_summary_counts(self, faulty: Fixed) -> None:
        summary = faulty.document["summary"]
        assert (summary["fixed"], summary["taken_back"]) == (1, 6)
        assert summary["verdicts"] == {
            "equal": 1,
            "close": 0,
            "differs": 4,
            "fails-after": 1,
            "fails-before": 0,
            "not-exercised": 0,
        }

    def test_verdicts_have_the_documented_keys(self, faulty: Fixed) -> None:
        keys = {
            "unit",
            "path",
            "line",
            "verdict",
            "inputs",
            "calls",
            "max_abs",
            "max_rel",
            "detail",
        }
        keys |= {"evidence", "shapes", "substituted", "traceback", "difference"}
        for verdicts in faulty.verdicts.values():
            for verdict in verdicts:
                assert verdict.keys() == keys | {"difference", "through"}
                assert verdict["path"] == "model.py"
        lines = MODEL.splitlines()
        (right,) = faulty.verdicts["model.right"]
        assert lines[right["line"] - 1].startswith("def right(")

    def test_manual_findings_remain(self, faulty: Fixed) -> None:
        """A site in the same module that no fix can change does not interfere."""
        *_, left = [f for f in faulty.document["findings"] if f["code"] == "RMT101"]
        assert MODEL.splitlines()[left["line"] - 1].startswith("    return jax.checkpoint(unknown")
        assert "model.by_hand" not in faulty.verdicts


def test_text_output_names_reverted_fixes(tmp_path: Path) -> None:
    fixed = run(
        tmp_path,
        {"model.py": TWO},
        *("--fix", "--verify"),
        rules=(Swap(1, "x * 2.0", "x * 4.0"), Swap(2, "x + 1.0", "1.0 + x")),
    )
    assert fixed.ran.code == 3
    assert fixed.text() == TWO.replace("x + 1.0", "1.0 + x")
    said = fixed.ran.out + fixed.ran.err
    assert "reverted model.py:5 SWAP001: model.f returns different results:" in said
    assert "equal    model.py:8 g (generated inputs, x:float32[" in said
    assert "Fixed 1: 1 SWAP002; proved 1 by running the code, 1 reverted." in said


UNEXERCISED = """\
import jax


def _step(x, flag):
    return x if flag else -x


def step(x, keys, table: "object"):
    raise RuntimeError("only on a machine that has everything")


def other(x, keys, table: "object"):
    if not table.attribute.of.nothing(keys).known:
        raise RuntimeError("no such table")
    return jax.checkpoint(_step, concrete=True)(x, True)
"""


PLAIN = """\
import jax


def _inner(x, train):
    return x * 2.0 if train else x


def f(x, train: bool):
    return jax.checkpoint(_inner, concrete=True)(x, train)
"""


@pytest.mark.slow
class TestNotExercised:
    """A fix whose code no input reaches."""

    def test_unexercised_fix_is_kept_and_reported(self, tmp_path: Path) -> None:
        fixed = run(tmp_path, {"model.py": UNEXERCISED}, "--fix", "--verify")
        assert fixed.text() != UNEXERCISED
        assert "concrete" not in fixed.text()
        said = fixed.ran.out + fixed.ran.err
        assert "not-exercised  model.py:12 other (" in said
        assert "Fixed 1: 1 RMT101; proved 0 by running the code, 1 not proved." in said
        assert fixed.ran.code == 0

    def test_strict_reverts_unexercised_fixes(self, tmp_path: Path) -> None:
        files = {"model.py": UNEXERCISED, "ok.py": PLAIN}
        fixed = run(tmp_path, files, "--fix", "--verify=strict")
        assert fixed.text() == UNEXERCISED
        assert "concrete" not in fixed.text("ok.py")
        said = fixed.ran.out + fixed.ran.err
        assert "reverted model.py:15 RMT101: not proved: model" in said
        assert fixed.ran.code == 3

    def test_non_python_file_is_not_run(self, tmp_path: Path) -> None:
        script = "export JAX_NEW_CHECKPOINT=1\npython train.py\n"
        fixed = run(tmp_path, {"run.sh": script}, "--fix", "--verify")
        assert fixed.text("run.sh") != script
        said = fixed.ran.out + fixed.ran.err
        assert "not-exercised  run.sh (not a Python file)" in said
        assert fixed.ran.code == 0


@pytest.mark.slow
class TestDifference:
    """`--diff --verify`."""

    def test_diff_shows_proved_fixes_and_writes_nothing(self, tmp_path: Path) -> None:
        shown = run(
            tmp_path,
            {"model.py": TWO},
            *("--diff", "--verify"),
            rules=(Swap(1, "x * 2.0", "x * 4.0"), Swap(2, "x + 1.0", "1.0 + x")),
        )
        assert read_files(tmp_path) == shown.before
        assert "+    return 1.0 + x" in shown.ran.out
        assert "x * 4.0" not in shown.ran.out
        assert "reverted" in shown.ran.err
        assert shown.ran.code == 3


LOUD = """\
import argparse
import os
import pathlib

import jax
import jax.numpy as jnp

HERE = pathlib.Path(__file__).resolve().parent
pathlib.Path("import-cwd.txt").write_text("x")
(HERE / "import-file.txt").write_text("x")
with open(HERE / "model.py", "a") as file:
    file.write("# written by itself")


def _inner(x, train):
    pathlib.Path("unit-cwd.txt").write_text("x")
    (HERE / "unit-file.txt").write_text("x")
    os.makedirs(HERE.parent / "made", exist_ok=True)
    (HERE / "data.txt").unlink(missing_ok=True)
    return jnp.sin(x) if train else x


def unit(x, train: bool):
    return jax.checkpoint(_inner, concrete=True)(x, train)
"""


@pytest.mark.slow
class TestUserTree:
    """The code runs in copies of the project."""

    def test_only_the_fix_is_written(self, tmp_path: Path) -> None:
        project = tmp_path / "project"
        files = {"src/model.py": LOUD, "src/data.txt": "data", "src/__init__.py": ""}
        test = "from src.model import unit\nimport jax.numpy as jnp\nunit(jnp.ones(3), True)\n"
        command = f"{sys.executable} drive.py"
        fixed = run(project, {**files, "drive.py": test}, "--fix", "--verify", "--command", command)
        after = {**fixed.before}
        mended = LOUD.replace("concrete=True", "static_argnums=(1,)")
        assert read_files(project) == {**after, "src/model.py": mended.encode()}
        assert [path.name for path in tmp_path.iterdir()] == ["project"]
        assert fixed.ran.code == 0, fixed.ran.err

    def test_files_are_unchanged_until_the_verdict(self, tmp_path: Path) -> None:
        """The code under test reads the original file."""
        model = tmp_path / "model.py"
        seen = tmp_path.parent / f"{tmp_path.name}-seen"
        text = (
            "from jax import checkpoint\n\n"
            f"with open({str(seen)!r}, 'a') as log:\n"
            "    log.write('|')\n\n\n"
            "def f(x):\n"
            "    return x * 2.0\n"
        )
        watched: list[str] = []
        from remat_migrate.verify import prove

        real = prove.compared

        def compared(*arguments: Any, **options: Any) -> Any:
            watched.append(model.read_text())
            return real(*arguments, **options)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(prove, "compared", compared)
            fixed = run(
                tmp_path,
                {"model.py": text},
                *("--fix", "--verify"),
                rules=(Swap(1, "x * 2.0", "2.0 * x"),),
            )
        assert watched
        assert set(watched) == {text}
        assert seen.read_text().count("|") > 1  # both sides did run
        assert fixed.text() == text.replace("x * 2.0", "2.0 * x")


COMMANDED = """\
import jax
import jax.numpy as jnp

LIMIT = 10


def block(x, train: bool):
    return jax.checkpoint(_inner, concrete=True)(x, train)


def _inner(x, train):
    return jnp.sin(x) if train else x
"""
DRIVE = """\
import jax.numpy as jnp
import model

assert model.block(jnp.ones(3), True).shape == (3,)
assert 'LIMIT = 10' in open(model.__file__).read()
"""


@pytest.mark.slow
class TestCommand:
    """A command from the settings."""

    @pytest.fixture(scope="class")
    @staticmethod
    def commanded(tmp_path_factory: pytest.TempPathFactory) -> Fixed:
        settings = (
            "[tool.remat-migrate.verify]\n"
            'command = "python drive.py"\n'
            'timeout = 100\nmemory = "6 GiB"\n'
            "[tool.remat-migrate.verify.tolerance]\nfloat32 = 1e-6\n"
        )
        return run(
            tmp_path_factory.mktemp("command"),
            {"pyproject.toml": settings, "model.py": COMMANDED, "drive.py": DRIVE},
            *("--fix", "--verify", "--select", "RMT,SWAP", "--output-format", "json", "."),
            # It changes what the command reads, and no unit.
            rules=(Swap(1, "LIMIT = 10", "LIMIT = 5 + 5"),),
        )

    def test_fixes_that_change_the_exit_status_are_reverted(self, commanded: Fixed) -> None:
        assert commanded.text() == COMMANDED
        assert commanded.ran.code == 3
        for left in commanded.document["findings"]:
            assert "a fix changes how the command ends" in left["reason"]
            assert "exit status 1" in left["reason"]


@pytest.mark.slow
class TestProgress:
    """The progress bar appears only on a terminal."""

    def test_on_a_terminal(self, tmp_path: Path) -> None:
        write_files(tmp_path, {"pyproject.toml": "", "model.py": PLAIN})
        ours, theirs = pty.openpty()
        with subprocess.Popen(
            [sys.executable, "-m", "remat_migrate", "--diff", "--verify"],
            cwd=tmp_path,
            stdout=subprocess.DEVNULL,
            stderr=theirs,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
        ):
            os.close(theirs)
            shown = b""
            try:
                while data := os.read(ours, 1 << 16):
                    shown += data
            except OSError:
                pass  # its end, on Linux
        os.close(ours)
        bar, erased, rest = shown.rpartition(b"\x1b[2K")
        assert b"Verifying" in bar
        assert b"model.f" in bar
        assert b"None" not in bar
        assert erased
        assert b"equal" in bar  # as soon as it is known
        assert b"equal" not in rest  # once is enough
        assert "\N{SYMBOL FOR ESCAPE}".encode() not in shown

    def test_no_progress_bar_without_a_terminal(self, faulty: Fixed) -> None:
        assert "Verifying" not in faulty.ran.err + faulty.ran.out
