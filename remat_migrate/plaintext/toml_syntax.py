"""The structure of a TOML file: tables, keys and values, with their places."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .lines import line_end, next_line
from .setting import TextSyntaxError

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_OTHER = re.compile(r"[^\s,\]}#][^,\]}#\n]*")


class TomlSyntaxError(TextSyntaxError):
    """The file is no TOML."""


@dataclass(frozen=True, eq=False, slots=True)
class Text:
    """A string; `start` to `end` is its text without quotes. `escaped`: a backslash has meaning."""

    start: int
    end: int
    outer: tuple[int, int]
    escaped: bool


@dataclass(frozen=True, eq=False, slots=True)
class Array:
    """An array of values."""

    items: tuple[Value, ...]
    outer: tuple[int, int]


@dataclass(frozen=True, eq=False, slots=True)
class Inline:
    """A table in braces."""

    pairs: tuple[Pair, ...]
    outer: tuple[int, int]


@dataclass(frozen=True, eq=False, slots=True)
class Other:
    """A number, boolean or date."""

    outer: tuple[int, int]


Value = Text | Array | Inline | Other


@dataclass(frozen=True, eq=False, slots=True)
class Pair:
    """`key = value`, the key by its parts."""

    key: tuple[str, ...]
    start: int
    value: Value

    @property
    def end(self) -> int:
        """Where the value ends."""
        return self.value.outer[1]


@dataclass(frozen=True, eq=False, slots=True)
class Table:
    """A table with its header, or what stands before the first header (`header` is empty)."""

    name: tuple[str, ...]
    header: tuple[int, int]
    pairs: tuple[Pair, ...]
    is_array: bool = False


def parse_toml(text: str) -> list[Table]:
    """The tables of a file in order.

    Raises:
        TomlSyntaxError: it is no TOML as far as this can tell.
    """
    return _Parser(text).tables()


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text

    def fail(self, at: int, what: str) -> TomlSyntaxError:
        return TomlSyntaxError(f"line {self.text.count(chr(10), 0, at) + 1}: {what}")

    def blanks(self, at: int) -> int:
        while self.text[at : at + 1] in (" ", "\t"):
            at += 1
        return at

    def skip(self, at: int) -> int:
        """Past blanks, line ends and comments."""
        while at < len(self.text):
            if self.text[at] in " \t\r\n":
                at += 1
            elif self.text[at] == "#":
                at = line_end(self.text, at)
            else:
                break
        return at

    def tables(self) -> list[Table]:
        found: list[Table] = []
        name: tuple[str, ...] = ()
        header, is_array = (0, 0), False
        pairs: list[Pair] = []
        at = self.skip(0)
        while at < len(self.text):
            if self.text[at] == "[":
                found.append(Table(name, header, tuple(pairs), is_array))
                is_array = self.text.startswith("[[", at)
                name, stop = self.key(self.blanks(at + 1 + is_array))
                closing = "]]" if is_array else "]"
                if not self.text.startswith(closing, stop):
                    raise self.fail(at, "a header is not closed")
                header, pairs = (at, stop + len(closing)), []
                at = self.skip(header[1])
            else:
                pairs.append(self.pair(at))
                at = self.skip(pairs[-1].end)
        found.append(Table(name, header, tuple(pairs), is_array))
        return found

    def key(self, at: int) -> tuple[tuple[str, ...], int]:
        parts: list[str] = []
        while True:
            if self.text[at : at + 1] in ('"', "'"):
                part = self.string(at)
                parts.append(self.text[part.start : part.end])
                at = part.outer[1]
            else:
                found = _BARE.match(self.text, at)
                if found is None:
                    raise self.fail(at, "a key was expected")
                parts.append(found.group())
                at = found.end()
            at = self.blanks(at)
            if self.text[at : at + 1] != ".":
                return tuple(parts), at
            at = self.blanks(at + 1)

    def pair(self, at: int) -> Pair:
        key, stop = self.key(at)
        if self.text[stop : stop + 1] != "=":
            raise self.fail(at, "a = was expected")
        return Pair(key, at, self.value(self.blanks(stop + 1)))

    def value(self, at: int) -> Value:
        match self.text[at : at + 1]:
            case '"' | "'":
                return self.string(at)
            case "[":
                return self.array(at)
            case "{":
                return self.inline(at)
        found = _OTHER.match(self.text, at)
        if found is None:
            raise self.fail(at, "a value was expected")
        return Other((at, at + len(found.group().rstrip())))

    def string(self, at: int) -> Text:
        quote = self.text[at]
        long = self.text.startswith(quote * 3, at)
        fence = quote * 3 if long else quote
        start = stop = at + len(fence)
        while stop < len(self.text):
            if quote == '"' and self.text[stop] == "\\":
                stop += 2
            elif self.text.startswith(fence, stop):
                # Up to two quotes may stand before the closing three.
                while long and self.text[stop + 3 : stop + 4] == quote:
                    stop += 1
                return Text(start, stop, (at, stop + len(fence)), quote == '"')
            elif self.text[stop] == "\n" and not long:
                break
            else:
                stop += 1
        raise self.fail(at, "a string is not closed")

    def array(self, at: int) -> Array:
        start = at
        items: list[Value] = []
        at = self.skip(at + 1)
        while self.text[at : at + 1] != "]":
            items.append(self.value(at))
            at = self.skip(items[-1].outer[1])
            if self.text[at : at + 1] == ",":
                at = self.skip(at + 1)
            elif self.text[at : at + 1] != "]":
                raise self.fail(start, "an array is not closed")
        return Array(tuple(items), (start, at + 1))

    def inline(self, at: int) -> Inline:
        start = at
        pairs: list[Pair] = []
        at = self.skip(at + 1)
        while self.text[at : at + 1] != "}":
            pairs.append(self.pair(at))
            at = self.skip(pairs[-1].end)
            if self.text[at : at + 1] == ",":
                at = self.skip(at + 1)
            elif self.text[at : at + 1] != "}":
                raise self.fail(start, "a table in braces is not closed")
        return Inline(tuple(pairs), (start, at + 1))


def lines_of(text: str, value: Text) -> list[tuple[int, int]]:
    """The lines of a string of several, as ranges without their line endings."""
    found: list[tuple[int, int]] = []
    at = value.start
    while at < value.end:
        found.append((at, min(line_end(text, at), value.end)))
        at = next_line(text, at)
    return found
