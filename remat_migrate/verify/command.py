"""Run the user's command in a copy of the project, recording the calls of units in every Python.

The command gets its own session, no terminal, and a memory limit for all its processes together.
Only the end of its output is kept.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ..errors import VerificationError
from .processes import Budget, ended, tail_of, wait_for_end
from .scratch import MARK
from .session import Side

_SITE = Path(__file__).parent / "worker" / "sitecustomize"

_SETS_PATH = re.compile(r"\bPYTHONPATH=")


@dataclass(frozen=True, slots=True)
class CommandRun:
    """How a command ended.

    Attributes:
        status: its exit status, negative for a signal; None if it was stopped.
        timed_out: whether it was stopped because it took too long.
        killed_for_memory: whether it was stopped because it used too much memory.
        output_tail: the end of its output and error output.
        seconds: how long it took, not counting the time that it waited for a CPU.
        events: how many calls of units were recorded.
    """

    status: int | None
    timed_out: bool
    killed_for_memory: bool
    output_tail: str
    seconds: float
    events: int


def run_command(
    command: str,
    side: Side,
    record: Path,
    *,
    timeout: float,
    memory: int,
    cases: bool,
    stop: threading.Event,
) -> CommandRun:
    """Run a shell command in a copy of the project and record the calls of its units.

    Args:
        command: for the shell; paths of the project in it are replaced by those of the copy.
        side: the copy, and how to run its code.
        record: the folder to record into, which is created.
        timeout: seconds that it may take.
        memory: bytes that all its processes together may use.
        cases: whether to save inputs in addition to events.
        stop: set it from another thread to end the command, which no interrupt reaches.

    Raises:
        VerificationError: the command cannot be started.
    """
    record.mkdir(parents=True, exist_ok=True)
    (record / "spots.json").write_text(side.spots or "[]", encoding="utf-8")
    text = _SETS_PATH.sub('PYTHONPATH="$REMAT_MIGRATE_SITE":', _moved(command, side))
    with (
        tempfile.TemporaryDirectory(dir=record.parent, ignore_cleanup_errors=True) as scratch,
        tempfile.TemporaryFile("a+b") as output,
    ):
        environment = _environment(side) | {
            "TMPDIR": scratch,
            MARK: scratch,
            "REMAT_MIGRATE_RECORD": str(record.absolute()),
            "REMAT_MIGRATE_RECORD_CASES": str(int(cases)),
        }
        try:
            process = subprocess.Popen(
                text,
                shell=True,
                cwd=side.copy,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise VerificationError(f"the command `{command}` cannot be run: {error}") from error
        with ended(process) as tree:
            budget = Budget(tree, timeout)
            cause = wait_for_end(process, tree, output.fileno(), budget, memory, stop)
        return CommandRun(
            process.returncode if cause is None else None,
            cause == "time",
            cause == "memory",
            tail_of(output.fileno()),
            budget.spent,
            _count(record),
        )


def _environment(side: Side) -> dict[str, str]:
    """Return the user's environment, with the project's entries in the search paths moved."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("REMAT_MIGRATE_")}

    def entries(name: str) -> list[str]:
        return [_moved(entry, side) for entry in environment.get(name, "").split(os.pathsep)]

    python, platform = side.python.absolute(), side.platform
    inherited = [entry for entry in entries("PYTHONPATH") if entry]
    environment["PYTHONPATH"] = os.pathsep.join([str(_SITE), *inherited])
    environment["PATH"] = os.pathsep.join([str(python.parent), *entries("PATH")])
    prefix = python.parent.parent
    environment.pop("PYTHONHOME", None)
    if (prefix / "pyvenv.cfg").exists():
        environment["VIRTUAL_ENV"] = str(prefix)
    else:
        environment.pop("VIRTUAL_ENV", None)
    return environment | {
        **side.variables,
        "JAX_PLATFORMS": platform if "cpu" in platform.split(",") else f"{platform},cpu",
        "REMAT_MIGRATE_SITE": str(_SITE),
        "REMAT_MIGRATE_SHIM": side.shim,
        "REMAT_MIGRATE_ORIGINAL": str(side.original),
        "REMAT_MIGRATE_COPY": str(side.copy),
    }


def _moved(text: str, side: Side) -> str:
    """Return a text with paths in the project replaced by those that exist in the copy."""
    path = re.compile(
        rf"(?<![\w.~/-]){re.escape(str(side.original))}(?P<inside>(?:/[\w./+@%-]*)?)(?![\w-])"
    )

    def move(found: re.Match[str]) -> str:
        moved = f"{side.copy}{found['inside']}"
        return moved if os.path.exists(moved) else found.group()

    return path.sub(move, text)


def _count(record: Path) -> int:
    """Count the calls recorded in a folder."""
    found = 0
    for file in record.glob("*/events.jsonl"):
        with file.open(encoding="utf-8") as lines:
            for line in lines:
                with suppress(ValueError):  # the last line of a killed process
                    found += json.loads(line)["kind"] == "call"
    return found
