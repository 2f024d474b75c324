"""The text of a module with a recorder around each of its units.

A decorator outermost above a definition, a statement below an assignment, and one line that says
what the recorder is: it is looked up among the builtins, where the worker puts it, so that the text
also runs where nothing records. No other line is touched; what is inserted are whole lines.
"""

from __future__ import annotations

import ast
import bisect
import io
import re
import tokenize
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from ..errors import VerificationError

# Not mangled inside a class, since it ends in underscores.
RECORDER = "__remat_migrate_unit__"
_BINDING = (
    f'{RECORDER} = __import__("builtins").__dict__'
    f'.get("{RECORDER}", lambda unit: lambda function: function)'
)
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")

# What stands before the same line comes in this order.
_BIND, _REASSIGN, _DECORATE = range(3)


@dataclass(frozen=True, slots=True)
class Instrumented:
    """A module's text with recorders.

    Attributes:
        text: the new text.
        inserted: the lines that were inserted, by their number in the new text, in order.
        missing: the units that the text does not define as a function or by an assignment.
    """

    text: str
    inserted: tuple[int, ...]
    missing: tuple[str, ...] = ()

    def original_line(self, line: int) -> int:
        """The number in the original text of a line of the new one; an inserted line counts as the
        line that follows it."""
        before = bisect.bisect_left(self.inserted, line)
        return line - before


@dataclass(frozen=True, slots=True)
class _Insertion:
    line: int  # of the original text, from 1: what the new line stands before
    kind: int
    depth: int
    text: str

    @property
    def order(self) -> tuple[int, int, int, str]:
        # Below a block that ends in several suites, the deepest suite is continued first.
        return self.line, self.kind, -self.depth, self.text


def instrument(text: str, units: Sequence[str], identity: str) -> Instrumented:
    """Put a recorder around every definition of the units in a module's text.

    Args:
        text: the module's text, with the newlines of its file and without a byte-order mark.
        units: qualified names: `attention_block`, `Block.__call__`.
        identity: what stands before `::` in a unit's identity: the file's path in the project.

    Raises:
        VerificationError: the text is no Python that this interpreter can parse.
    """
    module = _Module(text, identity)
    missing = []
    insertions: set[_Insertion] = set()
    first = len(module.tree.body)
    for unit in units:
        found = module.definitions(unit)
        insertions |= {insertion for _, insertion in found}
        first = min([first, *(place for place, _ in found)])
        if not found:
            missing.append(unit)
    if insertions:
        insertions.add(module.binding(first, insertions))
    new, inserted = module.insert(sorted(insertions, key=lambda each: each.order))
    _parse(new, f"{identity} with recorders")
    return Instrumented(new, inserted, tuple(missing))


def _parse(text: str, what: str) -> ast.Module:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise VerificationError(f"{what} cannot be parsed: {error}") from error


@dataclass(frozen=True, slots=True)
class _Sought:
    """A unit, and what of its qualified name is left in the scope that is being searched."""

    unit: str
    name: str
    rest: str

    def below(self) -> _Sought:
        """The same unit inside the class of that name."""
        name, _, rest = self.rest.partition(".")
        return _Sought(self.unit, name, rest)


class _Module:
    """The lines of a text, and where its definitions want a recorder."""

    def __init__(self, text: str, identity: str) -> None:
        self.tree = _parse(text, identity)
        self.lines: list[str] = _LINE.findall(text)
        self.identity = identity
        ending = re.search(r"\r\n|\r|\n", text)
        self.newline = str(ending.group()) if ending else "\n"

    def definitions(self, unit: str) -> list[tuple[int, _Insertion]]:
        """The insertions for a unit, each with the place of the top-level statement it is in."""
        name, _, rest = unit.partition(".")
        return [
            (place, insertion)
            for place in range(len(self.tree.body))
            for insertion in self._at(self.tree.body, place, _Sought(unit, name, rest))
        ]

    def binding(self, first: int, insertions: set[_Insertion]) -> _Insertion:
        """The line that binds the recorder's name, above the first top-level statement with one."""
        statement = self.tree.body[first]
        if _bound(statement):
            # Above the statement there may be a docstring or a future import on the same line.
            return _Insertion(min(each.line for each in insertions), _BIND, 0, _BINDING)
        return _Insertion(self._start(statement), _BIND, 0, _BINDING)

    def _at(self, body: Sequence[ast.stmt], place: int, sought: _Sought) -> Iterator[_Insertion]:
        """The insertions for one statement of a body that stands on lines of its own."""
        statement = body[place]
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            if statement.name == sought.name and not sought.rest:
                line = self._start(statement)
                call = f"@{RECORDER}({self._quoted(sought.unit)})"
                yield _Insertion(line, _DECORATE, 0, self._indent(line) + call)
        elif isinstance(statement, ast.ClassDef):
            if statement.name == sought.name and sought.rest:
                yield from self._suite(statement.body, sought.below())
        else:
            names = _bound(statement)
            for suite in _suites(statement):
                yield from self._suite(suite, sought)
                if suite and not self._opens_line(suite[0]):
                    names = names.union(*map(_bound, suite))
            if not sought.rest and sought.name in names:
                yield from self._reassign(body, place, sought)

    def _suite(self, suite: Sequence[ast.stmt], sought: _Sought) -> Iterator[_Insertion]:
        if suite and self._opens_line(suite[0]):
            for place in range(len(suite)):
                yield from self._at(suite, place, sought)

    def _reassign(
        self, body: Sequence[ast.stmt], place: int, sought: _Sought
    ) -> Iterator[_Insertion]:
        """Record what a statement has bound, below the line that it shares with its neighbours."""
        below = self._below(body[place])
        line = [each for each in body if self._below(each) == below]
        name = sought.name
        again = f"{name} = {RECORDER}({self._quoted(sought.unit)})({name})"
        if len(line) > 1 or not isinstance(body[place], ast.Assign | ast.AnnAssign):
            again = f'if "{name}" in locals(): {again}'  # bound perhaps, or deleted again
        indent = self._indent(self._start(line[0]))
        yield _Insertion(below, _REASSIGN, len(indent), indent + again)

    def _start(self, statement: ast.stmt) -> int:
        """The first line of a statement that opens its line, its decorators counted."""
        decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
        line = decorators[0].lineno if decorators else statement.lineno
        while decorators and not self.lines[line - 1].lstrip(" \t\f").startswith("@"):
            line -= 1  # the decorator is in parentheses or continued
        while line > 1 and self.lines[line - 2].strip() == "\\":
            line -= 1
        return line

    def _below(self, statement: ast.stmt) -> int:
        """The line below the logical line on which a statement ends."""
        assert statement.end_lineno is not None
        at = bisect.bisect_left(self._logical_ends, statement.end_lineno)
        ends = self._logical_ends[at:]
        return (ends[0] if ends else len(self.lines)) + 1

    @cached_property
    def _logical_ends(self) -> list[int]:
        """The lines on which logical lines end, in order."""
        # `tokenize` takes no lone carriage return for the end of a line; the parser does.
        text = "".join(line.rstrip("\r\n") + "\n" for line in self.lines)
        tokens = tokenize.generate_tokens(io.StringIO(text, newline="\n").readline)
        return [token.start[0] for token in tokens if token.type == tokenize.NEWLINE]

    def insert(self, ordered: Sequence[_Insertion]) -> tuple[str, tuple[int, ...]]:
        """The text with the insertions, and their line numbers."""
        pieces: list[str] = []
        inserted: list[int] = []
        waiting = list(ordered)
        for number, line in enumerate([*self.lines, ""], start=1):
            while waiting and waiting[0].line <= number:
                if pieces and not pieces[-1].endswith(("\r", "\n")):
                    pieces.append(self.newline)  # the last line of the file had no end
                pieces.append(waiting.pop(0).text + self.newline)
                inserted.append(number + len(inserted))
            pieces.append(line)
        return "".join(pieces), tuple(inserted)

    def _opens_line(self, statement: ast.stmt) -> bool:
        line = self.lines[statement.lineno - 1]
        return not line.encode()[: statement.col_offset].strip(b" \t\f")

    def _indent(self, line: int) -> str:
        text = self.lines[line - 1]
        return text[: len(text) - len(text.lstrip(" \t\f"))]

    def _quoted(self, unit: str) -> str:
        escaped = f"{self.identity}::{unit}".replace("\\", "\\\\").replace('"', '\\"')
        # The file may be in an encoding that lacks the path's letters.
        return '"' + escaped.encode("ascii", "backslashreplace").decode("ascii") + '"'


def _suites(statement: ast.stmt) -> list[list[ast.stmt]]:
    """The suites of a compound statement that are run in the scope around it."""
    match statement:
        case ast.If() | ast.For() | ast.AsyncFor() | ast.While():
            return [statement.body, statement.orelse]
        case ast.With() | ast.AsyncWith():
            return [statement.body]
        case ast.Try() | ast.TryStar():
            handlers = [handler.body for handler in statement.handlers]
            return [statement.body, *handlers, statement.orelse, statement.finalbody]
        case ast.Match():
            return [case.body for case in statement.cases]
    return []


def _bound(statement: ast.stmt) -> set[str]:
    """The names that a simple statement assigns to."""
    if isinstance(statement, ast.Assign):
        parts: list[ast.AST] = [*statement.targets, statement.value]
    elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
        parts = [statement.target, statement.value]
    elif isinstance(statement, ast.Expr):
        parts = [statement.value]
    else:
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
