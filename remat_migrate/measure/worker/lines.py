"""The line of source that a running frame has come to, as a reader would name it.

That is where the name of what is called starts, and for what a decorator does the decorator's own
line. Python's own idea of a line differs: before 3.11 all decorators are applied at the `def`, and
a name over several lines counts where it ends.
"""

from __future__ import annotations

import ast
import dis
import functools
import itertools
import linecache
import sys
from typing import Any, Dict, Iterator, List, Optional, Tuple, Union

_Definition = Union[ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef]
_KNOWS_POSITIONS = sys.version_info >= (3, 11)


# Lines that have been looked for: a loop comes to the same one many times.
_known: Dict[Tuple[str, int, str, int, int], int] = {}


def line_of(frame: Any) -> int:
    """The line of the call or decorator that a frame is at; Python's own where none is known."""
    code = frame.f_code
    line = frame.f_lineno or 0
    key = (code.co_filename, code.co_firstlineno, code.co_name, frame.f_lasti, line)
    if key not in _known:
        _known[key] = _line(frame, line)
    return _known[key]


def _line(frame: Any, line: int) -> int:
    tree = _tree(frame.f_code.co_filename) if line else None
    if tree is None:
        return line
    if _KNOWS_POSITIONS:
        return _named_at(tree, _position(frame)) or line
    decorator = _decorator(tree, frame, line)
    if decorator is not None:
        return decorator.lineno
    starts = {
        call.func.lineno for call in _calls(tree) if line in (call.lineno, call.func.end_lineno)
    }
    return starts.pop() if len(starts) == 1 else line


_Position = Tuple[Optional[int], ...]


def _position(frame: Any) -> _Position:
    """The start and end of the expression that is evaluated, lines and columns in turn."""
    positions = frame.f_code.co_positions()
    # An instruction has two bytes.
    return next(itertools.islice(positions, frame.f_lasti // 2, None), (None,) * 4)


def _named_at(tree: ast.Module, position: _Position) -> Optional[int]:
    """Where the name of what a call that ends there calls starts."""
    start, end, _, end_column = position
    found = [
        call
        for call in _calls(tree)
        if (call.end_lineno, call.end_col_offset) == (end, end_column)
        # A method's call starts at its name for Python.
        and start is not None
        and call.lineno <= start <= (call.func.end_lineno or start)
    ]
    return found[0].func.lineno if len(found) == 1 else None


def _decorator(tree: ast.Module, frame: Any, line: int) -> Optional[ast.expr]:
    """The decorator that is applied, before Python 3.11, where all are at the line of the `def`."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            if node.lineno == line and node.decorator_list:
                applied = _applied_before(frame)
                if 0 <= applied < len(node.decorator_list):
                    return node.decorator_list[-1 - applied]
    return None


def _applied_before(frame: Any) -> int:
    """How many calls of one argument come right before the one that a frame is at.

    So decorators are applied: one after the other, to what the one before has given.
    """
    count = -1
    instructions: List[Any] = []
    for instruction in dis.get_instructions(frame.f_code):
        instructions.append(instruction)
        if instruction.offset >= frame.f_lasti:
            break
    for instruction in reversed(instructions):
        if instruction.opname != "CALL_FUNCTION" or instruction.arg != 1:
            break
        count += 1
    return count


def _calls(tree: ast.Module) -> Iterator[ast.Call]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call))


@functools.lru_cache(maxsize=64)
def _tree(path: str) -> Optional[ast.Module]:
    """The source of a file, None where there is none."""
    text = "".join(linecache.getlines(path))
    if not text:
        return None
    try:
        return ast.parse(text)
    except SyntaxError:
        return None
