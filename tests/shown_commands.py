"""Run the commands that the documentation shows, and compare their output with what it shows.

A page shows commands in `console` blocks, after `$ `. They run in order, in one folder: blocks with
a title are the files in it, and `<!-- files: PATH -->` copies a file or folder of the checkout. In
the shown output, a line `...` stands for any lines.

    python tests/shown_commands.py docs/tutorial.md    # writes the real output into the page
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
_PART = re.compile(
    r'^```console\n(?P<shown>.*?)^```$|^```\w+ title="(?P<name>[^"]+)"\n(?P<text>.*?)^```$'
    r"|^<!-- files: (?P<files>\S+) -->$",
    re.MULTILINE | re.DOTALL,
)
_COMMAND = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
# Their numbers depend on the version of JAX.
_RUNS_JAX = re.compile(r"--verify|remat-migrate (verify|measure|plan)|^python |pytest")


def runs_jax(page: Path) -> bool:
    """Whether a page shows a command that runs code under JAX."""
    return any(_RUNS_JAX.search(command) for command in commands(page))


def commands(page: Path) -> list[str]:
    """Return the commands that a page shows."""
    blocks = (part["shown"] or "" for part in _PART.finditer(page.read_text()))
    return [command for block in blocks for command, _ in _COMMAND.findall(block)]


def with_real_output(page: Path, folder: Path) -> str:
    """Return a page, with the real output of its commands where that differs from the shown one."""
    place = [folder]

    def replace(part: re.Match[str]) -> str:
        if part["files"]:
            source, copy = ROOT / part["files"], place[0] / Path(part["files"]).name
            (shutil.copytree if source.is_dir() else shutil.copy)(source, copy)
        elif part["name"]:
            (place[0] / part["name"]).write_text(part["text"])
        else:
            return f"```console\n{_COMMAND.sub(run, part['shown'])}```"
        return part[0]

    def run(command: re.Match[str]) -> str:
        if command[1].startswith("cd "):
            place[0] /= command[1].removeprefix("cd ")
            return command[0]
        printed = _output(command[1], place[0])
        if _matches(command[2], printed, numbers=bool(_RUNS_JAX.search(command[1]))):
            return command[0]
        return f"$ {command[1]}\n{printed}"

    return _PART.sub(replace, page.read_text())


def _output(command: str, folder: Path) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "COLUMNS": "80", "PYTHONDONTWRITEBYTECODE": "1"}
    environment["REMAT_MIGRATE_NO_CACHE"] = "1"
    # A page may show how a program fails: only the output counts.
    return subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ).stdout


def _matches(shown: str, printed: str, *, numbers: bool) -> bool:
    def comparable(text: str) -> str:
        return re.sub(r"\d[\d.]*(e-\d+)?", "*", text) if numbers else text

    pattern = "".join(
        r"(?:.*\n)*?" if line.strip() == "..." else re.escape(comparable(line))
        for line in shown.splitlines(keepends=True)
    )
    return re.fullmatch(pattern, comparable(printed)) is not None


if __name__ == "__main__":
    for name in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as scratch:
            Path(name).write_text(with_real_output(Path(name), Path(scratch)))
