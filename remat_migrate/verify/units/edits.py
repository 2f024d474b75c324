"""Find the pieces of code that differ between two versions of a unit, each to be executed.

A piece is a statement without its blocks, an expression that its statement evaluates only
sometimes, such as the body of a lambda, or a decision of Python: a condition, `min`, `max`. Each
outcome of a decision that the other version lacks must occur.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from difflib import SequenceMatcher
from typing import Any, NamedTuple

from ..evidence import Spot
from .outline import (
    FunctionDefinition,
    blocks_of,
    content_of,
    header_of,
    is_idle,
    mentions_of,
)


class Edits:
    """Collects the differing pieces of an old and a new version.

    Attributes:
        old: the pieces of the old version.
        new: the pieces of the new version.
        constants: the numbers and strings in decisions and arithmetic that one version lacks.
        names: the names and attributes that these read, then those that they depend on.
    """

    def __init__(self) -> None:
        self.old: list[Spot] = []
        self.new: list[Spot] = []
        self.constants: dict[str | int | float, None] = {}
        self.names: dict[str, None] = {}

    @property
    def spots(self) -> tuple[tuple[Spot, ...], tuple[Spot, ...]]:
        """The pieces of both versions, each once."""
        return tuple(dict.fromkeys(self.old)), tuple(dict.fromkeys(self.new))

    @property
    def values(self) -> Mapping[str, Sequence[Any]]:
        """What the values of inputs for which decisions go another way depend on."""
        return {"names": [*self.names], "constants": [*self.constants]}

    def compare(self, old: Sequence[ast.stmt], new: Sequence[ast.stmt]) -> None:
        """Add the differences between two versions of some module-level statements."""
        first, second = list(_parts(old)), list(_parts(new))
        a, b = [part.key for part in first], [part.key for part in second]
        for tag, i, j, k, m in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
            if tag != "equal":
                self.old += (part.spot for part in first[i:j] if not part.is_moved(second))
                self.new += (part.spot for part in second[k:m] if not part.is_moved(first))
        self._decisions(old, new, self.old)
        self._decisions(new, old, self.new)

    def _decisions(
        self, own: Sequence[ast.stmt], other: Sequence[ast.stmt], found: list[Spot]
    ) -> None:
        """Add the decisions of one version that the other lacks, wherever they are."""
        left = Counter(content_of(node) for node, _, _ in _choices(other))
        for node, atoms, at_import in _choices(own):
            content = content_of(node)
            left[content] -= 1
            if left[content] < 0:
                found += (_decision(atom, at_import) for atom in atoms)
                self.constants.update(dict.fromkeys(_constants(node)))
                self.names.update(dict.fromkeys(_names(node)))
        self.names.update(dict.fromkeys(sorted(_sources(self.names, own))))

    def compare_headers(self, old: Sequence[ast.stmt], new: Sequence[ast.stmt]) -> None:
        """As `compare`, without the blocks of the statements."""
        before, after = ([content_of(header_of(node)) for node in side] for side in (old, new))
        if before != after:
            self.old += (_statement(node, True) for node in old)
            self.new += (_statement(node, True) for node in new)

    def read(
        self,
        old: Sequence[ast.stmt],
        new: Sequence[ast.stmt],
        names: Set[str],
        attributes: Set[str],
    ) -> None:
        """Add the statements that read one of some changed names or attributes."""
        for nodes, found in ((old, self.old), (new, self.new)):
            for node, _, spot, _ in _parts(nodes):
                if not isinstance(node, ast.stmt):
                    continue
                header = header_of(node)
                read, attributes_read = mentions_of(header)
                if read & names or attributes_read & attributes:
                    found.append(spot)
                    for choice, atoms, _ in _choices([header]):
                        if not names.isdisjoint(_names(choice)):
                            found += (_decision(atom, spot.at_import) for atom in atoms)
                            self.names.update(dict.fromkeys(_names(choice)))


class _Part(NamedTuple):
    """A statement without its blocks, or an expression that it evaluates only sometimes.

    Attributes:
        node: the statement or the expression.
        key: its meaning, and the blocks that it is in.
        spot: where it is.
        calls: whether it is a statement, or has calls.
    """

    node: ast.stmt | ast.expr
    key: tuple[str, ...]
    spot: Spot
    calls: bool = True

    def is_moved(self, others: Iterable[_Part]) -> bool:
        """Return whether it is an expression without calls that others have in another place."""
        return not self.calls and any(self.key[-1] == other.key[-1] for other in others)


def _parts(
    body: Sequence[ast.stmt], place: tuple[str, ...] = (), at_import: bool = True
) -> Iterator[_Part]:
    """Yield the parts of statements and of those in their blocks."""
    for node in body:
        if is_idle(node) or isinstance(node, ast.Raise):
            continue
        header = header_of(node)
        yield _Part(node, (*place, content_of(header)), _statement(node, at_import))
        waiting = [(header, at_import)]
        for around, at in waiting:
            if isinstance(around, ast.JoinedStr):
                continue
            for part in _lazy(around):
                calls = any(isinstance(inner, ast.Call) for inner in ast.walk(part))
                key, spot = (*place, "if", content_of(part)), _expression(around, part, at)
                yield _Part(part, key, spot, calls)
            at = at and not isinstance(around, ast.Lambda)
            waiting += ((child, at) for child in ast.iter_child_nodes(around))
        inside = at_import and not isinstance(node, FunctionDefinition)
        name = getattr(node, "name", "")
        for label, block in blocks_of(node):
            yield from _parts(block, (*place, name, label), inside)


def _lazy(node: ast.AST) -> Sequence[ast.expr]:
    """Return the parts of an expression that are not always evaluated with it."""
    match node:
        case ast.IfExp():
            return node.body, node.orelse
        case ast.Lambda():
            return (node.body,)
        case ast.BoolOp():
            return node.values[1:]
        case ast.ListComp() | ast.SetComp() | ast.GeneratorExp():
            return (node.elt,)
        case ast.DictComp():
            return (node.value,)
    return ()


def _choices(body: Iterable[ast.AST]) -> Iterator[tuple[ast.AST, list[ast.expr], bool]]:
    """Yield decisions and arithmetic: the expression, what it decides by, whether at import."""
    stack: list[tuple[ast.AST, bool, bool]] = [(node, True, False) for node in body]
    while stack:
        node, at_import, is_term = stack.pop()
        match node:
            case ast.JoinedStr():
                continue
            case ast.BinOp() if is_term:
                pass  # it is part of what has been yielded
            case (
                ast.If(test=test)
                | ast.While(test=test)
                | ast.Assert(test=test)
                | ast.IfExp(test=test)
                | ast.match_case(guard=ast.expr() as test)
            ):
                yield test, list(_atoms(test)), at_import
            case ast.comprehension(ifs=tests):
                yield from ((test, list(_atoms(test)), at_import) for test in tests)
            case ast.BoolOp(values=[*tests, _]):
                yield node, [atom for test in tests for atom in _atoms(test)], at_import
            case ast.Compare() | ast.Call(ast.Name(id="min" | "max"), [_, _, *_], []):
                yield node, [node], at_import
            case ast.BinOp() | ast.Assign(value=ast.Constant()):
                yield node, [], at_import
        inside = at_import and not isinstance(node, FunctionDefinition | ast.Lambda)
        is_term = isinstance(node, ast.BinOp)
        stack += ((child, inside, is_term) for child in ast.iter_child_nodes(node))


def _atoms(test: ast.expr) -> Iterator[ast.expr]:
    """Yield the conditions that a condition combines."""
    match test:
        case ast.BoolOp(values=values):
            for value in values:
                yield from _atoms(value)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield from _atoms(operand)
        case _ if not isinstance(test, ast.Constant):
            yield test


def _decision(node: ast.expr, at_import: bool) -> Spot:
    outcomes = ["true", "false"]
    match node:
        case ast.Call(ast.Name(id="min" | "max"), [_, _, *_] as options, []):
            outcomes = [_text(option) for option in options]
    spot = _expression(node, node, at_import)
    return replace(spot, text=_text(node), outcomes=tuple(outcomes))


def _text(node: ast.expr) -> str:
    try:
        return ast.unparse(node)
    except RecursionError:
        return "an expression"


def _constants(node: ast.AST) -> Iterator[str | int | float]:
    for part in ast.walk(node):
        match part:
            case ast.UnaryOp(ast.USub(), ast.Constant(int() | float() as number)):
                yield -number
            case ast.Constant(str() | int() | float() as constant):
                yield constant


def _names(node: ast.AST) -> Iterator[str]:
    """Yield the names, attributes, and keys in some code."""
    for part in ast.walk(node):
        match part:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.Constant(str() as name):
                yield name


def _sources(names: Iterable[str], body: Sequence[ast.stmt]) -> set[str]:
    """Return the names that the assignments to some names read, directly or not."""
    assigned: list[tuple[set[str], set[str]]] = []
    for node in (part for statement in body for part in ast.walk(statement)):
        target = getattr(node, "target", None) or ast.Tuple(getattr(node, "targets", []))
        value = getattr(node, "value", None) or getattr(node, "iter", None)
        if value and (targets := set(_names(target))):
            assigned.append((targets, set(_names(value))))
    found = set(names)
    known = -1
    while len(found) > known:
        known = len(found)
        for targets, read in assigned:
            if not found.isdisjoint(targets):
                found |= read
    return found


def _statement(node: ast.stmt, at_import: bool) -> Spot:
    last = max(
        (
            part.end_lineno or part.lineno
            for child in ast.iter_child_nodes(header_of(node))
            for part in ast.walk(child)
            if isinstance(part, ast.expr | ast.arg | ast.keyword)
        ),
        default=node.lineno,
    )
    decorators = node.decorator_list if isinstance(node, _DECORATED) else []
    return Spot(
        node.lineno,
        node.col_offset,
        node.end_lineno or node.lineno,
        node.end_col_offset or 0,
        min((part.lineno for part in decorators), default=node.lineno),
        max(last, node.lineno),
        is_expression=False,
        at_import=at_import,
    )


_DECORATED = FunctionDefinition | ast.ClassDef


def _expression(around: ast.AST, node: ast.expr, at_import: bool) -> Spot:
    last = node.end_lineno or node.lineno
    return Spot(
        node.lineno,
        node.col_offset,
        last,
        node.end_col_offset or 0,
        node.lineno,
        last,
        is_expression=True,
        at_import=at_import and not isinstance(around, ast.Lambda),
    )
