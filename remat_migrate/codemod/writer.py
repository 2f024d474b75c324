"""Writes the Changes of files: parses the statements they touch, applies them, and compares."""

from __future__ import annotations

import ast
import dataclasses
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import libcst as cst

from ..errors import CodemodError
from ..text import Edit
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
    Indent,
    Insert,
    InsertArgument,
    Keep,
    MoveNames,
    NameArgument,
    Nest,
    Remove,
    Rename,
    Replace,
    ReplaceStatement,
    Rewrite,
    SetArgument,
    Spread,
)
from .edits import edits_between
from .expressions import is_open, with_argument
from .imports import with_names_moved
from .lines import Lines, seam, trimmed, without_comment
from .locate import Chunk, chunks_of
from .nesting import grouped, nested
from .new_nodes import NewStatementNodes
from .transformer import Make, Operation, Statement, Transformer
from .unused import unused_imports

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
        found += WrittenFile(own[0].file, own).edits()
    return found


def _removed(file: File, changes: Sequence[Change]) -> set[ast.AST]:
    """Return what Changes of one file remove, with the imports that nothing uses any more."""
    removed = {c.node for c in changes if isinstance(c, Remove)}
    taking = [
        c
        for c in changes
        if isinstance(c, Remove | Keep) or (isinstance(c, Replace) and c.is_used_elsewhere)
    ]
    lost: set[ast.AST] = set()
    for change in taking:
        stays = set(ast.walk(change.part)) if isinstance(change, Keep) else set()
        lost |= set(ast.walk(change.node)) - stays
    for node in ast.walk(file.tree) if any(isinstance(n, ast.Constant) for n in removed) else ():
        if isinstance(node, ast.Dict):
            # A key goes with its value.
            pairs = zip(node.keys, node.values, strict=True)
            lost.update(n for key, value in pairs if key in removed for n in ast.walk(value))
    if not lost:
        return removed
    new = {name for change in changes for name in _new_names(change)}
    votes = [(_names(c.node), c.is_used_elsewhere) for c in taking]

    def is_used(name: str) -> bool:
        """Return whether an import stays: those decide that take a use of it away."""
        asked = [used for names, used in votes if name in names] or [used for _, used in votes]
        return name in new or any(used is None or used(name) for used in asked)

    return removed | set(unused_imports(file, lost, is_used))


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
    """A file with Changes."""

    def __init__(self, file: File, changes: Sequence[Change]) -> None:
        self.file = file
        self.source = file.source
        self.removed = _removed(file, changes)
        self.changes = changes
        self.chunks = chunks_of(file)

    # -- the new text

    def edits(self) -> list[Edit]:
        """Return what differs between the file and its new text.

        Raises:
            CodemodError: two Changes contradict each other, or LibCST cannot parse the code.
        """
        _check_none_lost(self.changes, self.removed)
        found: list[Edit] = []
        changes, imports = self._by_chunk()
        carried: Lines | None = None  # what the statements above leave, if they changed
        is_first = True
        for number, chunk in enumerate(self.chunks):
            inserts = imports.get(number, [])
            if number not in changes and carried is None:
                found += [Edit(self.source.path, o, o, text) for o, text in inserts]
                is_first = False
                continue
            made, tail = None, Lines()
            if number in changes:
                made, tail = self._statement(chunk, changes[number], is_first)
            if made == []:
                carried, new = seam(carried or [], tail), "".join(text for _, text in inserts)
            else:
                lines = list(made[0].leading_lines if made else chunk.lead)
                if carried is not None:
                    lines = seam(carried, lines, first=is_first)
                rest = chunk.rest
                if made:
                    rest = chunk.code([made[0].with_changes(leading_lines=[]), *made[1:]])
                new = _spliced(chunk, chunk.code_of_lines(lines), inserts, rest)
                carried, is_first = tail or None, False
            found += edits_between(chunk, new)
        if carried is not None:
            found += self._end(trimmed(carried), is_first)
        return found

    def _by_chunk(self) -> tuple[dict[int, list[Change]], dict[int, list[tuple[int, str]]]]:
        """Return the Changes, and the new imports with their offsets, by number of the chunk."""
        changes: dict[int, list[Change]] = defaultdict(list)
        for change in self.changes:
            if not isinstance(change, AddImport):
                changes[self._number_of(change.node)].append(change)
        for node in self.removed:
            changes[self._number_of(node)]  # an import that is unused
        imports: dict[int, list[tuple[int, str]]] = defaultdict(list)
        for offset, text in self._imports():
            imports[self._number_at(offset)].append((offset, text))
        return changes, imports

    def _number_of(self, node: ast.AST) -> int:
        return self._number_at(self.source.span(node).start)  # type: ignore[arg-type]

    def _number_at(self, offset: int) -> int:
        """Return the number of the last chunk that does not start after an offset."""
        return max(bisect_right(self.chunks, offset, key=lambda chunk: chunk.start) - 1, 0)

    def _end(self, carried: Lines, is_empty: bool) -> list[Edit]:
        """Return the edits of the lines behind the last statement, where that is removed."""
        at = self.chunks[-1].end if self.chunks else 0
        footer = Chunk(self.source, [], at, len(self.source.text))
        lines = seam(carried, footer.lead, first=is_empty)
        return edits_between(footer, footer.code_of_lines(trimmed(lines)))

    def _imports(self) -> list[tuple[int, str]]:
        """Return the new imports as whole lines, with the offsets where they are inserted."""
        found: dict[int, tuple[str, str]] = {}
        added = (change for change in self.changes if isinstance(change, AddImport))
        # At one place, `import` comes before `from`.
        for change in sorted(added, key=lambda one: (one.statement[0] == "f", one.statement)):
            before = change.node if isinstance(change.node, ast.stmt) else None
            edit = insert_import(self.source, self.file.tree, change.statement, before=before)
            text, last = found.get(edit.start, (edit.text, change.statement))
            if last != change.statement:
                text = text.replace(last, last + self.source.newline + change.statement)
            found[edit.start] = text, change.statement
        return sorted((start, text) for start, (text, _) in found.items())

    def _statement(
        self, chunk: Chunk, changes: Sequence[Change], is_first: bool
    ) -> tuple[list[Statement], Lines]:
        """Return what a statement becomes, and the lines behind it or instead of it."""
        work = Transformer(chunk.parents)
        new_nodes = NewStatementNodes(chunk, work)
        start, end = chunk.first_line, chunk.end
        for node in self.removed:
            if start <= self.source.span(node).start < end:  # type: ignore[arg-type]
                is_statement = isinstance(node, ast.stmt)
                work.gone.add(chunk.statement(node) if is_statement else chunk.holder(node))
        for change in changes:
            if not _registered_at(change, chunk, work, new_nodes):
                _register(change, chunk, work, new_nodes)
        (parsed,) = chunk.module.body
        own = parsed.body if isinstance(parsed, cst.SimpleStatementLine) else [parsed]
        changed: Any = parsed.visit(work)
        changed = changed.with_changes(leading_lines=[*chunk.lead, *changed.leading_lines])
        return work.statement(own, changed, is_first=is_first, blank_lines=2)


def _register(
    change: Change, chunk: Chunk, work: Transformer, new_nodes: NewStatementNodes
) -> None:
    """Register what a Change does to the nodes of a statement."""
    node, find, holder, new = change.node, chunk.find, chunk.holder, new_nodes.expression

    def at(found: cst.CSTNode, operation: Operation) -> None:
        work.operations.setdefault(found, []).append(operation)

    match change:
        case Keep(part=part):
            code = Code.of("{part}", part=part)
            at(find(node), _replacement(change, code, chunk, work, new_nodes))
        case Replace(code=code):
            work.replaced.add(find(node))
            at(find(node), _replacement(change, code, chunk, work, new_nodes))
        case SetArgument(name=name, code=code, instead_of=ast.AST() as old):
            fields = {"keyword": cst.Name(name), "equal": expressions.TIGHT}
            at(holder(old), lambda arg: arg.with_changes(value=new(code, node), **fields))
        case Remove(label=label) if label:
            at(holder(node), lambda old: without_comment(old, label))
        case NameArgument(name=name):
            at(holder(node), lambda arg: expressions.named(arg, name))
        case Spread():
            arg = holder(node)
            call: Any = chunk.parents[arg]
            index = call.args.index(arg)
            at(call, lambda call: spread(call, index))
        case _ if operation := _operation(change, new_nodes):
            at(find(node), operation)


def _operation(change: Change, new_nodes: NewStatementNodes) -> Operation | None:
    """Return what makes the new node for the one that a Change names."""
    node, new = change.node, new_nodes.expression
    match change:
        case SetArgument(name=name, code=code):
            return lambda call: with_argument(call, name, new(code, node))
        case Rename(name=name):
            return lambda old: expressions.renamed(old, name)
        case InsertArgument(code=code):
            return lambda call: expressions.with_first(call, new(code))
        case ArrangeArguments():
            return lambda call: arranged(call, change, new_nodes)
        case Rewrite(make=make):
            return lambda old: make(old, new_nodes)
    return None


def _replacement(
    change: Change, code: Code, chunk: Chunk, work: Transformer, new_nodes: NewStatementNodes
) -> Operation:
    """Return what puts new code in the place of an expression, in parentheses if it needs them."""
    found = chunk.find(change.node)
    needs_none = is_open(chunk.parents[found], found)

    def put(old: Any) -> Any:
        new = new_nodes.expression(code, change.node, old)
        if isinstance(old, cst.Arg):
            return work.kept_comments(old, old.with_changes(value=new))
        if expressions.is_atom(new) and not expressions.spans_lines(new):
            return work.kept_comments(old, new)
        if old.lpar:
            new = new.with_changes(lpar=old.lpar, rpar=old.rpar)
        return work.kept_comments(old, new if needs_none else expressions.parenthesized(new))

    return put


def _registered_at(
    change: Change, chunk: Chunk, work: Transformer, new_nodes: NewStatementNodes
) -> bool:
    """Register what a Change puts before a statement, or in its place, if it does."""
    if not isinstance(change.node, ast.stmt):
        return False
    instead = _in_place_of(change, new_nodes)
    if instead is not None:
        work.instead[chunk.statement(change.node)] = instead
    elif isinstance(change, Insert):
        before = work.before.setdefault(chunk.statement(change.node), [])
        before += [partial(new_nodes.statement, code) for code in change.statements]
    return instead is not None or isinstance(change, Insert)


def _in_place_of(change: Change, new_nodes: NewStatementNodes) -> Make | None:
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
            return lambda old: make(old, new_nodes)  # type: ignore[return-value]
    return None


def _check_none_lost(changes: Sequence[Change], removed: set[ast.AST]) -> None:
    """Compare what Changes discard with what others change.

    Raises:
        CodemodError: a Change discards code that another one changes.
    """
    changed = {c.node for c in changes if not isinstance(c, AddImport)} | removed
    for change in changes:
        match change:
            case Replace(code=code):
                kept = {part for _, part in code.parts}
            case ReplaceStatement(statements=codes):
                kept = {part for code in codes for _, part in code.parts}
            case Rewrite(discards=True):
                kept = set()
            case _:
                continue
        waiting = list(ast.iter_child_nodes(change.node))
        while waiting:
            node = waiting.pop()
            if node in kept:
                continue
            if node in changed:
                raise CodemodError("another fix replaces code that this one changes")
            waiting += ast.iter_child_nodes(node)


def _spliced(chunk: Chunk, lead: str, inserts: Sequence[tuple[int, str]], rest: str) -> str:
    """Return the lines above a statement with imports among them, and the statement."""
    old = chunk.source.text[chunk.start : chunk.first_line]
    for offset, text in reversed(inserts):
        if offset > chunk.first_line:
            rest += text  # at the end of the file
            continue
        # Where statements above are removed, the imports take their place.
        at = offset - chunk.start if lead == old else 0
        lead = lead[:at] + text + lead[at:]
    return lead + rest
