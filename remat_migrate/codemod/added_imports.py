"""Adding an import where it belongs."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Sequence

from ..text import Edit, SourceFile
from ..text.escapes import MARK

ImportNode = ast.Import | ast.ImportFrom
Key = tuple[int, bool, str]

# In a notebook, the comment that announces a cell ends what is above.
_COMMENT = re.compile(rf"[ \t]*#(?!{MARK})")
_DEFINITIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def insert_import(
    source: SourceFile, tree: ast.Module, statement: str, *, before: ast.stmt | None = None
) -> Edit:
    """Return the edit that adds an import to its section at the top of a module, in order.

    It comes after the docstring and `from __future__`, never into an `if` or `try`.

    Args:
        source: the file.
        tree: its tree.
        statement: the import, without a line ending.
        before: the top-level statement that needs it.
    """
    limit = len(tree.body) if before is None else tree.body.index(before)
    new = ast.parse(statement).body[0]
    imports = _at_top(tree.body[:limit])
    same = [node for node in imports if _key(node)[0] == _key(new)[0]]
    # Some sort by name whatever the form.
    order = _key if sorted(same, key=_key) == same else _name_first
    smaller = [node for node in same if order(node) < order(new)]
    lower = [node for node in imports if _key(node)[0] < _key(new)[0]]
    newline = source.newline
    if smaller:
        return _line(source, _line_behind(source, tree, smaller[-1]), statement + newline)
    if lower and not same:
        behind = _line_behind(source, tree, lower[-1])
        return _line(source, behind, newline + statement + newline)
    if imports:
        at = source.line_start(source.span((same or imports)[0]).start)
        return _line(source, at, statement + newline + ("" if same else newline))
    return _first_import(source, tree, statement)


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


def _name_first(node: ast.stmt) -> tuple[int, str, bool]:
    group, is_from, name = _key(node)
    return group, name, is_from


def _at_top(body: Sequence[ast.stmt]) -> list[ImportNode]:
    """Return the imports above the first function or class, or all if there are none."""
    definitions = (i for i, node in enumerate(body) if isinstance(node, _DEFINITIONS))
    imports = [n for n in body if isinstance(n, ImportNode) and not _is_future(n)]
    above = body[: next(definitions, len(body))]
    return [node for node in imports if node in above] or imports


def _is_future(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__" and not node.level


def _line_behind(source: SourceFile, tree: ast.Module, node: ast.stmt) -> int:
    """Return the start of the line below a top-level statement and all that share lines with it."""
    end = source.span(node).end
    for other in tree.body[tree.body.index(node) + 1 :]:
        start, below = source.span(other)
        if start >= source.line_end(end):
            break
        end = below
    return source.next_line(end)


def _line(source: SourceFile, at: int, text: str) -> Edit:
    if at == len(source.text) and at > source.line_start(at):
        # The last line of the file has no ending.
        newline = source.newline
        text = newline + text.removesuffix(newline)
    return Edit(source.path, at, at, text)


def _first_import(source: SourceFile, tree: ast.Module, statement: str) -> Edit:
    """Return the edit for a module that has none at its top."""
    newline, text = source.newline, source.text
    start = 0
    for node in tree.body:
        if not (_is_future(node) or (node is tree.body[0] and _is_docstring(node))):
            break
        start = _line_behind(source, tree, node)
    if start:
        line = text[start : source.line_end(start)]
        blank = "" if not line.strip() else newline
        return _line(source, start, newline + statement + newline + blank)
    if not tree.body:
        return _line(source, len(text), statement + newline)
    first = tree.body[0]
    at = source.line_start(source.full_span(first).start)
    above = at
    while above > 0 and _COMMENT.match(text, source.line_start(above - 1)):
        above = source.line_start(above - 1)
    # Comments at the very top are the file's (a licence, `#!`), those further down the statement's.
    definition = isinstance(first, _DEFINITIONS)
    return _line(source, above or at, statement + newline * (3 if definition else 2))


def _is_docstring(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
