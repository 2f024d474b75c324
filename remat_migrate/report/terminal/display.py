"""Text for a terminal: paths, widths, colors, and no character that could control it."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from ...text import SourceFile

_STYLES = {"bold": 1, "red": 31, "green": 32, "yellow": 33, "blue": 34, "cyan": 36}


@dataclass(frozen=True, slots=True)
class Screen:
    """What a report is written to.

    Attributes:
        width: the number of columns.
        colour: whether to write ANSI colors.
        folder: the folder that paths are shown relative to.
        is_terminal: whether it is a terminal, where no line should be wider.
    """

    width: int = 100
    colour: bool = False
    folder: Path = Path("/")
    is_terminal: bool = False

    def paint(self, text: str, *styles: str) -> str:
        """Return `text` in the given styles if the screen has colors."""
        if not (self.colour and styles and text):
            return text
        codes = ";".join(str(_STYLES[style]) for style in styles)
        return f"\x1b[{codes}m{text}\x1b[0m"

    def path(self, path: Path) -> str:
        """Return a path as it is shown to a reader, safe to print."""
        shown = printable(display_path(path, self.folder))
        # CI systems interpret log lines that start with `::` or `##` as commands.
        return f"./{shown}" if shown.startswith((":", "#")) else shown

    def place(self, source: SourceFile, offset: int) -> str:
        """Return `src/model.py:14:26`, or `a.ipynb:cell 3:2:5` in a notebook."""
        return f"{self.path(source.path)}:{source.place(offset)}"


def display_path(path: Path, folder: Path) -> str:
    """Return a path relative to `folder` if it lies below it, else absolute, always with `/`."""
    return (path.relative_to(folder) if path.is_relative_to(folder) else path).as_posix()


def printable(text: str) -> str:
    """Replace every character that could control a terminal or hide other text.

    Control characters, including line breaks, become their pictures (`␛`); bidirectional marks and
    lone surrogates become `�`. Tabs are kept.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_printable_char, text))


def _printable_char(char: str) -> str:
    code = ord(char)
    # Joiners shape words of many scripts and emoji and control nothing.
    if char.isprintable() or char in "\t\u200c\u200d":
        return char
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    return char if unicodedata.category(char) == "Zs" else "\ufffd"


def display_width(text: str) -> int:
    """Return how many terminal columns `text` takes; a tab takes four."""
    if text.isascii():
        return len(expand_tabs(text))
    from rich.cells import cell_len

    return cell_len(expand_tabs(text))


def truncate(text: str, width: int) -> str:
    """Cut `text` to at most `width` columns, with `…` for what is left out."""
    if display_width(text) <= width:
        return text
    kept = ""
    for char in text:
        if display_width(kept + char) > width - 1:
            break
        kept += char
    return f"{kept}…" if width > 0 else ""


def shorten(text: str, limit: int) -> str:
    """Cut `text` to at most `limit` characters, ending in an ellipsis if it is cut."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def expand_tabs(text: str) -> str:
    """Replace each tab with four spaces."""
    return text.replace("\t", " " * 4)


def aligned(rows: Sequence[Sequence[str]]) -> Iterator[list[str]]:
    """Yield the rows of a table with each cell padded to the width of its column."""
    widths = [max(map(display_width, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = zip(row, widths, strict=True)
        yield [cell + " " * (width - display_width(cell)) for cell, width in cells]


def terminal_width(stream: TextIO, default: int) -> int:
    """Return how wide the terminal behind a stream is; COLUMNS takes precedence.

    Unlike `shutil.get_terminal_size`, this does not assume that the stream is stdout.
    """
    if (given := os.environ.get("COLUMNS", "")).isdecimal() and int(given):
        return int(given)
    try:
        return os.get_terminal_size(stream.fileno()).columns or default
    except (OSError, ValueError):
        return default


def pluralize(number: int, noun: str, plural: str = "") -> str:
    """Return `1 file`, `2 files`."""
    return f"{number} {noun if number == 1 else plural or f'{noun}s'}"
