"""Find the pieces of code that differ between two versions of a unit, each to be executed.

A piece is a statement without its blocks, or an expression that its statement evaluates only
sometimes: the body of a lambda, a branch of a conditional expression.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import Any

from ..evidence import Spot
from .meaning import (
    FunctionDefinition,
    blocks_of,
    content_of,
    header_of,
    is_idle,
    mentions_of,
)

_LONGEST_CONDITION = 60
_COMPREHENSIONS = ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a statement is: whether importing runs it, and under which condition."""

    at_import: bool = True
    condition: str = ""

    def inside(self, node: ast.stmt, label: str) -> _Place:
        """Return the place of a block of a compound statement."""
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                return _Place(at_import=False)
            case ast.If(test=test) | ast.While(test=test):
                word = "if" if isinstance(node, ast.If) else "while"
                text = _short(test) if label == "body" else f"not ({_short(test)})"
                return replace(self, condition=f"{word} {text}")
            case ast.For() | ast.AsyncFor():
                return replace(self, condition=f"for {_short(node.target)} in {_short(node.iter)}")
            case ast.Match(subject=subject):
                return replace(self, condition=f"match {_short(subject)}")
            case ast.Try() if label.startswith("except"):
                return replace(self, condition="except")
        return self


class Edits:
    """Collects the differing pieces of an old and a new version."""

    def __init__(self) -> None:
        self.old: list[Spot] = []
        self.new: list[Spot] = []

    @property
    def spots(self) -> tuple[tuple[Spot, ...], tuple[Spot, ...]]:
        """The pieces of both versions, each once."""
        return tuple(dict.fromkeys(self.old)), tuple(dict.fromkeys(self.new))

    def compare(self, old: Sequence[ast.stmt], new: Sequence[ast.stmt]) -> None:
        """Add the differences between two versions of some module-level statements."""
        self._block(old, new, _Place(), _Place())

    def compare_headers(self, old: Sequence[ast.stmt], new: Sequence[ast.stmt]) -> None:
        """As `compare`, without the blocks of the statements."""
        before, after = ([content_of(header_of(node)) for node in side] for side in (old, new))
        if before != after:
            self.old += (_statement(node, _Place()) for node in old)
            self.new += (_statement(node, _Place()) for node in new)

    def _block(
        self, old: Sequence[ast.stmt], new: Sequence[ast.stmt], at_old: _Place, at_new: _Place
    ) -> None:
        old, new = _active(old), _active(new)
        a, b = [content_of(node) for node in old], [content_of(node) for node in new]
        for tag, i, j, k, m in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
            if tag != "equal":
                self._replaced(old[i:j], new[k:m], at_old, at_new)

    def _replaced(
        self, old: Sequence[ast.stmt], new: Sequence[ast.stmt], at_old: _Place, at_new: _Place
    ) -> None:
        a, b = [_kind(node) for node in old], [_kind(node) for node in new]
        for tag, i, j, k, m in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
            if tag == "equal":
                for before, after in zip(old[i:j], new[k:m], strict=True):
                    self._pair(before, after, at_old, at_new)
            else:
                self.old += (s for node in old[i:j] for s in _whole(node, at_old))
                self.new += (s for node in new[k:m] for s in _whole(node, at_new))

    def _pair(self, old: ast.stmt, new: ast.stmt, at_old: _Place, at_new: _Place) -> None:
        before, after = header_of(old), header_of(new)
        if isinstance(new, ast.Raise):
            return
        if content_of(before) != content_of(after):
            self.old.append(_statement(old, at_old))
            self.new.append(_statement(new, at_new))
            self._expressions(before, after, at_old, at_new)
        blocks = dict(blocks_of(old))
        for label, block in blocks_of(new):
            inside = at_old.inside(old, label), at_new.inside(new, label)
            self._block(blocks.pop(label, []), block, *inside)
        for label, block in blocks.items():
            self._block(block, [], at_old.inside(old, label), at_new)

    def _expressions(self, old: ast.AST, new: ast.AST, at_old: _Place, at_new: _Place) -> None:
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
            for node, place in _statements(nodes, _Place()):
                read, attributes_read = mentions_of(header_of(node))
                if read & names or attributes_read & attributes:
                    found.append(_statement(node, place))


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


def _statements(body: Sequence[ast.stmt], place: _Place) -> Iterator[tuple[ast.stmt, _Place]]:
    """Yield statements and those in their blocks, except what only leads to an exception."""
    for node in _active(body):
        if isinstance(node, ast.Raise):
            continue
        yield node, place
        for label, block in blocks_of(node):
            if not (block and isinstance(block[-1], ast.Raise)):
                yield from _statements(block, place.inside(node, label))


def _whole(node: ast.stmt, place: _Place) -> Iterator[Spot]:
    """Yield all pieces of a statement."""
    for inner, at in _statements([node], place):
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


def _all_lazy(value: object, place: _Place) -> Iterator[Spot]:
    """Yield the parts of an expression without a counterpart that may not run with it."""
    stack = list(value) if isinstance(value, list) else [value]
    while stack:
        node = stack.pop()
        if not isinstance(node, ast.AST) or isinstance(node, ast.JoinedStr):
            continue
        for _, part in _lazy(node):
            if any(isinstance(inner, ast.Call) for inner in ast.walk(part)):
                yield _expression(node, part, place)
        stack += ast.iter_child_nodes(node)


def _statement(node: ast.stmt, place: _Place) -> Spot:
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
        at_import=place.at_import,
        condition=place.condition,
    )


_DECORATED = FunctionDefinition | ast.ClassDef


def _expression(around: ast.AST, node: ast.expr, place: _Place) -> Spot:
    match around:
        case ast.IfExp(test=test):
            text = _short(test)
            place = replace(place, condition=f"if {text}" if node is around.body else f"not {text}")
        case ast.Lambda():
            place = _Place(at_import=False, condition="lambda")
        case _ if isinstance(around, _COMPREHENSIONS):
            place = replace(place, condition="comprehension")
    last = node.end_lineno or node.lineno
    return Spot(
        node.lineno,
        node.col_offset,
        last,
        node.end_col_offset or 0,
        node.lineno,
        last,
        is_expression=True,
        at_import=place.at_import,
        condition=place.condition,
    )


def _short(node: ast.expr) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= _LONGEST_CONDITION else text[: _LONGEST_CONDITION - 3] + "..."
