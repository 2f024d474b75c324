"""A worker process in the user's interpreter: requests with a time limit, restarts."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..analysis.policies.jax_remat3 import FLAGS_SINCE
from ..errors import VerificationError
from .processes import Watched

WORKER = Path(__file__).parent / "worker"
_START_SECONDS = 300.0
_LOG_TAIL = 2000
_LONGEST_LINE = 300
_MOST_OUTPUT = 64 * 2**20
# How often a worker at work is looked at.
_LOOK_SECONDS = 0.5

Reply = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two sides: an interpreter, a copy of the project, and the meaning of checkpoints.

    Attributes:
        python: the interpreter.
        original: the user's project.
        copy: the folder where its copy lies.
        paths: folders of the copy to import from, first ones first.
        shim: the table for the old meaning as JSON, empty for checkpoints as they are.
        flags: settings of JAX to make.
        platform: what JAX runs on.
        optimized: whether programs are compiled as the user's are; else as fast as possible.
    """

    python: Path
    original: Path
    copy: Path
    paths: tuple[Path, ...]
    shim: str = ""
    flags: Mapping[str, object] = field(default_factory=dict)
    platform: str = "cpu"
    optimized: bool = False


class WorkerEnded(Exception):
    """The worker came to an end while it worked on a request; the message says how."""


class Worker:
    """A process that answers requests, started when it is first asked and again after an end."""

    def __init__(
        self,
        side: Side,
        scratch: Path,
        timeout: float,
        memory: int,
        program: Path = WORKER / "start.py",
    ) -> None:
        """A worker that has not begun.

        Args:
            side: what it runs, and where.
            scratch: a folder for its log.
            timeout: seconds for a request.
            memory: bytes that it may use besides what importing takes.
            program: the script that answers requests.
        """
        self.side = side
        self._program = program
        self.jax = ""
        self._scratch = scratch
        self._timeout = timeout
        self._memory = memory
        self._process: subprocess.Popen[bytes] | None = None
        self._channel = (-1, -1)
        self._buffer = b""
        self._watched: Watched | None = None
        self._most_memory = sys.maxsize
        scratch.mkdir(parents=True, exist_ok=True)
        self._log = scratch / "log.txt"

    def ask(self, **request: object) -> Reply:
        """The reply to a request.

        Raises:
            VerificationError: the process cannot be started.
            WorkerEnded: the process died, or was stopped because it took too long.
        """
        return self.ask_within(self._timeout, request)

    def ask_within(self, seconds: float, request: Mapping[str, object]) -> Reply:
        """As `ask`, for a request that may take another time."""
        if self._process is None:
            self._start()
        reply = self._exchange(request, seconds)
        if reply.get("changed"):
            # What the code under test has done to the process must not be another's verdict.
            self.close()
        return reply

    @property
    def is_fresh(self) -> bool:
        """Whether no process is there that has answered before."""
        return self._process is None

    def close(self) -> None:
        """End the process, and whatever it has started."""
        process, self._process = self._process, None
        if process is None:
            return
        for descriptor in self._channel:
            os.close(descriptor)
        assert self._watched is not None
        self._watched.look()
        self._watched.signal(signal.SIGKILL)
        process.wait()
        self._buffer = b""

    def _start(self) -> None:
        in_read, in_write = os.pipe()
        out_read, out_write = os.pipe()
        environment = {
            **os.environ,
            "REMAT_MIGRATE_CHANNEL": f"{in_read},{out_write}",
            **environment_of(self.side, self._scratch),
        }
        # Appended to, so that it can be cut while it is written.
        self._log.unlink(missing_ok=True)
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [self.side.python, self._program],
                cwd=self.side.copy,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                pass_fds=(in_read, out_write),
                start_new_session=True,
            )
        os.close(in_read)
        os.close(out_write)
        self._channel = (in_write, out_read)
        self._watched = Watched(self._process.pid)
        self._most_memory = sys.maxsize
        request = {
            "do": "start",
            "paths": [str(path) for path in self.side.paths],
            "original": str(self.side.original),
            "copy": str(self.side.copy),
            "shim": self.side.shim,
            "flags": dict(self.side.flags),
            "memory": self._memory,
        }
        try:
            started = self._exchange(request, _START_SECONDS)
        except WorkerEnded as error:
            raise VerificationError(f"{self._jax_said}: the process {error}") from error
        if "unfit" in started:
            self.close()
            raise VerificationError(f"{self.side.python}: {started['unfit']}{self._flag_since}")
        if "error" in started:
            self.close()
            kind, message = started["error"]["type"], started["error"]["message"]
            raise VerificationError(f"{self._jax_said}: {kind}: {message}")
        self.jax = started["jax"]
        self._watched.look()
        if self._memory:
            self._most_memory = self._watched.resident() + self._memory

    @property
    def _flag_since(self) -> str:
        since = FLAGS_SINCE.keys() & self.side.flags.keys()
        return "".join(
            f"; it is there since jax {'.'.join(map(str, FLAGS_SINCE[name]))}" for name in since
        )

    @property
    def _jax_said(self) -> str:
        flags = "".join(f" with {name}={value}" for name, value in self.side.flags.items())
        return f"JAX does not start on {self.side.platform}{flags} in {self.side.python}"

    def _exchange(self, request: Mapping[str, object], timeout: float) -> Reply:
        deadline = time.monotonic() + timeout
        try:
            os.write(self._channel[0], json.dumps(request).encode() + b"\n")
            line = self._line(deadline)
        except BrokenPipeError:
            line = b""
        except TimeoutError:
            self.close()
            raise WorkerEnded(f"took longer than {timeout:g} s and was stopped") from None
        except MemoryError:
            self.close()
            raise WorkerEnded(
                f"took more memory than {self._memory / 2**30:.3g} GiB and was stopped"
            ) from None
        if not line:
            raise WorkerEnded(self._obituary())
        reply: Reply = json.loads(line)
        return reply

    def _line(self, deadline: float) -> bytes:
        """The next line of the worker; nothing if it has ended.

        Raises:
            TimeoutError: it is too late.
            MemoryError: the worker and what it has started have too much.
        """
        with selectors.DefaultSelector() as selector:
            selector.register(self._channel[1], selectors.EVENT_READ)
            while b"\n" not in self._buffer:
                left = deadline - time.monotonic()
                if not selector.select(max(0.0, min(left, _LOOK_SECONDS))):
                    if left <= _LOOK_SECONDS:
                        raise TimeoutError
                    if not self._look():
                        return b""  # a process that it has forked may hold the pipe
                    continue
                data = os.read(self._channel[1], 1 << 16)
                if not data:
                    return b""
                self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def _look(self) -> bool:
        """See to it that the worker takes neither all memory nor all space for what it prints.

        Returns:
            whether it is alive.
        """
        assert self._watched is not None
        assert self._process is not None
        self._watched.look()
        if self._watched.resident() > self._most_memory:
            raise MemoryError
        if self._log.stat().st_size > _MOST_OUTPUT:
            os.truncate(self._log, 0)
        return self._process.poll() is None

    def _obituary(self) -> str:
        """How the process ended, with what it said last."""
        process = self._process
        assert process is not None
        try:
            status = process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            status = None
        self.close()
        said = self._log.read_bytes()[-_LOG_TAIL:].decode(errors="replace").strip()
        last = said.splitlines()[-1][:_LONGEST_LINE] if said else ""
        if status is not None and status < 0:
            with contextlib.suppress(ValueError):
                how = f"was killed by {signal.Signals(-status).name}"
                if b"bad_alloc" in said.encode() or "MemoryError" in said:
                    how += ", out of memory"
                return how + (f": {last}" if last else "")
        if status is None:
            return "closed its connection"
        return f"ended the process with status {status}" + (f": {last}" if last else "")


def environment_of(side: Side, scratch: Path) -> dict[str, str]:
    """The environment variables for code under test, in place of the user's own."""
    temporary = scratch / "tmp"
    temporary.mkdir(parents=True, exist_ok=True)
    variables = {
        "JAX_PLATFORMS": side.platform,
        # The name of the same up to jax 0.4.
        "JAX_PLATFORM_NAME": side.platform,
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        "TMPDIR": str(temporary),
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }
    if side.optimized:
        return variables
    return variables | {
        # Each function is compiled to be run once, or again with other numbers, in either worker.
        "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
        "JAX_COMPILATION_CACHE_DIR": str(scratch.parent / "compiled"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }
