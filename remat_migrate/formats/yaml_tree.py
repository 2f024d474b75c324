"""The values of a YAML file, read from the syntax tree of the YAML grammar."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from .grammars import check, parse
from .lines import line_start, next_line
from .setting import TextSyntaxError
from .values import Entry, Item, Mapping, Node, Scalar, Sequence, Style

if TYPE_CHECKING:
    from tree_sitter import Node as Tree

# The grammar counts lines in 16 bits, and crashes where its stack of indentations overflows.
_MOST_LINES = 32_000
_MOST_LEVELS = 100
_INDENT = re.compile(r"^ *(?:[-?:][ \t]+)*(?=\S)", re.MULTILINE)

_STYLES: dict[str, Style] = {
    "plain_scalar": "plain",
    "single_quote_scalar": "single",
    "double_quote_scalar": "double",
    "alias": "alias",
}


def parse_yaml(text: str, occurs: Callable[[str], bool]) -> list[Node]:
    """Return the root value of every document of a file.

    Args:
        text: the text.
        occurs: whether what is looked for is in a text. Collections without it are not looked into.

    Raises:
        TextSyntaxError: it is no YAML, or beyond the grammar.
    """
    if text.count("\n") > _MOST_LINES:
        raise TextSyntaxError("it has too many lines")
    if _levels(text) > _MOST_LEVELS:
        raise TextSyntaxError("it is nested too deeply")
    root = parse("yaml", text, [(0, len(text))])
    check(text, root)
    reader = _Reader(text, occurs)
    return [
        reader.node(child, child.start_byte)
        for document in root.children
        for child in document.children
        if child.type in ("block_node", "flow_node")
    ]


def _levels(text: str) -> int:
    """No less than how deeply the blocks of a text are nested."""
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


class _Reader:
    def __init__(self, text: str, occurs: Callable[[str], bool]) -> None:
        self.text = text
        self.occurs = occurs

    def node(self, tree: Tree | None, at: int) -> Node:
        """Return the value of a node with its anchor and tag; `at` is the place of one that is
        missing.
        """
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
        if content.type in _STYLES:
            quoted = content.type.endswith("quote_scalar")
            inside = (start + quoted, end - quoted)
            return Scalar(_STYLES[content.type], *inside, (start, end), anchor=anchor)
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
        """Return a key, which is a scalar."""
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
        lines = re.findall(r"^( *)(?=[^\s])", self.text[below:end], re.MULTILINE)
        indent = min(lines, key=len, default="")
        first = (
            len(self.text[:below]) + len(self.text[below:end]) - len(self.text[below:end].lstrip())
        )
        return Scalar(style, line_start(self.text, first), end, (start, end), indent, anchor)
