"""Changes: what a fix does to a syntax tree. No character positions.

A Change names a node of the `ast` that the analysis works on, and says what becomes of it. The
writer finds the LibCST node and applies all Changes of a file in one pass, inner nodes first. This
module does not import LibCST: rules and codemods say what they want, and only a fix that somebody
asks for is written.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from ..source import SourceFile, Span

if TYPE_CHECKING:
    import libcst as cst

    from ..source.suites import Marks
    from .writer import Writing


class File(Protocol):
    """A parsed file: a Module of the analysis is one."""

    @property
    def source(self) -> SourceFile:
        """Its text."""

    @property
    def tree(self) -> ast.Module:
        """Its tree; the nodes of Changes are nodes of this one."""


@dataclass(frozen=True, slots=True)
class Code:
    """New code: text in which `{name}` stands for code of the same file as it is after the fix.

    Attributes:
        text: the source code of an expression or a statement; names in braces are those of `parts`.
        parts: the nodes that are put in, by name.
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
    """A statement, argument, parameter, element, dictionary entry, decorator or imported name is
    removed.

    Statements and imports that are left without a use are removed as well; `is_used_elsewhere` says
    which module-level names other files use. Comments of the node are kept, but for those that
    `label` matches.
    """

    is_used_elsewhere: Callable[[str], bool] = field(default=lambda name: True)
    label: str = ""


@dataclass(frozen=True, slots=True)
class Replace(Change):
    """An expression is replaced with new code.

    With `is_used_elsewhere`, names that only the old code used are removed as by `Remove`.
    """

    code: Code
    is_used_elsewhere: Callable[[str], bool] | None = None


@dataclass(frozen=True, slots=True)
class Keep(Change):
    """An expression is reduced to one of its parts; imports as in `Remove`."""

    part: ast.expr
    is_used_elsewhere: Callable[[str], bool] = field(default=lambda name: True)


@dataclass(frozen=True, slots=True)
class KeepSuite(Change):
    """A statement is reduced to one of its suites, `()` for none; imports as in `Remove`."""

    suite: tuple[ast.stmt, ...]
    is_used_elsewhere: Callable[[str], bool] = field(default=lambda name: True)


@dataclass(frozen=True, slots=True)
class Reduce(Change):
    """What `plan_removals` found: removals with their consequences; `node` is the whole tree."""

    marks: Marks


@dataclass(frozen=True, slots=True)
class Rename(Change):
    """An attribute, a keyword, a string or an imported module becomes another name."""

    name: str


@dataclass(frozen=True, slots=True)
class SetArgument(Change):
    """A call gets a keyword argument, or another value for the one it has.

    Attributes:
        name: the keyword.
        code: its value.
        instead_of: an argument whose place it takes.
    """

    name: str
    code: Code
    instead_of: ast.keyword | ast.expr | None = None


@dataclass(frozen=True, slots=True)
class InsertArgument(Change):
    """A call gets another first argument."""

    code: Code


@dataclass(frozen=True, slots=True)
class NameArgument(Change):
    """A positional argument, which `node` is, of a call is passed by keyword."""

    name: str


@dataclass(frozen=True, slots=True)
class Spread(Change):
    """The items of an argument are passed one by one: `*argument`, or those of a literal."""


@dataclass(frozen=True, slots=True)
class ArrangeArguments(Change):
    """The arguments of a call are put in another order.

    Attributes:
        arguments: the new ones in order: arguments of the call, and new code. A keyword among
            `by_position` loses its name.
        by_position: see there.
    """

    arguments: tuple[ast.expr | ast.keyword | Code, ...]
    by_position: frozenset[ast.keyword] = frozenset()


@dataclass(frozen=True, slots=True)
class Decorate(Change):
    """A function or class gets a decorator above those it has."""

    code: Code


@dataclass(frozen=True, slots=True)
class Insert(Change):
    """Statements are inserted in front of a statement, or behind it.

    Attributes:
        statements: the new ones, each as source code without indentation.
        behind: whether they are inserted behind it.
    """

    statements: tuple[Code, ...]
    behind: bool = False


@dataclass(frozen=True, slots=True)
class ReplaceStatement(Change):
    """A statement is replaced with others, each given as source code without indentation."""

    statements: tuple[Code, ...]


@dataclass(frozen=True, slots=True)
class Nest(Change):
    """The body of a function becomes a checkpointed function in it.

    Attributes:
        name: the name of the inner function.
        closed: the parameters that it closes over.
        handed: those of them that the body assigns, passed on as defaults of keyword parameters.
        decorator: the checkpoint, as it decorates the inner function.
        removed: the index of the decorator that is replaced.
        moved: the indices of the decorators that move to the inner function.
        super_call: what `super()` becomes; "" if the body does not call it.
    """

    name: str
    closed: frozenset[str]
    handed: tuple[str, ...]
    decorator: str
    removed: int
    moved: frozenset[int]
    super_call: str = ""


@dataclass(frozen=True, slots=True)
class Indent(Change):
    """A statement becomes the body of a new one.

    Attributes:
        header: the new statement as source code, with `pass` for a body: `with context(): pass`.
    """

    header: Code


@dataclass(frozen=True, slots=True)
class Require(Change):
    """An imported name is needed, so that no other fix may remove it with this one."""


@dataclass(frozen=True, slots=True)
class SetComment(Change):
    """A comment becomes another, or is removed; the file may be of any format.

    Attributes:
        comment: its place; an empty one gets a comment that was not there.
        text: the new comment, empty to remove it.
    """

    comment: Span
    text: str

    @classmethod
    def of(cls, source: SourceFile, comment: Span, text: str) -> SetComment:
        """The change of a comment in any file."""
        file = _Text(source)
        return cls(file, file.tree, comment, text)


@dataclass(frozen=True, slots=True)
class _Text:
    """A file of which the code does not matter."""

    source: SourceFile
    tree: ast.Module = field(default=ast.Module([], []))


@dataclass(frozen=True, slots=True)
class Rewrite(Change):
    """Anything else: a function from the LibCST node, as inner Changes left it, to the new one.

    The function gets a `Writing`, which knows the new nodes of the parts. For a statement it
    returns a list of statements.
    """

    make: Callable[[cst.CSTNode, Writing], cst.CSTNode | Sequence[cst.CSTNode]]


@dataclass(frozen=True, slots=True)
class MoveNames(Change):
    """Some names of a `from` import, which `node` is, are imported from another module instead."""

    names: tuple[ast.alias, ...]
    module: str


@dataclass(frozen=True, slots=True)
class ImportName(Change):
    """A `from` import, which `node` is, takes one more name, sorted in."""

    name: str


@dataclass(frozen=True, slots=True)
class AddImport(Change):
    """An import is added at the top of the file, sorted in.

    `node` is the top-level statement that needs it, or the tree if any place at the top will do.

    Attributes:
        statement: the import as source code.
    """

    statement: str
