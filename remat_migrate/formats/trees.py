"""The values of YAML and TOML files, with their positions: mappings, sequences, and scalars."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from .grammars import Range, check, parse
from .lines import line_start, next_line
from .setting import TextSyntaxError

if TYPE_CHECKING:
    from tree_sitter import Node as Tree

_TOML_STYLES: dict[str, Style] = {'"': "double", "'": "single", '"""': "double", "'''": "literal"}
_YAML_STYLES: dict[str, Style] = {
    "plain_scalar": "plain",
    "single_quote_scalar": "single",
    "double_quote_scalar": "double",
    "alias": "alias",
}
# The grammar counts lines in 16 bits, and crashes when its stack of indentations overflows.
_MOST_LINES = 32_000
_MOST_LEVELS = 100
_INDENT = re.compile(r"^ *(?:[-?:][ \t]+)*(?=\S)", re.MULTILINE)

Style = Literal["plain", "single", "double", "literal", "folded", "alias", "null"]


@dataclass(frozen=True, eq=False, slots=True)
class Scalar:
    """A scalar; `start` to `end` excludes the quotes, `outer` includes them.

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
        """Its range, without quotes."""
        return self.start, self.end


@dataclass(frozen=True, eq=False, slots=True)
class Entry:
    """`key: value`; `colon` is the offset after the colon and the value's anchor and tag."""

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
    """A mapping; `flow` if it is in braces."""

    entries: tuple[Entry, ...]
    outer: Range
    flow: bool
    anchor: str = ""


@dataclass(frozen=True, eq=False, slots=True)
class Sequence:
    """A sequence; `flow` if it is in brackets."""

    items: tuple[Item, ...]
    outer: Range
    flow: bool
    anchor: str = ""


Node = Scalar | Mapping | Sequence


@dataclass(frozen=True, eq=False, slots=True)
class Table:
    """A table with its header; the part before the first header has an empty `name`."""

    name: tuple[str, ...]
    header: Range
    values: Mapping
    is_array: bool = False


def parse_toml(text: str, occurs: Callable[[str], bool]) -> list[Table]:
    """Parse the tables of a file, in order.

    Args:
        text: the text.
        occurs: whether a text contains what the caller looks for. Other values are not expanded.

    Raises:
        TextSyntaxError: the file has a syntax error.
    """
    root = parse("toml", text, [(0, len(text))])
    check(text, root)
    reader = _TomlReader(text, occurs)
    found = [Table((), (0, 0), reader.table(root))]
    for tree in root.children:
        if tree.type in ("table", "table_array_element"):
            opening, name, closing = tree.children[:3]
            header = (opening.start_byte, closing.end_byte)
            is_array = tree.type == "table_array_element"
            found.append(Table(reader.key(name), header, reader.table(tree), is_array))
    return found


class _TomlReader:
    def __init__(self, text: str, occurs: Callable[[str], bool]) -> None:
        self.text = text
        self.occurs = occurs

    def table(self, tree: Tree) -> Mapping:
        """Return the values of a table, each on a line of its own."""
        return Mapping(self.entries(tree.children), tree.byte_range, False)

    def entries(self, trees: Iterable[Tree]) -> tuple[Entry, ...]:
        """Return the `key = value` pairs among some nodes."""
        return tuple(self.entry(tree) for tree in trees if tree.type == "pair")

    def entry(self, tree: Tree) -> Entry:
        """Return a `key = value` pair; the key is the last part of a dotted key."""
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
        """Return a value; numbers, Booleans, and dates are plain scalars."""
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
                return Scalar(_TOML_STYLES[fence], *inside, outer)
        return Scalar("plain", *outer, outer)


def parse_yaml(text: str, occurs: Callable[[str], bool]) -> list[Node]:
    """Parse the root value of each document of a file.

    Args:
        text: the text.
        occurs: whether a text contains what the caller looks for. Other collections are not
            expanded.

    Raises:
        TextSyntaxError: the file has a syntax error or exceeds the grammar's limits.
    """
    if text.count("\n") > _MOST_LINES:
        raise TextSyntaxError("it has too many lines")
    if _levels(text) > _MOST_LEVELS:
        raise TextSyntaxError("it is nested too deeply")
    root = parse("yaml", text, [(0, len(text))])
    check(text, root)
    reader = _YamlReader(text, occurs)
    return [
        reader.node(child, child.start_byte)
        for document in root.children
        for child in document.children
        if child.type in ("block_node", "flow_node")
    ]


def _levels(text: str) -> int:
    """Return an upper bound of how deeply the blocks of a text are nested."""
    columns: list[int] = []
    most = 0
    for found in _INDENT.finditer(text):
        indent = found.group()
        first = len(indent) - len(indent.lstrip(" "))
        while columns and columns[-1] >= first:
            columns.pop()
        columns += [
            first,
            *(i for i in range(first + 1, len(indent) + 1) if indent[i - 1] in "-?:"),
        ]
        most = max(most, len(columns))
    return most


class _YamlReader:
    def __init__(self, text: str, occurs: Callable[[str], bool]) -> None:
        self.text = text
        self.occurs = occurs

    def node(self, tree: Tree | None, at: int) -> Node:
        """Return the value of a node with its anchor and tag; a missing value is null at `at`."""
        if tree is None:
            return Scalar("null", at, at, (at, at))
        anchor, content = "", None
        for child in tree.children:
            if child.type == "anchor":
                anchor = self.text[child.start_byte + 1 : child.end_byte]
            elif child.type not in ("tag", "comment"):
                content = child
        start, end = tree.byte_range
        if content is None:
            return Scalar("null", end, end, (start, end), anchor=anchor)
        start, end = content.byte_range
        end = start + len(self.text[start:end].rstrip())
        if content.type in _YAML_STYLES:
            quoted = content.type.endswith("quote_scalar")
            inside = (start + quoted, end - quoted)
            return Scalar(_YAML_STYLES[content.type], *inside, (start, end), anchor=anchor)
        if content.type == "block_scalar":
            return self._block_scalar(start, end, anchor)
        if not self.occurs(self.text[start:end]):
            return Mapping((), (start, end), True, anchor)
        flow = content.type.startswith("flow")
        children = [child for child in content.named_children if child.type != "comment"]
        if content.type.endswith("mapping"):
            entries = tuple(map(self.entry, children))
            return Mapping(entries, (start, end), flow, anchor)
        items = tuple(map(self.item, children))
        return Sequence(items, (start, end), flow, anchor)

    def entry(self, tree: Tree) -> Entry:
        """Return an entry of a mapping."""
        start, end = tree.byte_range
        if tree.type == "flow_node":  # `{a, b: 1}`
            return Entry(self.key(tree), start, end, self.node(None, end))
        key = tree.child_by_field_name("key")
        value = tree.child_by_field_name("value")
        colon = next((child.end_byte for child in tree.children if child.type == ":"), end)
        node = self.node(value if self.occurs(self.text[start:end]) else None, end)
        if value is not None and isinstance(node, Mapping | Sequence) and not node.flow:
            marks = [c.end_byte for c in value.children if c.type in ("anchor", "tag")]
            colon = max(colon, *marks) if marks else colon
        return Entry(self.key(key), start, colon, node)

    def key(self, tree: Tree | None) -> Scalar:
        """Return a key, which must be a scalar."""
        node = self.node(tree, 0)
        if not isinstance(node, Scalar):
            raise TextSyntaxError("complex keys are not supported")
        return node

    def item(self, tree: Tree) -> Item:
        """Return an item of a sequence."""
        start = tree.start_byte
        if tree.type == "flow_pair":  # `[a: b]`
            return Item(start, Mapping((self.entry(tree),), tree.byte_range, True))
        if tree.type == "flow_node":
            return Item(start, self.node(tree, start))
        value = next((c for c in tree.named_children if c.type != "comment"), None)
        return Item(start, self.node(value, start + 1))

    def _block_scalar(self, start: int, end: int, anchor: str) -> Scalar:
        style: Style = "literal" if self.text[start] == "|" else "folded"
        below = next_line(self.text, start)
        if below >= end:
            return Scalar(style, end, end, (start, end), anchor=anchor)
        body = self.text[below:end]
        indent = min(re.findall(r"^( *)(?=[^\s])", body, re.MULTILINE), key=len, default="")
        first = below + len(body) - len(body.lstrip())
        return Scalar(style, line_start(self.text, first), end, (start, end), indent, anchor)
