"""A call with room for deep recursion: for code that is nested, or chained, beyond all measure."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

# So many frames in so many bytes leave each frame more than an interpreter takes for one.
_FRAMES = 40_000
_STACK = 256 * 2**20


def with_deep_stack(function: Callable[[], T]) -> T:
    """What `function` returns, run on a stack of its own; what it raises is raised.

    Where no such stack can be had, it runs on the present one.

    Raises:
        RecursionError: that stack is too small, too.
    """
    made: list[T] = []
    raised: list[BaseException] = []

    def run() -> None:
        try:
            made.append(function())
        except BaseException as error:
            raised.append(error)

    # A daemon: who interrupts the run need not wait for it.
    thread = threading.Thread(target=run, name="deep stack", daemon=True)
    size, frames = threading.stack_size(), sys.getrecursionlimit()
    try:
        threading.stack_size(_STACK)
        sys.setrecursionlimit(max(frames, _FRAMES))
        try:
            thread.start()
        except (RuntimeError, MemoryError):  # no memory for the stack
            sys.setrecursionlimit(frames)
            return function()
        thread.join()
    finally:
        threading.stack_size(size)
        sys.setrecursionlimit(frames)
    if raised:
        raise raised[0]
    return made[0]
