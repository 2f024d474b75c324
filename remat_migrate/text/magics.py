"""Escapes magics and shell commands in a notebook cell, line by line, so that it is Python."""

from __future__ import annotations

import ast
import keyword
import re
import warnings

from .escapes import escape_line, escape_rest, lines_of

_MAGIC = re.compile(
    r"\s*(?:%{1,2}[A-Za-z]|!(?!=)|\?|(?:pip3?|conda|mamba)\s+(?:un)?install\b"
    r"|%{0,2}[A-Za-z_*][\w.*]*\?{1,2}\s*$)"
)
_ASSIGNED = re.compile(r"(\s*[A-Za-z_][\w., \t*\[\]'\"]*=\s*)([!%][^\n\r=].*)", re.DOTALL)
# Cell magics whose cell is Python that runs in the notebook's namespace.
_PYTHON_CELL = re.compile(r"%%(?:time|timeit|capture|prun|memit|mprun|lprun|debug|px)\b")
_CALLED = re.compile(r"(?<![\w.])([A-Za-z_]\w*)\s*\(")


def cell_as_python(cell: str) -> str:
    """Convert a cell to Python with as many lines, escaping what is not Python.

    A cell that cannot be parsed even then is escaped as a whole. What an escaped text calls counts
    as passed to an unknown function.

    The last line may lack its ending.
    """
    if not cell.strip() or _parses(cell):
        return cell
    lines = lines_of(cell)
    # Colab allows comments such as `#@title Setup` above a cell magic.
    first = next((i for i, line in enumerate(lines) if line.strip() and line[0] != "#"), 0)
    if lines[first].startswith("%%"):
        above = "".join(escape_line(line) for line in lines[: first + 1])
        below = lines[first + 1 :]
        if _PYTHON_CELL.match(lines[first]):
            return above + cell_as_python("".join(below))
        return above + "".join(escape_line(line) for line in below)
    text = "".join(_escaped(lines))
    return text if _parses(text) else _escape_all(lines)


def _parses(text: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text + "\n")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _escape_all(lines: list[str]) -> str:
    called = _called("".join(lines))
    head = escape_rest("", lines[0], called) if called else escape_line(lines[0])
    return head + "".join(escape_line(line) for line in lines[1:])


def _called(text: str) -> tuple[str, ...]:
    """Return the names that a text calls."""
    return tuple(sorted({name for name in _CALLED.findall(text) if not keyword.iskeyword(name)}))


def _escaped(lines: list[str]) -> list[str]:
    """Return each line of a cell as Python."""
    found: list[str] = []
    goes_on = False
    for line in lines:
        if goes_on:
            found.append(escape_line(line))
        elif _MAGIC.match(line):
            found.append(_escaped_magic(line))
        elif assigned := _ASSIGNED.fullmatch(line):
            kept, rest = assigned.groups()
            called = _called(rest) if rest.startswith("%") else ()
            found.append(escape_rest(kept, rest, called))
        else:
            found.append(line)
            continue
        goes_on = line.rstrip("\r\n").endswith("\\")
    return found


def _escaped_magic(line: str) -> str:
    bare = line.lstrip(" \t")
    indent = line[: len(line) - len(bare)]
    called = () if bare.startswith(("!", "?")) else _called(line)
    if indent or called:
        return escape_rest(indent, bare, called or None)
    return escape_line(line)
