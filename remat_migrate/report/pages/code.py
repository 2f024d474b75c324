"""Source code, prose and diffs as data that a page can mark up."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from textwrap import dedent

from ...text import Edit, SourceFile, apply_edits
from ...text.diff import unified_diff
from ...text.escapes import is_cell_start
from ..terminal.display import expand_tabs, printable
from ..terminal.snippet import Mark, Underline, underlines

# Lines of context before and after the marked ones.
_CONTEXT = 2
# Gaps of up to this many lines between shown lines are filled.
_MAX_GAP = 2
# Characters of a long line that are shown, and how many of them before its first mark.
_MAX_WIDTH, _LEAD = 400, 120
_CODE = re.compile(r"(`+)(.+?)(?<!`)\1(?!`)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Piece:
    """Text of one kind: "code" or "" in prose; "primary", "related" or "" in a line of code."""

    text: str
    kind: str = ""


@dataclass(frozen=True, slots=True)
class CodeLine:
    """A line of source with the labels of its marks; `number` is None where lines are omitted."""

    number: int | None
    pieces: tuple[Piece, ...] = ()
    labels: tuple[tuple[Piece, ...], ...] = ()

    @property
    def text(self) -> str:
        """Return the line without its marks."""
        return "".join(piece.text for piece in self.pieces)

    @property
    def is_marked(self) -> bool:
        """Return whether the line holds a primary mark."""
        return any(piece.kind == "primary" for piece in self.pieces)


@dataclass(frozen=True, slots=True)
class DiffLine:
    """A line of a diff without its sign: "hunk", "added", "removed" or "same"."""

    kind: str
    text: str

    @property
    def sign(self) -> str:
        """Return the character that starts it in a unified diff."""
        return {"added": "+", "removed": "-", "hunk": ""}.get(self.kind, " ")


@dataclass(frozen=True, slots=True)
class FileDiff:
    """The diff of one file."""

    path: str
    lines: tuple[DiffLine, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph of prose, or a block of code."""

    pieces: tuple[Piece, ...]
    is_code: bool = False


def prose(text: str) -> tuple[Piece, ...]:
    """Split a line of text at its backquotes; the pieces are safe to print."""
    pieces: list[Piece] = []
    at = 0
    for found in _CODE.finditer(text):
        pieces += (Piece(printable(text[at : found.start()])), Piece(printable(found[2]), "code"))
        at = found.end()
    pieces.append(Piece(printable(text[at:])))
    return tuple(piece for piece in pieces if piece.text)


def blocks(text: str) -> tuple[Block, ...]:
    """Split a text into paragraphs and blocks of code, which are indented."""
    found = []
    for is_code, lines in groupby(text.splitlines(), lambda line: line.startswith(" ")):
        if is_code:
            joined = "\n".join(map(printable, dedent("\n".join(lines)).splitlines()))
            found.append(Block((Piece(joined, "code"),), True))
        else:
            found += [Block(prose(line)) for line in lines if line.strip()]
    return tuple(found)


def code_lines(source: SourceFile, marks: Sequence[Mark]) -> tuple[CodeLine, ...]:
    """Return the lines that marks touch, with some context."""
    by_line: dict[int, list[Underline]] = {}
    for mark in sorted(marks, key=lambda mark: mark.primary):
        for number, underline in underlines(source, mark):
            by_line.setdefault(number, []).append(underline)
    return tuple(_shown(source, by_line))


def differences(
    edits: Iterable[Edit], sources: Mapping[Path, SourceFile], shown: Callable[[Path], str]
) -> tuple[FileDiff, ...]:
    """Return the diff of each edited file, in the order of the edits.

    Args:
        edits: edits of any files.
        sources: the text of each file.
        shown: how to show a path.
    """
    by_path: dict[Path, list[Edit]] = {}
    for edit in edits:
        by_path.setdefault(edit.path, []).append(edit)
    found = []
    for path, own in by_path.items():
        before = sources[path]
        after = before.replaced(apply_edits(before.text, own))
        lines = unified_diff(before, after, shown(path)).split("\n")[2:-1]
        found.append(FileDiff(printable(shown(path)), tuple(map(_diff_line, lines))))
    return tuple(found)


def _diff_line(line: str) -> DiffLine:
    if line.startswith(("@@", "\\")):
        return DiffLine("hunk", line)
    kind = {"+": "added", "-": "removed"}.get(line[:1], "same")
    return DiffLine(kind, expand_tabs(printable(line[1:].rstrip("\r"))))


def _shown(source: SourceFile, by_line: dict[int, list[Underline]]) -> Iterator[CodeLine]:
    wanted = sorted({near for line in by_line for near in _near(source, line)})

    def is_blank_context(line: int) -> bool:
        return line not in by_line and not source.shown_line(line).strip()

    for edge in (0, -1):
        while wanted and is_blank_context(wanted[edge]):
            del wanted[edge]
    previous = wanted[0] - 1 if wanted else 0
    for number in wanted:
        if number - previous > _MAX_GAP + 1:
            yield CodeLine(None)
        else:
            for between in range(previous + 1, number):
                yield _line(source, between, [])
        yield _line(source, number, by_line.get(number, []))
        previous = number


def _near(source: SourceFile, line: int) -> Iterator[int]:
    """Yield a line and those around it; in a notebook those of the same cell."""
    starts = source.line_starts
    mark = source.container.mark if source.container else ""
    cell = (source.cell(starts[line - 1]) or (None,))[0]
    for number in range(max(1, line - _CONTEXT), min(len(starts), line + _CONTEXT) + 1):
        if (source.cell(starts[number - 1]) or (None,))[0] == cell:
            # The author did not write the line that starts a cell in the view of a notebook.
            if not (mark and is_cell_start(mark, source.line_text(number))):
                yield number


def _line(source: SourceFile, number: int, marks: Sequence[Underline]) -> CodeLine:
    text = printable(source.shown_line(number).rstrip())
    kinds = [""] * max([len(text), *(mark.end for mark in marks)])
    for mark in marks:  # primary marks come last
        kind = "primary" if mark.primary else "related"
        kinds[mark.start : mark.end] = [kind] * (mark.end - mark.start)
    # A mark past the end of the line marks a space.
    text = text.ljust(len(kinds))
    begin = 0
    if len(text) > _MAX_WIDTH:
        first = min((mark.start for mark in marks), default=0)
        begin = max(0, min(first - _LEAD, len(text) - _MAX_WIDTH))
    stop = min(len(text), begin + _MAX_WIDTH)
    pieces = [Piece("…")] if begin else []
    at = begin
    for kind, run in groupby(range(begin, stop), kinds.__getitem__):
        end = at + len(list(run))
        pieces.append(Piece(expand_tabs(text[at:end]), kind))
        at = end
    if stop < len(text):
        pieces.append(Piece("…"))
    labels = tuple(prose(mark.label) for mark in marks if mark.label)
    return CodeLine(source.shown_number(number), tuple(pieces), labels)
