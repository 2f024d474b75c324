"""Messages for exceptions that the measured code raises."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

# Errors that JAX raises if Python code needs the value of a traced array.
_NEEDS_VALUE = re.compile(r"ConcretizationTypeError|Tracer\w+ConversionError|NonConcrete")
_ADDRESS = re.compile(r" object at 0x[0-9a-f]+")


def failure_message(error: Mapping[str, Any]) -> str:
    """Return the message for an exception.

    Args:
        error: its `type` and `message`, and `at`, the path and line in the user's code that raised
            it, or None.
    """
    kind, message = error["type"], _ADDRESS.sub("", error["message"].strip())
    place = f" at {_relative(*error['at'])}" if error.get("at") else ""
    if _NEEDS_VALUE.search(kind):
        # Later lines of the message name functions of remat-migrate.
        first = message.partition("\n")[0].rstrip(".")
        return (
            f"it needs the value of an array{place} ({first}), but is traced on shapes: pass values"
            " that are needed at trace time as Python values, not as arrays"
        )
    text = f"{kind}{place}: {message}" if message else f"{kind}{place}"
    if kind == "NotImplementedError" and "Effects not supported" in message:
        text += (
            "\nJAX cannot differentiate a checkpoint with side effects such as"
            " jax.experimental.io_callback: move them out of the checkpointed function"
        )
    if "mesh" in message and "Number of devices" in message:
        text += "\npass --devices N for N virtual CPU devices"
    return text


def _relative(path: str, line: int) -> str:
    folder = os.getcwd()
    if Path(path).is_relative_to(folder):
        path = os.path.relpath(path, folder)
    return f"{Path(path).as_posix()}:{line}"
