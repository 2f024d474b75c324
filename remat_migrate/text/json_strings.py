"""Locates strings in a JSON text and changes them without touching the rest."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from .edits import Replacement
from .escapes import lines_of

_LETTER = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|[^\\]",
    re.DOTALL,
)


class Literal(NamedTuple):
    """A string and the range of its literal, including quotes."""

    start: int
    end: int
    value: str


@dataclass(frozen=True, slots=True)
class Strings:
    """A text that JSON stores as one string or as an array of strings.

    Attributes:
        start: where the value starts: a quote or a bracket.
        end: the offset after it.
        literals: its strings.
        is_list: whether it is an array.
    """

    start: int
    end: int
    literals: tuple[Literal, ...]
    is_list: bool

    @property
    def text(self) -> str:
        """The whole text."""
        return "".join(literal.value for literal in self.literals)


class _LocatedString(str):
    """A string of a JSON text with the range of its literal."""

    start: int
    end: int


class _LocatedList(list[object]):
    """An array of a JSON text with its range."""

    start: int
    end: int


class _LocatingDecoder(json.JSONDecoder):
    """Decodes JSON into strings and lists that know their range in the text."""

    def __init__(self) -> None:
        super().__init__()
        self.parse_string = _parse_string
        self.parse_array = _parse_array
        # The scanner in C ignores `parse_string`.
        self.scan_once = json.scanner.py_make_scanner(self)  # type: ignore[attr-defined]


def _parse_string(text: str, start: int, strict: bool) -> tuple[_LocatedString, int]:
    value, end = json.decoder.scanstring(text, start, strict)  # type: ignore[attr-defined]
    found = _LocatedString(value)
    found.start, found.end = start - 1, end
    return found, end


def _parse_array(
    text_and_start: tuple[str, int], scan_once: Callable[[str, int], tuple[object, int]]
) -> tuple[_LocatedList, int]:
    values, end = json.decoder.JSONArray(text_and_start, scan_once)  # type: ignore[attr-defined]
    found = _LocatedList(values)
    found.start, found.end = text_and_start[1] - 1, end
    return found, end


def read_json(text: str) -> object:
    """Decode a JSON text so that `strings_in` can locate its strings.

    Raises:
        json.JSONDecodeError: the text is not JSON.
    """
    return _LocatingDecoder().decode(text)


def strings_in(value: object) -> Strings | None:
    """Return a string or an array of strings that `read_json` decoded; None for other values."""
    parts = value if isinstance(value, _LocatedList) else [value]
    literals = tuple(
        Literal(part.start, part.end, str(part))
        for part in parts
        if isinstance(part, _LocatedString)
    )
    if len(literals) < len(parts) or not isinstance(value, _LocatedString | _LocatedList):
        return None
    return Strings(value.start, value.end, literals, isinstance(value, list))


def offset_in(text: str, strings: Strings, index: int) -> int:
    """Return the offset in the JSON text of character `index` of the whole text."""
    at = strings.start
    for literal in strings.literals:
        at = _raw_offset(text, literal, min(index, len(literal.value)))
        if index < len(literal.value):
            break
        index -= len(literal.value)
    return at


def _raw_offset(text: str, literal: Literal, index: int) -> int:
    """Return the offset in the JSON text of character `index` of a string, counting escapes."""
    at = literal.start + 1
    for _ in range(index):
        found = _LETTER.match(text, at)
        assert found is not None
        at = found.end()
    return at


def changes(text: str, strings: Strings, new: str) -> Replacement:
    """Return the replacement in the JSON text that changes the text of `strings` to `new`.

    The items of an array that stay keep their bytes. Others are written with non-ASCII characters
    escaped if the whole JSON text is ASCII.
    """
    is_ascii = text.isascii()
    if not strings.is_list:
        return Replacement(strings.start, strings.end, json.dumps(new, ensure_ascii=is_ascii))
    items = strings.literals
    kept = {item.value: text[item.start : item.end] for item in items}
    written = [kept.get(line) or json.dumps(line, ensure_ascii=is_ascii) for line in lines_of(new)]
    if not items or not written:
        return Replacement(strings.start, strings.end, f"[{', '.join(written)}]")
    between = "," + (text[strings.start + 1 : items[0].start] or " ")
    if len(items) > 1:
        between = text[items[0].end : items[1].start]
    return Replacement(items[0].start, items[-1].end, between.join(written))
