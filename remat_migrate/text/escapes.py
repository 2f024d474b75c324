"""Escapes lines that are not Python in the Python view of a notebook.

A view is one Python module. Text that is not Python goes into comments that start with `#` and a
*mark*, a private-use character that the notebook does not contain. The character after the mark
tells what the line was:

    #M=%matplotlib inline                          the whole line follows
    if ready:
        pass  #M+!ls                               a stand-in for the statement that follows
    names = get_ipython()  #M+!ls *.npz            a stand-in for the value that follows
    #M-cell 3                                      announces a cell; stands for no line
"""

from __future__ import annotations

import re

WHOLE, STANDS_IN, CELL = "=", "+", "-"

_STAND_IN = re.compile(r"(?:pass|get_ipython\([\w, ]*\))  #")
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+")
_PRIVATE = range(0xE0A0, 0xF900)


class BrokenEscape(ValueError):
    """An escaped line was changed, so that the original line is lost."""


def free_mark(text: str) -> str | None:
    """Return the first private-use character that `text` does not contain; None if it has them
    all.
    """
    return next((chr(code) for code in _PRIVATE if chr(code) not in text), None)


def lines_of(text: str) -> list[str]:
    """Split a text into lines with their endings, like Python's tokenizer."""
    return _LINE.findall(text)


def escape_line(mark: str, line: str) -> str:
    """Escape a line that is not Python."""
    return f"#{mark}{WHOLE}{line}"


def escape_rest(mark: str, kept: str, rest: str, names: tuple[str, ...] | None = None) -> str:
    """Escape `rest`, the part of a line that is not Python.

    It is a value after `kept`, or a statement indented by `kept`. With `names`, the stand-in uses
    them.
    """
    value = kept.strip() or names
    stand_in = f"get_ipython({', '.join(names or ())})" if value else "pass"
    content = rest.rstrip("\r\n")
    return f"{kept}{stand_in}  #{mark}{STANDS_IN}{content}{rest[len(content) :]}"


def cell_start(mark: str, number: int) -> str:
    """Return the line that announces a cell."""
    return f"#{mark}{CELL}cell {number}\n"


def is_cell_start(mark: str, line: str) -> bool:
    """Return whether a line announces a cell."""
    return line.startswith(f"#{mark}{CELL}")


def number_of(line: str) -> int:
    """Return the number of the cell that a line announces."""
    return int(line.rpartition(" ")[2])


def original(mark: str, line: str) -> str:
    """Return the original of a line of the view.

    Raises:
        BrokenEscape: the escape was changed, so that the original is lost.
    """
    at = line.find(mark)
    if at < 0:
        return line
    head, sign, rest = line[:at], line[at + 1 : at + 2], line[at + 2 :]
    if sign == WHOLE and head.strip() == "#":
        return rest
    if sign == STANDS_IN and (found := _STAND_IN.search(head)) and found.end() == len(head):
        return head[: found.start()] + rest
    raise BrokenEscape("the edit changes a line of the notebook that is not Python")


def original_column(mark: str, line: str, column: int) -> int:
    """Return the column in the original line, from 0, of a column in an escaped line."""
    at = line.find(mark)
    if at < 0:
        return column
    head, sign, rest = line[:at], line[at + 1 : at + 2], line[at + 2 :]
    content = len(rest.rstrip("\r\n"))
    if sign == WHOLE:
        return min(max(0, column - at - 2), content)
    found = _STAND_IN.search(head)
    kept = found.start() if found else 0
    return min(column, kept) if column < at + 2 else kept + min(column - at - 2, content)


def escaped(mark: str, view: str) -> list[str]:
    """Return the text after the mark in each escaped line, in order; every edit must keep it."""
    return re.findall(f"{mark}([^\r\n]*)", view)
