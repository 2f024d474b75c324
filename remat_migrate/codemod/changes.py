"""Changes: what a fix does to a syntax tree, without character positions.

A Change refers to a node of the `ast` that the analysis works on. The writer finds the LibCST node
and applies all Changes of a file in one pass, inner nodes first. This module does not import
LibCST: rules and codemods describe a fix, and it is written only when its edits are requested.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from ..text import Edit, SourceFile, Span

if TYPE_CHECKING:
    import libcst as cst


class File(Protocol):
    """A parsed file: a Module of the analysis is one."""

    @property
    def source(self) -> SourceFile:
        """Its text."""

    @property
    def tree(self) -> ast.Module:
        """Its tree, which the nodes of Changes belong to."""


@dataclass(frozen=True, slots=True)
class Code:
    """New code: text in which `{name}` stands for code of the same file, as the fix leaves it.

    Attributes:
        text: the source code of an expression or a statement; names in braces are those of `parts`.
        parts: the nodes that are inserted, by name.
    """

    text: str
    parts: tuple[tuple[str, ast.expr], ...] = ()

    @classmethod
    def of(cls, text: str, /, **parts: ast.expr) -> Code:
        """New code with nodes of the file for the names in braces."""
        return cls(text, tuple(parts.items()))


@dataclass(frozen=True, slots=True)
class Change:
    """One change of one node.

    Attributes:
        file: the file.
        node: the node that is changed.
    """

    file: File
    node: ast.AST


@dataclass(frozen=True, slots=True)
class Remove(Change):
    """Removes a statement, argument, parameter, element, dictionary entry, decorator, or import.

    Imports that become unused are removed as well; `is_used_elsewhere` tells which module-level
    names other files use. Comments of the node are kept, except those that `label` matches.
    """

    is_used_elsewhere: Callable[[str], bool] = field(default=lambda name: True)
    label: str = ""


@dataclass(frozen=True, slots=True)
class Replace(Change):
    """Replaces an expression with new code.

    With `is_used_elsewhere`, imports that only the old code used are removed, as for `Remove`.
    """

    code: Code
    is_used_elsewhere: Callable[[str], bool] | None = None


@dataclass(frozen=True, slots=True)
class Keep(Change):
    """Reduces an expression to one of its parts; unused imports are removed, as for `Remove`."""

    part: ast.expr
    is_used_elsewhere: Callable[[str], bool] = field(default=lambda name: True)


@dataclass(frozen=True, slots=True)
class Rename(Change):
    """Renames an attribute, a keyword, a string, or an imported module."""

    name: str


@dataclass(frozen=True, slots=True)
class SetArgument(Change):
    """Adds a keyword argument to a call, or sets the value of an existing one.

    Attributes:
        name: the keyword.
        code: its value.
        instead_of: an argument that it replaces.
    """

    name: str
    code: Code
    instead_of: ast.keyword | ast.expr | None = None


@dataclass(frozen=True, slots=True)
class InsertArgument(Change):
    """Adds a first argument to a call."""

    code: Code


@dataclass(frozen=True, slots=True)
class NameArgument(Change):
    """Passes a positional argument, which is `node`, by keyword."""

    name: str


@dataclass(frozen=True, slots=True)
class Spread(Change):
    """Unpacks an argument: `*argument`, or the elements of a literal."""


@dataclass(frozen=True, slots=True)
class ArrangeArguments(Change):
    """Reorders the arguments of a call.

    Attributes:
        arguments: the new arguments in order: those of the call, and new code.
        by_position: keyword arguments that are passed by position.
    """

    arguments: tuple[ast.expr | ast.keyword | Code, ...]
    by_position: frozenset[ast.keyword] = frozenset()


@dataclass(frozen=True, slots=True)
class Insert(Change):
    """Inserts statements before a statement, each given as source code without indentation."""

    statements: tuple[Code, ...]


@dataclass(frozen=True, slots=True)
class ReplaceStatement(Change):
    """Replaces a statement with others, each given as source code without indentation."""

    statements: tuple[Code, ...]


@dataclass(frozen=True, slots=True)
class Nest(Change):
    """Moves the body of a function into a nested, checkpointed function.

    Attributes:
        name: the name of the inner function.
        closed: the parameters that it closes over.
        reassigned: those of them that the body assigns; they become parameters with defaults.
        decorator: the checkpoint, as it decorates the inner function.
        removed: the index of the decorator that is replaced; None if it was applied elsewhere.
    """

    name: str
    closed: frozenset[str]
    reassigned: tuple[str, ...]
    decorator: Code
    removed: int | None


@dataclass(frozen=True, slots=True)
class Group(Change):
    """Moves statements into a nested function, and calls it: some of the body of `node`, or, with
    `loop`, the loop that `node` is, of which each call runs a chunk.

    Attributes:
        body: the statements.
        function: the function as source code, with `pass` as its body.
        result: the statement at its end; empty if the last statement returns.
        call: the statement that calls it.
        loop: the loop over chunks as source code, with `pass` as its body.
        items: what the inner loop iterates over.
    """

    body: tuple[ast.stmt, ...]
    function: str
    result: str
    call: str
    loop: str = ""
    items: str = ""


@dataclass(frozen=True, slots=True)
class Indent(Change):
    """Makes a statement the body of a new one.

    Attributes:
        header: the new statement as source code, with `pass` as its body: `with context(): pass`.
    """

    header: Code


@dataclass(frozen=True, slots=True)
class SetComment(Change):
    """Replaces, adds, or removes a comment, in a file of any format.

    Attributes:
        comment: the span of the comment; an empty span to add one there.
        text: the new comment; empty to remove it.
    """

    comment: Span
    text: str

    @classmethod
    def of(cls, source: SourceFile, comment: Span, text: str) -> SetComment:
        """Return the change of a comment in any file."""
        file = _Text(source)
        return cls(file, file.tree, comment, text)

    def edit(self) -> Edit:
        """Return the edit that replaces the comment, or removes it and its line if that is empty.

        It is written without LibCST: the code does not change.
        """
        source = self.file.source
        start, end = self.comment if self.text else _with_blanks(source, *self.comment)
        return Edit(source.path, start, end, self.text)


def _with_blanks(source: SourceFile, start: int, end: int) -> tuple[int, int]:
    """Return a comment with the blanks before it, or its whole line if there is nothing else."""
    text = source.text
    line, _ = source.position(start)
    line_start = source.line_starts[line - 1]
    if code := text[line_start:start].rstrip():
        return line_start + len(code), end
    if text[:line_start].rstrip("\r\n").endswith("\\"):
        # A continued line ends here, and must not continue on the next one.
        return start, end
    return line_start, source.line_starts[line] if line < len(source.line_starts) else end


@dataclass(frozen=True, slots=True)
class _Text:
    """A file whose code does not matter."""

    source: SourceFile
    tree: ast.Module = field(default=ast.Module([], []))


class NewNodes(Protocol):
    """The LibCST nodes of a statement, as a Rewrite asks for them."""

    def new(self, node: ast.AST) -> Any:
        """Return the new node of a part, which other Changes may have changed."""

    def expression(self, code: Code) -> Any:
        """Return new code as a node."""


@dataclass(frozen=True, slots=True)
class Rewrite(Change):
    """Any other change: `make` returns the new node for a LibCST node.

    Inner Changes are already applied to the node; `NewNodes` gives the new nodes of other parts.
    For a statement, `make` returns a list of statements. With `discards`, `make` does not use the
    node, and Changes of what is in it contradict this one.
    """

    make: Callable[[cst.CSTNode, NewNodes], cst.CSTNode | Sequence[cst.CSTNode]]
    discards: bool = False


@dataclass(frozen=True, slots=True)
class MoveNames(Change):
    """Imports some names of a `from` import, which is `node`, from another module instead."""

    names: tuple[ast.alias, ...]
    module: str


@dataclass(frozen=True, slots=True)
class AddImport(Change):
    """Adds an import at the top of the file, in sorted order.

    `node` is the top-level statement that needs it, or the tree if any statement may.

    Attributes:
        statement: the import as source code.
    """

    statement: str
