"""Draw the picture in the README and on the site's first page: real runs in a terminal, as SVG.

    python benchmarks/terminal_picture.py [FILE]

Runs the commands in a copy of `fixtures/old_trainer`. `--verify` needs jax, flax, and pytest.
"""

from __future__ import annotations

import io
import os
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
    terminal = {"COLUMNS": str(WIDTH), "FORCE_COLOR": "1", "TERM": "xterm-256color"}
    words = [sys.executable, "-m", *command.replace("-", "_", 1).split()]
    run = subprocess.run(
        words, cwd=folder, env={**os.environ, **terminal}, capture_output=True, text=True
    )
    return run.stdout


if __name__ == "__main__":
    (Path(sys.argv[1]) if sys.argv[1:] else PICTURE).write_text(picture())
