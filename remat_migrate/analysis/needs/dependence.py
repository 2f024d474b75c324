"""Dependences as data: what a value is computed from, and the JAX operations in between."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ..names.module import Module

Key = str | int
Operation = tuple[Module, ast.expr]
# What a value depends on if not on a parameter: on constants and shapes alone, or on something that
# cannot be seen, such as a variable of an enclosing function or the result of unknown code.
CONSTANTS = ""
UNSEEN = "?"
# Beyond this many items, a value depends on the parameter as a whole.
_MOST_ITEMS = 32


@dataclass(frozen=True, slots=True, eq=False)
class Operations:
    """The `jax.numpy` operations that a value is the result of, which a checkpoint traces.

    Values share them: a chain of n operations takes memory for n of them.

    Attributes:
        last: the last operation, with its module; None where several paths meet.
        before: the operations between what the value depends on and the operands.
        certain: whether the value is certainly an array of JAX; what has methods of the same names
            may be a NumPy array.
    """

    last: Operation | None
    before: tuple[Operations, ...]
    certain: bool = False

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


# Of an array that exists before the checkpoint, or is computed at compile time: it is concrete, but
# operations on it are traced.
CONCRETE_ARRAY = Operations(None, (), certain=True)


@dataclass(frozen=True, slots=True)
class Dependence:
    """A parameter that the value of an expression depends on.

    Attributes:
        parameter: its name, or CONSTANTS or UNSEEN.
        index: the item that is needed, if it is only one: the position in `*args` or a tuple, the
            key in `**kwargs` or a dict, the attribute of an object.
        operations: the `jax.numpy` operations in between, if any: inside a checkpointed function,
            their results are tracers even if nothing traced goes in.
    """

    parameter: str
    index: Key | None = None
    operations: Operations | None = None

    @property
    def traced(self) -> frozenset[Operation]:
        """The operations in between, in any order."""
        return frozenset() if self.operations is None else self.operations.all()

    @property
    def is_array(self) -> bool:
        """Whether the value is certainly an array of JAX."""
        return self.operations is not None and self.operations.certain

    def after(self, operations: Operations) -> Dependence:
        """Return the dependence of a value after further operations."""
        before = [operations] if self.operations is None else [self.operations, operations]
        return Dependence(self.parameter, self.index, _joined(before))


Dependences = frozenset[Dependence]
NONE: Dependences = frozenset()


def _joined(operations: Sequence[Operations]) -> Operations:
    if len(operations) == 1:
        return operations[0]
    return Operations(None, tuple(operations), any(one.certain for one in operations))


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
    found: Iterable[Dependence], module: Module, node: ast.expr, *, certain: bool
) -> Dependences:
    """Return the dependences of an operation's result, given those of its operands.

    Args:
        found: the dependences of the operands.
        module: the module with the operation.
        node: the operation.
        certain: whether JAX certainly computes it.
    """
    results: dict[Operations | None, Operations] = {}
    after: set[Dependence] = set()
    for dependence in found or ([Dependence(CONSTANTS)] if certain else ()):
        before = dependence.operations
        if before not in results:
            operands = () if before is None else (before,)
            results[before] = Operations((module, node), operands, certain)
        after.add(replace(dependence, operations=results[before]))
    return frozenset(after)


def concrete_array(found: Iterable[Dependence]) -> Dependences:
    """Return the dependences of an array of JAX that is concrete."""
    found = list(found) or [Dependence(CONSTANTS)]
    return frozenset(replace(dependence, operations=CONCRETE_ARRAY) for dependence in found)


def python_value(found: Iterable[Dependence]) -> Dependences:
    """Return the dependences of a Python value, such as `int(x)`, however it is computed."""
    return frozenset(
        replace(dependence, operations=None)
        for dependence in found
        if dependence.parameter not in (CONSTANTS, UNSEEN)
    )
