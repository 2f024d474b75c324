"""The pieces of text that go, are put in their place, or move to the left."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from .items import drop_items, list_of, without_comments
from .layout import Layout, Token
from .pieces import Causes, Piece
from .statement_lines import PRAGMA, LineCutter, at_sign
from .suites import Marks, TryNode, Verdicts
from .text import Span

_OPPOSITES: dict[type[ast.cmpop], str] = {
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
}
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
        self.cutter = LineCutter(layout, marks, verdicts, self.pieces)

    def write(self) -> list[Piece]:
        """All pieces, in no order; some may lie within others."""
        self._suite(self.tree.body, required=False)
        self._items()
        for node, (text, causes) in self.marks.replaced.items():
            self.cutter.put(*self.source.span(node), text, causes)
        for whole, (part, causes) in self.marks.kept.items():
            self._keep_part(whole, part, causes)
        self._tie()
        return self.pieces

    def _tie(self) -> None:
        """Tie each change to what is taken out around it, where nothing of its own is written."""
        marks = self.marks
        noted = [
            *marks.removed.items(),
            *((node, why) for node, (_, why) in marks.replaced.items()),
            *((node, why) for node, (_, why) in marks.kept.items()),
            *((node, why) for node, (_, why) in marks.suites.items()),
        ]
        for node, causes in noted:
            place = node.context_expr if isinstance(node, ast.withitem) else node
            if isinstance(place, ast.expr | ast.stmt | ast.keyword | ast.alias):
                start = self.source.span(place).start
                self.pieces.append((start, start, "", causes))

    # -- expressions and lists

    def _keep_part(self, whole: ast.expr, part: ast.expr, causes: Causes) -> None:
        outer = self.source.span(whole)
        inner = self.layout.grouped(part, outer)
        if isinstance(part, _ATOMS):
            outer = self._grouping(whole, outer)
        for low, high in ((outer.start, inner.start), (inner.end, outer.end)):
            for start, end, text in without_comments(self.layout, low, high):
                self.cutter.put(start, end, text, causes)

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
        self.cutter.put(start, span.end, "", causes)

    def _decorator(self, node: ast.AST, causes: Causes) -> None:
        assert isinstance(node, ast.expr)
        at = at_sign(self.layout, node)
        end = self.layout.grouped(node, Span(at, len(self.text))).end
        self.cutter.lines(at, end, causes)

    def _list(self, holder: ast.AST, node: ast.AST) -> None:
        found = list_of(node, self.layout, self.parents.get)
        assert found is not None
        members, spans, inside, bracketed = found
        dropped = [member in self.marks.removed for member in members]
        everything = frozenset[int]().union(*(self.marks.removed.get(m, ()) for m in members))
        if all(dropped) and isinstance(holder, ast.Set | ast.Tuple | ast.With | ast.AsyncWith):
            if isinstance(holder, ast.Set | ast.Tuple):
                empty = "set()" if isinstance(holder, ast.Set) else "()"
                self.cutter.put(*self.source.span(holder), empty, everything)
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
                self.cutter.put(start, end, text, causes)

    # -- suites

    def _suite(self, suite: Sequence[ast.stmt], *, required: bool) -> None:
        """Write the statements of a suite; an emptied one that must not be gets `pass`."""
        if required and (causes := self.verdicts.all_gone(suite)) is not None:
            self._pass(suite, causes)
            return
        run: list[ast.stmt] = []
        for statement in suite:
            if self.verdicts.gone(statement) is not None:
                if run and self.cutter.is_apart(run[-1], statement):
                    self.cutter.run(run)
                    run = []
                run.append(statement)
                continue
            self.cutter.run(run)
            run = []
            self._statement(statement)
        self.cutter.run(run)

    def _pass(self, suite: Sequence[ast.stmt], causes: Causes) -> None:
        start, end = self.cutter.start(suite[0]), self.source.span(suite[-1]).end
        if self.text[self.layout.line_start(start) : start].strip():
            self.cutter.put(start, end, "pass", causes)  # on the line of its `if`
            return
        line = self.layout.line_start(start)
        below = self.layout.next_line(end)
        ending = self.source.newline if below > self.layout.line_end(end) else ""
        self.cutter.put(line, line, f"{self.layout.indent(start)}pass{ending}", causes)
        for statement in suite:
            self.cutter.lines(self.cutter.start(statement), self.source.span(statement).end, causes)

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
                self.cutter.lines(word.start, colon.end, body)
                self._suite(orelse, required=True)
                return
        self._suite(statement.body, required=True)
        self._last_part(statement, orelse, statement.body)

    def _negate(self, test: ast.expr, causes: Causes) -> None:
        start, end = self.source.span(test)
        match test:
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _OPPOSITES:
                low = self.layout.grouped(left, Span(start, end)).end
                high = self.layout.grouped(right, Span(start, end)).start
                if "\n" not in self.text[low:high]:
                    self.cutter.put(low, high, f" {_OPPOSITES[type(op)]} ", causes)
                else:
                    self.cutter.put(start, start, "not ", causes)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                self.cutter.put(
                    start, self.layout.grouped(operand, Span(start, end)).start, "", causes
                )
            case ast.BoolOp() | ast.IfExp() | ast.Lambda() | ast.NamedExpr():
                self.cutter.put(start, start, "not (", causes)
                self.cutter.put(end, end, ")", causes)
            case _:
                self.cutter.put(start, start, "not ", causes)

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
        self.cutter.lines(word.start, self.source.span(part[-1]).end, causes)

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
        start = self.cutter.start(suite[0])
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
                colon = self.layout.before(self.cutter.start(inner))
                assert colon is not None
                self.cutter.put(start, colon.start, "else", causes)
                self._cut_tail(suite, end, causes)
            else:
                word = self._else_word(suite)
                self.cutter.put(start, word.start, "", causes)
            self._suite(suite, required=True)
        elif self._is_block(suite):
            self._move_block(statement, suite, causes, origin)
            self._suite(suite, required=False)
        else:
            self.cutter.put(origin, self.cutter.start(inner), "", causes)
            last = self.source.span(suite[-1]).end
            self.cutter.put(self.layout.line_end(last), self.layout.line_end(end), "", causes)
            self._suite(suite, required=False)

    def _splice_elif(self, inner: ast.If, causes: Causes, origin: int, is_elif: bool) -> None:
        """`if gone: ... elif x: ...` becomes `if x: ...`."""
        start = self.source.span(inner).start
        if is_elif:
            self.cutter.put(origin, start, "", causes)
            self._statement(inner)
            return
        reduced = self.verdicts.reduced(inner)
        if reduced is not None:
            suite, why = reduced
            self.cutter.put(origin, start, "", causes)
            if isinstance(suite[0], ast.If) and self.text.startswith(
                "elif", self.source.span(suite[0]).start
            ):
                self._splice_elif(suite[0], causes | why, start, False)
            elif self._is_block(suite):
                self._move_block(inner, suite, causes | why, origin)
                self._suite(suite, required=False)
            else:
                self.cutter.put(start, self.cutter.start(suite[0]), "", why)
                self._cut_tail(suite, self.source.span(inner).end, why)
                self._suite(suite, required=False)
            return
        self.cutter.put(origin, start + len("el"), "", causes)
        self._statement(inner)

    def _else_word(self, suite: Sequence[ast.stmt]) -> Token:
        token = self.layout.before(self.cutter.start(suite[0]))
        while token is not None and token.text != "else":
            token = self.layout.before(token.start)
        assert token is not None
        return token

    def _cut_tail(self, suite: Sequence[ast.stmt], end: int, causes: Causes) -> int:
        """Take out what follows a suite in its statement; the offset where the suite ends."""
        last = self.source.span(suite[-1]).end
        own = len(self.layout.indent(self.cutter.start(suite[0])))
        indent = own if not self._is_block(suite) else own - 1
        keep = self.layout.next_line(self.cutter.comments_below(last, max(indent, 0)))
        if last < end:
            below = self.cutter.comments_below(end, indent)
            self.cutter.put(keep, self.layout.next_line(below), "", causes)
        return keep

    def _move_block(
        self, statement: ast.stmt, suite: Sequence[ast.stmt], causes: Causes, origin: int
    ) -> None:
        """Take out the lines around a suite and move its own to the left."""
        first = self.cutter.start(suite[0])
        colon = self.layout.before(first)
        assert colon is not None
        outer, inner = len(self.layout.indent(origin)), len(self.layout.indent(first))
        head, body = self.layout.line_start(origin), self.layout.next_line(colon.end)
        comments = [c for c in self.layout.comments_in(colon.end, body) if not PRAGMA.match(c.text)]
        if comments:
            self.cutter.put(head + outer, comments[0].start, "", causes)
        else:
            self.cutter.put(head, body, "", causes)
        until = self._cut_tail(suite, self.source.span(statement).end, causes)
        line = body
        while line < until:
            below = self.layout.next_line(line)
            indent = len(self.layout.indent(line))
            blank = not self.text[line:below].strip()
            if not blank and indent > outer and not self.layout.in_string(line):
                # Comments and continued lines may stand further left than the block.
                self.cutter.put(line + outer, line + min(indent, inner), "", causes)
            if below <= line:
                break
            line = below
