"""Changes one top-level statement in one pass: inner nodes first, then what holds them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import libcst as cst

from .expressions import has_comma, without_items
from .lines import Lines, comments_in, own_lines, seam, trimmed, trimmed_start

Statement = cst.SimpleStatementLine | cst.BaseCompoundStatement
Operation = Callable[[Any], Any]
Make = Callable[[Statement], Sequence[Statement]]

_LISTS = ("args", "elements", "names", "decorators")


class Transformer(cst.CSTTransformer):
    """Applies Changes to nodes, inner nodes first.

    Attributes:
        operations: the functions applied to a node, in order, each to the result of the one before.
        gone: what is removed: statements, arguments, elements, decorators, parameters, names.
        replaced: nodes that new code replaces.
        before: what makes the statements inserted before others.
        instead: functions from a statement to its replacements, without the lines above it.
        now: the new node of each.
        inner: the new node of each before its own operations.
    """

    def __init__(self, parents: Mapping[cst.CSTNode, cst.CSTNode]) -> None:
        """`parents` maps the nodes of the statement to those that hold them."""
        super().__init__()
        self.parents = parents
        self.operations: dict[cst.CSTNode, list[Operation]] = {}
        self.gone: set[cst.CSTNode] = set()
        self.replaced: set[cst.CSTNode] = set()
        self.before: dict[cst.CSTNode, list[Callable[[], Statement]]] = {}
        self.instead: dict[cst.CSTNode, Make] = {}
        self.now: dict[cst.CSTNode, cst.CSTNode] = {}
        self.inner: dict[cst.CSTNode, cst.CSTNode] = {}
        self._comments: list[str] = []  # to be moved above the statement

    @cached_property
    def _holders(self) -> set[cst.CSTNode]:
        """The nodes that are changed, and those that hold them."""
        found: set[cst.CSTNode] = set()
        for node in itertools.chain(self.operations, self.gone, self.before, self.instead):
            above: cst.CSTNode | None = node
            while above is not None and above not in found:
                found.add(above)
                above = self.parents.get(above)
        return found

    def on_visit(self, node: cst.CSTNode) -> bool:
        """Pass over code without changes."""
        return node in self._holders

    def on_leave(self, original: Any, updated: Any) -> Any:
        """Change a node whose children are already changed."""
        if original not in self._holders:
            return updated
        match original:
            case cst.Parameters():
                updated = self._parameters(original, updated)
            case cst.IndentedBlock():
                updated = self._block(original, updated)
            case cst.SimpleStatementSuite():
                updated = self._suite(original, updated)
        for name in _LISTS:
            items = getattr(original, name, None)
            if isinstance(items, Sequence) and any(item in self.gone for item in items):
                updated = without_items(updated, name, [item in self.gone for item in items])
        if self._comments and isinstance(updated, Statement):
            lines = [*updated.leading_lines, *own_lines(self._comments)]
            updated = updated.with_changes(leading_lines=lines)
            self._comments = []
        self.inner[original] = updated
        for operation in self.operations.get(original, ()):
            updated = operation(updated)
        self.now[original] = updated
        return updated

    # -- expressions

    def kept_comments(self, old: cst.CSTNode, new: cst.CSTNode) -> cst.CSTNode:
        """New code; comments that only the old code has are moved above the statement."""
        kept = comments_in(new)
        self._comments += [text for text in comments_in(old) if text not in kept]
        return new

    def _parameters(self, original: cst.Parameters, updated: cst.Parameters) -> cst.Parameters:
        """Parameters without those that are removed."""
        fields: dict[str, Any] = {}
        for name in ("posonly_params", "params", "kwonly_params"):
            items, new = getattr(original, name), getattr(updated, name)
            dropped = [item in self.gone for item in items]
            if not any(dropped):
                continue
            left = list(getattr(without_items(updated, name, dropped), name))
            if dropped[-1] and left and not has_comma(items[-1]):
                space = new[-1].whitespace_after_param
                left[-1] = left[-1].with_changes(whitespace_after_param=space)
            fields[name] = left
        if fields.get("kwonly_params") == [] and isinstance(updated.star_arg, cst.ParamStar):
            fields["star_arg"] = cst.MaybeSentinel.DEFAULT
        return updated.with_changes(**fields)

    # -- blocks

    def _block(self, original: cst.IndentedBlock, updated: cst.IndentedBlock) -> cst.IndentedBlock:
        """Return a block without what is removed; `pass` if nothing is left."""
        in_definition = isinstance(self.parents[original], cst.FunctionDef | cst.ClassDef)
        made = list[Statement]()
        tail: Lines | None = None  # what the statements above leave, if they changed
        for old, new in zip(original.body, updated.body, strict=True):
            own = old.body if isinstance(old, cst.SimpleStatementLine) else [old]
            found, below = self.statement(own, new, is_first=in_definition and not made)
            if not found:
                tail = seam(tail or [], below)
                continue
            lines = list(found[0].leading_lines)
            if tail is not None:
                lines = seam(tail, lines, first=not made)
            made += [found[0].with_changes(leading_lines=lines), *found[1:]]
            tail = below or None
        made = made or [cst.SimpleStatementLine([cst.Pass()])]
        return updated.with_changes(body=made, footer=[*trimmed(tail or []), *updated.footer])

    def _suite(
        self, original: cst.SimpleStatementSuite, updated: cst.SimpleStatementSuite
    ) -> cst.BaseSuite:
        """Return the same for a block behind a colon; it gets its own lines if it grows."""
        if not any(node in self.before or node in self.instead for node in original.body):
            left = self._left(original.body, updated.body)
            return updated.with_changes(body=left or [cst.Pass()])
        end = updated.trailing_whitespace
        line = cst.SimpleStatementLine(updated.body, trailing_whitespace=end)
        made, tail = self.statement(original.body, line)
        return cst.IndentedBlock(made, footer=trimmed(tail))

    def _is_gone(self, node: cst.CSTNode) -> bool:
        names = node.names if isinstance(node, cst.Import | cst.ImportFrom) else ()
        return node in self.gone or (
            isinstance(names, Sequence) and bool(names) and all(name in self.gone for name in names)
        )

    def _left(
        self, original: Sequence[cst.CSTNode], updated: Sequence[cst.BaseSmallStatement]
    ) -> list[cst.BaseSmallStatement]:
        """Return the statements of a line that are kept."""
        left = [n for o, n in zip(original, updated, strict=True) if not self._is_gone(o)]
        if left:
            left[-1] = left[-1].with_changes(semicolon=updated[-1].semicolon)
        return left

    def statement(
        self,
        own: Sequence[cst.CSTNode],
        updated: Any,
        *,
        is_first: bool = True,
        blank_lines: int = 1,
    ) -> tuple[list[Statement], Lines]:
        """Return what replaces a line or compound statement: what is left of it, and the new lines.

        Args:
            own: the old statements of the line, or the compound statement.
            updated: the line or compound statement with its parts changed.
            is_first: whether it is the first of a function or class: no blank line is needed.
            blank_lines: the number of blank lines around a definition.
        """
        if any(node in self.before or node in self.instead for node in own):
            made, tail = self._changed(own, updated)
            is_definition = _is_definition(updated)
            if any(map(_is_definition, made[:-1] if is_definition else made)):
                gap = [cst.EmptyLine(indent=False)] * blank_lines
                after = gap if _is_definition(made[-1]) and not is_definition else []
                return _apart(made, gap, is_first=is_first), [*tail, *after]
            return made, tail
        if isinstance(updated, cst.SimpleStatementLine):
            if left := self._left(own, updated.body):
                return [updated.with_changes(body=left)], []
        elif not self._is_gone(own[0]):
            return [updated], []
        comments = comments_in(updated.with_changes(leading_lines=[]))
        return [], [*updated.leading_lines, *own_lines(comments)]

    def _changed(self, own: Sequence[cst.CSTNode], updated: Any) -> tuple[list[Statement], Lines]:
        """Return a statement with those inserted before it, or its replacements."""
        if len(own) > 1:
            parts = [self.statement([s], x) for s, x in zip(own, _lines(updated), strict=True)]
            return [made for found, _ in parts for made in found], parts[-1][1]
        (node,) = own
        lines, bare = updated.leading_lines, updated.with_changes(leading_lines=[])
        made, tail = list[Statement]([bare]), Lines()
        if node in self.instead:
            made = list(self.instead[node](bare))
            kept = {text for new in made for text in comments_in(new)}
            lines = [*lines, *own_lines(t for t in comments_in(bare) if t not in kept)]
        elif self._is_gone(node):
            made, tail = [], own_lines(comments_in(bare))
        made = [*(make() for make in self.before.get(node, ())), *made]
        if made:
            made[0] = made[0].with_changes(leading_lines=[*lines, *made[0].leading_lines])
        return made, tail


def _is_definition(node: object) -> bool:
    return isinstance(node, cst.FunctionDef | cst.ClassDef)


def _apart(made: Iterable[Any], gap: Lines, *, is_first: bool) -> list[Statement]:
    """Statements with blank lines around the definitions among them."""
    new: list[Statement] = []
    for above, statement in itertools.pairwise([None, *made]):
        assert statement is not None
        lines = list(statement.leading_lines)
        starts_block = is_first and above is None
        if _is_definition(above) or (_is_definition(statement) and not starts_block):
            blank = len(lines) - len(trimmed_start(lines))
            lines = [*gap[blank:], *lines]
        new.append(statement.with_changes(leading_lines=lines))
    return new


def _lines(line: cst.SimpleStatementLine) -> list[cst.SimpleStatementLine]:
    """Return the statements of a line, each on a line of its own."""
    bare = [s.with_changes(semicolon=cst.MaybeSentinel.DEFAULT) for s in line.body]
    lines = [cst.SimpleStatementLine([statement]) for statement in bare]
    lines[0] = lines[0].with_changes(leading_lines=line.leading_lines)
    lines[-1] = lines[-1].with_changes(trailing_whitespace=line.trailing_whitespace)
    return lines
