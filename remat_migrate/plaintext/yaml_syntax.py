"""The structure of a YAML file: mappings, sequences and scalars, with their places.

Enough of YAML for what configuration files hold: block and flow collections, all styles of scalars,
anchors, aliases, tags, several documents. Complex keys and templates (`{{ … }}` outside a string)
are refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from .lines import line_end, line_start, next_line
from .setting import TextSyntaxError

Style = Literal["plain", "single", "double", "literal", "folded", "alias", "null"]

_PROPERTY = re.compile(r"(?:&(?P<anchor>[^\s,\[\]{}]+)|![^\s,\[\]{}]*)(?=[\s,\]}]|$)")
_BLOCK_HEADER = re.compile(r"[|>](?:[+-]?([1-9])?[+-]?)[ \t]*(?:#[^\n]*)?\r?$", re.MULTILINE)
_DOCUMENT = re.compile(r"^(?:---(?=\s|$)|\.\.\.(?=\s|$)|%[^\n]*)", re.MULTILINE)
_PLAIN_START = re.compile(r"[^\s\-?:,\[\]{}#&*!|>'\"%@`]|[-?:](?=\S)")
_PLAIN_END = re.compile(r"\s+#|:(?=\s|$)|$", re.MULTILINE)
_FLOW_PLAIN_END = re.compile(r"\s+#|:(?=[\s,\[\]{}]|$)|[,\[\]{}]|$", re.MULTILINE)


class YamlSyntaxError(TextSyntaxError):
    """The file is no YAML, or beyond this parser."""


@dataclass(frozen=True, eq=False, slots=True)
class Scalar:
    """A scalar; `start` to `end` is its text without quotes, `outer` with them.

    `indent` is the white space before each line of a block scalar.
    """

    style: Style
    start: int
    end: int
    outer: tuple[int, int]
    indent: str = ""
    anchor: str = ""


@dataclass(frozen=True, eq=False, slots=True)
class Entry:
    """`key: value`; `colon` is the offset behind the colon and the value's anchor and tag."""

    key: Scalar
    colon: int
    value: Node

    @property
    def start(self) -> int:
        """Where the key starts."""
        return self.key.outer[0]

    @property
    def end(self) -> int:
        """Where the value ends."""
        return max(self.colon, self.value.outer[1])


@dataclass(frozen=True, eq=False, slots=True)
class Item:
    """An item of a sequence; in a block sequence it starts at its dash."""

    start: int
    value: Node

    @property
    def end(self) -> int:
        """Where the item ends."""
        return max(self.start + 1, self.value.outer[1])


@dataclass(frozen=True, eq=False, slots=True)
class Mapping:
    """A mapping; `flow` if it is written in braces."""

    entries: tuple[Entry, ...]
    outer: tuple[int, int]
    flow: bool
    anchor: str = ""


@dataclass(frozen=True, eq=False, slots=True)
class Sequence:
    """A sequence; `flow` if it is written in brackets."""

    items: tuple[Item, ...]
    outer: tuple[int, int]
    flow: bool
    anchor: str = ""


Node = Scalar | Mapping | Sequence


def parse_yaml(text: str) -> list[Node]:
    """The root node of every document of a file.

    Raises:
        YamlSyntaxError: it is no YAML, or beyond this parser.
    """
    marks = list(_DOCUMENT.finditer(text))
    starts = [0, *(mark.end() for mark in marks)]
    ends = [*(mark.start() for mark in marks), len(text)]
    found: list[Node] = []
    for start, end in zip(starts, ends, strict=True):
        parser = _Parser(text, end)
        at = parser.skip(start)
        if at < end:
            node = parser.node(at, -1)
            rest = parser.skip(node.outer[1])
            if rest < end:
                raise YamlSyntaxError(f"line {text.count(chr(10), 0, rest) + 1} is not expected")
            found.append(node)
    return found


class _Parser:
    def __init__(self, text: str, end: int) -> None:
        self.text = text
        self.end = end

    def fail(self, at: int, what: str) -> YamlSyntaxError:
        return YamlSyntaxError(f"line {self.text.count(chr(10), 0, at) + 1}: {what}")

    def column(self, at: int) -> int:
        return at - line_start(self.text, at)

    def skip(self, at: int) -> int:
        """Past blanks, line ends and comments."""
        while at < self.end:
            if self.text[at] in " \t\r\n":
                at += 1
            elif self.text[at] == "#" and (at == 0 or self.text[at - 1] in " \t\r\n"):
                at = line_end(self.text, at)
            else:
                break
        return min(at, self.end)

    def blanks(self, at: int) -> int:
        """Past blanks on the line."""
        while at < self.end and self.text[at] in " \t":
            at += 1
        return at

    def is_line_over(self, at: int) -> bool:
        return at >= self.end or self.text[at] in "\r\n#"

    def is_dash(self, at: int) -> bool:
        following = self.text[at + 1 : at + 2]
        return self.text[at : at + 1] == "-" and (not following or following in " \t\r\n")

    # -- block style

    def node(self, at: int, parent: int, *, inline: bool = False) -> Node:
        """The node at an offset; `parent` is the column of the collection that it is in.

        An inline node stands behind its key, where no block collection may start.
        """
        start = at
        anchor = ""
        while self.text[at] in "&!":
            found = _PROPERTY.match(self.text, at, self.end)
            if found is None:
                raise self.fail(at, "an anchor or tag was expected")
            anchor = found.group("anchor") or anchor
            after = found.end()
            at = self.blanks(after)
            if self.is_line_over(at):
                at = self.skip(at)
                same_column = inline and at < self.end and self.is_dash(at)
                if at >= self.end or self.column(at) < parent + (not same_column):
                    return Scalar("null", after, after, (start, after), anchor=anchor)
                inline = False
        if self.is_dash(at) and not inline:
            return self.sequence(at, anchor)
        if self.text[at] in "[{":
            return self.flow(at, anchor)
        if self.text[at] in "|>":
            return self.block_scalar(at, parent, anchor)
        if not inline and self.key(at) is not None:
            return self.mapping(at, anchor)
        return self.scalar(at, parent, anchor)

    def key(self, at: int) -> tuple[Scalar, int] | None:
        """The key at an offset and the offset behind its colon."""
        if self.text[at] in "\"'":
            scalar = self.quoted(at, "")
            colon = self.blanks(scalar.outer[1])
            if "\n" in self.text[at:colon]:
                return None
        elif self.text[at] == "?" and self.text[at + 1 : at + 2] in (" ", "\n"):
            raise self.fail(at, "complex keys are not supported")
        elif _PLAIN_START.match(self.text, at, self.end):
            stop = _PLAIN_END.search(self.text, at, line_end(self.text, at))
            colon = stop.start() if stop else self.end
            end = len(self.text[at:colon].rstrip()) + at
            scalar = Scalar("plain", at, end, (at, end))
        else:
            return None
        if self.text[colon : colon + 1] != ":" or colon >= self.end:
            return None
        if self.text[colon + 1 : colon + 2].strip():
            return None
        return scalar, colon + 1

    def mapping(self, at: int, anchor: str) -> Mapping:
        start, column = at, self.column(at)
        entries: list[Entry] = []
        while True:
            key = self.key(at)
            if key is None:
                raise self.fail(at, "a key was expected")
            entries.append(self.entry(*key, column))
            following = self.skip(entries[-1].end)
            if following >= self.end or self.column(following) < column:
                break
            if self.column(following) > column:
                raise self.fail(following, "the indentation is not that of a key")
            if self.is_dash(following):
                break
            at = following
        return Mapping(tuple(entries), (start, entries[-1].end), False, anchor)

    def entry(self, key: Scalar, colon: int, column: int) -> Entry:
        at = self.blanks(colon)
        if not self.is_line_over(at):
            value = self.node(at, column, inline=True)
            behind = colon
            if isinstance(value, Mapping | Sequence) and not value.flow:
                behind = len(self.text[:at]) + len(
                    self.text[at : line_end(self.text, at)].partition(" #")[0].rstrip()
                )
            return Entry(key, behind, value)
        following = self.skip(at)
        inside = following < self.end and (
            self.column(following) > column
            or (self.column(following) == column and self.is_dash(following))
        )
        if not inside:
            return Entry(key, colon, Scalar("null", colon, colon, (colon, colon)))
        return Entry(key, colon, self.node(following, column))

    def sequence(self, at: int, anchor: str) -> Sequence:
        start, column = at, self.column(at)
        items: list[Item] = []
        while True:
            inner = self.blanks(at + 1)
            if self.is_line_over(inner):
                inner = self.skip(inner)
                if inner >= self.end or self.column(inner) <= column:
                    items.append(Item(at, Scalar("null", at + 1, at + 1, (at + 1, at + 1))))
                else:
                    items.append(Item(at, self.node(inner, column)))
            else:
                items.append(Item(at, self.node(inner, column)))
            following = self.skip(items[-1].end)
            if following >= self.end or self.column(following) < column:
                break
            if self.column(following) > column:
                raise self.fail(following, "the indentation is not that of an item")
            if not self.is_dash(following):
                break
            at = following
        return Sequence(tuple(items), (start, items[-1].end), False, anchor)

    # -- scalars

    def block_scalar(self, at: int, parent: int, anchor: str) -> Scalar:
        header = _BLOCK_HEADER.match(self.text, at, self.end)
        if header is None:
            raise self.fail(at, "the header of a block scalar was expected")
        style: Style = "literal" if self.text[at] == "|" else "folded"
        start = line = next_line(self.text, at)
        width = max(parent, 0) + int(header.group(1)) if header.group(1) else -1
        end = line_end(self.text, at)
        first = start
        while line < self.end:
            stop = line_end(self.text, line)
            content = self.text[line:stop]
            if content.strip():
                indent = len(content) - len(content.lstrip(" "))
                if width < 0:
                    if indent <= parent:
                        break
                    width, first = indent, line
                if indent < width:
                    break
                end = stop
            line = next_line(self.text, line)
        if width < 0:
            return Scalar(style, end, end, (at, end), anchor=anchor)
        return Scalar(style, first, end, (at, end), " " * width, anchor)

    def quoted(self, at: int, anchor: str) -> Scalar:
        quote = self.text[at]
        stop = at + 1
        while stop < self.end:
            if quote == '"' and self.text[stop] == "\\":
                stop += 2
            elif self.text[stop] != quote:
                stop += 1
            elif quote == "'" and self.text[stop + 1 : stop + 2] == "'":
                stop += 2
            else:
                style: Style = "double" if quote == '"' else "single"
                return Scalar(style, at + 1, stop, (at, stop + 1), anchor=anchor)
        raise self.fail(at, f"a {quote} is not closed")

    def scalar(self, at: int, parent: int, anchor: str) -> Scalar:
        if self.text[at] in "\"'":
            return self.quoted(at, anchor)
        if self.text[at] == "*":
            found = re.compile(r"\*[^\s,\[\]{}]+").match(self.text, at, self.end)
            if found is None:
                raise self.fail(at, "an alias was expected")
            return Scalar("alias", at + 1, found.end(), found.span())
        if not _PLAIN_START.match(self.text, at, self.end):
            raise self.fail(at, f"{self.text[at]!r} cannot start a value")
        start, end = at, at
        while True:
            stop = _PLAIN_END.search(self.text, at, line_end(self.text, at))
            end = stop.start() if stop else line_end(self.text, at)
            if self.text[end : end + 1] == ":" and end < self.end:
                raise self.fail(end, "a key stands where a value was expected")
            end = at + len(self.text[at:end].rstrip())
            if "#" in self.text[end : line_end(self.text, end)]:
                break
            following = next_line(self.text, end)
            while (
                following < self.end
                and not self.text[following : line_end(self.text, following)].strip()
            ):
                following = next_line(self.text, following)
            following = self.blanks(following)
            if following >= self.end or self.column(following) <= parent:
                break
            if self.text[following] == "#":
                break
            at = following
        return Scalar("plain", start, end, (start, end), anchor=anchor)

    # -- flow style

    def flow(self, at: int, anchor: str) -> Mapping | Sequence:
        start = at
        closing = "]" if self.text[at] == "[" else "}"
        entries: list[Entry] = []
        items: list[Item] = []
        at = self.skip(at + 1)
        while at < self.end and self.text[at] != closing:
            if closing == "]":
                value = self.flow_node(at)
                items.append(Item(at, value))
                at = self.skip(value.outer[1])
            else:
                key = self.flow_node(at)
                if not isinstance(key, Scalar):
                    raise self.fail(at, "complex keys are not supported")
                at = self.skip(key.outer[1])
                value = Scalar("null", key.outer[1], key.outer[1], (key.outer[1],) * 2)
                colon = key.outer[1]
                if self.text[at : at + 1] == ":":
                    colon = at + 1
                    at = self.skip(colon)
                    if self.text[at : at + 1] not in (",", "}"):
                        value = self.flow_node(at)
                        at = self.skip(value.outer[1])
                entries.append(Entry(key, colon, value))
            if self.text[at : at + 1] == ",":
                at = self.skip(at + 1)
            elif self.text[at : at + 1] != closing:
                raise self.fail(at, f"a comma or {closing} was expected")
        if at >= self.end:
            raise self.fail(start, f"a {self.text[start]} is not closed")
        if closing == "]":
            return Sequence(tuple(items), (start, at + 1), True, anchor)
        return Mapping(tuple(entries), (start, at + 1), True, anchor)

    def flow_node(self, at: int) -> Node:
        anchor = ""
        while at < self.end and self.text[at] in "&!":
            found = _PROPERTY.match(self.text, at, self.end)
            if found is None:
                raise self.fail(at, "an anchor or tag was expected")
            anchor = found.group("anchor") or anchor
            at = self.skip(found.end())
        if at >= self.end:
            raise self.fail(at, "the file ends too early")
        if self.text[at] in "[{":
            return self.flow(at, anchor)
        if self.text[at] in "\"'*":
            return self.scalar(at, -1, anchor)
        if not _PLAIN_START.match(self.text, at, self.end):
            raise self.fail(at, f"{self.text[at]!r} cannot start a value")
        stop = _FLOW_PLAIN_END.search(self.text, at, line_end(self.text, at))
        end = stop.start() if stop else line_end(self.text, at)
        end = at + len(self.text[at:end].rstrip())
        return Scalar("plain", at, end, (at, end), anchor=anchor)
