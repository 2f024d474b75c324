"""Locates strings in a JSON text and changes them without touching the rest."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from .edits import Replacement
from .escapes import lines_of

_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_LETTER = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|[^\\]",
    re.DOTALL,
)


class LocatedString(str):
    """A string of a JSON text with the range of its literal, including quotes."""

    start: int
    end: int


def read_json(text: str) -> object:
    """Decode a JSON text into objects whose strings are located.

    Raises:
        json.JSONDecodeError: the text is not JSON.
        RecursionError: it is nested too deeply.
    """
    literals = _STRING.finditer(text)

    def located(value: object) -> object:
        match value:
            case str():
                found = LocatedString(value)
                found.start, found.end = next(literals).span()
                return found
            case list():
                return [located(one) for one in value]
            case tuple():  # the pairs of an object
                return {located(key): located(one) for key, one in value}
        return value

    # Values are visited in the order in which they are written.
    return located(json.loads(text, object_pairs_hook=tuple))


def offset_in(text: str, parts: Sequence[LocatedString], index: int) -> int:
    """Return the offset in a JSON text of character `index` of joined strings."""
    at = 0
    for part in parts:
        at = part.start + 1
        for _ in range(min(index, len(part))):
            found = _LETTER.match(text, at)
            assert found is not None
            at = found.end()
        if index < len(part):
            break
        index -= len(part)
    return at


def change(text: str, parts: Sequence[LocatedString], new: str, *, in_lines: bool) -> Replacement:
    """Return the replacement in a JSON text that changes joined strings to `new`.

    The items of an array that stay keep their bytes. Others are written with non-ASCII characters
    escaped if the whole JSON text is ASCII.

    Args:
        text: the JSON text.
        parts: the strings, at least one.
        new: the new text.
        in_lines: whether they are an array of lines.
    """
    kept = {str(part): text[part.start : part.end] for part in parts}
    lines = lines_of(new) if in_lines else [new]
    written = [kept.get(line) or json.dumps(line, ensure_ascii=text.isascii()) for line in lines]
    first, last = parts[0], parts[-1]
    between = "," + (text[text.rfind("[", 0, first.start) + 1 : first.start] or " ")
    if len(parts) > 1:
        between = text[first.end : parts[1].start]
    return Replacement(first.start, last.end, between.join(written))
