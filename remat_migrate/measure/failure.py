"""Why a function could not be measured, in words: what its code raised, where, what to do."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

# JAX raises these where Python needs the value of an array that is traced.
_NEEDS_VALUE = re.compile(r"ConcretizationTypeError|Tracer\w+ConversionError|NonConcrete")
_ADDRESS = re.compile(r" object at 0x[0-9a-f]+")


def reason(error: Mapping[str, Any]) -> str:
    """What a worker says about an exception, as a message for the user.

    Args:
        error: its `type` and `message`, and `at`, the path and line of the user's that it came
            from, or None.
    """
    kind, message = error["type"], _ADDRESS.sub("", error["message"].strip())
    place = f" at {_shown(*error['at'])}" if error.get("at") else ""
    if _NEEDS_VALUE.search(kind):
        # The lines after the first name functions of remat-migrate's.
        first = message.partition("\n")[0].rstrip(".")
        return (
            f"it needs the value of an array{place} ({first}), and it is traced on shapes: pass"
            " what Python must know as a Python value, not as an array"
        )
    said = f"{kind}{place}: {message}" if message else f"{kind}{place}"
    if kind == "NotImplementedError" and "Effects not supported" in message:
        said += (
            "\nJAX differentiates no checkpoint with side effects in it, such as"
            " jax.experimental.io_callback: move them out of the checkpointed function"
        )
    return said


def _shown(path: str, line: int) -> str:
    folder = os.getcwd()
    if Path(path).is_relative_to(folder):
        path = os.path.relpath(path, folder)
    return f"{Path(path).as_posix()}:{line}"
