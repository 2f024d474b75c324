"""Run a program for a source, within the limits of time and memory that a source has."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from ..errors import RematMigrateError
from ..verify.processes import Budget, ended, tail_of, wait_for_end
from ..verify.scratch import MARK

# A tree of git that fits into a few kilobytes can list more paths than fit on a disk.
_MOST_OUTPUT = 256 << 20


class Status(StrEnum):
    """How the sweep of a source ended."""

    CHECKED = "checked"
    MISSING = "missing"  # there is no such folder, repository, or revision
    TOO_LARGE = "too-large"
    TIMEOUT = "timeout"
    MEMORY = "memory"
    FAILED = "failed"  # a fault of the tool, or settings that are invalid


@dataclass(frozen=True, slots=True)
class Limits:
    """What a source may use.

    Attributes:
        seconds: wall time, for the checkout and for each step after it.
        memory: bytes that the processes of a step may use together.
        size: bytes of a repository, and of the files of its revision.
    """

    seconds: float
    memory: int
    size: int


class SourceFailed(RematMigrateError):
    """A source cannot be checked.

    Attributes:
        status: how it ended.
    """

    def __init__(self, status: Status, reason: str) -> None:
        super().__init__(status, reason)
        self.status = status

    def __str__(self) -> str:
        return str(self.args[1])


@dataclass(frozen=True, slots=True)
class Ended:
    """A program that ended by itself: its exit code, its output, and the end of its messages."""

    code: int
    output: bytes
    messages: str


def run_limited(
    command: Sequence[str | os.PathLike[str]],
    folder: Path,
    scratch: Path,
    limits: Limits,
    *,
    environment: Mapping[str, str] | None = None,
    is_beyond: Callable[[], bool] = lambda: False,
) -> Ended:
    """Run a program.

    Args:
        command: the program and its arguments.
        folder: its current folder.
        scratch: the temporary folder of the run, see `verify.scratch`, with which it is ended.
        limits: what it may use.
        environment: further environment variables.
        is_beyond: returns whether it is beyond `limits.size`.

    Raises:
        SourceFailed: it reached a limit, or cannot be started.
    """
    name = " ".join(map(str, command[:2]))
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    with (
        tempfile.TemporaryFile("a+b", dir=scratch) as output,
        tempfile.TemporaryFile("a+b", dir=scratch) as messages,
    ):
        try:
            process = subprocess.Popen(
                command,
                cwd=folder,
                env={**inherited, MARK: str(scratch), **(environment or {})},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=messages,
                start_new_session=True,
            )
        except OSError as error:
            raise SourceFailed(Status.FAILED, f"{name}: {error.strerror or error}") from error

        def is_too_large() -> bool:
            return os.fstat(output.fileno()).st_size > _MOST_OUTPUT or is_beyond()

        with ended(process) as tree:
            budget = Budget(tree, limits.seconds)
            cause = wait_for_end(
                process, tree, messages.fileno(), budget, limits.memory, is_beyond=is_too_large
            )
        match cause:
            case "time":
                raise SourceFailed(Status.TIMEOUT, f"stopped after {limits.seconds:g} seconds")
            case "memory":
                used = limits.memory >> 20
                raise SourceFailed(Status.MEMORY, f"stopped at {used:,} MiB of memory")
            case "limit":
                size = limits.size >> 20
                reason = f"larger than {size:,} MiB, or {name} prints more than 256 MiB"
                raise SourceFailed(Status.TOO_LARGE, reason)
        output.seek(0)
        return Ended(process.returncode, output.read(), tail_of(messages.fileno()))
