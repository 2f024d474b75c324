"""`check --fix`, `--diff` and `undo`: what they write, print, and return."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support import cli, read_files, write_files

from remat_migrate.analysis import Module, Project
from remat_migrate.engine import run
from remat_migrate.engine.check import fix_in_memory
from remat_migrate.engine.rules import load_rules
from remat_migrate.rule import Finding, Fix, Rule, Safety
from remat_migrate.text import Edit, Span

# An idle suppression is a finding with a safe fix that needs no other rule.
IDLE = "import jax  # noqa: RMT999\n\nstep = jax.checkpoint(print)\n"
MENDED = "import jax\n\nstep = jax.checkpoint(print)\n"
CLEAN = "import jax\n\nother = jax.checkpoint(print)\n"
UNPARSABLE = "import jax\n\nf = jax.checkpoint(g\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write_files(tmp_path, {"pyproject.toml": "", "src/old.py": IDLE, "src/new.py": CLEAN})
    return tmp_path


class Swap(Rule):
    """Replaces the first occurrence of one word by another."""

    code, name = "SWAP001", "swap"

    def __init__(self, old: str, new: str, safety: Safety = Safety.SAFE, where: str = "") -> None:
        self.old, self.new, self.safety, self.where = old, new, safety, where

    def check(self, module: Module, project: Project) -> Iterator[Finding]:
        """Yield a finding per file with the word, whose fix edits that file or `where`."""
        at = module.source.text.find(self.old)
        if at < 0:
            return
        span = Span(at, at + len(self.old))
        path = module.source.path
        edits = [Edit(path, *span, self.new)]
        if self.where:
            edits.append(Edit(path.with_name(self.where), 0, 0, "import os\n"))
        yield self.finding(
            module.source, span, "swap", fix=Fix("swapped", self.safety, tuple(edits))
        )


@pytest.fixture
def with_rules(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return a function that adds rules to the installed ones."""
    installed = load_rules()

    def add(*rules: Rule) -> None:
        monkeypatch.setattr(run, "load_rules", lambda: (*installed, *rules))

    return add


class TestFix:
    """`--fix`."""

    def test_fixable_findings_are_fixed(self, project: Path) -> None:
        before = read_files(project)
        ran = cli(project, "--fix", "src")
        assert (ran.code, ran.out, ran.err) == (0, "Fixed 1: 1 RMT001.\nNo findings left.\n", "")
        assert read_files(project) == before | {"src/old.py": MENDED.encode()}

    def test_remaining_findings_are_reported(self, project: Path) -> None:
        write_files(project, {"src/bad.py": UNPARSABLE})
        ran = cli(project, "--fix", "--output-format", "concise")
        assert ran.code == 1
        first, *rest = ran.out.splitlines()
        assert first.startswith("src/bad.py:3:19: RMT000 ")
        assert rest == ["Fixed 1: 1 RMT001.", "Remaining: 1 finding in 1 file: 1 manual."]
        assert cli(project, "--fix", "--exit-zero").code == 0

    def test_json_has_remaining_findings_and_fix_counts(self, project: Path) -> None:
        document = json.loads(cli(project, "--fix", "--output-format", "json").out)
        assert document["findings"] == []
        assert document["summary"]["fixed"] == 1

    def test_unsafe_fixes_are_opt_in(self, project: Path, with_rules: Callable[..., None]) -> None:
        with_rules(Swap("other", "second", Safety.UNSAFE))
        ran = cli(project, "--fix", "src")
        assert ran.code == 1
        assert "Remaining: 1 finding in 1 file: 1 fixable with --unsafe-fixes." in ran.out
        assert read_files(project)["src/new.py"] == CLEAN.encode()
        ran = cli(project, "--fix", "--unsafe-fixes", "src")
        assert (ran.code, ran.out) == (0, "Fixed 1: 1 SWAP001.\nNo findings left.\n")
        assert read_files(project)["src/new.py"] == CLEAN.replace("other", "second").encode()

    def test_only_given_files_are_edited(
        self, project: Path, with_rules: Callable[..., None]
    ) -> None:
        with_rules(Swap("other", "second", where="old.py"))
        before = read_files(project)
        ran = cli(project, "--fix", "src/new.py", "--output-format", "concise")
        assert ran.code == 1
        assert ran.err == (
            "warning: src/old.py was not named (1 fix not made)\n"
            "warning: to fix it: remat-migrate --fix src/new.py src/old.py\n"
        )
        assert read_files(project) == before
        assert cli(project, "--fix", "src").code == 0

    def test_a_read_only_file_prevents_shared_fixes(
        self, project: Path, with_rules: Callable[..., None]
    ) -> None:
        with_rules(Swap("other", "second", where="old.py"))
        (project / "src/old.py").chmod(0o444)
        before = read_files(project)
        ran = cli(project, "--fix", "src", "--output-format", "concise")
        assert ran.code == 1
        assert "src/old.py is read-only" in ran.err
        assert "(2 fixes not made)" in ran.err
        assert read_files(project) == before

    def test_a_file_that_changes_meanwhile(
        self, project: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write_files(project, {"src/more.py": IDLE})
        real = fix_in_memory

        def slow(*arguments: object, **options: object) -> object:
            outcome = real(*arguments, **options)  # type: ignore[arg-type]
            (project / "src/old.py").write_text(IDLE + "late = 1\n")
            return outcome

        monkeypatch.setattr("remat_migrate.cli.check.fix_in_memory", slow)
        ran = cli(project, "--fix", "src", "--output-format", "concise")
        assert ran.code == 2
        assert ran.err == (
            f"error: {project}/src/old.py changed on disk since it was read; run again;"
            " no file was changed\n"
        )
        assert (project / "src/old.py").read_text() == IDLE + "late = 1\n"
        assert (project / "src/more.py").read_text() == IDLE

    def test_a_full_disk(self, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        real, before = os.replace, read_files(project)

        def fail(new: str, name: str, **folders: int) -> None:
            if name == "old.py":
                raise OSError(28, "No space left on device")
            real(new, name, **folders)

        monkeypatch.setattr(os, "replace", fail)
        ran = cli(project, "--fix", "src", "--output-format", "concise")
        assert ran.code == 2
        assert ran.err == (
            f"error: {project}/src/old.py cannot be written: No space left on device;"
            " no file was changed\n"
        )
        assert read_files(project) == before

    def test_a_wrong_fix_is_dropped_and_reported(
        self, project: Path, with_rules: Callable[..., None]
    ) -> None:
        with_rules(Swap("other", "("))
        ran = cli(project, "--fix", "src")
        assert ran.code == 2
        assert "help: the fix was not made: the new text does not parse" in ran.out
        assert ran.err.startswith("error: src/new.py:3:1: the fix of SWAP001 was not made")
        assert "please report it" in ran.err
        assert read_files(project)["src/new.py"] == CLEAN.encode()
        assert read_files(project)["src/old.py"] == MENDED.encode()


class TestDiff:
    """`--diff`."""

    def test_it_writes_nothing_and_git_accepts_it(self, project: Path) -> None:
        write_files(project, {"src/bad.py": UNPARSABLE})
        before = read_files(project)
        ran = cli(project, "--diff", "src")
        assert ran.code == 1
        assert ran.out.startswith("--- a/src/old.py\n+++ b/src/old.py\n@@ -1,")
        assert ran.err == "Would fix 1 finding; 1 would be left.\n"
        assert read_files(project) == before
        subprocess.run(["git", "apply"], input=ran.out.encode(), cwd=project, check=True)
        assert read_files(project) == before | {"src/old.py": MENDED.encode()}

    def test_nothing_would_change(self, project: Path) -> None:
        write_files(project, {"src/bad.py": UNPARSABLE})
        ran = cli(project, "--diff", "src/new.py", "src/bad.py")
        assert (ran.code, ran.out, ran.err) == (0, "", "Nothing to fix; found 1 finding.\n")

    def test_the_diff_has_the_encoding_and_line_endings_of_the_file(self, project: Path) -> None:
        text = "# coding: latin-1\r\nname = 'é'  # noqa: RMT999\r\n"
        write_files(
            project,
            {"src/old.py": text.encode("latin-1"), "src/bom.py": b"\xef\xbb\xbf" + IDLE.encode()},
        )
        command = ["-c", "import sys; from remat_migrate.cli import main; main(['--diff'])"]
        import sys

        ran = subprocess.run(
            [sys.executable, *command], cwd=project, capture_output=True, check=False
        )
        assert ran.returncode == 1
        subprocess.run(["git", "apply"], input=ran.stdout, cwd=project, check=True)
        files = read_files(project)
        assert files["src/old.py"] == b"# coding: latin-1\r\nname = '\xe9'\r\n"
        assert files["src/bom.py"] == b"\xef\xbb\xbf" + MENDED.encode()


class TestStandardInput:
    """`-` with `--fix` and `--diff`."""

    def test_the_fixed_text_is_on_stdout(self, project: Path) -> None:
        ran = cli(project, "-", "--fix", stdin=IDLE.encode())
        assert (ran.code, ran.out) == (0, MENDED)
        assert ran.err == "Fixed 1: 1 RMT001.\nNo findings left.\n"

    def test_a_text_without_findings_is_unchanged(self, project: Path) -> None:
        (project / "pyproject.toml").write_text('[tool.remat-migrate]\nexclude = ["out/"]\n')
        for arguments in ([], ["--stdin-filename", "out/x.py"]):
            ran = cli(project, "-", "--fix", *arguments, stdin=CLEAN.encode())
            assert (ran.code, ran.out) == (0, CLEAN)

    def test_the_file_itself_is_not_touched(self, project: Path) -> None:
        before = read_files(project)
        ran = cli(project, "-", "--fix", "--stdin-filename", "src/old.py", stdin=IDLE.encode())
        assert ran.out == MENDED
        assert read_files(project) == before


class TestUndo:
    """`undo`."""

    def test_it_reverts_the_last_fix(self, project: Path) -> None:
        before = read_files(project)
        cli(project, "--fix", "src")
        ran = cli(project / "src", "undo")
        assert ran.code == 0
        assert ran.out.startswith(
            "restored old.py\nRestored 1 file to its state before the fixes of 20"
        )
        assert read_files(project) == before

    def test_edited_files_are_kept(self, project: Path) -> None:
        cli(project, "--fix", "src")
        (project / "src/old.py").write_text(MENDED + "mine = 1\n")
        ran = cli(project, "undo")
        assert ran.code == 2
        assert "error: src/old.py was edited since" in ran.err
        assert (project / "src/old.py").read_text() == MENDED + "mine = 1\n"
        assert cli(project, "undo", "--force").code == 0
        assert (project / "src/old.py").read_text() == IDLE

    def test_another_project(self, project: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
        cli(project, "--fix", "src")
        elsewhere = tmp_path_factory.mktemp("elsewhere")
        assert cli(elsewhere, "undo").code == 2
        assert cli(elsewhere, "undo", project / "src").code == 0
        assert (project / "src/old.py").read_text() == IDLE
