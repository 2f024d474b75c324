"""Run programs before and after under JAX side by side, and compare the results."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from remat_migrate.verify.copies.sides import shim_table

WORKER = Path(__file__).with_name("jax_worker.py")
# float32: XLA may reorder the operations of a checkpointed function, which it compiles as a whole.
RTOL = 2e-5
# JAX keeps compiled code in memory, so a process is replaced after many programs.
PROGRAMS_A_PROCESS = 1500

Texts = Mapping[str, str]
Results = dict[str, Any]


class Worker:
    """A process that runs programs; started by the first request."""

    def __init__(self, *arguments: str) -> None:
        self._arguments = arguments
        self._process: subprocess.Popen[str] | None = None
        self._asked = 0

    def ask(self, files: Texts, only: Collection[str] | None = None) -> None:
        """Start running a program; `answer` waits for its results.

        Args:
            files: the modules of the program.
            only: the functions to compute the numbers of; None to trace those that can be traced.
        """
        if self._process is None or self._asked >= PROGRAMS_A_PROCESS:
            self.close()
            self._process = self._started()
            self._asked = 0
        self._asked += 1
        assert self._process.stdin is not None
        self._process.stdin.write(
            json.dumps({"files": files, "only": only and sorted(only)}) + "\n"
        )
        self._process.stdin.flush()

    def answer(self) -> Results:
        """Return the results of the last program."""
        assert self._process is not None
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            code = self._process.wait()
            self._process = None
            return {"failed": f"the process ended with {code}"}
        found: Results = json.loads(line)
        return found

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.communicate()
            self._process = None

    def _started(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-W", "ignore", WORKER, *self._arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "JAX_PLATFORMS": "cpu"},
        )


class Workers:
    """Workers with different meanings of a checkpoint.

    Attributes:
        old: each checkpoint is the function that it wraps, as with `concrete=True`.
        new: current JAX.
        mixed: checkpoints with `concrete=True` as in `old`, others as in `new`: the original
            behaviour.
    """

    def __init__(self) -> None:
        self.old = Worker("old", shim_table())
        self.new = Worker("new")
        self.mixed = Worker("mixed", shim_table("refused"))

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for worker in (self.old, self.new, self.mixed):
            worker.close()


def difference(expected: Mapping[str, Any], actual: Mapping[str, Any]) -> str | None:
    """Describe how a function's result differs from the expected one; None if it does not.

    Both are `{"leaves": ...}` as returned by `jax_worker`.
    """
    before, after = expected["leaves"], actual["leaves"]
    names = [leaf[0] for leaf in before]
    if names != [leaf[0] for leaf in after]:
        return f"the structure is {[leaf[0] for leaf in after]}, it was {names}"
    for (name, dtype, shape, weak, one), (_, *kinds, other) in zip(before, after, strict=True):
        if kinds != [dtype, shape, weak]:
            return f"{name or 'it'} is of {kinds}, it was of {[dtype, shape, weak]}"
        if one == other:
            continue
        if not dtype.startswith(("float", "complex", "bfloat")):
            return f"{name or 'it'} is {other}, it was {one}"
        first, second = np.asarray(one, float), np.asarray(other, float)
        allowed = RTOL * max(1.0, float(np.max(np.abs(first), initial=0.0)))
        if not np.allclose(first, second, rtol=0, atol=allowed, equal_nan=True):
            return f"{name or 'it'} is {other}, it was {one}"
    return None
