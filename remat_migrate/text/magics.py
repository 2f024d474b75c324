"""Escapes magics and shell commands in a notebook cell, line by line, so that it is Python."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Callable, Sequence

from .escapes import escape_line, escape_prefix, escape_rest, lines_of

# Commands that a cell may run by name, without `%`.
_AUTOMAGIC = re.compile(
    r"(?:pip3?|conda|mamba)\s+(?:install|uninstall|list|show|freeze)\b|time(?:it)?\s+[\w-]"
)
_HELP = re.compile(r"\s*%{0,2}[A-Za-z_*][\w.*]*(?:\[[^\]\n]*\])?\s*\?{1,2}\s*$")
_ASSIGNED = re.compile(r"(\s*[A-Za-z_][\w., \t*\[\]'\"]*=\s*)([!%][^\n\r=].*)", re.DOTALL)
_NAME = re.compile(r"%{0,2}\s*([A-Za-z_]\w*)")
# Cell magics whose cell is Python that runs in the notebook's namespace.
_PYTHON_CELLS = frozenset(
    {
        "time", "timeit", "capture", "prun", "memit", "mprun", "lprun", "debug", "px", "scalene",
        "pyinstrument", "snakeviz", "autovisualize",
    }
)  # fmt: skip
# Line magics whose line is such Python.
_PYTHON_LINES = frozenset(("time", "timeit", "prun", "memit", "debug", "snakeviz", "px"))
_OPTION = re.compile(r"--?[A-Za-z]\S*\s*")
_WORD = re.compile(r"\S+\s+")
_CALLED = re.compile(r"(?<![\w.])([A-Za-z_]\w*)\s*\(")
_QUOTES = re.compile(r"'''|\"\"\"|'|\"")

Names = Callable[[str], tuple[str, ...]]


def cells_as_python(cells: Sequence[str], mark: str) -> list[str]:
    """Convert the cells of a notebook with `cell_as_python`, which learns the names all cells
    define.
    """
    found = [cell_as_python(cell, mark) for cell in cells]
    if found == list(cells):
        return found
    defined = frozenset[str]().union(*map(_defined_names, found))
    if not defined:
        return found

    def called(text: str) -> tuple[str, ...]:
        return tuple(sorted(defined & set(_CALLED.findall(text))))

    return [cell_as_python(cell, mark, called) for cell in cells]


def no_names(text: str) -> tuple[str, ...]:
    """Return no names: the names that the notebook defines are not known yet."""
    return ()


def cell_as_python(cell: str, mark: str, names: Names = no_names) -> str:
    """Convert a cell to Python with as many lines, escaping what is not Python.

    A cell that cannot be parsed even then is escaped as a whole.

    Args:
        cell: the text; the last line may lack its ending.
        mark: the character that marks escaped lines.
        names: returns the functions of the notebook that a text calls. An escaped text that calls
            one counts as passing it to an unknown function.
    """
    if not cell.strip() or _parses(cell):
        return cell
    lines = lines_of(cell)
    # Colab allows comments such as `#@title Setup` above a cell magic.
    stripped = [line.strip() for line in lines]
    first = next((i for i, line in enumerate(stripped) if line and line[0] != "#"), 0)
    if lines[first].startswith("%%"):
        if _magic_name(lines[first]) not in _PYTHON_CELLS:
            return _escape_all(lines, mark, no_names)
        below = cell_as_python("".join(lines[first + 1 :]), mark, names)
        above = "".join(escape_line(mark, line) for line in lines[: first + 1])
        return above + below
    text = "".join(_Lines(lines, mark, names).escaped())
    return text if _parses(text) else _escape_all(lines, mark, names)


def _defined_names(text: str) -> frozenset[str]:
    """Return the names that the top level of a Python text defines or assigns."""
    found: set[str] = set()
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return frozenset(found)


def _parses(text: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text + "\n")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _escape_all(lines: list[str], mark: str, names: Names) -> str:
    called = names("".join(lines))
    head = escape_rest(mark, "", lines[0], called) if called else escape_line(mark, lines[0])
    return head + "".join(escape_line(mark, line) for line in lines[1:])


def _magic_name(line: str) -> str:
    found = _NAME.match(line.strip())
    return found.group(1) if found else ""


class _Lines:
    """Converts the lines of a cell, in which a line that starts a statement may be a magic."""

    def __init__(self, lines: list[str], mark: str, names: Names) -> None:
        self._lines = lines
        self._mark = mark
        self._names = names
        self._quote = ""
        self._depth = 0
        self._continued = False

    def escaped(self) -> list[str]:
        """Return each line as Python."""
        found: list[str] = []
        in_magic = False
        for line in self._lines:
            if in_magic:
                in_magic = _goes_on(line)
                found.append(escape_line(self._mark, line))
            elif self._starts_statement() and (magic := self._magic(line)) is not None:
                in_magic = _goes_on(line)
                found.append(magic)
            else:
                self._read(line)
                found.append(line)
        return found

    def _starts_statement(self) -> bool:
        return not (self._quote or self._depth or self._continued)

    def _magic(self, line: str) -> str | None:
        """Return a magic as Python; None if the line is not a magic."""
        bare = line.lstrip(" \t")
        indent = line[: len(line) - len(bare)]
        if bare.startswith(("%", "!", "?")) or _HELP.match(line) or _AUTOMAGIC.match(bare):
            is_magic = not bare.startswith(("!", "?"))
            if is_magic and (code := self._timed(indent, bare)) is not None:
                return code
            called = self._names(line) if is_magic else ()
            if indent or called:
                return escape_rest(self._mark, indent, bare, called or None)
            return escape_line(self._mark, line)
        if found := _ASSIGNED.fullmatch(line):
            kept, rest = found.groups()
            called = self._names(rest) if rest.startswith("%") else ()
            return escape_rest(self._mark, kept, rest, called)
        return None

    def _timed(self, indent: str, bare: str) -> str | None:
        """Return the Python that a magic such as `%timeit -n 10 f(x)` runs; None for other
        magics.
        """
        name = _NAME.match(bare)
        if name is None or name.group(1) not in _PYTHON_LINES or _goes_on(bare):
            return None
        at = name.end()
        at += len(bare[at:]) - len(bare[at:].lstrip(" \t"))
        has_options = False
        while option := _OPTION.match(bare, at):
            at, has_options = option.end(), True
        while not _parses(bare[at:]):
            word = _WORD.match(bare, at)
            if word is None or not has_options:
                return None
            at = word.end()
        code = bare[at:]
        return escape_prefix(self._mark, indent, bare[:at], code) if code.strip() else None

    def _read(self, line: str) -> None:
        """Update the open string and the bracket depth after a line of Python."""
        at = 0
        self._continued = False
        text = line.rstrip("\r\n")
        while at < len(text):
            letter = text[at]
            if self._quote:
                if letter == "\\":
                    at += 2
                    continue
                if text.startswith(self._quote, at):
                    at += len(self._quote)
                    self._quote = ""
                    continue
            elif letter == "#":
                break
            elif letter == "\\" and at == len(text) - 1:
                self._continued = True
            elif found := _QUOTES.match(text, at):
                self._quote = found.group()
                at = found.end()
                continue
            elif letter in "([{":
                self._depth += 1
            elif letter in ")]}":
                self._depth = max(0, self._depth - 1)
            at += 1
        if len(self._quote) == 1 and not text.endswith("\\"):
            self._quote = ""  # a string that its line does not end is no Python


def _goes_on(line: str) -> bool:
    return line.rstrip("\r\n").endswith("\\")
