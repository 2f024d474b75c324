"""How text is shown: paths, widths, colours; and nothing that would steer a terminal."""

from __future__ import annotations

import os
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

_TAB = 4


@dataclass(frozen=True, slots=True)
class Screen:
    """What a report is written on.

    Attributes:
        width: columns.
        colour: whether it takes ANSI colours.
        folder: the folder that paths are shown relative to.
    """

    width: int = 100
    colour: bool = False
    folder: Path = Path("/")

    def paint(self, text: str, *styles: str) -> str:
        """`text` in some of the styles bold, red, green, yellow, blue, cyan."""
        if not (self.colour and styles and text):
            return text
        codes = ";".join(_STYLES[style] for style in styles)
        return f"\x1b[{codes}m{text}\x1b[0m"

    def path(self, path: Path) -> str:
        """A path as a reader is shown it, safe to print."""
        shown = neutral(shown_path(path, self.folder))
        # A line of a job's log that starts so is a command to what runs the job.
        return f"./{shown}" if shown.startswith((":", "#")) else shown


_STYLES = {
    "bold": "1",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "cyan": "36",
}


def shown_path(path: Path, folder: Path) -> str:
    """A path relative to `folder` where it lies below it, else absolute, always with `/`."""
    try:
        return path.relative_to(folder).as_posix()
    except ValueError:
        return path.as_posix()


def neutral(text: str) -> str:
    """`text` with every character replaced that could steer a terminal or hide what stands there.

    Controls become their pictures (`␛`), line breaks included; marks that change the direction of
    writing and halves of surrogate pairs become `�`. Tabs stay.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_neutral, text))


def _neutral(letter: str) -> str:
    code = ord(letter)
    if letter == "\t" or letter.isprintable():
        return letter
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    category = unicodedata.category(letter)
    if category == "Zs":
        return letter
    # Joiners and variation marks shape words of many scripts and emoji; they steer nothing.
    if category == "Cf" and letter in "\u200c\u200d":
        return letter
    return "\ufffd"


def cells(letter: str) -> int:
    """How many columns of a terminal one character takes; a tab counts as four."""
    if letter == "\t":
        return _TAB
    if letter.isascii():
        return 1
    if unicodedata.combining(letter) or unicodedata.category(letter) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def width_of(text: str) -> int:
    """How many columns of a terminal `text` takes."""
    if text.isascii() and "\t" not in text:
        return len(text)
    return sum(map(cells, text))


def cut(text: str, width: int) -> str:
    """`text` in at most so many columns, with `…` for what is left out."""
    if width_of(text) <= width:
        return text
    kept = []
    room = width - 1
    for letter in text:
        room -= cells(letter)
        if room < 0:
            break
        kept.append(letter)
    return "".join(kept) + "…" if width > 0 else ""


def expanded(text: str) -> str:
    """`text` with tabs as four blanks."""
    return text.replace("\t", " " * _TAB)


def wants_colour(is_terminal: bool) -> bool:
    """Whether to colour what goes to a stream: on a terminal that can.

    NO_COLOR forbids it, FORCE_COLOR asks for it anywhere (https://no-color.org,
    https://force-color.org).
    """
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return is_terminal and os.environ.get("TERM") != "dumb"


def columns(stream: TextIO, otherwise: int) -> int:
    """How wide the terminal behind a stream is; COLUMNS goes before.

    It need not be the one of standard output, which may be a pipe.
    """
    if (given := os.environ.get("COLUMNS", "")).isdecimal() and int(given):
        return int(given)
    try:
        return os.get_terminal_size(stream.fileno()).columns or otherwise
    except (OSError, ValueError):
        return otherwise


def counted(number: int, noun: str) -> str:
    """`1 file`, `2 files`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
