"""Draw the picture in the README and on the site's first page: real runs in a terminal, as SVG.

    python benchmarks/terminal_picture.py [FILE]

Runs the commands in a copy of `fixtures/old_trainer`. `--verify` needs jax, flax, and pytest.
"""

from __future__ import annotations

import contextlib
import io
import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "assets" / "terminal.svg"
COMMANDS = (
    "remat-migrate trainer/flax_model.py",
    "remat-migrate --fix --verify trainer/flax_model.py",
)
WIDTH = 100


def picture() -> str:
    """Return the picture as SVG."""
    console = Console(record=True, file=io.StringIO(), width=WIDTH, force_terminal=True)
    with tempfile.TemporaryDirectory() as scratch:
        project = Path(scratch) / "old_trainer"
        shutil.copytree(ROOT / "fixtures" / "old_trainer", project)
        for command in COMMANDS:
            console.print(Text.assemble(("$ ", "dim"), (command, "bold")))
            console.print(Text.from_ansi(_output(command, project)), soft_wrap=False)
    svg = console.export_svg(title="remat-migrate", unique_id="terminal")
    # Nothing is fetched from elsewhere.
    return re.sub(r"\s*@font-face \{.*?\}", "", svg, flags=re.DOTALL)


def _output(command: str, folder: Path) -> str:
    """Return what a command prints on a terminal."""
    words = [sys.executable, "-m", *command.replace("-", "_", 1).split()]
    variables = {"COLUMNS": str(WIDTH), "TERM": "xterm-256color"}
    reading, writing = pty.openpty()
    process = subprocess.Popen(
        words,
        cwd=folder,
        env={**os.environ, **variables},
        stdin=subprocess.DEVNULL,
        stdout=writing,
        stderr=subprocess.DEVNULL,
    )
    os.close(writing)
    printed = b""
    # The terminal ends with EIO when the process does.
    with contextlib.suppress(OSError):
        while part := os.read(reading, 1 << 16):
            printed += part
    os.close(reading)
    process.wait()
    return printed.decode().replace("\r\n", "\n")


if __name__ == "__main__":
    (Path(sys.argv[1]) if sys.argv[1:] else PICTURE).write_text(picture())
