"""The command line: commands, options, exit codes, and output streams."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest
from support import cli, read_files, write_files

from remat_migrate import __version__
from remat_migrate.analysis import Module, Project
from remat_migrate.rule import Finding, Rule

UNPARSABLE = "import jax\n\nf = jax.checkpoint(g\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Create a project with one file that has a fixable finding, and one without findings."""
    write_files(
        tmp_path,
        {
            "pyproject.toml": "",
            "src/old.py": "import jax  # noqa: RMT999\n\nstep = jax.checkpoint(print)\n",
            "src/new.py": "import jax\n\nstep = jax.checkpoint(print)\n",
        },
    )
    return tmp_path


class TestExitCodes:
    """The exit codes 0, 1 and 2."""

    def test_nothing_found(self, project: Path) -> None:
        ran = cli(project, "src/new.py")
        assert (ran.code, ran.out, ran.err) == (0, "No findings in 1 file.\n", "")

    def test_findings(self, project: Path) -> None:
        ran = cli(project, "src")
        assert ran.code == 1
        assert ran.out.startswith("src/old.py:1:13: RMT001 ")
        assert ran.err == ""

    def test_exit_zero(self, project: Path) -> None:
        plain = cli(project, "src")
        zero = cli(project, "src", "--exit-zero")
        assert (zero.code, zero.out) == (0, plain.out)

    @pytest.mark.parametrize(
        "arguments",
        [
            ["nowhere.py"],
            ["src", "nowhere.py"],
            ["--no-such-option"],
            ["--select", "RMT9"],
            ["--select", "?"],
            ["--jax-version", "new"],
            ["--output-format", "xml"],
            ["--output-file", "src"],
            ["--output-file", "nowhere/report.txt"],
            ["--stdin-filename", "x.py"],
            ["-", "src"],
            ["explain"],
            ["explain", "RMT999"],
            ["rules", "RMT101"],
            ["report", "nowhere.py"],
        ],
    )
    def test_wrong_usage(self, project: Path, arguments: list[str]) -> None:
        before = read_files(project)
        ran = cli(project, *arguments)
        assert ran.code == 2
        assert ran.out == ""
        assert "rror: " in ran.err
        assert "Traceback" not in ran.err
        assert read_files(project) == before

    def test_a_mistyped_command_is_suggested(self, project: Path) -> None:
        ran = cli(project, "chek")
        assert (ran.code, ran.out) == (2, "")
        assert ran.err.endswith("Error: No file or command 'chek'; did you mean `check`?\n")


class TestDefaultCommand:
    """`check` is the default command."""

    def test_paths_and_options_may_come_first(self, project: Path) -> None:
        expected = cli(project, "check", "src", "--output-format", "concise")
        for arguments in (
            ["src", "--output-format", "concise"],
            ["--output-format", "concise", "src"],
            ["--output-format=concise", "src"],
        ):
            assert cli(project, *arguments) == expected

    def test_the_default_is_the_current_folder(self, project: Path) -> None:
        assert cli(project / "src").out == cli(project / "src", "check", ".").out

    def test_help_names_commands_and_the_options_of_check(self, project: Path) -> None:
        ran = cli(project, "--help")
        assert ran.code == 0
        for word in ("--fix", "--output-format", "report", "explain", "rules", "Exit codes"):
            assert word in ran.out
        assert cli(project, "-h").out == ran.out
        assert cli(project, "check", "--help").code == 0

    def test_version(self, project: Path) -> None:
        assert cli(project, "--version").out == f"remat-migrate {__version__}\n"


class TestOutput:
    """Output formats and destinations."""

    def test_paths_are_relative_to_the_current_folder(self, project: Path) -> None:
        (project / "other").mkdir()
        paths = [
            json.loads(cli(folder, "--output-format", "json", project / "src").out)["findings"][0]
            for folder in (project, project / "src", project / "other")
        ]
        assert [found["path"] for found in paths] == [
            "src/old.py",
            "old.py",
            (project / "src/old.py").as_posix(),
        ]

    @pytest.mark.parametrize("output_format", ["full", "concise", "json"])
    def test_output_file(self, project: Path, output_format: str) -> None:
        arguments = ["src", "--output-format", output_format]
        expected = cli(project, *arguments)
        ran = cli(project, *arguments, "--output-file", "out.txt")
        assert (ran.code, ran.out) == (1, "")
        assert (project / "out.txt").read_text() == expected.out

    def test_statistics(self, project: Path) -> None:
        assert cli(project, "src", "--statistics").out == (
            "1  RMT001  unused-suppression  in 1 file  (1 fixable)\n"
            "Found 1 finding in 1 file: 1 fixable.\n"
        )

    def test_report_table_and_json(self, project: Path) -> None:
        ran = cli(project, "report", "src")
        assert ran.code == 1
        assert [line.split()[:3] for line in ran.out.splitlines()[:3]] == [
            ["risk", "codes", "place"],
            ["none", "-", "src/new.py:3"],
            ["none", "-", "src/old.py:3"],
        ]
        document = json.loads(cli(project, "report", "--output-format", "json", "src").out)
        assert [(s["path"], s["line"]) for s in document["sites"]] == [
            ("src/new.py", 3),
            ("src/old.py", 3),
        ]
        assert [f["code"] for f in document["findings"]] == ["RMT001"]

    def test_a_broken_pipe(self, project: Path) -> None:
        write_files(project, {f"src/m{i}.py": "x = 1  # noqa: RMT999\n" * 200 for i in range(20)})
        command = [sys.executable, "-m", "remat_migrate", "src"]
        with subprocess.Popen(
            command, cwd=project, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdout.readline()
            process.stdout.close()
            assert process.stderr.read() == b""
        assert process.returncode == 141


class TestStandardInput:
    """The path `-`, as editors use it."""

    def test_findings(self, project: Path) -> None:
        text = b"x = 1  # noqa: RMT999\n"
        ran = cli(project, "-", "--output-format", "concise", stdin=text)
        assert ran.code == 1
        assert ran.out.startswith("stdin.py:1:8: RMT001 ")
        named = cli(
            project, "-", "--stdin-filename", "src/x.py", "--output-format", "concise", stdin=text
        )
        assert named.out.startswith("src/x.py:1:8: RMT001 ")

    def test_it_replaces_the_file(self, project: Path) -> None:
        ran = cli(project, "-", "--stdin-filename", "src/old.py", stdin=b"x = 1\n")
        assert (ran.code, ran.out) == (0, "No findings in 1 file.\n")

    def test_settings_apply(self, project: Path) -> None:
        (project / "pyproject.toml").write_text('[tool.remat-migrate]\nexclude = ["old/"]\n')
        ran = cli(project, "-", "--stdin-filename", "old/x.py", stdin=b"x  # noqa: RMT999\n")
        assert (ran.code, ran.out) == (0, "No findings in 0 files.\n")

    def test_undecodable_bytes(self, project: Path) -> None:
        ran = cli(project, "-", stdin=b"\xff\xfe\x00")
        assert (ran.code, ran.out) == (2, "")
        assert "UTF-16" in ran.err


class TestSelection:
    """Rule selection."""

    FILES: ClassVar = {
        "old.py": "import jax  # noqa: RMT999\n\nstep = jax.checkpoint(print)\n",
        "bad.py": UNPARSABLE,
    }

    def codes(self, folder: Path, *arguments: str) -> set[str]:
        document = json.loads(cli(folder, "--output-format", "json", *arguments).out)
        return set(document["summary"]["codes"])

    def test_select_and_ignore(self, tmp_path: Path) -> None:
        write_files(tmp_path, self.FILES)
        assert self.codes(tmp_path) == {"RMT000", "RMT001"}
        assert self.codes(tmp_path, "--ignore", "RMT001") == {"RMT000"}
        assert self.codes(tmp_path, "--ignore", "rmt001,RMT000") == set()
        assert self.codes(tmp_path, "--select", "RMT0") == {"RMT000", "RMT001"}

    def test_an_unreadable_file_is_always_reported(self, tmp_path: Path) -> None:
        write_files(tmp_path, self.FILES)
        assert self.codes(tmp_path, "--select", "RMT001") == {"RMT000", "RMT001"}

    def test_per_file_ignores(self, tmp_path: Path) -> None:
        write_files(tmp_path, {**self.FILES, "tests/old.py": self.FILES["old.py"]})
        (tmp_path / "pyproject.toml").write_text(
            '[tool.remat-migrate.per-file-ignores]\n"tests/" = ["RMT0"]\n"bad.py" = ["RMT000"]\n'
        )
        ran = cli(tmp_path, "--output-format", "concise")
        assert [line.split()[0] for line in ran.out.splitlines()] == ["old.py:1:13:", "Found"]
        assert "(2 suppressed)" in ran.out


class Faulty(Rule):
    """A rule with a bug."""

    code, name = "BAD001", "faulty"

    def check(self, module: Module, project: Project) -> Iterator[Finding]:
        """Yield a finding, then fail."""
        if module.name == "src.old" or module.name == "old":
            from remat_migrate.text import Span

            yield self.finding(module.source, Span(0, 6), "found before the fault")
            raise ZeroDivisionError("one over zero")


def test_a_rule_that_fails_does_not_end_the_run(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from remat_migrate.engine import run

    real = run.load_rules()
    monkeypatch.setattr(run, "load_rules", lambda: (Faulty(), *real))
    ran = cli(project, "src", "--output-format", "concise")
    assert ran.code == 2
    assert [line.split()[1] for line in ran.out.splitlines()] == ["BAD001", "RMT001", "2"]
    assert f"{project}/src/old.py: rule BAD001 failed: ZeroDivisionError: one" in ran.err
    assert "please report it" in ran.err
    assert cli(project, "src", "--exit-zero").code == 2


def test_an_internal_error_is_not_reported_as_findings(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from remat_migrate.engine import check

    monkeypatch.setattr(check, "analyse", lambda *_, **__: 1 / 0)
    ran = cli(project, "src")
    assert ran.code == 2
    assert "ZeroDivisionError" in ran.err
    assert "please report it" in ran.err


def test_rules_and_explain(project: Path) -> None:
    lines = cli(project, "rules").out.splitlines()
    codes = [line.split()[0] for line in lines]
    assert codes == sorted(codes)
    assert {"RMT000", "RMT001"} <= set(codes)
    for code in codes:
        ran = cli(project, "explain", code.lower())
        assert ran.code == 0
        for heading in ("What it does", "Why is this bad?", "Fix"):
            assert f"\n{heading}\n" in ran.out
        assert ran.out.startswith(f"{code} ")
    assert cli(project, "explain", "unused-suppression").out.startswith("RMT001 ")
    assert "did you mean RMT001?" in cli(project, "explain", "RMT0010").err


@pytest.mark.parametrize(
    ("arguments", "unwanted"),
    [
        (
            ["--help"],
            ["remat_migrate.analysis", "remat_migrate.engine.fix_rounds", "libcst", "pathspec"],
        ),
        (["check", "src"], ["libcst", "jax", "pathspec", "difflib", "tomllib"]),
    ],
)
def test_unneeded_modules_are_not_imported(
    project: Path, arguments: list[str], unwanted: list[str]
) -> None:
    script = (
        "import sys, atexit\n"
        f"atexit.register(lambda: print(set({unwanted!r}) & set(sys.modules), file=sys.stderr))\n"
        "from remat_migrate.cli import main\n"
        f"main({arguments!r})\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script], cwd=project, capture_output=True, text=True, check=False
    )
    assert ran.stderr == "set()\n"
