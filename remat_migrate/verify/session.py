"""Worker processes in the user's interpreter, and their forks: requests with limits.

The code of a unit runs in a fork of a process that has imported JAX, so that nothing it does
reaches another unit, and its end costs only itself.
"""

from __future__ import annotations

import contextlib
import copy
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ..errors import VerificationError
from .processes import Budget, ProcessTree
from .scratch import MARK
from .worker.start import NAME

WORKER = Path(__file__).parent / "worker"
START = WORKER / "start.py"
_START_SECONDS = 300.0
_LOG_TAIL = 2000
_LONGEST_LINE = 300
_MOST_OUTPUT = 64 * 2**20
_MOST_REPLY = 256 * 2**20
_LOOK_SECONDS = 0.5
_END_SECONDS = 5.0

Reply = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Side:
    """What a worker runs: an interpreter, a copy of the project, and the meaning of checkpoints.

    Attributes:
        python: the interpreter.
        original: the user's project.
        copy: the folder of its copy.
        paths: folders of the copy for `sys.path`.
        shim: the shim's table as JSON; empty to leave checkpoints as they are.
        spots: the edited pieces of code to watch, as JSON for `worker.coverage`.
        flags: JAX configuration options to set.
        libraries: modules to import before any of the project.
        platform: the JAX platform.
        optimized: whether to compile with XLA's optimizations, as the user does; else faster.
    """

    python: Path
    original: Path
    copy: Path
    paths: tuple[Path, ...]
    shim: str = ""
    spots: str = ""
    flags: Mapping[str, object] = field(default_factory=dict)
    libraries: tuple[str, ...] = ()
    platform: str = "cpu"
    optimized: bool = False

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables of every process that runs the code."""
        found = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0"}
        name = "XLA_PYTHON_CLIENT_PREALLOCATE"
        if self.platform != "cpu" and name not in os.environ:
            # Several run at once, and each would reserve most of the accelerator's memory.
            found[name] = "false"
        return found


class WorkerEnded(Exception):
    """The worker died or was stopped while it handled a request; the message says how."""


class ChannelSpoiled(WorkerEnded):
    """The code under test wrote to the channel of the worker's replies."""


class RunStopped(Exception):
    """The run ends, so requests get no replies."""


class Worker:
    """Answers requests in a process that starts with the first one, and again after it ended.

    Attributes:
        side: what the process runs, and where.
        jax: the version of JAX in the process, empty before it starts.
    """

    def __init__(
        self,
        side: Side,
        scratch: Path,
        timeout: float,
        memory: int,
        program: Sequence[object] = (START, NAME, WORKER, "serve"),
        stop: threading.Event | None = None,
    ) -> None:
        """Prepare a worker.

        Args:
            side: what it runs, and where.
            scratch: a folder for its logs.
            timeout: seconds that a request may take.
            memory: bytes that it may use in addition to what imports use; 0 for no limit.
            program: the script that answers requests, and its arguments.
            stop: set in another thread, it ends requests with `RunStopped`.
        """
        self.side = side
        self._program = program
        self._scratch = scratch
        self._timeout = timeout
        self._memory = memory
        self._stop = stop or threading.Event()
        self._parent: Worker | None = None
        self.jax = ""
        self._process: _Process | None = None
        self._lock = threading.RLock()
        self._logs = itertools.count(1)
        scratch.mkdir(parents=True, exist_ok=True)

    def forked(self) -> Worker:
        """Return a worker whose processes are forks of the process of this one."""
        child = copy.copy(self)
        child._parent, child._process, child._lock = self, None, threading.RLock()
        return child

    def ask(self, **request: object) -> Reply:
        """Return the reply to a request.

        Raises:
            VerificationError: the process cannot be started.
            WorkerEnded: the process died, or was stopped because it took too long.
        """
        with self._lock:
            process = self._started()
            try:
                return process.exchange(request, self._timeout)
            except (WorkerEnded, RunStopped):
                self.close()
                raise

    def start(self) -> None:
        """Start the process ahead of the first request, which reports what goes wrong."""
        with self._lock, contextlib.suppress(VerificationError, RunStopped):
            self._started()

    @property
    def is_running(self) -> bool:
        """Whether there is a process."""
        return self._process is not None

    def close(self) -> None:
        """End the process and all that it has started."""
        with self._lock:
            if self._process is not None:
                self._process.close()
                self._process = None

    def _started(self) -> _Process:
        if self._process is None:
            self._process = self._parent._fork() if self._parent else self._launched()
        return self._process

    def _fork(self) -> _Process:
        """Return a process that has imported what this one has, and nothing else."""
        with self._lock:
            if self._stop.is_set():
                raise RunStopped
            parent = self._started()
            log = self._scratch / f"log-{next(self._logs)}.txt"
            ours, theirs = socket.socketpair()
            with theirs, log.open("ab") as output:
                pid = parent.command(b"fork", theirs.fileno(), output.fileno())
            process = _Process(pid, ours, log, lambda: self._reaped(pid), self._stop)
            process.limit_memory(self._memory)
            return process

    def _reaped(self, pid: int) -> int:
        with self._lock:
            return self._process.command(b"%d" % pid) if self._process else 0

    def _launched(self) -> _Process:
        side, log = self.side, self._scratch / "log.txt"
        ours, theirs = socket.socketpair()
        number = theirs.fileno()
        environment = environment_of(side, self._scratch)
        with theirs, log.open("ab") as output:
            launched = subprocess.Popen(
                [side.python, *map(str, self._program)],
                cwd=side.copy,
                env={**os.environ, **environment, "REMAT_MIGRATE_CHANNEL": f"{number},{number}"},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                pass_fds=[number],
                start_new_session=True,
            )
        process = _Process(launched.pid, ours, log, launched.wait, self._stop)
        flags = "".join(f" with {name}={value}" for name, value in side.flags.items())
        failed = f"JAX does not start on {side.platform}{flags} in {side.python}"
        request = {"do": "start", "scratch": self._scratch.parent, **asdict(side)}
        try:
            started = process.exchange(request, _START_SECONDS)
            if "unfit" in started:
                raise VerificationError(f"{side.python}: {started['unfit']}")
            if "error" in started:
                kind, message = started["error"]["type"], started["error"]["message"]
                raise VerificationError(f"{failed}: {kind}: {message}")
        except WorkerEnded as error:
            process.close()
            raise VerificationError(f"{failed}: the process {error}") from error
        except (VerificationError, RunStopped):
            process.close()
            raise
        self.jax = started["jax"]
        process.limit_memory(self._memory)
        return process


class _Process:
    """A process that reads requests from a socket and writes replies to it."""

    def __init__(
        self,
        pid: int,
        channel: socket.socket,
        log: Path,
        reap: Callable[[], int],
        stop: threading.Event,
    ) -> None:
        """`log` has what it prints; `reap` waits for its end and returns its exit status."""
        self._channel = channel
        self._reap = reap
        self._buffer = bytearray()
        self._tree = ProcessTree(pid)
        self._log = log
        self._stop = stop
        self._requests = 0
        self._memory = 0
        self._most_memory = sys.maxsize
        channel.settimeout(_LOOK_SECONDS)

    def limit_memory(self, size: int) -> None:
        """Stop the process once it uses `size` bytes more than now; 0 for no limit."""
        self._tree.look()
        self._memory = size
        self._most_memory = self._tree.resident() + size if size else sys.maxsize

    def command(self, text: bytes, *descriptors: int) -> int:
        """Return the number with which a process that forks answers, see `worker.serve.main`.

        Raises:
            VerificationError: it has ended.
        """
        try:
            self._channel.settimeout(_START_SECONDS)
            socket.send_fds(self._channel, [text], descriptors)
            return int(self._channel.recv(64))
        except (OSError, ValueError) as error:
            raise VerificationError("the process from which units are forked has ended") from error

    def exchange(self, request: Mapping[str, object], timeout: float) -> Reply:
        """Return the reply to a request.

        Raises:
            WorkerEnded: there is none within `timeout` seconds, see `Budget`.
            RunStopped: the run ends meanwhile.
        """
        try:
            self._requests += 1
            budget = Budget(self._tree, timeout)
            text = json.dumps({**request, "number": self._requests}, default=os.fspath)
            self._write_line(text.encode(), budget)
            line = self._read_line(budget)
        except (BrokenPipeError, ConnectionResetError):
            line = b""
        except TimeoutError:
            raise WorkerEnded(f"took longer than {timeout:g} s and was stopped") from None
        except MemoryError:
            size = self._memory / 2**30
            raise WorkerEnded(f"used more than {size:.3g} GiB of memory and was stopped") from None
        if not line:
            raise WorkerEnded(self._how_it_ended())
        try:
            reply = json.loads(line)
        except (ValueError, RecursionError):
            reply = None
        if not isinstance(reply, dict) or reply.pop("number", None) != self._requests:
            raise ChannelSpoiled("wrote to the channel of the replies and was stopped")
        return reply

    def close(self) -> None:
        """End the process and all that it has started."""
        self._tree.look()
        self._tree.signal(signal.SIGKILL)
        with contextlib.suppress(VerificationError):
            self._reap()
        # Not before: an idle process would end by itself, and hide what it has started.
        self._channel.close()

    def _read_line(self, budget: Budget) -> bytes:
        """Return the next line from the process; empty if it has ended.

        Raises:
            TimeoutError: the budget is spent.
            MemoryError: the process and its children use too much memory.
        """
        looked = time.monotonic()
        while not self._buffer.endswith(b"\n"):
            if self._stop.is_set():
                raise RunStopped
            if len(self._buffer) > _MOST_REPLY:
                raise ChannelSpoiled("sent a reply that is too long")
            if time.monotonic() >= looked + _LOOK_SECONDS:
                if not self._look(budget):
                    return b""  # a process that it has forked may hold the pipe
                looked = time.monotonic()
            with contextlib.suppress(TimeoutError):
                if not (data := self._channel.recv(1 << 16)):
                    return b""
                self._buffer += data
        line = bytes(self._buffer)
        self._buffer.clear()
        return line

    def _write_line(self, line: bytes, budget: Budget) -> None:
        """Send a line to the process.

        Raises:
            BrokenPipeError: it has ended.
            TimeoutError: it has not read it when the budget is spent.
        """
        left = memoryview(line + b"\n")
        while left:
            try:
                left = left[self._channel.send(left) :]
            except TimeoutError:
                if not self._look(budget):
                    raise BrokenPipeError from None

    def _look(self, budget: Budget) -> bool:
        """Check time and memory, truncate a long log, and return whether the process runs."""
        self._tree.look()
        if budget.is_over():
            raise TimeoutError
        if self._tree.resident() > self._most_memory:
            raise MemoryError
        if self._log.stat().st_size > _MOST_OUTPUT:
            os.truncate(self._log, 0)
        return self._tree.leads()

    def _how_it_ended(self) -> str:
        deadline = time.monotonic() + _END_SECONDS
        while self._tree.leads():
            if time.monotonic() > deadline:
                return "closed its connection"
            time.sleep(0.01)
        status = self._reap()
        self._reap = lambda: status
        output = self._log.read_bytes()[-_LOG_TAIL:].decode(errors="replace").strip()
        last = output.splitlines()[-1][:_LONGEST_LINE] if output else ""
        how = f"ended the process with status {status}"
        if status < 0:
            with contextlib.suppress(ValueError):
                how = f"was killed by {signal.Signals(-status).name}"
                if "bad_alloc" in output or "MemoryError" in output:
                    how += ", out of memory"
        return f"{how}: {last}" if last else how


def environment_of(side: Side, scratch: Path) -> dict[str, str]:
    """Return the environment variables to set for code under test."""
    temporary = scratch / "tmp"
    temporary.mkdir(parents=True, exist_ok=True)
    variables = side.variables | {
        "JAX_PLATFORMS": side.platform,
        "TMPDIR": str(temporary),
        MARK: str(temporary),
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }
    if side.optimized:
        return variables
    return variables | {
        # Each function is compiled to run a few times. All workers share the compiled programs.
        "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
        "JAX_COMPILATION_CACHE_DIR": str(scratch.parent / "compiled"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }
