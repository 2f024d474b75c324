"""What YAML and TOML hold: mappings, sequences and scalars, with their places."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .grammars import Range

Style = Literal["plain", "single", "double", "literal", "folded", "alias", "null"]


@dataclass(frozen=True, eq=False, slots=True)
class Scalar:
    """A scalar; `start` to `end` is its text without quotes, `outer` with them.

    `indent` is the white space before each line of a block scalar.
    """

    style: Style
    start: int
    end: int
    outer: Range
    indent: str = ""
    anchor: str = ""

    @property
    def span(self) -> Range:
        """Where its text stands, without quotes."""
        return self.start, self.end


@dataclass(frozen=True, eq=False, slots=True)
class Entry:
    """`key: value`; `colon` is the offset behind the colon and the value's anchor and tag."""

    key: Scalar
    start: int
    colon: int
    value: Node

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
    outer: Range
    flow: bool
    anchor: str = ""


@dataclass(frozen=True, eq=False, slots=True)
class Sequence:
    """A sequence; `flow` if it is written in brackets."""

    items: tuple[Item, ...]
    outer: Range
    flow: bool
    anchor: str = ""


Node = Scalar | Mapping | Sequence
