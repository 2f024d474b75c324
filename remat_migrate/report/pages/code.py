"""Source as plain data for pages: lines cut into pieces, prose with its code, differences."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from ...text import Edit, SourceFile, apply_edits
from ...text.diff import unified_diff
from ...text.escapes import is_cell_start
from ..terminal.display import expand_tabs, printable
from ..terminal.snippet import Mark, Underline, underlines

# Lines shown before and behind the marked ones.
_AROUND = 2
# Between two shown places this many lines are shown rather than a gap.
_GAP = 2
# Characters of a line that are shown, and how many of them before its first mark.
_WIDEST, _BEFORE = 400, 120
_CODE = re.compile(r"(`+)(.+?)(?<!`)\1(?!`)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Piece:
    """Some text, and what it is: "" or "code" in prose, "" or "primary" or "related" in a line."""

    text: str
    kind: str = ""


@dataclass(frozen=True, slots=True)
class CodeLine:
    """A line of source; `number` is None where lines are left out. Labels belong to its marks."""

    number: int | None
    pieces: tuple[Piece, ...] = ()
    labels: tuple[tuple[Piece, ...], ...] = ()

    @property
    def text(self) -> str:
        """The line without its marks."""
        return "".join(piece.text for piece in self.pieces)

    @property
    def is_marked(self) -> bool:
        """Whether a mark that is primary is in it."""
        return any(piece.kind == "primary" for piece in self.pieces)


@dataclass(frozen=True, slots=True)
class DiffLine:
    """A line of a difference: "hunk", "added", "removed" or "same", without its sign."""

    kind: str
    text: str

    @property
    def sign(self) -> str:
        """The character that it starts with in a unified difference."""
        return {"added": "+", "removed": "-", "hunk": ""}.get(self.kind, " ")


@dataclass(frozen=True, slots=True)
class FileDiff:
    """How one file changes."""

    path: str
    lines: tuple[DiffLine, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph: prose, or code as it stands."""

    pieces: tuple[Piece, ...]
    is_code: bool = False


def prose(text: str) -> tuple[Piece, ...]:
    """A line of text with what stands between backquotes as code; no controls are left."""
    pieces: list[Piece] = []
    at = 0
    for found in _CODE.finditer(text):
        pieces += (Piece(printable(text[at : found.start()])), Piece(printable(found[2]), "code"))
        at = found.end()
    pieces.append(Piece(printable(text[at:])))
    return tuple(piece for piece in pieces if piece.text)


def blocks(text: str) -> tuple[Block, ...]:
    """A text of several lines: what is indented is code."""
    found = []
    for is_code, lines in groupby(text.splitlines(), lambda line: line.startswith(" ")):
        if is_code:
            joined = "\n".join(printable(line) for line in _without_indent(list(lines)))
            found.append(Block((Piece(joined, "code"),), True))
        else:
            found += [Block(prose(line)) for line in lines if line.strip()]
    return tuple(found)


def code_lines(source: SourceFile, marks: Sequence[Mark]) -> tuple[CodeLine, ...]:
    """The lines that marks touch, and some around them."""
    by_line: dict[int, list[Underline]] = {}
    for mark in sorted(marks, key=lambda mark: mark.primary):
        for number, underline in underlines(source, mark):
            by_line.setdefault(number, []).append(underline)
    return tuple(_shown(source, by_line))


def differences(
    edits: Iterable[Edit], sources: Mapping[Path, SourceFile], shown: Callable[[Path], str]
) -> tuple[FileDiff, ...]:
    """What edits make of each file, in the order of the edits.

    Args:
        edits: of any files.
        sources: the text of each file.
        shown: how a path is shown.
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
    if line.startswith("@@"):
        return DiffLine("hunk", line)
    kind = {"+": "added", "-": "removed"}.get(line[:1], "same")
    if line.startswith("\\"):
        return DiffLine("hunk", line)
    return DiffLine(kind, expand_tabs(printable(line[1:].rstrip("\r"))))


def _shown(source: SourceFile, by_line: dict[int, list[Underline]]) -> Iterator[CodeLine]:
    wanted = sorted({near for line in by_line for near in _near(source, line)})
    # Blank lines at the edges say nothing.
    while wanted and wanted[0] not in by_line and not source.shown_line(wanted[0]).strip():
        del wanted[0]
    while wanted and wanted[-1] not in by_line and not source.shown_line(wanted[-1]).strip():
        del wanted[-1]
    previous = wanted[0] - 1 if wanted else 0
    for number in wanted:
        if number - previous > _GAP + 1:
            yield CodeLine(None)
        else:
            for between in range(previous + 1, number):
                yield _line(source, between, [])
        yield _line(source, number, by_line.get(number, []))
        previous = number


def _near(source: SourceFile, line: int) -> Iterator[int]:
    """The lines around one, of its cell in a notebook."""
    starts = source.line_starts
    mark = source.container.mark if source.container else ""
    cell = (source.cell(starts[line - 1]) or (None,))[0]
    for number in range(max(1, line - _AROUND), min(len(starts), line + _AROUND) + 1):
        if (source.cell(starts[number - 1]) or (None,))[0] == cell:
            # The line that announces a cell in a notebook's view is none of its author's.
            if not (mark and is_cell_start(mark, source.line_text(number))):
                yield number


def _line(source: SourceFile, number: int, marks: Sequence[Underline]) -> CodeLine:
    text = printable(source.shown_line(number).rstrip())
    kinds = [""] * max([len(text), *(mark.end for mark in marks)])
    for mark in marks:  # the primary one last
        kind = "primary" if mark.primary else "related"
        kinds[mark.start : mark.end] = [kind] * (mark.end - mark.start)
    # A mark behind the end of the line, as of what is missing there, is a blank.
    text = text.ljust(len(kinds))
    begin = 0
    if len(text) > _WIDEST:
        first = min((mark.start for mark in marks), default=0)
        begin = max(0, min(first - _BEFORE, len(text) - _WIDEST))
    stop = min(len(text), begin + _WIDEST)
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


def _without_indent(lines: Sequence[str]) -> Iterator[str]:
    indent = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return (line[indent:] for line in lines)
