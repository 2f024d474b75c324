"""Running a function with room for deep recursion, for deeply nested or chained code."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import TypeVar

from ..errors import BoundReached

T = TypeVar("T")

# More stack per frame than an interpreter uses.
_FRAMES = 40_000
_STACK_BYTES = 256 * 2**20


def with_large_stack(function: Callable[[], T]) -> T:
    """Run `function` and return its result; if it recurses too deeply, again on a large stack.

    There is no large stack if there is no memory for it.

    Raises:
        RecursionError: the large stack is too small as well, or a bound is reached.
    """
    try:
        return function()
    except BoundReached:
        raise
    except RecursionError:
        pass  # rare
    from concurrent.futures import Future

    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(function())
        except BaseException as error:
            future.set_exception(error)

    # A daemon thread does not outlive an interrupted run.
    thread = threading.Thread(target=run, name="large stack", daemon=True)
    stack_bytes, frames = threading.stack_size(), sys.getrecursionlimit()
    try:
        threading.stack_size(_STACK_BYTES)
        sys.setrecursionlimit(max(frames, _FRAMES))
        try:
            thread.start()
        except (RuntimeError, MemoryError):
            sys.setrecursionlimit(frames)
            return function()
        thread.join()
    finally:
        threading.stack_size(stack_bytes)
        sys.setrecursionlimit(frames)
    return future.result()
