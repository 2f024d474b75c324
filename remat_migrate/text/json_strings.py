"""Locates strings in a JSON text and changes them without touching the rest."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
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


def changes(text: str, strings: Strings, new: str) -> Iterator[Replacement]:
    """Yield the replacements in the JSON text that change the text of `strings` to `new`.

    Unchanged lines keep their bytes. Changed lines are written with non-ASCII characters escaped if
    the whole JSON text is ASCII.
    """
    values = [literal.value for literal in strings.literals]
    before, after = lines_of(strings.text), lines_of(new)
    written = [json.dumps(line, ensure_ascii=text.isascii()) for line in after]
    if strings.is_list and (before != values or not before or not after):
        yield Replacement(strings.start, strings.end, f"[{', '.join(written)}]")
        return
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        if strings.is_list:
            yield _items(text, strings, i1, i2, written[j1:j2])
            continue
        start, end = (
            _raw_offset(text, strings.literals[0], sum(map(len, before[:count])))
            for count in (i1, i2)
        )
        yield Replacement(start, end, "".join(line[1:-1] for line in written[j1:j2]))


def _items(text: str, strings: Strings, first: int, last: int, lines: Sequence[str]) -> Replacement:
    """Replace the items of an array from `first` to before `last`; some item must be left."""
    items = strings.literals
    if len(items) > 1:
        between = text[items[0].end : items[1].start]
    else:
        between = "," + (text[strings.start + 1 : items[0].start] or " ")
    new = between.join(lines)
    if first < last and lines:
        return Replacement(items[first].start, items[last - 1].end, new)
    if last < len(items):
        end = items[last].start
        return Replacement(items[first].start, end, new + between if lines else "")
    return Replacement(items[first - 1].end, items[-1].end, between + new if lines else "")
