"""Whether edits changed a file only where they were made.

Text outside the edits is the same by construction; what it *means* need not be. An insertion
without its line break turns the next statement into a comment, a deleted header gives its body to
the function above, `a` replaced by `b + c` in `a * d` regroups the product. So the trees before and
after are walked together: a part that no edit touches must be read as before and in the same place,
a part that has edits only inside its children must keep its own shape, and a part whose own tokens
are edited may take any shape as long as what it held survives.
"""

from __future__ import annotations

import ast
import bisect
import json
import re
import tokenize
import tomllib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .errors import SourceError
from .source import Edit, OffsetMap, SourceFile, Span, read_source
from .source.escapes import BrokenEscape
from .source.places import PlacedTree, Siblings, same_tree

_SHEBANG = re.compile(r"#![^\n]*\bpython")
_BLOCKS = frozenset({"body", "orelse", "finalbody"})


def check_integrity(before: SourceFile, after_text: str, edits: Sequence[Edit]) -> str | None:
    """Why `after_text` is not `before` with nothing but `edits` changed; None if it is.

    Python must parse, and outside the edits the tree must be the old one and the comments must
    stand. JSON (notebooks too) and TOML that parsed before must parse. Text of any kind must be
    such that the file's encoding can hold it.

    Args:
        before: the file as it was.
        after_text: its text with the edits made.
        edits: edits of this file, none overlapping another.
    """
    python = is_python(before)
    after = before.replaced(after_text)
    reason = _encoding_fault(after, python)
    if reason is None and python:
        reason = _python_fault(before, after, edits)
    elif reason is None:
        reason = _data_fault(before, after)
    return reason


def is_python(source: SourceFile) -> bool:
    """Whether a file is Python: by its name, its first line, or as the view of a notebook."""
    if source.path.suffix in (".py", ".pyi", ".pyw") or source.container is not None:
        return True
    return not source.path.suffix and _SHEBANG.match(source.text) is not None


def _encoding_fault(after: SourceFile, python: bool) -> str | None:
    try:
        again = read_source(after.path, after.encode(after.text), python=python)
    except UnicodeEncodeError as error:
        bad = error.object[error.start]
        return f"{bad!r} cannot be written in the file's encoding, {after.encoding}"
    except BrokenEscape as error:
        return str(error)
    except SourceError as error:
        return f"the new text cannot be read back: {error}"
    if after.container is not None:
        if again.text != after.container.settled(after.text):
            return "the notebook would have other cells, or other lines that are not Python"
    elif again.text != after.text:
        return f"the new text cannot be written in the file's encoding, {after.encoding}"
    return None


def _data_fault(before: SourceFile, after: SourceFile) -> str | None:
    readers: dict[str, Callable[[str], object]] = {
        ".ipynb": json.loads,
        ".json": json.loads,
        ".toml": tomllib.loads,
    }
    reader = readers.get(before.path.suffix)
    if reader is None:
        return None
    try:
        reader(before.text)
    except ValueError:
        return None
    except RecursionError:
        return "the text is nested too deeply to be compared"
    try:
        reader(after.text)
    except ValueError as error:
        return f"the new text is no {before.path.suffix[1:]}: {error}"
    return None


def _python_fault(before: SourceFile, after: SourceFile, edits: Sequence[Edit]) -> str | None:
    try:
        old = PlacedTree(before)
    except SourceError as error:
        return f"the old text is {error}"
    try:
        new = PlacedTree(after)
    except SourceError as error:
        cause = error.__cause__
        said = cause.msg if isinstance(cause, SyntaxError) else error
        return f"the new text does not parse: {said} (its line {error.line})"
    offsets = OffsetMap(edits)
    old.asides = list(_apart(old, offsets))
    new.asides = [offsets.moved_span(span) for span in old.asides]
    try:
        return _Comparison(old, new, edits, offsets).fault() or _comment_fault(old, new, offsets)
    except RecursionError:
        return "the code is nested too deeply to be compared"
    except (SyntaxError, tokenize.TokenError) as error:
        return f"the text cannot be cut into tokens: {error}"


def _apart(tree: PlacedTree, offsets: OffsetMap) -> Iterator[Span]:
    """The statements of a file's top level that no edit is made in, nor right beside."""
    spans = [span for span, _ in tree.children(tree.root)]
    ends = [0, *(span.end for span in spans)]
    starts = [*(span.start for span in spans), len(tree.source.text)]
    for number, span in enumerate(spans):
        if offsets.untouched(ends[number] - 1, starts[number + 1] + 1):
            yield span


def _comment_fault(old: PlacedTree, new: PlacedTree, offsets: OffsetMap) -> str | None:
    if "#" not in old.source.text:
        return None
    now = {comment.start: comment.text for comment in new.layout.comments}
    for comment in old.layout.comments:
        if not offsets.untouched(comment.start, comment.end):
            continue
        if not now.get(offsets.moved(comment.start), "").startswith(comment.text):
            line, _ = old.source.position(comment.start)
            return f"the comment on line {line} would be lost: {_short(comment.text)}"
    return None


def _short(text: str) -> str:
    first = text.strip().partition("\n")[0].rstrip()
    return f"`{first[:57]}...`" if len(first) > 60 else f"`{first}`"


class _Comparison:
    """The old tree against the new one, given what was edited."""

    def __init__(
        self, old: PlacedTree, new: PlacedTree, edits: Sequence[Edit], offsets: OffsetMap
    ) -> None:
        self.old = old
        self.new = new
        self.offsets = offsets
        self._edits = sorted(set(edits))
        self._starts = [edit.start for edit in self._edits]
        self._ends = [edit.end for edit in self._edits]

    def fault(self) -> str | None:
        return self._match(self.old.root, self.new.root)

    # -- edits and places

    def _touching(self, span: Span) -> list[Edit]:
        """The edits within a range or at one of its ends."""
        low = bisect.bisect_left(self._ends, span.start)
        return self._edits[low : bisect.bisect_right(self._starts, span.end)]

    def _inside(self, span: Span) -> list[Edit]:
        """The edits that change characters of a range or insert between two of them."""
        return [e for e in self._touching(span) if e.start < span.end and e.end > span.start]

    def _near(self, node: ast.AST) -> list[Edit]:
        """The edits that may have become part of a node: those that touch it.

        To a statement with a body those count that are made in the blank and commented lines around
        it, for there one adds decorators, `else:` and more statements.
        """
        outer = self.old.outer(node)
        return [
            edit
            for edit in self._touching(outer)
            if outer == self.old.span(node)
            or edit.start == edit.end
            or (edit.start < outer.end and edit.end > outer.start)
        ]

    def _widest(self, node: ast.AST) -> Span:
        """As far as a node may now reach."""
        start, end = self.old.outer(node)
        near = self._near(node)
        return Span(
            self.offsets.place(near[0]).start
            if near and near[0].start <= start
            else self.offsets.after(start),
            self.offsets.place(near[-1]).end
            if near and near[-1].end >= end
            else self.offsets.before(end),
        )

    def _replaced(self, span: Span) -> bool:
        return any(e.start <= span.start and span.end <= e.end for e in self._inside(span))

    def _blank(self, edit: Edit) -> bool:
        return not (self.old.source.text[edit.start : edit.end] + edit.text).strip()

    def _blocks(self, node: ast.AST) -> dict[str, list[ast.stmt]]:
        fields = ((name, getattr(node, name)) for name in node._fields if name in _BLOCKS)
        return {name: block for name, block in fields if block and isinstance(block, list)}

    def _reach(self, block: list[ast.stmt]) -> Span:
        """From the colon before a block to the end of its last statement."""
        first, last = self.old.span(block[0]), self.old.span(block[-1])
        assert first is not None
        assert last is not None
        colon = self.old.layout.before(first.start)
        return Span(colon.end if colon else 0, last.end)

    def _own_edits(self, node: ast.AST) -> list[Edit]:
        """The edits of a node's own tokens: in none of its blocks and in no other child of it."""
        reaches = [self._reach(block) for block in self._blocks(node).values()]
        starts, placed = [s.start for s, _ in self.old.children(node)], self.old.children(node)

        def is_below(edit: Edit) -> bool:
            if any(r.start <= edit.start < r.end and edit.end <= r.end for r in reaches):
                return True
            index = bisect.bisect_right(starts, edit.start) - 1
            if index < 0:
                return False
            child, _ = placed[index]
            if edit.start == edit.end:
                return child.start < edit.start < child.end
            if not edit.text and edit.start <= child.start and child.end <= edit.end:
                return False  # without the child the node has another shape
            return edit.end <= child.end

        return [edit for edit in self._near(node) if not is_below(edit)]

    def _differs(self, node: ast.AST) -> str:
        span = self.old.span(node)
        assert span is not None
        if node is self.old.root:
            line, _ = self.old.source.position(self._edits[0].start)
            return f"the code from line {line} on would be read differently"
        line, _ = self.old.source.position(span.start)
        return (
            f"the code on line {line} would be read differently:"
            f" {_short(self.old.source.text[span.start : span.end])}"
        )

    # -- comparing

    def _match(self, old: ast.AST, new: ast.AST) -> str | None:
        """Why `new`, which stands in the place of `old`, is not what the edits make of it."""
        span = self.old.span(old)
        assert span is not None
        inside = self._inside(span)
        if all(self._blank(edit) for edit in inside) and same_tree(old, new):
            return None
        # White space alone may move code about; where it changes what is read, a string was hit.
        if all(self._blank(edit) for edit in self._near(old)):
            return self._differs(old)
        own = [edit for edit in self._own_edits(old) if not self._blank(edit)]
        if own:
            return self._match_reshaped(old, new, own)
        if type(old) is not type(new):
            return self._differs(old)
        return self._match_fields(old, new)

    def _match_fields(self, old: ast.AST, new: ast.AST) -> str | None:
        """As `_match` for a node that keeps its shape: all its edits lie in its children."""
        blocks = self._blocks(old)
        for name in old._fields:
            one, other = getattr(old, name), getattr(new, name)
            reason: str | None = None
            if name in blocks:
                reason = self._match_block(blocks[name], other)
            elif isinstance(one, list):
                reason = self._match_list(old, one, other, new)
            else:
                reason = self._match_element(old, one, other)
            if reason:
                return reason
        return None

    def _is_replaced(self, node: ast.AST) -> bool:
        span = self.old.span(node)
        return span is not None and self._replaced(span)

    def _match_list(
        self, old: ast.AST, one: list[Any], other: list[Any], new: ast.AST
    ) -> str | None:
        """Elements of a list: arguments, names, items. One that is replaced may become several."""
        if self._is_loose(old, one, other):
            nodes = [item for item in one if isinstance(item, ast.AST)]
            return self._first(self._place(node, Siblings(self.new, [new])) for node in nodes)
        if len(one) != len(other):
            return self._differs(old)
        return self._first(self._match_element(old, a, b) for a, b in zip(one, other, strict=True))

    def _is_loose(self, old: ast.AST, one: list[Any], other: list[Any]) -> bool:
        """Whether elements of a list may become more, fewer, or go to another list of the node."""
        if isinstance(old, ast.Compare):  # `b` of `a < b` must not become `b < c`
            return False
        if isinstance(old, ast.BoolOp):
            return True
        if any(self._is_replaced(item) for item in one if isinstance(item, ast.AST)):
            return True
        # `flag=True` becomes `True`: the list of keywords loses what that of arguments gains.
        return len(one) != len(other) and any(
            not self.offsets.kept(span.start) for span, _ in self.old.children(old)
        )

    def _match_element(self, old: ast.AST, one: object, other: object) -> str | None:
        if isinstance(one, ast.AST) and (span := self.old.span(one)):
            if self._replaced(span):
                return None
            if isinstance(other, ast.AST):
                return self._match(one, other)
        return None if same_tree(one, other) else self._differs(old)

    def _match_block(self, block: list[ast.stmt], new: list[ast.stmt]) -> str | None:
        """Statements of a block: each must be found again; others may have come."""
        scope = Siblings(self.new, new)
        return self._first(self._place(stmt, scope) for stmt in block)

    def _match_reshaped(self, old: ast.AST, new: ast.AST, own: list[Edit]) -> str | None:
        """As `_match` for a node whose own tokens are edited: what it held must be in `new`."""
        blocks = self._blocks(old)
        # `else:` may go together with the body before it: then its statements change sides.
        first = min((self._reach(block).start for block in blocks.values()), default=0)
        in_place = type(old) is type(new) and all(edit.end <= first for edit in own)
        if in_place:
            for name, block in blocks.items():
                if reason := self._match_block(block, getattr(new, name)):
                    return reason
        held = {id(stmt) for block in blocks.values() for stmt in block} if in_place else set()
        scope = Siblings(self.new, [new])
        return self._first(
            self._place(child, scope)
            for _, child in self.old.children(old)
            if id(child) not in held
        )

    @staticmethod
    def _first(reasons: Iterator[str | None]) -> str | None:
        return next((reason for reason in reasons if reason), None)

    # -- finding a part again

    def _core(self, old: ast.AST) -> Span | None:
        """Where the kept characters of a node now lie; blanks and comments at its ends left out."""
        span = self.old.span(old)
        assert span is not None
        start, end = span
        while start < end and self._is_gone(start):
            start += 1
        while start < end and self._is_gone(end - 1):
            end -= 1
        if start == end:
            return None
        return Span(self.offsets.moved(start), self.offsets.moved(end - 1) + 1)

    def _is_gone(self, offset: int) -> bool:
        if not self.offsets.kept(offset) or self.old.source.text[offset].isspace():
            return True
        layout = self.old.layout
        return any(
            c.end > offset for c in layout.comments_in(layout.line_start(offset), offset + 1)
        )

    def _place(self, old: ast.AST, scope: Siblings) -> str | None:
        """Why a node is not to be found in `scope`, in its place and as the edits make it."""
        span = self.old.span(old)
        assert span is not None
        core = self._core(old)
        if core is None or self._replaced(span):
            return None
        widest = self._widest(old)
        reason = None
        for where, node in scope.around(core):
            if where.start < widest.start or where.end > widest.end:
                continue
            if isinstance(node, ast.stmt) is not isinstance(old, ast.stmt):
                continue
            reason = self._match(old, node)
            if reason is None:
                return None
        if self._may_dissolve(old, span):
            below = self.old.children(old)
            return self._first(self._place(child, scope) for _, child in below)
        return reason or self._differs(old)

    def _may_dissolve(self, old: ast.AST, span: Span) -> bool:
        """Whether what frames a node is edited away, so that only what it held is left.

        A statement lives by its first word (`if flag:` goes, its body stays), an expression by both
        ends (`*[a, b]` becomes `a, b`).
        """
        if not hasattr(old, "lineno"):
            return True
        if not self.offsets.kept(span.start):
            return True
        return not isinstance(old, ast.stmt) and not self.offsets.kept(span.end - 1)
