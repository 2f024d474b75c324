"""Taking whole statements out of Python text: their lines, the blank lines around them.

Comments of a statement stay, on a line of their own; those that speak to tools about the code on
their line, and those in code that is never reached, go.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Sequence

from .layout import Layout, Token
from .pieces import Causes, Piece
from .suites import Marks, Verdicts

# Comments that speak to tools about the code on their line, and have no meaning without it.
PRAGMA = re.compile(
    r"#\s*(noqa|type:|pylint:|pragma:|fmt:|isort:|nosec|pyright:|mypy:|yapf:|ruff:|flake8)"
)


class LineCutter:
    """Takes statements out; `pieces` is the list that the cuts are added to."""

    def __init__(
        self, layout: Layout, marks: Marks, verdicts: Verdicts, pieces: list[Piece]
    ) -> None:
        self.layout = layout
        self.source = layout.source
        self.text = layout.source.text
        self.marks = marks
        self.verdicts = verdicts
        self.pieces = pieces

    def put(self, start: int, end: int, text: str, causes: Causes) -> None:
        """Replace a range."""
        if start < end or text:
            self.pieces.append((start, end, text, causes))

    def start(self, statement: ast.stmt) -> int:
        """Where a statement starts, its decorators counted."""
        decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
        if decorators:
            return at_sign(self.layout, decorators[0])
        return self.source.span(statement).start

    def run(self, run: Sequence[ast.stmt]) -> None:
        """Take neighbouring statements out, and of the blank lines around them as many."""
        if not run:
            return
        by_line: list[list[ast.stmt]] = []
        for statement in run:
            if by_line and self._shares_line(by_line[-1][-1], statement):
                by_line[-1].append(statement)
            else:
                by_line.append([statement])
        whole = [self._logical_line(line) for line in by_line]
        if all(whole):
            self._blank_lines(run)

    def lines(
        self, start: int, end: int, causes: Causes, statement: ast.stmt | None = None
    ) -> bool:
        """Take whole lines out but for their comments; whether nothing is left of them."""
        line, indent = self.layout.line_start(start), self.layout.indent(start)
        if isinstance(statement, ast.If | ast.For | ast.While | ast.With | ast.Try):
            end = self.comments_below(end, len(indent))
        below = self.layout.next_line(end)
        dead = statement is not None and statement in self.marks.dead
        comments = [] if dead else self._lasting(line, below, statement)
        at = line
        for comment in comments:
            first = self.layout.line_start(comment.start)
            keep = first + len(indent) if self.text.startswith(indent, first) else first
            self.put(at, max(at, first), "", causes)
            self.put(keep, comment.start, "", causes)
            at = self.layout.next_line(comment.end)
        self.put(at, below, "", causes)
        return not comments

    def comments_below(self, end: int, indent: int) -> int:
        """The end of the comments that follow a block and stand deeper than its statement."""
        at = self.layout.next_line(end)
        found = end
        while at < len(self.text):
            line = self.text[at : self.layout.line_end(at)]
            stripped = line.strip()
            if stripped and not (stripped[0] == "#" and len(self.layout.indent(at)) > indent):
                break
            if stripped:
                found = self.layout.line_end(at)
            at = self.layout.next_line(at)
        return found

    def is_apart(self, first: ast.stmt, second: ast.stmt) -> bool:
        """Whether a comment stands between two statements that follow each other."""
        start = self.layout.next_line(self.source.span(first).end)
        return bool(self.text[start : self.start(second)].strip())

    def _logical_line(self, statements: Sequence[ast.stmt]) -> bool:
        """Take out neighbours of one line; whether nothing is left of the line."""
        start, end = self.start(statements[0]), self.source.span(statements[-1]).end
        behind = self.layout.after(end)
        before = self.layout.before(start)
        causes = frozenset[int]().union(*(self.verdicts.gone(s) or () for s in statements))
        semicolon = behind if behind is not None and behind.text == ";" else None
        follows = self.layout.after(semicolon.end) if semicolon else None
        if follows is not None and follows.start < self.layout.line_end(end):
            self.put(start, follows.start, "", causes)
            return False
        if before is not None and before.text == ";" and before.end > self.layout.line_start(start):
            previous = self.layout.before(before.start)
            assert previous is not None
            self.put(previous.end, semicolon.end if semicolon else end, "", causes)
            return False
        return self.lines(start, semicolon.end if semicolon else end, causes, statements[-1])

    def _shares_line(self, first: ast.stmt, second: ast.stmt) -> bool:
        end = self.source.span(first).end
        return self.start(second) < self.layout.line_end(end)

    def _lasting(self, start: int, end: int, statement: ast.stmt | None) -> list[Token]:
        """The comments in lines that go, but those for tools and those of a branch not taken."""
        found = [c for c in self.layout.comments_in(start, end) if not PRAGMA.match(c.text)]
        reduced = self.marks.suites.get(statement) if statement is not None else None
        if reduced is None:
            return found
        suite = reduced[0]
        if not suite:
            return []
        low, high = self.source.span(suite[0]).start, self.source.span(suite[-1]).end
        return [c for c in found if low <= c.start < self.layout.next_line(high)]

    def _blank_lines(self, run: Sequence[ast.stmt]) -> None:
        """Of the blank lines before and after what goes, keep as many as the longer stretch has."""
        start = self.layout.line_start(self.start(run[0]))
        above = self._blanks(start, -1)
        below = self._blanks(self.layout.next_line(self.source.span(run[-1]).end), 1)
        between = [
            line
            for first, second in itertools.pairwise(run)
            for line in self._blanks(self.layout.next_line(self.source.span(first).end), 1)
            if line < self.start(second)
        ]
        first_line = start - len(above) == 0 if above == [] else above[-1] == 0
        before = self.layout.before(start)
        opens = first_line or (before is not None and before.text == ":" and not above)
        last_line = below[-1:] and self.layout.next_line(below[-1]) >= len(self.text)
        ends = last_line or self.layout.next_line(self.source.span(run[-1]).end) >= len(self.text)
        most = 0 if opens or ends else max(len(above), len(below), bool(between))
        lines = [*above, *between, *below]
        causes = frozenset[int]().union(*(self.verdicts.gone(s) or () for s in run))
        for line in lines[most:]:
            self.put(line, self.layout.next_line(line), "", causes)

    def _blanks(self, line: int, step: int) -> list[int]:
        """The starts of the blank lines that follow each other from `line` on, up or down."""
        found: list[int] = []
        at = line
        while True:
            if step < 0:
                if at == 0:
                    return found
                at = self.layout.line_start(at - 1)
            if at >= len(self.text) or self.text[at : self.layout.line_end(at)].strip():
                return found
            if self.layout.in_string(at):
                return found
            found.append(at)
            if step > 0:
                at = self.layout.next_line(at)


def at_sign(layout: Layout, decorator: ast.expr) -> int:
    """Where the `@` of a decorator stands."""
    token = layout.before(layout.source.span(decorator).start)
    while token is not None and token.text == "(":
        token = layout.before(token.start)
    assert token is not None
    return token.start
