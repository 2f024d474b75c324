"""Exceptions of the code under test as plain data."""

from __future__ import annotations

import os
import re
import traceback
from typing import Any, Dict, Mapping, Optional

# JAX's messages go on for long.
_LONGEST = 2000
_LONGEST_TRACE = 6000
# Where frames say nothing about the user's code: this package, JAX, and the import system.
_OWN = os.path.dirname(os.path.abspath(__file__)) + os.sep
_STAND_IN_FILE = os.path.join(_OWN, "inputs", "stand_in.py")
# JAX names the class of an argument that it does not take.
_STAND_IN = ".inputs.stand_in."
_HIDDEN = re.compile(r"[/\\]site-packages[/\\](?:jax|jaxlib)[/\\]|^<frozen ")


def headline(described: Mapping[str, Any]) -> str:
    """Return the type and the first line of the message of a described exception."""
    lines = described["message"].strip().splitlines()
    return "%s: %s" % (described["type"], lines[0]) if lines else str(described["type"])


def describe(error: BaseException) -> Dict[str, Any]:
    """Return the type, the message, and the traceback of an exception.

    "in_stand_in" says that a made-up function or object raised it, or JAX because of one.
    """
    message = str(error)
    kind = type(error)
    return {
        "type": kind.__name__
        if kind.__module__ == "builtins"
        else "%s.%s" % (kind.__module__.replace("jax._src", "jax"), kind.__name__),
        "message": message[:_LONGEST],
        "in_stand_in": _is_in_stand_in(error),
        "traceback": _formatted(error)[-_LONGEST_TRACE:],
    }


def _is_in_stand_in(error: BaseException) -> bool:
    frames = traceback.extract_tb(error.__traceback__)
    return _STAND_IN in str(error) or any(frame.filename == _STAND_IN_FILE for frame in frames)


def _formatted(error: BaseException) -> str:
    """Return the traceback with the frames of the user's code and of libraries other than JAX."""
    trace = traceback.TracebackException.from_exception(error)
    shown: Optional[traceback.TracebackException] = trace
    raised: Optional[BaseException] = error
    while shown is not None and raised is not None:
        frames = [frame for frame in shown.stack if not _is_hidden(frame.filename)]
        shown.stack = traceback.StackSummary.from_list(frames)
        context = None if shown.__suppress_context__ else shown.__context__
        raised = raised.__cause__ or raised.__context__
        if type(raised).__module__.partition(".")[0] in ("jax", "jaxlib") and not str(raised):
            shown.__cause__ = shown.__context__ = None  # a remark that JAX removed frames
        shown = shown.__cause__ or context
    return "".join(trace.format())


def _is_hidden(path: str) -> bool:
    return path.startswith(_OWN) or bool(_HIDDEN.search(path))
