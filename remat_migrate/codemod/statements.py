"""Removes, reduces, inserts, and replaces statements; walks `ast` and LibCST in parallel."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import libcst as cst

from .lines import (
    PRAGMA,
    Lines,
    comment_lines,
    comments_in,
    own_lines,
    seam,
    trimmed,
    trimmed_start,
)
from .tree.suites import Marks, Verdicts

Statement = cst.SimpleStatementLine | cst.BaseCompoundStatement
Make = Callable[[Statement], Sequence[Statement]]
_OPPOSITES: dict[type[cst.BaseCompOp], type[cst.BaseCompOp]] = {
    cst.Equal: cst.NotEqual,
    cst.NotEqual: cst.Equal,
    cst.Is: cst.IsNot,
    cst.IsNot: cst.Is,
    cst.In: cst.NotIn,
    cst.NotIn: cst.In,
}


class Statements:
    """Writes what becomes of the statements of a file.

    Attributes:
        marks: what is removed or reduced.
        verdicts: what follows from that for each statement.
        before: statements to insert before others.
        instead: functions from a statement to its replacements, without the lines above it.
        gap: blank lines after a definition at the end of a block.
    """

    def __init__(self, marks: Marks, verdicts: Verdicts) -> None:
        self.marks = marks
        self.verdicts = verdicts
        self.before: dict[ast.stmt, list[Statement]] = {}
        self.instead: dict[ast.stmt, Make] = {}
        self.gap: Lines = []
        self._bodies: list[Sequence[ast.stmt]] = []  # of functions and classes

    # -- blocks

    def items(
        self, block: Sequence[ast.stmt], items: Sequence[Any]
    ) -> tuple[list[Statement], Lines]:
        """Return the statements of a block that are kept, and the lines after the last of them."""
        rest, new = list(block), list[Statement]()
        carried: Lines = []
        gone_above = False
        for item in items:
            size = len(item.body) if isinstance(item, cst.SimpleStatementLine) else 1
            own, rest = rest[:size], rest[size:]
            is_first = not new and block in self._bodies
            made, tail = self.statement(own, item, is_first=is_first)
            tail, self.gap = [*tail, *self.gap], []
            if made:
                lines = list(made[0].leading_lines)
                if carried or gone_above:
                    lines = seam(carried, lines, first=not new)
                new += [made[0].with_changes(leading_lines=lines), *made[1:]]
                carried, gone_above = tail, False
            else:
                carried = seam(carried, tail) if gone_above else [*carried, *tail]
                gone_above = True
        if carried and new and not gone_above and not trimmed(carried):
            self.gap = carried
        return new, trimmed(carried)

    def block(self, block: Sequence[ast.stmt], node: cst.BaseSuite) -> cst.BaseSuite | None:
        """Return a block without what is removed; None if nothing is left."""
        if self.verdicts.all_gone(block) is not None:
            return None
        if isinstance(node, cst.SimpleStatementSuite):
            if not any(self._is_changed(statement) for statement in block):
                return node.with_changes(body=self._small(block, node.body))
            node = _on_its_own_line(node)
        assert isinstance(node, cst.IndentedBlock)
        body, tail = self.items(block, node.body)
        return node.with_changes(body=body, footer=[*tail, *node.footer])

    def required(self, block: Sequence[ast.stmt], node: cst.BaseSuite) -> cst.BaseSuite:
        """Return the same for a block that must not be empty: `pass` if nothing is left."""
        made = self.block(block, node)
        if made is not None:
            return made
        if isinstance(node, cst.SimpleStatementSuite):
            return node.with_changes(body=[cst.Pass()])
        assert isinstance(node, cst.IndentedBlock)
        if any(isinstance(statement, ast.Pass) for statement in block):
            body, tail = self.items(block, node.body)
            return node.with_changes(body=body, footer=[*tail, *node.footer])
        lines = [line for item in node.body for line in comment_lines(item)]
        line = cst.SimpleStatementLine([cst.Pass()])
        return node.with_changes(body=[line], footer=[*lines, *node.footer])

    def _is_changed(self, statement: ast.stmt) -> bool:
        return statement in self.before or statement in self.instead

    def _small(
        self, block: Sequence[ast.stmt], nodes: Sequence[cst.BaseSmallStatement]
    ) -> list[cst.BaseSmallStatement]:
        left = [n for s, n in zip(block, nodes, strict=True) if self.verdicts.gone(s) is None]
        if left:
            left[-1] = left[-1].with_changes(semicolon=nodes[-1].semicolon)
        return left

    # -- statements

    def statement(
        self,
        own: Sequence[ast.stmt],
        node: Statement,
        *,
        is_first: bool = True,
        blank_lines: int = 1,
    ) -> tuple[list[Statement], Lines]:
        """Return the rest of a line or compound statement, and the lines after it or in its place.

        Args:
            own: the statements of the line, or the one that `node` is.
            node: the line or compound statement.
            is_first: whether it is the first of a function or class: no blank line is needed.
            blank_lines: the number of blank lines around a definition.
        """
        if any(self._is_changed(statement) for statement in own):
            made, tail = self._changed(own, node)
            if any(map(_is_definition, made)) and not _is_definition(node):
                gap = [cst.EmptyLine(indent=False)] * blank_lines
                after = gap if _is_definition(made[-1]) else []
                return _apart(made, gap, is_first=is_first), [*tail, *after]
            return made, tail
        if isinstance(node, cst.SimpleStatementLine):
            left = self._small(own, node.body)
            if left:
                return [node.with_changes(body=left)], []
            return [], self._remains(own[-1], node)
        (statement,) = own
        if self.verdicts.gone(statement) is not None:
            return [], self._remains(statement, node)
        reduced = self.verdicts.reduced(statement)
        if reduced is not None:
            return self._reduced(statement, node, reduced[0])
        return [self._compound(statement, node)], []

    def _changed(self, own: Sequence[ast.stmt], node: Statement) -> tuple[list[Statement], Lines]:
        """Return a statement with those inserted before it, or its replacements."""
        if len(own) > 1:
            assert isinstance(node, cst.SimpleStatementLine)
            parts = [self.statement([s], line) for s, line in zip(own, _lines(node), strict=True)]
            return [made for found, _ in parts for made in found], parts[-1][1]
        (statement,) = own
        lines = node.leading_lines
        bare = node.with_changes(leading_lines=[])
        tail: Lines = []
        if statement in self.instead:
            if not isinstance(bare, cst.SimpleStatementLine):
                bare = self._compound(statement, bare)
            made = list(self.instead[statement](bare))
            kept = {text for new in made for text in comments_in(new)}
            lines = [*lines, *own_lines(t for t in comments_in(bare) if t not in kept)]
        elif self.verdicts.gone(statement) is not None:
            made, tail = [], self._remains(statement, bare)
        elif isinstance(bare, cst.SimpleStatementLine):
            made = [bare]
        else:
            made = [self._compound(statement, bare)]
        new = [*self.before.get(statement, ()), *made]
        if new:
            new[0] = new[0].with_changes(leading_lines=[*lines, *new[0].leading_lines])
        return new, tail

    def _remains(self, statement: ast.stmt, node: Statement) -> Lines:
        """Return the lines that a removed statement leaves: those above it, and its comments."""
        lines = list(node.leading_lines)
        if statement in self.marks.suites:
            return lines
        return [*lines, *own_lines(comments_in(node.with_changes(leading_lines=[])))]

    def _reduced(
        self, statement: ast.stmt, node: Statement, suite: Sequence[ast.stmt]
    ) -> tuple[list[Statement], Lines]:
        block, header = _block_of(statement, node, suite)
        tail: Lines = []
        if isinstance(block, cst.If):
            made, tail = self.statement(suite, block)
        elif isinstance(block, cst.SimpleStatementSuite):
            small = self._small(suite, block.body)
            made = [cst.SimpleStatementLine(small, trailing_whitespace=block.trailing_whitespace)]
        else:
            made, tail = self.items(suite, block.body)
            tail = [*tail, *block.footer]
        comment = header.comment.value if header is not None and header.comment else ""
        kept = [comment] if comment and not PRAGMA.match(comment) else []
        above = [*node.leading_lines, *own_lines(kept)]
        if not made:
            return [], [*above, *tail]
        first = made[0]
        lines = [*above, *trimmed_start(first.leading_lines)]
        return [first.with_changes(leading_lines=lines), *made[1:]], tail

    def _compound(self, a: Any, c: Any) -> Any:
        """Return a compound statement that is kept, with its new blocks."""
        match a:
            case ast.If():
                return self._if(a, c)
            case ast.Match():
                return c.with_changes(cases=self._clauses(a.cases, c.cases))
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                self._bodies.append(a.body)
            case ast.Try() | ast.TryStar():
                c = c.with_changes(handlers=self._clauses(a.handlers, c.handlers))
        c = c.with_changes(body=self.required(a.body, c.body))
        c = self._part(getattr(a, "orelse", ()), c, "orelse")
        last = getattr(a, "finalbody", ())
        if last and not a.handlers:
            body = self.required(last, c.finalbody.body)
            return c.with_changes(finalbody=c.finalbody.with_changes(body=body))
        return self._part(last, c, "finalbody")

    def _clauses(self, clauses: Sequence[Any], nodes: Sequence[Any]) -> list[Any]:
        """Return the handlers or cases of a statement with their new blocks."""
        pairs = zip(clauses, nodes, strict=True)
        return [node.with_changes(body=self.required(a.body, node.body)) for a, node in pairs]

    def _part(self, block: Sequence[ast.stmt], c: Any, name: str) -> Any:
        """Return a statement with its new `else` or `finally`, which is removed if it is empty."""
        if not block:
            return c
        part = getattr(c, name)
        made = self.block(block, part.body)
        new = part.with_changes(body=made) if made is not None else None
        return c.with_changes(**{name: new})

    def _if(self, a: ast.If, c: cst.If) -> cst.If:
        is_gone = self.verdicts.all_gone(a.body) is not None
        if is_gone and isinstance(c.orelse, cst.Else) and isinstance(c.body, cst.IndentedBlock):
            # Only the `else` is left: it becomes the body, and the condition is negated.
            comments = [line for item in c.body.body for line in comment_lines(item)]
            block = self.required(a.orelse, c.orelse.body)
            if comments and isinstance(block, cst.IndentedBlock):
                first: Any = block.body[0]
                led = first.with_changes(leading_lines=[*comments, *first.leading_lines])
                block = block.with_changes(body=[led, *block.body[1:]])
            return c.with_changes(test=negated(c.test), body=block, orelse=None)
        return self._else(a, c.with_changes(body=self.required(a.body, c.body)))

    def _else(self, a: ast.If, c: cst.If) -> cst.If:
        if not isinstance(c.orelse, cst.If):
            last: cst.If = self._part(a.orelse, c, "orelse")
            return last
        (inner,) = a.orelse
        assert isinstance(inner, ast.If)
        if self.verdicts.gone(inner) is not None:
            return c.with_changes(orelse=None)
        reduced = self.verdicts.reduced(inner)
        if reduced is None:
            return c.with_changes(orelse=self._if(inner, c.orelse))
        block, _ = _block_of(inner, c.orelse, reduced[0])
        if isinstance(block, cst.If):
            chain = ast.If(a.test, a.body, [reduced[0][0]])
            return self._else(chain, c.with_changes(orelse=block))
        new = self.required(reduced[0], block)
        return c.with_changes(orelse=cst.Else(new, leading_lines=c.orelse.leading_lines))


def _is_definition(node: object) -> bool:
    return isinstance(node, cst.FunctionDef | cst.ClassDef)


def _apart(made: Sequence[Any], gap: Lines, *, is_first: bool) -> list[Statement]:
    """Statements with blank lines around the definitions among them."""
    new: list[Statement] = []
    for above, statement in itertools.pairwise([None, *made]):
        lines = list(statement.leading_lines)
        starts_block = is_first and above is None
        if _is_definition(above) or (_is_definition(statement) and not starts_block):
            blank = len(lines) - len(trimmed_start(lines))
            lines = [*gap[blank:], *lines]
        new.append(statement.with_changes(leading_lines=lines))
    return new


def _block_of(
    statement: Any, node: Any, suite: Sequence[ast.stmt]
) -> tuple[Any, cst.TrailingWhitespace | None]:
    """Return the block of one of a statement's suites, and the rest of the line above it."""
    if suite == getattr(statement, "body", None):
        block = node.body
    elif suite == getattr(statement, "orelse", None):
        block = node.orelse if isinstance(node.orelse, cst.If) else node.orelse.body
    elif suite == getattr(statement, "finalbody", None):
        block = node.finalbody.body
    else:
        index = next(i for i, h in enumerate(statement.handlers) if h.body == suite)
        block = node.handlers[index].body
    return block, getattr(block, "header", None)


def _on_its_own_line(suite: cst.SimpleStatementSuite) -> cst.IndentedBlock:
    line = cst.SimpleStatementLine(suite.body, trailing_whitespace=suite.trailing_whitespace)
    return cst.IndentedBlock([line])


def _lines(line: cst.SimpleStatementLine) -> list[cst.SimpleStatementLine]:
    """Return the statements of a line, each on a line of its own."""
    bare = [s.with_changes(semicolon=cst.MaybeSentinel.DEFAULT) for s in line.body]
    lines = [cst.SimpleStatementLine([statement]) for statement in bare]
    lines[0] = lines[0].with_changes(leading_lines=line.leading_lines)
    lines[-1] = lines[-1].with_changes(trailing_whitespace=line.trailing_whitespace)
    return lines


def negated(test: cst.BaseExpression) -> cst.BaseExpression:
    """Return a negated condition."""
    match test:
        case cst.Comparison(comparisons=[target]) if type(target.operator) in _OPPOSITES:
            operator = _OPPOSITES[type(target.operator)]()
            return test.with_changes(comparisons=[target.with_changes(operator=operator)])
        case cst.UnaryOperation(operator=cst.Not()):
            return test.expression
        case cst.BooleanOperation() | cst.IfExp() | cst.Lambda() | cst.NamedExpr() if not test.lpar:
            test = test.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    return cst.UnaryOperation(cst.Not(), test)
