"""Exceptions of the code under test as plain data, with the arguments that JAX names."""

from __future__ import annotations

import re
import traceback
from typing import Any, Dict

# JAX's messages go on for long.
_LONGEST = 2000

_TRACED = re.compile(
    r"while tracing the function (?P<function>\S+) at (?P<path>.+?):(?P<line>\d+) for"
    r" (?P<transform>\w+).*?depends on the values? of the arguments? (?P<arguments>.+?)\.?(?:\n|$)"
)
_SEPARATOR = re.compile(r",\s*(?:and\s+)?|\s+and\s+")


def describe(error: BaseException) -> Dict[str, Any]:
    """Return type, message, and traceback, and the arguments that JAX says must be concrete."""
    message = str(error)
    kind = type(error)
    found: Dict[str, Any] = {
        "type": kind.__name__
        if kind.__module__ == "builtins"
        else "%s.%s" % (kind.__module__.replace("jax._src", "jax"), kind.__name__),
        "message": message[:_LONGEST],
        "arguments": [],
        "function": "",
        "place": None,
        "traceback": "".join(traceback.format_exception(kind, error, error.__traceback__))[-6000:],
    }
    for traced in _TRACED.finditer(message):
        if traced.group("transform") in ("checkpoint", "remat"):
            found["function"] = traced.group("function")
            found["place"] = [traced.group("path"), int(traced.group("line"))]
            # JAX names an entry of a container as `shape[0]`; only `shape` can be static.
            found["arguments"] += [
                re.split(r"[\[.]", name)[0]
                for name in _SEPARATOR.split(traced.group("arguments").strip())
                if name
            ]
    found["arguments"] = sorted(set(found["arguments"]))
    return found
