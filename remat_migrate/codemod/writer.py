"""Writes the Changes of files: parses the statements they touch, applies them, and compares."""

from __future__ import annotations

import ast
import dataclasses
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import libcst as cst

from ..text import Edit, Span, first_line
from ..text.tokens import layout_of
from . import expressions
from .added_imports import insert_import
from .arguments import arranged, spread
from .changes import (
    AddImport,
    ArrangeArguments,
    Change,
    Code,
    File,
    Group,
    ImportName,
    Indent,
    Insert,
    InsertArgument,
    Keep,
    KeepSuite,
    MoveNames,
    NameArgument,
    Nest,
    Reduce,
    Remove,
    Rename,
    Replace,
    ReplaceStatement,
    Require,
    Rewrite,
    SetArgument,
    Spread,
)
from .contradictions import check_none_lost
from .edits import edits_between, joined
from .expressions import is_open, with_argument
from .grouping import grouped
from .imports import with_names_moved
from .line_length import fitted
from .lines import Lines, seam, trimmed, without_comment
from .locate import Chunk, Statement, chunks_of, config_of
from .nesting import nested
from .new_nodes import NewStatementNodes
from .statements import Statements
from .style import Style, style_of
from .tree.reductions import Reduction
from .tree.removal import marks_of
from .tree.suites import Marks, Verdicts
from .tree.tree_index import TreeIndex, index_of

_NAMES = re.compile(r"[^\W\d]\w*")


def write(changes: Iterable[Change]) -> list[Edit]:
    """Return the minimal edits that make Changes of code, possibly of several files.

    Raises:
        CodemodError: LibCST cannot parse the code, or two Changes contradict each other.
    """
    found: list[Edit] = []
    by_file: dict[Path, list[Change]] = defaultdict(list)
    for change in dict.fromkeys(changes):
        by_file[change.file.source.path].append(change)
    for own in by_file.values():
        file = own[0].file
        found += WrittenFile(file, own, _marks(file, own)).edits()
    return found


def _marks(file: File, changes: Sequence[Change]) -> Marks:
    """Return what Changes of one file remove, with the imports that nothing uses any more."""
    found = Marks()
    for change in changes:
        if isinstance(change, Reduce):
            found |= change.marks
    removals = [c for c in changes if isinstance(c, Remove | Keep | KeepSuite)]
    replaced = [c for c in changes if isinstance(c, Replace) and c.is_used_elsewhere]
    if not removals and not replaced:
        return found
    reduction = Reduction(
        remove=tuple(c.node for c in removals if isinstance(c, Remove)),
        replace=tuple((c.node, c.code.text) for c in replaced),  # type: ignore[misc]
        keep=tuple((c.node, c.part) for c in removals if isinstance(c, Keep)),  # type: ignore[misc]
        suites=tuple((c.node, list(c.suite)) for c in removals if isinstance(c, KeepSuite)),  # type: ignore[misc]
    )
    new = {name for change in changes for name in _new_names(change)}
    votes = [(_names(c.node), c.is_used_elsewhere) for c in (*removals, *replaced)]

    def is_used(name: str) -> bool:
        """Return whether an import stays: those decide that take a use of it away."""
        asked = [used for names, used in votes if name in names] or [used for _, used in votes]
        return name in new or any(used is None or used(name) for used in asked)

    return found | marks_of(file, [reduction], is_used)


def _names(tree: ast.AST) -> frozenset[str]:
    return frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))


def _new_names(change: Change) -> Iterator[str]:
    """Yield the names in the new code of a Change: their imports stay."""
    for field in dataclasses.fields(change):
        value = getattr(change, field.name)
        for item in value if isinstance(value, tuple) else (value,):
            if isinstance(item, str) and isinstance(change, Nest | Group):
                yield from _NAMES.findall(item)
            if isinstance(item, Code):
                yield from _NAMES.findall(item.text)
                yield from (name for _, part in item.parts for name in _names(part))


class WrittenFile:
    """A file with Changes; `marks` are what they remove."""

    def __init__(self, file: File, changes: Sequence[Change], marks: Marks) -> None:
        self.file = file
        self.source = file.source
        self.marks = marks
        known = {change.node for change in changes}
        self.changes = [
            *(self._refilled(change) for change in changes if not isinstance(change, Reduce)),
            *(
                Replace(file, node, Code(text))
                for node, (text, _) in marks.replaced.items()
                if node not in known
            ),
        ]
        self._by_node: dict[ast.AST, list[tuple[int, Change]]] = defaultdict(list)
        for number, change in enumerate(self.changes):
            self._by_node[change.node].append((number, change))
        self.index: TreeIndex = index_of(file.tree)
        self.verdicts = Verdicts(self.marks, self.index)

    def _refilled(self, change: Change) -> Change:
        """Return a Change; a new name in an import that loses all names replaces one of them."""
        if not isinstance(change, ImportName) or not isinstance(change.node, ast.ImportFrom):
            return change
        names, new = change.node.names, cst.Name(change.name)
        if not all(alias in self.marks.removed for alias in names):
            return change
        del self.marks.removed[names[0]]
        return Rewrite(
            change.file,
            names[0],
            lambda old, new_nodes: old.with_changes(name=new, asname=None),
        )

    # -- the new text

    def edits(self) -> list[Edit]:
        """Return what differs between the file and its new text.

        Raises:
            CodemodError: two Changes contradict each other, or LibCST cannot parse the code.
        """
        check_none_lost(self.changes, self.marks)
        found = [
            Edit(self.source.path, *self.source.span(change.node), self.source.segment(change.node))
            for change in self.changes
            if isinstance(change, Require) and isinstance(change.node, ast.alias)
        ]
        by_top = self._by_top()
        added = self._imports()
        carried: Lines = []  # what removed statements leave
        gone, is_first = False, True
        chunks = chunks_of(self.file)
        # Only where something changes, and up to the next statement that stays.
        offsets = [o for o, _ in added] + [self._first_line(s) for s in by_top]
        numbers = sorted({_number_at(chunks, offset) for offset in offsets}, reverse=True)
        last = -1
        while numbers or ((carried or gone) and last + 1 < len(chunks)):
            number = last + 1 if (carried or gone) and last + 1 < len(chunks) else numbers.pop()
            if number <= last:
                continue
            is_first = is_first and number == last + 1
            last, chunk = number, chunks[number]
            own = [node for s in chunk.statements for node in by_top.get(s, ())]
            inserts = [(o, t) for o, t in added if chunk.start <= o <= chunk.first_line]
            if not (own or carried or gone):
                found += [Edit(self.source.path, o, o, text) for o, text in inserts]
                is_first = False
                continue
            made, tail = self._statement(chunk, own, is_first) if own else (None, [])
            if made == []:
                carried = seam(carried, tail) if gone else [*carried, *tail]
                gone = True
                new = "".join(text for _, text in inserts)
            else:
                lines = list(made[0].leading_lines if made else chunk.lead)
                if carried or gone:
                    lines = seam(carried, lines, first=is_first)
                rest = chunk.rest
                if made:
                    rest = chunk.code([made[0].with_changes(leading_lines=[]), *made[1:]])
                    rest = fitted(rest, chunk.rest, self.style)
                new = _spliced(chunk, chunk.code_of_lines(lines), inserts) + rest
                carried, gone, is_first = tail, False, False
            found += joined(edits_between(chunk, new), self._replaced(own), self.source.text)
        if carried or gone:
            end = chunks[-1].end if chunks else 0
            found += self._end(end, trimmed(carried), is_first)
        return found

    def _first_line(self, statement: ast.stmt) -> int:
        return self.source.line_starts[first_line(statement) - 1]

    def _changes_of(self, nodes: Iterable[ast.AST]) -> list[Change]:
        """Return the Changes of some nodes, in order."""
        found = (one for node in set(nodes) for one in self._by_node.get(node, ()))
        return [change for _, change in sorted(found, key=lambda one: one[0])]

    @cached_property
    def style(self) -> Style:
        """The layout of new lines."""
        return style_of(self.source, str(config_of(self.source).default_indent))

    def _end(self, at: int, carried: Lines, is_empty: bool) -> list[Edit]:
        """Return the lines behind the last statement, where that is removed."""
        footer = Chunk(self.source, [], at, len(self.source.text))
        lines = seam(carried, footer.lead, first=is_empty)
        text = footer.code_of_lines(trimmed(lines))
        return list(edits_between(footer, text))

    def _imports(self) -> list[tuple[int, str]]:
        """Return the new imports as whole lines, with the offsets where they are inserted."""
        found: dict[int, tuple[str, str]] = {}
        added = (change for change in self.changes if isinstance(change, AddImport))
        # At one place, `import` comes before `from`.
        for change in sorted(added, key=lambda one: (one.statement[0] == "f", one.statement)):
            before = change.node if isinstance(change.node, ast.stmt) else None
            layout, tree = layout_of(self.source), self.file.tree
            edit = insert_import(layout, tree, change.statement, before=before)
            text, last = found.get(edit.start, (edit.text, change.statement))
            if last != change.statement:
                text = text.replace(last, last + self.source.newline + change.statement)
            found[edit.start] = text, change.statement
        return sorted((start, text) for start, (text, _) in found.items())

    def _top(self, node: ast.AST) -> ast.stmt:
        while (above := self.index.parents[node]) is not self.file.tree:
            node = above
        assert isinstance(node, ast.stmt)
        return node

    def _by_top(self) -> dict[ast.stmt, list[ast.AST]]:
        """Return what is removed or changed, by the top-level statement that holds it."""
        nodes = [c.node for c in self.changes if not isinstance(c, AddImport | Require)]
        found: dict[ast.stmt, list[ast.AST]] = defaultdict(list)
        for node in (*nodes, *self.marks.removed, *self.marks.kept, *self.marks.suites):
            found[self._top(node)].append(node)
        return found

    def _replaced(self, nodes: Sequence[ast.AST]) -> list[Span]:
        """Return the places of expressions, and the lines of statements, that are made anew."""
        kinds = Replace | ReplaceStatement | ArrangeArguments | Rewrite | Insert
        starts = [*self.source.line_starts, len(self.source.text)]
        found = []
        for change in self._changes_of(nodes):
            node = change.node
            if not isinstance(change, kinds):
                continue
            if isinstance(change, Insert) and hasattr(node, "body"):
                continue  # a block beside which statements are inserted stays as it is
            if isinstance(node, ast.stmt):
                found.append(Span(starts[node.lineno - 1], starts[node.end_lineno or node.lineno]))
            else:
                found.append(self.source.span(node))  # type: ignore[arg-type]
        return found

    def _statement(
        self, chunk: Chunk, nodes: Sequence[ast.AST], is_first: bool
    ) -> tuple[list[Statement], Lines]:
        """Return what a statement becomes, and the lines behind it or instead of it."""
        work = expressions.Expressions(chunk.parents)
        new_nodes = NewStatementNodes(chunk, work)
        statements = Statements(self.marks, self.verdicts)
        for node in set(nodes):
            if node in self.marks.removed and not isinstance(node, ast.stmt):
                work.gone.add(chunk.holder(node))
            if node in self.marks.kept:
                work.kept[chunk.find(node)] = chunk.find(self.marks.kept[node][0])
        for change in self._changes_of(nodes):
            self._register(change, chunk, work, new_nodes, statements)
        (parsed,) = chunk.module.body
        changed = parsed.visit(work)
        assert isinstance(changed, cst.SimpleStatementLine | cst.BaseCompoundStatement)
        for insert in new_nodes.inserted:
            insert()
        lines = [*chunk.lead, *changed.leading_lines]
        changed = changed.with_changes(leading_lines=lines)
        made, tail = statements.statement(
            chunk.statements, changed, is_first=is_first, blank_lines=2
        )
        return made, [*tail, *statements.gap, *statements.gap]

    def _register(
        self,
        change: Change,
        chunk: Chunk,
        work: expressions.Expressions,
        new_nodes: NewStatementNodes,
        statements: Statements,
    ) -> None:
        """Register what a Change does to the nodes of a statement."""
        node = change.node
        if isinstance(node, ast.stmt) and _registered_at(node, change, new_nodes, statements):
            return

        def at(found: cst.CSTNode, operation: expressions.Operation) -> None:
            work.operations.setdefault(found, []).append(operation)

        find, holder, new = chunk.find, chunk.holder, new_nodes.expression
        match change:
            case Remove(label=label) if label:
                at(holder(node), lambda old: without_comment(old, label))
            case Replace(code=code):
                found = find(node)
                work.replaced.add(found)
                put = partial(_replaced, is_open=is_open(chunk.parents[found], found))
                at(found, lambda old: work.kept_comments(old, put(old, new(code, node, old))))
            case SetArgument(name=name, code=code, instead_of=None):
                at(find(node), lambda call: with_argument(call, name, new(code, node)))
            case SetArgument(name=name, code=code, instead_of=ast.AST() as old):
                fields = {"keyword": cst.Name(name), "equal": expressions.TIGHT}
                at(holder(old), lambda arg: arg.with_changes(value=new(code, node), **fields))
            case Rename(name=name):
                at(find(node), lambda old: expressions.renamed(old, name))
            case ImportName(name=name):
                at(find(node), lambda old: expressions.with_name(old, name))
            case InsertArgument(code=code):
                at(find(node), lambda call: expressions.with_first(call, new(code)))
            case NameArgument(name=name):
                at(holder(node), lambda arg: expressions.named(arg, name))
            case Spread():
                arg = holder(node)
                call: Any = chunk.parents[arg]
                index = call.args.index(arg)
                at(call, lambda call: spread(call, index))
            case ArrangeArguments():
                at(find(node), lambda call: arranged(call, change, new_nodes))
            case Rewrite(make=make):
                at(find(node), lambda old: make(old, new_nodes))


def _registered_at(
    node: ast.stmt, change: Change, new_nodes: NewStatementNodes, statements: Statements
) -> bool:
    """Register what a Change puts before a statement, or in its place, if it does."""
    if isinstance(change, Insert):
        before, codes = statements.before.setdefault(node, []), change.statements
        new_nodes.inserted.append(lambda: before.extend(map(new_nodes.statement, codes)))
        return True
    instead = _in_place_of(change, new_nodes)
    if instead is not None:
        statements.instead[node] = instead
    return instead is not None


def _in_place_of(change: Change, new_nodes: NewStatementNodes) -> Callable[[Any], Any] | None:
    """Return what makes the statements in place of the one that a Change names."""
    match change:
        case MoveNames(node=ast.ImportFrom(names=aliases), names=names, module=module):
            moved = [alias in names for alias in aliases]
            return lambda old: with_names_moved(old, moved, module)
        case ReplaceStatement(statements=codes):
            return lambda old: [*map(new_nodes.statement, codes)]
        case Nest():
            return partial(nested, change)
        case Group():
            return partial(grouped, change)
        case Indent(header=header):
            return lambda old: [
                new_nodes.statement(header).with_changes(body=cst.IndentedBlock([old]))
            ]
        case Rewrite(make=make):
            return lambda old: make(old, new_nodes)
    return None


def _number_at(chunks: Sequence[Chunk], offset: int) -> int:
    """Return the number of the last chunk that does not start after an offset."""
    return max(bisect_right(chunks, offset, key=lambda chunk: chunk.start) - 1, 0)


def _spliced(chunk: Chunk, lead: str, inserts: Sequence[tuple[int, str]]) -> str:
    """Return the lines above a statement with imports among them."""
    old = chunk.source.text[chunk.start : chunk.first_line]
    for offset, text in reversed(inserts):
        # Where statements above are removed, the imports take their place.
        at = offset - chunk.start if lead == old else 0
        lead = lead[:at] + text + lead[at:]
    return lead


def _replaced(old: Any, new: Any, *, is_open: bool) -> Any:
    """New code in the place of an expression, in its parentheses or in those that it needs."""
    if isinstance(old, cst.Arg):
        return old.with_changes(value=new)
    if expressions.is_atom(new) and not expressions.spans_lines(new):
        return new
    if old.lpar:
        return new.with_changes(lpar=old.lpar, rpar=old.rpar)
    return new if is_open else expressions.parenthesized(new)
