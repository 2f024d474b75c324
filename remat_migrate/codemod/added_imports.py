"""Adding an import where it belongs."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Sequence

from ..text.edits import Edit
from ..text.tokens import Layout

ImportNode = ast.Import | ast.ImportFrom
Key = tuple[int, bool, str]

_BLANK_LINE = re.compile(r"(?:\r\n|\n|\r(?!\n))[ \t\f]*[\r\n]")


def insert_import(
    layout: Layout, tree: ast.Module, statement: str, *, before: ast.stmt | None = None
) -> Edit:
    """Return the edit that adds an import to its section at the top of a module, in order.

    It comes after the docstring and `from __future__`, never into an `if` or `try`.

    Args:
        layout: the file.
        tree: its tree.
        statement: the import, without a line ending.
        before: the top-level statement that needs it.
    """
    limit = len(tree.body) if before is None else tree.body.index(before)
    key = _key(ast.parse(statement).body[0])
    blocks = _blocks(layout, tree.body[:limit])
    newline = layout.source.newline
    block = _block_for(blocks, key)
    if block is not None:
        at = _place_in(layout, tree, block, key)
        return _line(layout, at, statement + newline)
    groups = [_key(found[0])[0] for found in blocks]
    if any(group < key[0] for group in groups):
        last = next(b for b, g in reversed(list(zip(blocks, groups, strict=True))) if g < key[0])
        return _line(layout, _line_behind(layout, tree, last[-1]), newline + statement + newline)
    if blocks:
        at = layout.line_start(layout.source.span(blocks[0][0]).start)
        return _line(layout, at, statement + newline + newline)
    return _first_import(layout, tree, statement)


# -- where an import goes


def _key(node: ast.stmt) -> Key:
    """Return what imports are sorted by: kind of package, `from` after `import`, name."""
    if isinstance(node, ast.Import):
        name = node.names[0].name
        relative = False
    else:
        assert isinstance(node, ast.ImportFrom)
        name, relative = node.module or "", node.level > 0
    top = name.partition(".")[0]
    group = 2 if relative else 0 if top in sys.stdlib_module_names else 1
    return group, isinstance(node, ast.ImportFrom), name.lower()


def _blocks(layout: Layout, body: Sequence[ast.stmt]) -> list[list[ImportNode]]:
    """Runs of imports without a blank line or another statement between them, in order.

    Those below the first function or class are left out, unless there are no others.
    """
    found: list[list[ImportNode]] = []
    above = 0
    previous: ast.stmt | None = None
    for node in body:
        if isinstance(node, ImportNode) and not _is_future(node):
            if found and previous is found[-1][-1] and not _apart(layout, previous, node):
                found[-1].append(node)
            else:
                found.append([node])
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            above = above or len(found)
        previous = node
    return found[: above or len(found)]


def _is_future(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__" and not node.level


def _apart(layout: Layout, first: ast.stmt, second: ast.stmt) -> bool:
    start, end = layout.source.span(first).end, layout.source.span(second).start
    return _BLANK_LINE.search(layout.source.text[start:end]) is not None


def _top(node: ast.stmt) -> str:
    return _key(node)[2].partition(".")[0]


def _block_for(blocks: Sequence[list[ImportNode]], key: Key) -> list[ImportNode] | None:
    """Return the block that an import belongs to: with its package, else of its kind."""
    package = key[2].partition(".")[0]
    for block in blocks:
        if any(_top(node) == package and _key(node)[0] == key[0] for node in block):
            return block
    for block in blocks:
        if sum(_key(node)[0] == key[0] for node in block) * 2 >= len(block):
            return block
    return None


def _place_in(layout: Layout, tree: ast.Module, block: list[ImportNode], key: Key) -> int:
    """Return the place in a block: in order, or beside its package if the block is unsorted."""
    for styled in (_as_is, _names_first):
        keys = [styled(_key(node)) for node in block]
        if keys == sorted(keys):
            index = sum(known < styled(key) for known in keys)
            break
    else:
        package = key[2].partition(".")[0]
        near = [i for i, node in enumerate(block) if _top(node) == package]
        index = near[0] if near else len(block)
    if index == 0:
        return layout.line_start(layout.source.span(block[0]).start)
    behind = _line_behind(layout, tree, block[index - 1])
    if index < len(block):
        # Two imports on one line.
        behind = min(behind, layout.line_start(layout.source.span(block[index]).start))
    return behind


def _as_is(key: Key) -> tuple[object, ...]:
    return key


def _names_first(key: Key) -> tuple[object, ...]:
    """Imports of both forms in one order by name, as Google's style has them."""
    return key[0], key[2], key[1]


def _line_behind(layout: Layout, tree: ast.Module, node: ast.stmt) -> int:
    """Return the start of the line below a top-level statement and all that share lines with it."""
    end = layout.source.span(node).end
    for other in tree.body[tree.body.index(node) + 1 :]:
        start, below = layout.source.span(other)
        if start >= layout.line_end(end):
            break
        end = below
    return layout.next_line(end)


def _line(layout: Layout, at: int, text: str) -> Edit:
    if at == len(layout.source.text) and at > layout.line_start(at):
        # The last line of the file has no ending.
        newline = layout.source.newline
        text = newline + text.removesuffix(newline)
    return Edit(layout.source.path, at, at, text)


def _first_import(layout: Layout, tree: ast.Module, statement: str) -> Edit:
    """Return the edit for a module that has none at its top."""
    newline, text = layout.source.newline, layout.source.text
    start = 0
    for node in tree.body:
        if not (_is_future(node) or (node is tree.body[0] and _is_docstring(node))):
            break
        start = _line_behind(layout, tree, node)
    if start:
        line = text[start : layout.line_end(start)]
        blank = "" if not line.strip() else newline
        return _line(layout, start, newline + statement + newline + blank)
    if not tree.body:
        return _line(layout, len(text), statement + newline)
    first = tree.body[0]
    at = layout.line_start(layout.source.full_span(first).start)
    above = at
    while above > 0 and text[layout.line_start(above - 1) :].lstrip(" \t").startswith("#"):
        if layout.source.is_escaped(above - 1):
            break  # the cell of a notebook starts here
        above = layout.line_start(above - 1)
    # Comments at the very top are the file's (a licence, `#!`), those further down the statement's.
    definition = isinstance(first, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    return _line(layout, above or at, statement + newline * (3 if definition else 2))


def _is_docstring(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
