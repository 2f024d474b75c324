"""Instrument a module: below each definition of a unit, a line passes the unit to a recorder.

The worker puts the recorder among the builtins. Where there is none, the line changes nothing, so
the instrumented module also runs on its own. No existing line is edited.
"""

from __future__ import annotations

import ast
import bisect
import io
import re
import tokenize
import warnings
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from ..errors import VerificationError

RECORDER = "__remat_migrate_unit__"
_RECORDED = (
    '{name} = __import__("builtins").__dict__'
    f'.get("{RECORDER}", lambda unit: lambda function: function)'
    "({unit})({name})"
)
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


class _Insertion(NamedTuple):
    """A new line. Where several blocks end on one line, the deepest block is continued first."""

    below: int
    outdent: int
    text: str


def instrument(text: str, units: Collection[str], path: str) -> str:
    """Return a module's text with a recorder on every definition of the units.

    Args:
        text: the module's text, with the newlines of its file and without a byte-order mark.
        units: qualified names: `attention_block`, `Block.__call__`.
        path: the file's path in the project. The recorder is called with `path::unit`.

    Raises:
        VerificationError: this interpreter cannot parse the text.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise VerificationError(f"{path} cannot be parsed: {error}") from error
    lines = _Lines(text)
    insertions = {
        lines.rebinding(name, _quoted(f"{path}::{owner}{name}"), body, place)
        for owner, name, body, place in _bindings(tree.body, "", lines)
        if f"{owner}{name}" in units
    }
    return lines.insert(sorted(insertions)) if insertions else text


class _Lines:
    """The lines of a module."""

    def __init__(self, text: str) -> None:
        self._lines: list[str] = _LINE.findall(text)
        # The parser ends a line at a lone carriage return, `tokenize` does not.
        unified = "".join(line.rstrip("\r\n") + "\n" for line in self._lines)
        tokens = tokenize.generate_tokens(io.StringIO(unified, newline="\n").readline)
        self._logical_ends = [t.start[0] for t in tokens if t.type == tokenize.NEWLINE]

    def rebinding(self, name: str, unit: str, body: Sequence[ast.stmt], place: int) -> _Insertion:
        """Return the line that records what the statement at `place` binds to a name."""
        last = self._last_line(body[place])
        sharing = [statement for statement in body if self._last_line(statement) == last]
        code = _RECORDED.format(name=name, unit=unit)
        always = (ast.Assign, ast.AnnAssign, ast.FunctionDef, ast.AsyncFunctionDef)
        if len(sharing) > 1 or not isinstance(body[place], always):
            code = f'if "{name}" in locals(): {code}'  # it may be unbound, or deleted again
        first = sharing[0].lineno
        while first > 1 and self._lines[first - 2].strip() == "\\":
            first -= 1
        line = self._lines[first - 1]
        indent = line[: len(line) - len(line.lstrip(" \t\f"))]
        return _Insertion(last, -len(indent), indent + code)

    def opens_line(self, statement: ast.stmt) -> bool:
        """Return whether a statement is the first on its line."""
        line = self._lines[statement.lineno - 1]
        return not line.encode()[: statement.col_offset].strip(b" \t\f")

    def insert(self, insertions: Sequence[_Insertion]) -> str:
        """Return the module with new lines."""
        lines = list(self._lines)
        ending = re.search(r"[\r\n]+$", lines[0])
        newline = ending.group() if ending else "\n"
        if not lines[-1].endswith(("\r", "\n")):
            lines[-1] += newline
        for insertion in reversed(insertions):
            lines.insert(insertion.below, insertion.text + newline)
        return "".join(lines)

    def _last_line(self, statement: ast.stmt) -> int:
        """Return the last line of the logical line on which a statement ends."""
        assert statement.end_lineno is not None
        at = bisect.bisect_left(self._logical_ends, statement.end_lineno)
        return self._logical_ends[at] if at < len(self._logical_ends) else len(self._lines)


def _bindings(
    body: Sequence[ast.stmt], owner: str, lines: _Lines
) -> Iterator[tuple[str, str, Sequence[ast.stmt], int]]:
    """Yield each class prefix and name bound in a body, with the statement's body and index."""
    for place, statement in enumerate(body):
        names = _bound(statement)
        inside = f"{owner}{statement.name}." if isinstance(statement, ast.ClassDef) else owner
        for suite in _suites(statement):
            if suite and lines.opens_line(suite[0]):
                yield from _bindings(suite, inside, lines)
            elif inside == owner:
                names = names.union(*map(_bound, suite))
        for name in names:
            yield owner, name, body, place


def _suites(statement: ast.stmt) -> list[list[ast.stmt]]:
    """Return the suites of a compound statement that run with it."""
    match statement:
        case ast.If() | ast.For() | ast.AsyncFor() | ast.While():
            return [statement.body, statement.orelse]
        case ast.With() | ast.AsyncWith() | ast.ClassDef():
            return [statement.body]
        case ast.Try() | ast.TryStar():
            handlers = [handler.body for handler in statement.handlers]
            return [statement.body, *handlers, statement.orelse, statement.finalbody]
        case ast.Match():
            return [case.body for case in statement.cases]
    return []


def _bound(statement: ast.stmt) -> set[str]:
    """Return the names to which a statement binds a function or a value."""
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return {name}
        case ast.Assign(targets=targets, value=value):
            parts: list[ast.AST] = [*targets, value]
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            parts = [target, value]
        case ast.Expr(value=value):
            parts = [value]
        case _:
            return set()
    return {
        node.id
        for part in parts
        for node in _same_scope(part)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }


def _same_scope(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    inner = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
    if not isinstance(node, inner):
        for child in ast.iter_child_nodes(node):
            yield from _same_scope(child)


def _quoted(identity: str) -> str:
    escaped = identity.replace("\\", "\\\\").replace('"', '\\"')
    # The encoding of the file may lack the letters of the path.
    return '"' + escaped.encode("ascii", "backslashreplace").decode("ascii") + '"'
