"""Dependences as data: parameters, and the operations between them and an expression."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..names.module import Module

Key = str | int
Operation = tuple[Module, ast.expr]
# Beyond this many items, a value depends on the parameter as a whole.
_MOST_ITEMS = 32


@dataclass(frozen=True, slots=True, eq=False)
class Operations:
    """The `jax.numpy` operations between a parameter and a value.

    Values share them: a chain of n operations takes memory for n of them.

    Attributes:
        last: the last operation, with its module; None where several paths meet.
        before: the operations between the parameters and the operands.
    """

    last: Operation | None
    before: tuple[Operations, ...]

    def all(self) -> frozenset[Operation]:
        """Return every operation."""
        found: set[Operation] = set()
        seen = {self}
        waiting = [self]
        while waiting:
            operations = waiting.pop()
            if operations.last is not None:
                found.add(operations.last)
            new = set(operations.before) - seen
            seen |= new
            waiting += new
        return frozenset(found)


@dataclass(frozen=True, slots=True)
class Dependence:
    """A parameter that the value of an expression depends on.

    Attributes:
        parameter: its name.
        index: the item that is needed, if it is only one: the position in `*args` or a tuple, the
            key in `**kwargs` or a dict, the attribute of an object.
        operations: the `jax.numpy` operations in between, if any: inside a checkpointed function,
            their results are tracers even if the parameter is static.
    """

    parameter: str
    index: Key | None = None
    operations: Operations | None = None

    @property
    def traced(self) -> frozenset[Operation]:
        """The operations in between, in any order."""
        return frozenset() if self.operations is None else self.operations.all()

    def after(self, operations: Operations) -> Dependence:
        """Return the dependence of a value after further operations."""
        before = [operations] if self.operations is None else [self.operations, operations]
        return Dependence(self.parameter, self.index, _joined(before))


Dependences = frozenset[Dependence]
NONE: Dependences = frozenset()


def _joined(operations: Sequence[Operations]) -> Operations:
    return operations[0] if len(operations) == 1 else Operations(None, tuple(operations))


def merged(found: Iterable[Dependence]) -> Dependences:
    """Merge the dependences on each parameter into one with operations and one without.

    It does not matter which operations are on the same path, and every `x = x + jnp.sin(x)` doubles
    the number of paths.
    """
    items: dict[tuple[str, bool], dict[Key | None, dict[Operations, None]]] = {}
    for dependence in found:
        operations = dependence.operations
        alike = items.setdefault((dependence.parameter, operations is None), {})
        paths = alike.setdefault(dependence.index, {})
        if operations is not None:
            paths[operations] = None
    for alike in items.values():
        if len(alike) > _MOST_ITEMS:
            together = {one: None for paths in alike.values() for one in paths}
            alike.clear()
            alike[None] = together
    return frozenset(
        Dependence(parameter, index, _joined(list(paths)) if paths else None)
        for (parameter, _), alike in items.items()
        for index, paths in alike.items()
    )


def with_operation(
    found: Iterable[Dependence], module: Module, node: ast.expr, *, traced_only: bool = False
) -> Dependences:
    """Return the dependences of an operation's result, given those of its operands.

    Args:
        found: the dependences of the operands.
        module: the module with the operation.
        node: the operation.
        traced_only: whether it is an operation on tracers only.
    """
    results: dict[Operations | None, Operations] = {}
    after: set[Dependence] = set()
    for dependence in found:
        before = dependence.operations
        if before is None and traced_only:
            after.add(dependence)
            continue
        if before not in results:
            results[before] = Operations((module, node), () if before is None else (before,))
        after.add(Dependence(dependence.parameter, dependence.index, results[before]))
    return frozenset(after)
