"""The pieces of text that go, are put in their place, or move to the left."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Mapping, Sequence

from .items import drop_items, list_of, without_comments
from .layout import Layout, Token
from .pieces import Causes, Piece
from .suites import Marks, TryNode, Verdicts
from .text import Span

# Comments that speak to tools about the code on their line, and have no meaning without it.
_PRAGMA = re.compile(
    r"#\s*(noqa|type:|pylint:|pragma:|fmt:|isort:|nosec|pyright:|mypy:|yapf:|ruff:|flake8)"
)
_ATOMS = ast.Name | ast.Constant | ast.Attribute | ast.Subscript | ast.Call


class Writer:
    """Writes the marks of a tree as pieces of text: `(start, end, text in its place, causes)`."""

    def __init__(
        self,
        layout: Layout,
        tree: ast.Module,
        parents: Mapping[ast.AST, ast.AST],
        marks: Marks,
        verdicts: Verdicts,
    ) -> None:
        self.layout = layout
        self.source = layout.source
        self.text = layout.source.text
        self.tree = tree
        self.parents = parents
        self.marks = marks
        self.verdicts = verdicts
        self.pieces: list[Piece] = []

    def write(self) -> list[Piece]:
        """All pieces, in no order; some may lie within others."""
        self._suite(self.tree.body, required=False)
        self._items()
        for node, (text, causes) in self.marks.replaced.items():
            self._put(*self.source.span(node), text, causes)
        for whole, (part, causes) in self.marks.kept.items():
            self._keep_part(whole, part, causes)
        return self.pieces

    def _put(self, start: int, end: int, text: str, causes: Causes) -> None:
        if start < end or text:
            self.pieces.append((start, end, text, causes))

    # -- expressions and lists

    def _keep_part(self, whole: ast.expr, part: ast.expr, causes: Causes) -> None:
        outer = self.source.span(whole)
        inner = self.layout.grouped(part, outer)
        if isinstance(part, _ATOMS):
            outer = self._grouping(whole, outer)
        for low, high in ((outer.start, inner.start), (inner.end, outer.end)):
            for start, end, text in without_comments(self.layout, low, high):
                self._put(start, end, text, causes)

    def _grouping(self, node: ast.expr, span: Span) -> Span:
        """`span` with the parentheses that only group it: not those of a call, not over lines."""
        left, right = self.layout.before(span.start), self.layout.after(span.end)
        if left is None or right is None or (left.text, right.text) != ("(", ")"):
            return span
        before = self.layout.before(left.start)
        same_line = "\n" not in self.text[left.start : right.end]
        if same_line and before is not None and before.text in ("=", "(", "[", ",", ":", "=="):
            return Span(left.start, right.end)
        return span

    def _items(self) -> None:
        done: set[ast.AST] = set()
        for node, causes in self.marks.removed.items():
            above = self.parents.get(node)
            if above is None or isinstance(node, ast.stmt) or above in done:
                continue
            if isinstance(above, ast.comprehension):
                self._comprehension_test(node, causes)
            elif not isinstance(node, ast.withitem) and node in getattr(
                above, "decorator_list", ()
            ):
                self._decorator(node, causes)
            else:
                done.add(above)
                self._list(above, node)

    def _comprehension_test(self, node: ast.AST, causes: Causes) -> None:
        assert isinstance(node, ast.expr)
        span = self.layout.grouped(node, Span(0, len(self.text)))
        word = self.layout.before(span.start)
        assert word is not None
        start = word.start
        while self.text[start - 1] in " \t":
            start -= 1
        self._put(start, span.end, "", causes)

    def _decorator(self, node: ast.AST, causes: Causes) -> None:
        assert isinstance(node, ast.expr)
        at = self._at_sign(node)
        end = self.layout.grouped(node, Span(at, len(self.text))).end
        self._lines(at, end, causes)

    def _at_sign(self, decorator: ast.expr) -> int:
        token = self.layout.before(self.source.span(decorator).start)
        while token is not None and token.text == "(":
            token = self.layout.before(token.start)
        assert token is not None
        return token.start

    def _list(self, holder: ast.AST, node: ast.AST) -> None:
        found = list_of(node, self.layout, self.parents.get)
        assert found is not None
        members, spans, inside, bracketed = found
        dropped = [member in self.marks.removed for member in members]
        everything = frozenset[int]().union(*(self.marks.removed.get(m, ()) for m in members))
        if all(dropped) and isinstance(holder, ast.Set | ast.Tuple | ast.With | ast.AsyncWith):
            if isinstance(holder, ast.Set | ast.Tuple):
                empty = "set()" if isinstance(holder, ast.Set) else "()"
                self._put(*self.source.span(holder), empty, everything)
            return
        if all(dropped) and isinstance(holder, ast.Import | ast.ImportFrom):
            return
        for cuts, run in drop_items(
            self.layout,
            spans,
            dropped,
            inside,
            bracketed=bracketed,
            operators=isinstance(holder, ast.BoolOp),
            one_needs_comma=isinstance(holder, ast.Tuple),
        ):
            causes = frozenset[int]().union(*(self.marks.removed.get(members[i], ()) for i in run))
            for start, end, text in cuts:
                self._put(start, end, text, causes)

    # -- suites

    def _suite(self, suite: Sequence[ast.stmt], *, required: bool) -> None:
        """Write the statements of a suite; an emptied one that must not be gets `pass`."""
        if required and (causes := self.verdicts.all_gone(suite)) is not None:
            self._pass(suite, causes)
            return
        run: list[ast.stmt] = []
        for statement in suite:
            if self.verdicts.gone(statement) is not None:
                if run and self._apart(run[-1], statement):
                    self._run(run)
                    run = []
                run.append(statement)
                continue
            self._run(run)
            run = []
            self._statement(statement)
        self._run(run)

    def _pass(self, suite: Sequence[ast.stmt], causes: Causes) -> None:
        start, end = self._start(suite[0]), self.source.span(suite[-1]).end
        if self.text[self.layout.line_start(start) : start].strip():
            self._put(start, end, "pass", causes)  # on the line of its `if`
            return
        line = self.layout.line_start(start)
        below = self.layout.next_line(end)
        ending = self.source.newline if below > self.layout.line_end(end) else ""
        self._put(line, line, f"{self.layout.indent(start)}pass{ending}", causes)
        for statement in suite:
            self._lines(self._start(statement), self.source.span(statement).end, causes)

    def _apart(self, first: ast.stmt, second: ast.stmt) -> bool:
        start = self.layout.next_line(self.source.span(first).end)
        return bool(self.text[start : self._start(second)].strip())

    def _run(self, run: Sequence[ast.stmt]) -> None:
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

    def _logical_line(self, statements: Sequence[ast.stmt]) -> bool:
        """Take out neighbours of one line; whether nothing is left of the line."""
        start, end = self._start(statements[0]), self.source.span(statements[-1]).end
        behind = self.layout.after(end)
        before = self.layout.before(start)
        causes = frozenset[int]().union(*(self.verdicts.gone(s) or () for s in statements))
        semicolon = behind if behind is not None and behind.text == ";" else None
        follows = self.layout.after(semicolon.end) if semicolon else None
        if follows is not None and follows.start < self.layout.line_end(end):
            self._put(start, follows.start, "", causes)
            return False
        if before is not None and before.text == ";" and before.end > self.layout.line_start(start):
            previous = self.layout.before(before.start)
            assert previous is not None
            self._put(previous.end, semicolon.end if semicolon else end, "", causes)
            return False
        return self._lines(start, semicolon.end if semicolon else end, causes, statements[-1])

    def _shares_line(self, first: ast.stmt, second: ast.stmt) -> bool:
        end = self.source.span(first).end
        return self._start(second) < self.layout.line_end(end)

    def _lines(
        self, start: int, end: int, causes: Causes, statement: ast.stmt | None = None
    ) -> bool:
        """Take whole lines out but for their comments; whether nothing is left of them."""
        line, indent = self.layout.line_start(start), self.layout.indent(start)
        if isinstance(statement, ast.If | ast.For | ast.While | ast.With | ast.Try):
            end = self._comments_below(end, len(indent))
        below = self.layout.next_line(end)
        dead = statement is not None and statement in self.marks.dead
        comments = [] if dead else self._lasting(line, below, statement)
        at = line
        for comment in comments:
            first = self.layout.line_start(comment.start)
            keep = first + len(indent) if self.text.startswith(indent, first) else first
            self._put(at, max(at, first), "", causes)
            self._put(keep, comment.start, "", causes)
            at = self.layout.next_line(comment.end)
        self._put(at, below, "", causes)
        return not comments

    def _lasting(self, start: int, end: int, statement: ast.stmt | None) -> list[Token]:
        """The comments in lines that go, but those for tools and those of a branch not taken."""
        found = [c for c in self.layout.comments_in(start, end) if not _PRAGMA.match(c.text)]
        reduced = self.marks.suites.get(statement) if statement is not None else None
        if reduced is None:
            return found
        suite = reduced[0]
        if not suite:
            return []
        low, high = self.source.span(suite[0]).start, self.source.span(suite[-1]).end
        return [c for c in found if low <= c.start < self.layout.next_line(high)]

    def _comments_below(self, end: int, indent: int) -> int:
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

    def _blank_lines(self, run: Sequence[ast.stmt]) -> None:
        """Of the blank lines before and after what goes, keep as many as the longer stretch has."""
        start = self.layout.line_start(self._start(run[0]))
        above = self._blanks(start, -1)
        below = self._blanks(self.layout.next_line(self.source.span(run[-1]).end), 1)
        between = [
            line
            for first, second in itertools.pairwise(run)
            for line in self._blanks(self.layout.next_line(self.source.span(first).end), 1)
            if line < self._start(second)
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
            self._put(line, self.layout.next_line(line), "", causes)

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

    def _start(self, statement: ast.stmt) -> int:
        """Where a statement starts, its decorators counted."""
        decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
        if decorators:
            return self._at_sign(decorators[0])
        return self.source.span(statement).start

    # -- compound statements

    def _statement(self, statement: ast.stmt) -> None:
        """Write what changes inside a statement that stays, as a whole or in part."""
        reduced = self.verdicts.reduced(statement)
        if reduced is not None:
            self._splice(statement, *reduced, self.source.span(statement).start)
            return
        match statement:
            case ast.If():
                self._if(statement)
            case ast.For() | ast.AsyncFor() | ast.While():
                self._suite(statement.body, required=True)
                self._last_part(statement, statement.orelse, statement.body)
            case ast.With() | ast.AsyncWith() | ast.FunctionDef() | ast.AsyncFunctionDef():
                self._suite(statement.body, required=True)
            case ast.ClassDef():
                self._suite(statement.body, required=True)
            case ast.Try() | ast.TryStar():
                self._try(statement)
            case ast.Match():
                for case in statement.cases:
                    self._suite(case.body, required=True)

    def _if(self, statement: ast.If) -> None:
        body = self.verdicts.all_gone(statement.body)
        orelse = statement.orelse
        word = self._word_after(statement.body)
        if body is not None and orelse and word is not None and word.text == "else":
            colon = self.layout.after(word.end)
            assert colon is not None
            if self._is_block(statement.body) and self._is_block(orelse):
                self._negate(statement.test, body)
                self._suite(statement.body, required=False)
                self._lines(word.start, colon.end, body)
                self._suite(orelse, required=True)
                return
        self._suite(statement.body, required=True)
        self._last_part(statement, orelse, statement.body)

    def _negate(self, test: ast.expr, causes: Causes) -> None:
        start, end = self.source.span(test)
        match test:
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                self._put(start, self.layout.grouped(operand, Span(start, end)).start, "", causes)
            case ast.BoolOp() | ast.IfExp() | ast.Lambda() | ast.NamedExpr():
                self._put(start, start, "not (", causes)
                self._put(end, end, ")", causes)
            case _:
                self._put(start, start, "not ", causes)

    def _last_part(
        self, statement: ast.stmt, part: Sequence[ast.stmt], before: Sequence[ast.stmt]
    ) -> None:
        """Write an `else`, `elif` or `finally`; it goes whole if nothing is left of it."""
        causes = self.verdicts.all_gone(part)
        if causes is None:
            self._suite(part, required=False)
            return
        word = self._word_after(before)
        assert word is not None
        self._lines(word.start, self.source.span(part[-1]).end, causes)

    def _try(self, statement: TryNode) -> None:
        self._suite(statement.body, required=True)
        before: Sequence[ast.stmt] = statement.body
        for handler in statement.handlers:
            self._suite(handler.body, required=True)
            before = handler.body
        if statement.orelse:
            self._last_part(statement, statement.orelse, before)
            before = statement.orelse
        if statement.finalbody and statement.handlers:
            self._last_part(statement, statement.finalbody, before)
        else:
            self._suite(statement.finalbody, required=True)

    def _word_after(self, suite: Sequence[ast.stmt]) -> Token | None:
        """The token after a suite: `else`, `except`, or whatever follows the statement."""
        token = self.layout.after(self.source.span(suite[-1]).end)
        while token is not None and token.text == ";":
            token = self.layout.after(token.end)
        return token

    def _is_block(self, suite: Sequence[ast.stmt]) -> bool:
        """Whether a suite stands on lines of its own."""
        start = self._start(suite[0])
        return not self.text[self.layout.line_start(start) : start].strip()

    # -- one suite in the place of its statement

    def _splice(
        self, statement: ast.stmt, suite: Sequence[ast.stmt], causes: Causes, origin: int
    ) -> None:
        """Leave of `statement`, which starts at `origin`, only `suite`."""
        is_elif = self.text.startswith("elif", origin)
        inner = suite[0]
        start, end = self.source.span(statement)
        if isinstance(inner, ast.If) and self.text.startswith(
            "elif", self.source.span(inner).start
        ):
            self._splice_elif(inner, causes, origin, is_elif)
        elif is_elif:
            if suite is getattr(statement, "body", None):
                colon = self.layout.before(self._start(inner))
                assert colon is not None
                self._put(start, colon.start, "else", causes)
                self._cut_tail(suite, end, causes)
            else:
                word = self._else_word(suite)
                self._put(start, word.start, "", causes)
            self._suite(suite, required=True)
        elif self._is_block(suite):
            self._move_block(statement, suite, causes, origin)
            self._suite(suite, required=False)
        else:
            self._put(origin, self._start(inner), "", causes)
            last = self.source.span(suite[-1]).end
            self._put(self.layout.line_end(last), self.layout.line_end(end), "", causes)
            self._suite(suite, required=False)

    def _splice_elif(self, inner: ast.If, causes: Causes, origin: int, is_elif: bool) -> None:
        """`if gone: ... elif x: ...` becomes `if x: ...`."""
        start = self.source.span(inner).start
        if is_elif:
            self._put(origin, start, "", causes)
            self._statement(inner)
            return
        reduced = self.verdicts.reduced(inner)
        if reduced is not None:
            suite, why = reduced
            self._put(origin, start, "", causes)
            if isinstance(suite[0], ast.If) and self.text.startswith(
                "elif", self.source.span(suite[0]).start
            ):
                self._splice_elif(suite[0], causes | why, start, False)
            elif self._is_block(suite):
                self._move_block(inner, suite, causes | why, origin)
                self._suite(suite, required=False)
            else:
                self._put(start, self._start(suite[0]), "", why)
                self._cut_tail(suite, self.source.span(inner).end, why)
                self._suite(suite, required=False)
            return
        self._put(origin, start + len("el"), "", causes)
        self._statement(inner)

    def _else_word(self, suite: Sequence[ast.stmt]) -> Token:
        token = self.layout.before(self._start(suite[0]))
        while token is not None and token.text != "else":
            token = self.layout.before(token.start)
        assert token is not None
        return token

    def _cut_tail(self, suite: Sequence[ast.stmt], end: int, causes: Causes) -> int:
        """Take out what follows a suite in its statement; the offset where the suite ends."""
        last = self.source.span(suite[-1]).end
        own = len(self.layout.indent(self._start(suite[0])))
        indent = own if not self._is_block(suite) else own - 1
        keep = self.layout.next_line(self._comments_below(last, max(indent, 0)))
        if last < end:
            below = self._comments_below(end, indent)
            self._put(keep, self.layout.next_line(below), "", causes)
        return keep

    def _move_block(
        self, statement: ast.stmt, suite: Sequence[ast.stmt], causes: Causes, origin: int
    ) -> None:
        """Take out the lines around a suite and move its own to the left."""
        first = self._start(suite[0])
        colon = self.layout.before(first)
        assert colon is not None
        outer, inner = len(self.layout.indent(origin)), len(self.layout.indent(first))
        head, body = self.layout.line_start(origin), self.layout.next_line(colon.end)
        comments = [
            c for c in self.layout.comments_in(colon.end, body) if not _PRAGMA.match(c.text)
        ]
        if comments:
            self._put(head + outer, comments[0].start, "", causes)
        else:
            self._put(head, body, "", causes)
        until = self._cut_tail(suite, self.source.span(statement).end, causes)
        line = body
        while line < until:
            below = self.layout.next_line(line)
            indent = len(self.layout.indent(line))
            blank = not self.text[line:below].strip()
            if not blank and indent > outer and not self.layout.in_string(line):
                # Comments and continued lines may stand further left than the block.
                self._put(line + outer, line + min(indent, inner), "", causes)
            if below <= line:
                break
            line = below
