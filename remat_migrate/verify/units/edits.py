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
from typing import Any

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
        self._block(old, new, True, True)
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

    def _block(
        self, old: Sequence[ast.stmt], new: Sequence[ast.stmt], at_old: bool, at_new: bool
    ) -> None:
        old, new = _active(old), _active(new)
        a, b = [content_of(node) for node in old], [content_of(node) for node in new]
        for tag, i, j, k, m in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
            if tag != "equal":
                self._replaced(old[i:j], new[k:m], at_old, at_new)

    def _replaced(
        self, old: Sequence[ast.stmt], new: Sequence[ast.stmt], at_old: bool, at_new: bool
    ) -> None:
        a, b = [_kind(node) for node in old], [_kind(node) for node in new]
        for tag, i, j, k, m in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
            if tag == "equal":
                for before, after in zip(old[i:j], new[k:m], strict=True):
                    self._pair(before, after, at_old, at_new)
            else:
                self.old += (s for node in old[i:j] for s in _whole(node, at_old))
                self.new += (s for node in new[k:m] for s in _whole(node, at_new))

    def _pair(self, old: ast.stmt, new: ast.stmt, at_old: bool, at_new: bool) -> None:
        before, after = header_of(old), header_of(new)
        if isinstance(new, ast.Raise):
            return
        if content_of(before) != content_of(after):
            self.old.append(_statement(old, at_old))
            self.new.append(_statement(new, at_new))
            self._expressions(before, after, at_old, at_new)
        blocks = dict(blocks_of(old))
        for label, block in blocks_of(new):
            inside = _inside(old, at_old), _inside(new, at_new)
            self._block(blocks.pop(label, []), block, *inside)
        for block in blocks.values():
            self._block(block, [], _inside(old, at_old), at_new)

    def _expressions(self, old: ast.AST, new: ast.AST, at_old: bool, at_new: bool) -> None:
        """Add the differing pieces of two expressions that run only sometimes."""
        stack: list[tuple[Any, Any]] = [(old, new)]
        while stack:
            a, b = stack.pop()
            if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
                stack += zip(a, b, strict=True)
            elif isinstance(a, ast.AST) and type(a) is type(b) and not isinstance(a, ast.JoinedStr):
                if content_of(a) == content_of(b):
                    continue
                first, second = dict(_lazy(a)), dict(_lazy(b))
                for label in first.keys() & second.keys():
                    if content_of(first[label]) != content_of(second[label]):
                        self.old.append(_expression(a, first[label], at_old))
                        self.new.append(_expression(b, second[label], at_new))
                stack += ((getattr(a, name, None), getattr(b, name, None)) for name in a._fields)
            else:
                self.old += _all_lazy(a, at_old)
                self.new += _all_lazy(b, at_new)

    def read(
        self,
        old: Sequence[ast.stmt],
        new: Sequence[ast.stmt],
        names: Set[str],
        attributes: Set[str],
    ) -> None:
        """Add the statements that read one of some changed names or attributes."""
        for nodes, found in ((old, self.old), (new, self.new)):
            for node, at_import in _statements(nodes, True):
                read, attributes_read = mentions_of(header_of(node))
                if read & names or attributes_read & attributes:
                    found.append(_statement(node, at_import))
                    for choice, atoms, _ in _choices([header_of(node)]):
                        if not names.isdisjoint(_names(choice)):
                            found += (_decision(atom, at_import) for atom in atoms)
                            self.names.update(dict.fromkeys(_names(choice)))


def _active(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    return [node for node in body if not is_idle(node)]


def _kind(node: ast.stmt) -> tuple[str, str]:
    """Return what two versions of a statement have in common."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return "definition", name
        case ast.Assign(targets=targets):
            return "assignment", " ".join(map(content_of, targets))
        case ast.AnnAssign(target=target) | ast.AugAssign(target=target):
            return "assignment", content_of(target)
    return type(node).__name__, ""


def _statements(body: Sequence[ast.stmt], at_import: bool) -> Iterator[tuple[ast.stmt, bool]]:
    """Yield statements and those in their blocks, except what only leads to an exception."""
    for node in _active(body):
        if isinstance(node, ast.Raise):
            continue
        yield node, at_import
        for _, block in blocks_of(node):
            if not (block and isinstance(block[-1], ast.Raise)):
                yield from _statements(block, _inside(node, at_import))


def _whole(node: ast.stmt, at_import: bool) -> Iterator[Spot]:
    """Yield all pieces of a statement."""
    for inner, at in _statements([node], at_import):
        yield _statement(inner, at)
        yield from _all_lazy(header_of(inner), at)


def _lazy(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Yield the parts of an expression that are not always evaluated with it."""
    match node:
        case ast.IfExp():
            yield "body", node.body
            yield "orelse", node.orelse
        case ast.Lambda():
            yield "body", node.body
        case ast.BoolOp():
            yield from ((str(index), value) for index, value in enumerate(node.values[1:]))
        case ast.ListComp() | ast.SetComp() | ast.GeneratorExp():
            yield "elt", node.elt
        case ast.DictComp():
            yield "value", node.value


def _all_lazy(value: object, at_import: bool) -> Iterator[Spot]:
    """Yield the parts of an expression without a counterpart that may not run with it."""
    stack = list(value) if isinstance(value, list) else [value]
    while stack:
        node = stack.pop()
        if not isinstance(node, ast.AST) or isinstance(node, ast.JoinedStr):
            continue
        for _, part in _lazy(node):
            if any(isinstance(inner, ast.Call) for inner in ast.walk(part)):
                yield _expression(node, part, at_import)
        stack += ast.iter_child_nodes(node)


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


def _inside(node: ast.stmt, at_import: bool) -> bool:
    """Return whether importing runs the blocks of a compound statement."""
    return at_import and not isinstance(node, FunctionDefinition)
