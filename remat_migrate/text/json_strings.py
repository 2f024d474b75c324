"""Locates strings in a JSON text and changes them without touching the rest."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import NamedTuple

from .edits import Replacement, trimmed
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


def raw_offset(text: str, literal: Literal, index: int) -> int:
    """Return the offset in the JSON text of character `index` of a string, counting escapes."""
    at = literal.start + 1
    for _ in range(index):
        found = _LETTER.match(text, at)
        assert found is not None
        at = found.end()
    return at


def offset_in(text: str, strings: Strings, index: int) -> int:
    """Return the offset in the JSON text of character `index` of the whole text."""
    literal, inner = _literal_at(strings, index, after=True)
    return strings.start if literal is None else raw_offset(text, literal, inner)


def changes(text: str, strings: Strings, new: str) -> Iterator[Replacement]:
    """Yield the replacements in the JSON text that change the text of `strings` to `new`.

    Unchanged lines keep their bytes. In a changed line, only what differs is rewritten, with
    non-ASCII characters escaped if the whole JSON text is ASCII.
    """
    written = _writer(text)
    old = strings.text
    if strings.is_list and _is_list_of_lines(strings):
        yield from _line_changes(text, strings, lines_of(new), written)
        return
    before, after = lines_of(old), lines_of(new)
    starts = [0]
    for line in before:
        starts.append(starts[-1] + len(line))
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag != "equal":
            yield _change(text, strings, starts[i1], starts[i2], "".join(after[j1:j2]), written)


def _writer(text: str) -> Callable[[str], str]:
    ascii_only = text.isascii()
    return lambda value: json.dumps(value, ensure_ascii=ascii_only)[1:-1]


def _is_list_of_lines(strings: Strings) -> bool:
    values = [literal.value for literal in strings.literals]
    return lines_of("".join(values)) == values


def _literal_at(strings: Strings, index: int, *, after: bool) -> tuple[Literal | None, int]:
    """Return the string that contains character `index` of the whole text, and the index in it.

    An index between two strings is the start of the later one if `after`, else the end of the
    earlier one.
    """
    start = 0
    last: tuple[Literal | None, int] = (None, 0)
    for literal in strings.literals:
        length = len(literal.value)
        if index < start + length or (not after and index == start + length and length):
            return literal, index - start
        start += length
        last = literal, length
    return last


def _change(
    text: str, strings: Strings, start: int, end: int, new: str, written: Callable[[str], str]
) -> Replacement:
    """Replace as few characters of the whole text as possible, joining the strings between."""
    start, end, new = trimmed(start, strings.text[start:end], new)
    first, low = _literal_at(strings, start, after=start < end)
    last, high = _literal_at(strings, end, after=False)
    if first is None or last is None:
        inner = f'"{written(new)}"'
        return Replacement(strings.start, strings.end, f"[{inner}]" if strings.is_list else inner)
    if start == end:
        last, high = first, low
    return Replacement(raw_offset(text, first, low), raw_offset(text, last, high), written(new))


def _line_changes(
    text: str, strings: Strings, new: Sequence[str], written: Callable[[str], str]
) -> Iterator[Replacement]:
    old = [literal.value for literal in strings.literals]
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        paired = min(i2 - i1, j2 - j1)
        for i, j in zip(range(i1, i1 + paired), range(j1, j1 + paired), strict=True):
            literal = strings.literals[i]
            alone = Strings(literal.start, literal.end, (literal,), False)
            yield _change(text, alone, 0, len(literal.value), new[j], written)
        if i1 + paired < i2:
            yield _deleted(strings, i1 + paired, i2)
        elif j1 + paired < j2:
            lines = [f'"{written(line)}"' for line in new[j1 + paired : j2]]
            yield _inserted(text, strings, i2, lines)


def _deleted(strings: Strings, first: int, last: int) -> Replacement:
    literals = strings.literals
    if last < len(literals):
        return Replacement(literals[first].start, literals[last].start, "")
    if first:
        return Replacement(literals[first - 1].end, literals[-1].end, "")
    return Replacement(strings.start, strings.end, "[]")


def _inserted(text: str, strings: Strings, at: int, lines: Sequence[str]) -> Replacement:
    literals = strings.literals
    if not literals:
        return Replacement(strings.start, strings.end, f"[{', '.join(lines)}]")
    if len(literals) > 1:
        between = text[literals[0].end : literals[1].start]
    else:
        lead = text[strings.start + 1 : literals[0].start]
        between = f",{lead or ' '}"
    if at < len(literals):
        place = literals[at].start
        return Replacement(place, place, "".join(line + between for line in lines))
    place = literals[-1].end
    return Replacement(place, place, "".join(between + line for line in lines))
