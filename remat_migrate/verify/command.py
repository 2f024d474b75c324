"""Run the user's command in a copy of the project, and read the calls of units that it recorded.

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
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
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
        cause: why it was stopped, see `processes.wait_for_end`.
        output_tail: the end of its output and error output.
        seconds: how long it took, not counting the time that it waited for a CPU.
    """

    status: int | None
    cause: str | None
    output_tail: str
    seconds: float


@dataclass(slots=True)
class RecordedCalls:
    """The recorded calls of a unit.

    Attributes:
        cases: the lines of those that were saved, see `inputs.Cases`.
        tests: the tests that made the calls of the cases, as pytest names them.
        called: whether there were calls.
        detail: why a call could not be recorded.
    """

    cases: list[Mapping[str, str]] = field(default_factory=list)
    tests: list[str] = field(default_factory=list)
    called: bool = False
    detail: str = ""

    def add(self, line: Mapping[str, str]) -> None:
        """Add what a line says, see `worker.recording`."""
        self.called |= "note" not in line
        self.detail = self.detail or line.get("error") or line.get("note", "")
        if "file" in line:
            self.cases.append(line)
            if line["test"] and line["test"] not in self.tests:
                self.tests.append(line["test"])


def run_command(
    command: str,
    side: Side,
    scratch: Path,
    *,
    timeout: float,
    memory: int,
    record: bool,
    stop: threading.Event,
) -> CommandRun:
    """Run a shell command in a copy of the project.

    Args:
        command: for the shell; paths of the project in it are replaced by those of the copy.
        side: the copy, and how to run its code.
        scratch: a folder for its files, which is created.
        timeout: seconds that it may take.
        memory: bytes that all its processes together may use.
        record: whether to record the calls of units into the folder, see `recorded_calls`.
        stop: set it from another thread to end the command, which no interrupt reaches.

    Raises:
        VerificationError: the command cannot be started.
    """
    scratch.mkdir(parents=True, exist_ok=True)
    text = _SETS_PATH.sub('PYTHONPATH="$REMAT_MIGRATE_SITE":', _moved(command, side))
    with (
        tempfile.TemporaryDirectory(dir=scratch.parent, ignore_cleanup_errors=True) as temporary,
        tempfile.TemporaryFile("a+b") as output,
    ):
        environment = _environment(side) | {"TMPDIR": temporary, MARK: temporary}
        if record:
            environment["REMAT_MIGRATE_RECORD"] = str(scratch.absolute())
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
            cause,
            tail_of(output.fileno()),
            budget.spent,
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


def recorded_calls(folder: Path) -> Mapping[str, RecordedCalls]:
    """Return the calls recorded in a folder, by the identity of the unit."""
    found: dict[str, RecordedCalls] = {}
    for file in sorted(folder.glob("*/calls.jsonl")):
        for text in file.read_text(encoding="utf-8").splitlines():
            with suppress(ValueError):  # the last line of a killed process
                line = json.loads(text)
                found.setdefault(line["unit"], RecordedCalls()).add(line)
    return found
