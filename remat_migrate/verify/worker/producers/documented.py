"""Shapes that docstrings and comments state: `x is (batch, time)`, `x: float array [B, T, D]`."""

from __future__ import annotations

import inspect
import re
from typing import Any, Dict, List, Mapping, Optional

from ..inputs import candidates, shapes
from ..inputs.node import Choice, Shape, array
from ..lookup import unwrapped

_AXIS = r"[A-Za-z_]\w*|\d+"
_AXES = r"[(\[]\s*((?:{0})(?:\s*,\s*(?:{0}))*\s*,?)\s*[)\]]".format(_AXIS)
# `x (int, optional)` is no shape.
_NOT_AXES = re.compile(
    r"int\d*|float\d*|bool|str|optional|default|array|ndarray|tensor|list|tuple|dict|none|true|false"
    r"|callable|and|or|required|the|a"
)
_INTEGERS = re.compile(r"\b(u?int(eger)?s?\d*|ids|indices)\b")
_BOOLEANS = re.compile(r"\bbool(ean)?s?\b|\bTrue\b")


def array_of(owner: Any, name: str, known: Mapping[str, int] = {}) -> Optional[Choice]:
    """Return the array that the docstring or a comment of a function or class describes.

    Args:
        owner: the function or class.
        name: a parameter or field.
        known: sizes of axes by name.
    """
    for text in _texts(owner):
        match = re.search(
            r"(?<![\w.\"'])`{{0,2}}{}`{{0,2}}(?![\w\"'])(?P<between>[^.()\[\]\n]{{0,60}}){}".format(
                re.escape(name), _AXES
            ),
            text,
            re.IGNORECASE,
        )
        shape = _shape(match.group(2), known) if match else None
        if match and shape is not None:
            before = text[: match.start()].rpartition("\n")[2][-20:]
            said = before + match.group("between")
            first = candidates.shapes(name, False)[0].value[1]
            dtype = "int32" if _INTEGERS.search(said) else first
            dtype = "bool" if _BOOLEANS.search(said) else dtype
            return array(shape, dtype)
    return None


def _texts(owner: Any) -> List[str]:
    """Return the docstring, and of a class also the lines of its fields."""
    owner = unwrapped(owner) if callable(owner) else owner
    found = [inspect.getdoc(owner) or ""]
    try:
        lines = inspect.getsource(owner).splitlines()
    except (OSError, TypeError):
        return found
    return found + [
        "{} {}".format(line.partition(":")[0].strip(), line.partition("#")[2])
        for line in lines
        if re.match(r"\s*\w+\s*:[^#]*#", line)
    ]


def _shape(text: str, given: Mapping[str, int]) -> Optional[Shape]:
    axes = [axis.strip() for axis in text.strip().rstrip(",").split(",")]
    if any(_NOT_AXES.fullmatch(axis.lower()) for axis in axes) or len(axes) > 5:
        return None
    sizes: List[int] = []
    known: Dict[str, int] = {}
    for at, axis in enumerate(axes):
        size = int(axis) if axis.isdigit() else given.get(axis, shapes.axis_size(axis))
        if (
            not axis.isdigit()
            and axis not in given
            and size == candidates.WIDTH
            and at + 1 < len(axes)
        ):
            size = candidates.LENGTH
        sizes.append(known.setdefault(axis, size))
    return tuple(sizes) if all(0 < size <= 64 for size in sizes) else None
