"""The tables of a TOML file, read from the syntax tree of the TOML grammar."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as Ordered
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .grammars import Range, check, parse
from .values import Entry, Item, Mapping, Node, Scalar, Sequence, Style

if TYPE_CHECKING:
    from tree_sitter import Node as Tree

_STYLES: dict[str, Style] = {'"': "double", "'": "single", '"""': "double", "'''": "literal"}


@dataclass(frozen=True, eq=False, slots=True)
class Table:
    """A table with its header, or what stands before the first header (`name` is empty)."""

    name: tuple[str, ...]
    header: Range
    values: Mapping
    is_array: bool = False


def parse_toml(text: str, occurs: Callable[[str], bool]) -> list[Table]:
    """Return the tables of a file in order.

    Args:
        text: the text.
        occurs: whether what is looked for is in a text. Values without it are not looked into.

    Raises:
        TextSyntaxError: it is no TOML as far as the grammar can tell.
    """
    root = parse("toml", text, [(0, len(text))])
    check(text, root)
    reader = _Reader(text, occurs)
    found = [Table((), (0, 0), reader.table(root))]
    for tree in root.children:
        if tree.type in ("table", "table_array_element"):
            opening, name, closing = tree.children[:3]
            header = (opening.start_byte, closing.end_byte)
            is_array = tree.type == "table_array_element"
            found.append(Table(reader.key(name), header, reader.table(tree), is_array))
    return found


class _Reader:
    def __init__(self, text: str, occurs: Callable[[str], bool]) -> None:
        self.text = text
        self.occurs = occurs

    def table(self, tree: Tree) -> Mapping:
        """Return the values of a table, each on a line of its own."""
        return Mapping(self.entries(tree.children), tree.byte_range, False)

    def entries(self, trees: Ordered[Tree]) -> tuple[Entry, ...]:
        """Return the `key = value` pairs among some nodes."""
        return tuple(self.entry(tree) for tree in trees if tree.type == "pair")

    def entry(self, tree: Tree) -> Entry:
        """Return a `key = value` pair; of a dotted key, the last part."""
        key, equals, value = [child for child in tree.children if child.type != "comment"][:3]
        while key.type == "dotted_key":
            key = key.children[-1]
        quoted = key.type == "quoted_key"
        inside = (key.start_byte + quoted, key.end_byte - quoted)
        name = Scalar("plain", *inside, key.byte_range)
        outer = value.byte_range
        node = self.value(value) if self.occurs(self.text[tree.start_byte : outer[1]]) else None
        return Entry(name, tree.start_byte, equals.end_byte, node or Scalar("plain", *outer, outer))

    def key(self, tree: Tree) -> tuple[str, ...]:
        """Return the parts of a key."""
        if tree.type == "dotted_key":
            return tuple(part for c in tree.named_children for part in self.key(c))
        return (self.text[slice(*tree.byte_range)].strip("\"'"),)

    def value(self, tree: Tree) -> Node:
        """Return a value; numbers, booleans and dates are plain scalars."""
        outer = tree.byte_range
        match tree.type:
            case "array":
                values = [c for c in tree.named_children if c.type != "comment"]
                items = tuple(Item(c.start_byte, self.value(c)) for c in values)
                return Sequence(items, outer, True)
            case "inline_table":
                return Mapping(self.entries(tree.children), outer, True)
            case "string":
                fence = tree.children[0].type
                inside = (outer[0] + len(fence), outer[1] - len(fence))
                return Scalar(_STYLES[fence], *inside, outer)
        return Scalar("plain", *outer, outer)
