"""Code and options that cannot be verified: the message says what to do, no file is changed."""

from __future__ import annotations

import json
import sys
import venv
from pathlib import Path
from typing import Any

import pytest
from support import Ran, cli, git, read_files, write_files

pytestmark = pytest.mark.slow

BASE = """\
import jax


def attend(x):
    return x * 2.0


def unchanged(x):
    return x
"""
WORKING = BASE.replace("x * 2.0", "2.0 * x")
SETTINGS = "[tool.remat-migrate.verify]\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a rewritten function; the older state is in ../base."""
    write_files(tmp_path / "base", {"pyproject.toml": "", "model.py": BASE})
    write_files(tmp_path / "project", {"pyproject.toml": "", "model.py": WORKING})
    return tmp_path / "project"


def verify(project: Path, *arguments: str | Path) -> Ran:
    """Run `verify` against the base and check that it changes nothing."""
    before = read_files(project)
    ran = cli(project, "verify", "--base", "../base", *arguments)
    assert read_files(project) == before
    assert "Traceback" not in ran.err
    return ran


def refused(ran: Ran, *words: str) -> None:
    """Check that the run ended with 2, no verdict, and a message with these words."""
    assert ran.code == 2
    assert ran.out == ""
    assert ran.err.startswith("error: ")
    for word in words:
        assert word in ran.err


def verdicts(ran: Ran) -> dict[str, dict[str, Any]]:
    return {v["unit"]: v for v in json.loads(ran.out)["verdicts"]}


class TestCases:
    """The file of cases."""

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("def attend(:\n", ["SyntaxError"]),
            ("1 / 0\n", ["raised ZeroDivisionError", "cases.py", "line 1"]),
            ("def attend():\n    raise KeyError('w')\n", ["raised KeyError", "line 2"]),
            ("def attend():\n    return [1]\n", ["returned a list", "return a tuple"]),
            ("def atend():\n    return ()\n", ["atend", "matches no unit", "did you mean attend?"]),
            ("CASES = {'model.nothing_like': lambda: ()}\n", ["nothing_like", "matches no unit"]),
            ("import sys\nsys.exit(4)\n", ["raised SystemExit: 4"]),
            ("import os\nos._exit(4)\n", ["ended the process with status 4"]),
        ],
    )
    def test_invalid_file_of_cases(self, project: Path, text: str, words: list[str]) -> None:
        write_files(project, {"cases.py": text})
        refused(verify(project, "--cases", "cases.py"), f"cases: {project}/cases.py", *words)

    def test_missing_file_of_cases(self, project: Path) -> None:
        refused(verify(project, "--cases", "nowhere.py"), f"{project}/nowhere.py: no such file")
        settings = SETTINGS + 'cases = "tests/nowhere.py"\n'
        write_files(project, {"pyproject.toml": settings})
        refused(verify(project, "model.py"), f"cases: {project}/tests/nowhere.py: no such file")

    def test_cases_for_unchanged_units_are_allowed(self, project: Path) -> None:
        """The base lacks the file of cases."""
        text = "import numpy as np\n\n\ndef unchanged():\n    return ()\n\n\n"
        text += "def attend():\n    return (np.ones((3, 5), 'float32'),)\n"
        write_files(project, {"tests/cases.py": text})
        ran = verify(project, "--cases", "tests/cases.py", "--output-format", "json", "model.py")
        assert ran.code == 0, ran.err
        (verdict,) = verdicts(ran).values()
        assert (verdict["verdict"], verdict["inputs"]) == ("equal", "declared")


class TestCommand:
    """The command that exercises the code."""

    def test_command_fails_before_any_recording(self, project: Path) -> None:
        drive = {"drive.py": "print('what it said last')\nraise SystemExit(7)\n"}
        write_files(project.parent / "base", drive)
        write_files(project, drive)
        ran = verify(project, "--command", "python drive.py", "model.py")
        refused(
            ran,
            "the command `python drive.py` failed before it reached any code to compare",
            "exit status 7",
            "  what it said last",
        )

    def test_command_needs_a_new_file(self, project: Path) -> None:
        write_files(project, {"tests/drive.py": "import model\n"})
        ran = verify(project, "--command", "python tests/drive.py", "model.py")
        refused(ran, "exit status 2", "The base has no tests/drive.py.")

    def test_failing_command_writes_nothing(self, project: Path) -> None:
        old = "import jax\n\n\ndef _f(x, n):\n    return x if n else -x\n\n\ndef f(x, n):\n"
        old += "    return jax.checkpoint(_f, concrete=True)(x, n)\n"
        write_files(project, {"old.py": old})
        before = read_files(project)
        ran = cli(project, "--fix", "--verify", "--command", "no-such-program --at-all", "old.py")
        refused(ran, "no-such-program", "exit status 127", "nothing was changed")
        assert read_files(project) == before

    def test_unpicklable_arguments(self, project: Path) -> None:
        """What cannot be recorded, cannot be made either: the verdict says both."""
        text = "def attend(x, log=None):\n    print('called', file=log)\n    return x * 2.0\n"
        drive = "import model, numpy as np\nwith open('log.txt', 'w') as log:\n"
        drive += "    model.attend(np.ones(3), log)\n"
        write_files(project.parent / "base", {"model.py": text, "drive.py": drive})
        write_files(project, {"model.py": text.replace("x * 2.0", "2.0 * x"), "drive.py": drive})
        ran = verify(
            project, *("--command", "python drive.py", "--output-format", "json", "model.py")
        )
        assert ran.code == 0, ran.err
        (verdict,) = verdicts(ran).values()
        assert (verdict["verdict"], verdict["inputs"]) == ("equal", "made")


MODULES = {
    "on_gpu.py": "import jax\n\nGPU = jax.devices('gpu')[0]\n",
    "sibling.py": "from .model import unchanged\n",
    "leaves.py": "import sys\n\nsys.exit('configure me first')\n",
    "asks.py": (
        "import argparse\n\nparser = argparse.ArgumentParser()\n"
        "parser.add_argument('--data', required=True)\nDATA = parser.parse_args()\n"
    ),
    "lacks.py": "import a_package_that_nobody_has\n",
    "raises.py": "raise RuntimeError('no license')\n",
    "speaks.py": (
        "import argparse\n\nparser = argparse.ArgumentParser()\nprint(parser.parse_args())\n"
        "open('written.txt', 'w').close()\n"
    ),
    "broken.py": "import json\n\nif True:\n",
}
# What the verdict says of each module that does not import as a whole.
SUBSTITUTED = {
    "on_gpu": ["on_gpu.GPU (RuntimeError: ", "'gpu'"],
    "sibling": ["from .model import unchanged (ImportError: "],
    "leaves": [],
    "asks": [],
    "lacks": ["a_package_that_nobody_has (not installed)"],
    "raises": ["RuntimeError: no license"],
}


class TestModules:
    """Modules that fail or have side effects on import."""

    @pytest.fixture(scope="class")
    @staticmethod
    def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
        root = tmp_path_factory.mktemp("modules")
        for side, text in (("base", BASE), ("project", WORKING)):
            unit = "\n\ndef unit(x):\n    return " + (
                "x * 2.0\n" if side == "base" else "2.0 * x\n"
            )
            files = {name: start + unit for name, start in MODULES.items()}
            write_files(root / side, {"pyproject.toml": "", "model.py": text, **files})
        return verify(root / "project", "--output-format", "json", ".")

    @pytest.mark.parametrize("module", SUBSTITUTED)
    def test_what_does_not_import_ends_only_itself(self, ran: Ran, module: str) -> None:
        verdict = verdicts(ran)[f"{module}.unit"]
        assert verdict["verdict"] == "equal"
        said = " ".join(verdict["substituted"])
        assert bool(said) == bool(SUBSTITUTED[module])
        for words in SUBSTITUTED[module]:
            assert words in said

    @pytest.mark.parametrize("unit", ["speaks.unit", "model.attend"])
    def test_other_modules_are_compared(self, ran: Ran, unit: str) -> None:
        assert verdicts(ran)[unit]["verdict"] == "equal"
        assert "Namespace" not in ran.err

    def test_syntax_error_is_reported(self, ran: Ran) -> None:
        (broken,) = [v for v in verdicts(ran).values() if v["path"] == "broken.py"]
        assert broken["verdict"] == "not-exercised"
        assert broken["detail"].startswith("cannot be parsed: ")


class TestInterpreter:
    """The interpreter that runs the code."""

    def test_without_jax(self, project: Path) -> None:
        venv.create(project.parent / "bare", with_pip=False, symlinks=True)
        python = project.parent / "bare" / "bin" / "python"
        ran = verify(project, "--python", python, "model.py")
        refused(ran, f"jax is not installed for {python}", "pip install 'remat-migrate[verify]'")

    def test_older_than_what_is_supported(self, project: Path) -> None:
        old = project.parent / "old"
        faked = "import sys; sys.version_info = (3, 10); $2"
        old.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{faked}"\n')
        old.chmod(0o755)
        ran = verify(project, "--python", old, "model.py")
        refused(ran, f"{old} is older than Python 3.11")

    def test_missing_interpreter(self, project: Path) -> None:
        ran = verify(project, "--python", "nowhere/python", "model.py")
        refused(ran, f"python: {project}/nowhere/python: no such interpreter")

    def test_file_that_is_not_an_interpreter(self, project: Path) -> None:
        other = project.parent / "python"
        other.write_text("\x7fELF")
        other.chmod(0o755)
        refused(verify(project, "--python", other, "model.py"), f"{other} cannot be run")

    def test_unknown_platform(self, project: Path) -> None:
        ran = verify(project, "--platform", "abacus", "model.py")
        refused(ran, "JAX does not start on abacus in ", "abacus")


class TestBase:
    """The option `--base`."""

    def test_no_folder_and_no_repository(self, project: Path) -> None:
        for base in ("../nowhere", "HEAD~1"):
            ran = cli(project, "verify", "--base", base)
            refused(ran, f"--base {base}: no such folder", "is not in a git repository")

    def test_no_such_revision(self, project: Path) -> None:
        git(project, "init", "-q")
        ran = cli(project, "verify", "--base", "v9.9")
        refused(ran, "--base v9.9", "no such folder or git revision")
        ran = cli(project, "verify")
        refused(ran, "--base HEAD")

    def test_missing_path(self, project: Path) -> None:
        refused(verify(project, "nowhere.py"), "nowhere.py")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("cases = 3", ["verify.cases", "expected a string", "3"]),
        ('command = ["pytest"]', ["verify.command", "expected a string"]),
        ('command = ""', ["verify.command", "expected a string"]),
        ('timeout = "long"', ["verify.timeout", "a number above 0", "'long'"]),
        ("timeout = 0", ["verify.timeout", "a number above 0"]),
        ("command-timeout = true", ["verify.command-timeout", "a number above 0"]),
        ('memory = "much"', ["verify.memory", '"8GiB"', "'much'"]),
        ("memory = -1", ["verify.memory", '"8GiB"']),
        ("tolerance = 2", ["verify.tolerance", "a number of at least 0 below 1"]),
        ('tolerance = { float32 = "small" }', ["verify.tolerance.float32", "below 1"]),
        ("platform = 1", ["verify.platform", "expected a string"]),
        ("comand = 'pytest'", ["comand", "did you mean command?"]),
    ],
)
def test_wrong_settings(project: Path, line: str, words: list[str]) -> None:
    write_files(project, {"pyproject.toml": SETTINGS + line + "\n"})
    refused(verify(project, "model.py"), str(project / "pyproject.toml"), *words)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--verify"], "--verify requires --fix or --diff"),
        (["--fix", "--command", "pytest"], "--command requires --verify"),
        (["--diff", "--cases", "cases.py"], "--cases requires --verify"),
        (["--fix", "--verify", "-"], "--verify cannot be combined with `-` (stdin)"),
    ],
)
def test_options_without_effect(project: Path, arguments: list[str], words: str) -> None:
    refused(cli(project, *arguments), words)
