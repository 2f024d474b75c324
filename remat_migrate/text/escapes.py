"""Escapes lines that are not Python in the Python view of a notebook.

A view is one Python module. Text that is not Python goes into comments that start with `#` and a
*mark*, a private-use character; a cell that contains it is not analyzed. The character after the
mark, here M, tells what the line was:

    #M=%matplotlib inline                          the whole line follows
    if ready:
        pass  #M+!ls                               a stand-in for the statement that follows
    names = get_ipython()  #M+!ls *.npz            a stand-in for the value that follows
    #M-cell 3                                      announces a cell; stands for no line
"""

from __future__ import annotations

import re

MARK = "\ue0a0"
# What a line that announces a cell starts with.
CELL = f"#{MARK}-cell "

_ESCAPED = re.compile(
    rf"(?:\s*#{MARK}=|(.*?)(?:pass|get_ipython\([\w, ]*\))  #{MARK}\+)(.*)", re.DOTALL
)
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+")


class BrokenEscape(ValueError):
    """An escaped line was changed, so that the original line is lost."""


def lines_of(text: str) -> list[str]:
    """Split a text into lines with their endings, like Python's tokenizer."""
    return _LINE.findall(text)


def escape_line(line: str) -> str:
    """Escape a line that is not Python."""
    return f"#{MARK}={line}"


def escape_rest(kept: str, rest: str, names: tuple[str, ...] | None = None) -> str:
    """Escape `rest`, the part of a line that is not Python.

    It is a value after `kept`, or a statement indented by `kept`. With `names`, the stand-in uses
    them.
    """
    value = kept.strip() or names
    stand_in = f"get_ipython({', '.join(names or ())})" if value else "pass"
    return f"{kept}{stand_in}  #{MARK}+{rest}"


def original(line: str) -> str:
    """Return the original of a line of the view.

    Raises:
        BrokenEscape: the escape was changed, so that the original is lost.
    """
    if MARK not in line:
        return line
    found = _ESCAPED.fullmatch(line)
    if found is None:
        raise BrokenEscape("the edit changes a line of the notebook that is not Python")
    return (found[1] or "") + found[2]


def original_column(line: str, column: int) -> int:
    """Return the column in the original line, from 0, of a column in an escaped line."""
    found = _ESCAPED.fullmatch(line) if MARK in line else None
    if found is None:
        return column
    kept, inside = len(found[1] or ""), column - found.start(2)
    return min(column, kept) if inside < 0 else kept + min(inside, len(found[2].rstrip("\r\n")))


def escaped(view: str) -> list[str]:
    """Return the text after the mark in each escaped line, in order; every edit must keep it."""
    return re.findall(f"{MARK}([^\r\n]*)", view)


def cell_at(view: str, offset: int) -> tuple[int, int] | None:
    """Return the number of the cell at an offset and where its text starts; None without cells."""
    start = view.rfind(CELL, 0, offset + len(CELL))
    if start < 0:
        return None
    end = view.index("\n", start)
    return int(view[start + len(CELL) : end]), end + 1
