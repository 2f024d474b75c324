"""Lines that are no Python, in a text that is: how they are written so that none is lost.

A notebook is seen as one Python module. What is no Python in it stands there in comments that start
with `#` and a *mark*, a character of private use that the notebook itself does not hold; the sign
behind the mark says what the line was:

    #M=%matplotlib inline                          the whole line stands behind
    if ready:
        pass  #M+!ls                               a stand-in for what is behind, in a suite
    names = get_ipython()  #M+!ls *.npz            the same for a value
    f(x)  #M<%timeit -n 10                         Python, whose start stands behind
    #M-cell 3                                      a cell begins; stands for no line
"""

from __future__ import annotations

import re
from collections.abc import Iterator

WHOLE, STANDS_IN, STARTED, CELL = "=", "+", "<", "-"

_STAND_IN = re.compile(r"(?:pass|get_ipython\([\w, ]*\))  #")
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+")
_PRIVATE = range(0xE0A0, 0xF900)


class BrokenEscape(ValueError):
    """An escaped line was changed, so that the line it stands for is lost."""


def free_mark(text: str) -> str | None:
    """Return the first character of private use that `text` does not hold; None if it holds them
    all.
    """
    return next((chr(code) for code in _PRIVATE if chr(code) not in text), None)


def lines_of(text: str) -> list[str]:
    """Return the lines of a text with their endings, as Python's tokenizer has them."""
    return _LINE.findall(text)


def bare_lines_of(text: str) -> list[str]:
    """Return the same without their endings."""
    return [line.rstrip("\r\n") for line in lines_of(text)]


def whole(mark: str, line: str) -> str:
    """Return a line that is no Python."""
    return f"#{mark}{WHOLE}{line}"


def opaque(mark: str, kept: str, rest: str, names: tuple[str, ...] | None = None) -> str:
    """Return a line of which `rest` is no Python: a value behind `kept`, or with `names` a use
    of them.

    Where there is no value it is a statement of a suite, and `kept` its indentation.
    """
    value = kept.strip() or names
    stand_in = f"get_ipython({', '.join(names or ())})" if value else "pass"
    content = rest.rstrip("\r\n")
    return f"{kept}{stand_in}  #{mark}{STANDS_IN}{content}{rest[len(content) :]}"


def started(mark: str, indent: str, prefix: str, code: str) -> str:
    """Return a line that is Python after a prefix: `%timeit f(x)`."""
    content = code.rstrip("\r\n")
    return f"{indent}{content}  #{mark}{STARTED}{prefix}{code[len(content) :]}"


def cell_start(mark: str, number: int) -> str:
    """Return the line that stands before the lines of a cell."""
    return f"#{mark}{CELL}cell {number}\n"


def is_cell_start(mark: str, line: str) -> bool:
    """Return whether a line stands before those of a cell."""
    return line.startswith(f"#{mark}{CELL}")


def number_of(line: str) -> int:
    """Return the number of the cell that a line announces."""
    return int(line.rpartition(" ")[2])


def original(mark: str, line: str) -> str:
    """Return the line that one stands for.

    Raises:
        BrokenEscape: it stands for none any more.
    """
    at = line.find(mark)
    if at < 0:
        return line
    head, sign, rest = line[:at], line[at + 1 : at + 2], line[at + 2 :]
    content = rest.rstrip("\r\n")
    if sign == WHOLE and head.strip() == "#":
        return rest
    if sign == STANDS_IN and (found := _STAND_IN.search(head)) and found.end() == len(head):
        return head[: found.start()] + rest
    if sign == STARTED and head.endswith("  #") and mark not in rest:
        code = head[: -len("  #")]
        bare = code.lstrip(" \t")
        return f"{code[: len(code) - len(bare)]}{content}{bare}{rest[len(content) :]}"
    raise BrokenEscape("a line of the notebook that is not Python would be changed")


def original_column(mark: str, line: str, column: int) -> int:
    """Return the column, from 0, that one of an escaped line has in the line it stands for."""
    at = line.find(mark)
    if at < 0:
        return column
    head, sign, rest = line[:at], line[at + 1 : at + 2], line[at + 2 :]
    content = len(rest.rstrip("\r\n"))
    if sign == WHOLE:
        return min(max(0, column - at - 2), content)
    if sign == STANDS_IN:
        found = _STAND_IN.search(head)
        kept = found.start() if found else 0
        return min(column, kept) if column < at + 2 else kept + min(column - at - 2, content)
    indent = len(head) - len(head.lstrip(" \t"))
    code = len(head) - len("  #")
    return column if column < indent else min(column, code) + content


def escaped(mark: str, view: str) -> Iterator[str]:
    """Yield what stands behind the mark in each escaped line, in order; it must survive every
    edit.
    """
    at = view.find(mark)
    while at >= 0:
        end = re.compile(r"[\r\n]|\Z").search(view, at)
        assert end is not None
        yield view[at + 1 : end.start()]
        at = view.find(mark, end.start())
