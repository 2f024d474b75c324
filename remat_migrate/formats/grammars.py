"""Parses text files with tree-sitter grammars.

Importing this module does not import tree-sitter; parsing the first text that uses a setting does.
"""

from __future__ import annotations

import importlib
import re
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Literal

from .lines import line_start
from .setting import TextSyntaxError

if TYPE_CHECKING:
    from tree_sitter import Language, Node

Grammar = Literal["bash", "toml", "yaml"]
Range = tuple[int, int]

_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_CHUNK = 8192


def parse(grammar: Grammar, text: str, ranges: Sequence[Range]) -> Node:
    """Parse the ranges of a text as if nothing stood between them.

    tree-sitter counts bytes. Non-ASCII characters are parsed as `_`, so that the byte offsets of
    the nodes are character offsets in `text`.

    Raises:
        TextSyntaxError: the parser timed out; its error recovery can be quadratic in the length of
            the text.
    """
    import tree_sitter

    start, end = ranges[0][0], ranges[-1][1]
    data = _NOT_ASCII.sub("_", text[start:end]).encode()
    parser = tree_sitter.Parser(_language(grammar))
    parser.included_ranges = [
        tree_sitter.Range(tree_sitter.Point(0, low), tree_sitter.Point(0, high), low, high)
        for low, high in ranges
    ]
    deadline = time.process_time() + 1 + 2e-6 * len(data)

    def read(offset: int, _: object) -> bytes:
        at = max(offset - start, 0)
        return data[at : at + _CHUNK]

    def is_late(_: int, __: bool) -> bool:
        return time.process_time() > deadline

    try:
        return parser.parse(read, progress_callback=is_late).root_node
    except ValueError:
        raise TextSyntaxError("parsing it takes too long") from None


@cache
def _language(grammar: Grammar) -> Language:
    from tree_sitter import Language

    module = importlib.import_module(f"tree_sitter_{grammar}")
    with warnings.catch_warnings():
        # Grammars built for older releases pass a pointer as an int.
        warnings.simplefilter("ignore", DeprecationWarning)
        return Language(module.language())


def without(skipped: Iterable[Range], start: int, end: int) -> list[Range]:
    """Return what is left of a range without the skipped ranges inside it."""
    found: list[Range] = []
    for low, high in skipped:
        if start < low:
            found.append((start, low))
        start = high
    return [*found, (start, end)] if start < end else found


def check(text: str, root: Node) -> None:
    """Check that a tree has no syntax error.

    Raises:
        TextSyntaxError: it has one; the message names the line.
    """
    for statement in [root] if root.is_error else root.children:
        for node in _errors(statement):
            line = text.count("\n", 0, node.start_byte) + 1
            readable = 0 if statement is root else line_start(text, statement.start_byte)
            raise TextSyntaxError(f"unsupported syntax on line {line}", readable)


def _errors(node: Node) -> Iterator[Node]:
    pending = [node]
    while pending:
        node = pending.pop()
        if node.is_error or (node.is_missing and not _is_nameless(node)):
            yield node
        elif node.has_error:
            pending += reversed(node.children)


def _is_nameless(node: Node) -> bool:
    """Return whether the missing node is only a command after assignments, which bash does not
    need.
    """
    name = node.parent
    if name is None or name.type != "command_name" or name.parent is None:
        return False
    return name.parent.start_byte < name.parent.end_byte


def descendants(node: Node, kinds: Iterable[str]) -> Iterator[Node]:
    """Yield the outermost descendants of the given types."""
    for child in node.children:
        if child.type in kinds:
            yield child
        else:
            yield from descendants(child, kinds)
