"""Find the line of a call in a running frame, as a reader would name it.

This is the line on which the name of the callee starts; for a decorator, its own line. Python's own
number for a call over several lines may be another.
"""

from __future__ import annotations

import ast
import functools
import itertools
import linecache
from collections.abc import Iterator
from typing import Any

_Position = tuple[int | None, ...]

# Cached lines by position in the code, since loops run the same call many times.
_known: dict[tuple[str, int, str, int, int], int] = {}


def line_of(frame: Any) -> int:
    """Return the line of the call or decorator that a frame is at, or else Python's own line."""
    code = frame.f_code
    line = frame.f_lineno or 0
    key = (code.co_filename, code.co_firstlineno, code.co_name, frame.f_lasti, line)
    if key not in _known:
        _known[key] = _line(frame, line)
    return _known[key]


def _line(frame: Any, line: int) -> int:
    tree = tree_of(frame.f_code.co_filename) if line else None
    if tree is None:
        return line
    return _named_at(tree, _position(frame)) or line


def _position(frame: Any) -> _Position:
    """Return start line, end line, start column and end column of the current expression."""
    positions = frame.f_code.co_positions()
    # Instructions have two bytes.
    return next(itertools.islice(positions, frame.f_lasti // 2, None), (None,) * 4)


def _named_at(tree: ast.Module, position: _Position) -> int | None:
    """Return the line on which the callee of the call at a position starts."""
    start, end, _, end_column = position
    found = [
        call
        for call in _calls(tree)
        if (call.end_lineno, call.end_col_offset) == (end, end_column)
        # The position of a method call starts at the method's name.
        and start is not None
        and call.lineno <= start <= (call.func.end_lineno or start)
    ]
    return found[0].func.lineno if len(found) == 1 else None


def _calls(tree: ast.Module) -> Iterator[ast.Call]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call))


@functools.lru_cache(maxsize=64)
def tree_of(path: str) -> ast.Module | None:
    """Parse a file; None if it cannot be read or parsed."""
    text = "".join(linecache.getlines(path))
    if not text:
        return None
    try:
        return ast.parse(text)
    except SyntaxError:
        return None
