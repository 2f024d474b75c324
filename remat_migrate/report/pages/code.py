"""Source code, prose and diffs as text that a page can mark up."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from textwrap import dedent
from typing import NamedTuple

from ...text import Edit, SourceFile, apply_edits
from ...text.diff import unified_diff
from ..terminal.display import Screen, expand_tabs, printable
from ..terminal.snippet import Mark, snippet

_CODE = re.compile(r"(`+)(.+?)(?<!`)\1(?!`)", re.DOTALL)


class Piece(NamedTuple):
    """A piece of prose, or code in it."""

    text: str
    is_code: bool = False


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
        pieces += (Piece(printable(text[at : found.start()])), Piece(printable(found[2]), True))
        at = found.end()
    pieces.append(Piece(printable(text[at:])))
    return tuple(piece for piece in pieces if piece.text)


def blocks(text: str) -> tuple[Block, ...]:
    """Split a text into paragraphs and blocks of code, which are indented."""
    found = []
    for is_code, lines in groupby(text.splitlines(), lambda line: line.startswith(" ")):
        if is_code:
            joined = "\n".join(map(printable, dedent("\n".join(lines)).splitlines()))
            found.append(Block((Piece(joined, True),), True))
        else:
            found += [Block(prose(line)) for line in lines if line.strip()]
    return tuple(found)


def marked_code(source: SourceFile, marks: Sequence[Mark]) -> str:
    """Return the lines that marks touch, underlined as on a terminal; empty for an empty file."""
    if not source.text.strip():
        return ""
    return "\n".join(snippet(source, marks, Screen(), "red").lines[1:])


def diff(
    edits: Iterable[Edit], sources: Mapping[Path, SourceFile], shown: Callable[[Path], str]
) -> str:
    """Return what edits change, as the diffs of their files.

    Args:
        edits: edits of any files.
        sources: the text of each file.
        shown: how to show a path.
    """
    by_path: dict[Path, list[Edit]] = {}
    for edit in edits:
        by_path.setdefault(edit.path, []).append(edit)
    lines: list[str] = []
    for path, own in by_path.items():
        before = sources[path]
        after = before.replaced(apply_edits(before.text, own))
        lines += unified_diff(before, after, shown(path)).split("\n")[:-1]
    return "\n".join(expand_tabs(printable(line.rstrip("\r"))) for line in lines)
