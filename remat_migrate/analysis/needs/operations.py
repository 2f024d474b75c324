"""What an expression depends on, as data: parameters, and the operations in between."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..names.module import Module

Key = str | int
Operation = tuple[Module, ast.expr]
# A value that depends on more items of a parameter than this depends on the parameter.
_MOST_ITEMS = 32


@dataclass(frozen=True, slots=True, eq=False)
class Operations:
    """`jax.numpy` operations that a value went through.

    They are shared, not copied: in a chain of n operations all of them together take n places.

    Attributes:
        last: the latest operation, with its module; None where ways meet.
        before: what the operands went through.
    """

    last: Operation | None
    before: tuple[Operations, ...]

    def all(self) -> frozenset[Operation]:
        """Every operation."""
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
    """An expression needs the value of a parameter.

    Attributes:
        parameter: its name.
        index: the item of it, where only one is needed: the position in `*args` or a tuple, the key
            in `**kwargs` or a dict, the attribute of an object.
        through: the `jax.numpy` operations between the parameter and the expression, if there are
            any: inside a checkpointed function their results are tracers even where the parameter
            is static.
    """

    parameter: str
    index: int | str | None = None
    through: Operations | None = None

    @property
    def traced(self) -> frozenset[Operation]:
        """The operations between the parameter and the expression, in any order."""
        return frozenset() if self.through is None else self.through.all()

    def after(self, operations: Operations) -> Dependence:
        """The dependence of a value that went through further operations."""
        before = [operations] if self.through is None else [self.through, operations]
        return Dependence(self.parameter, self.index, joined(before))


Dependences = frozenset[Dependence]
NONE: Dependences = frozenset()


def joined(operations: Sequence[Operations]) -> Operations:
    """Operations as one."""
    return operations[0] if len(operations) == 1 else Operations(None, tuple(operations))


def merged(found: Iterable[Dependence]) -> Dependences:
    """For each parameter one dependence with all operations, and one without where there is one.

    Which operations lie on the same way does not matter, and there are twice as many ways after
    every `x = x + jnp.sin(x)`.
    """
    items: dict[tuple[str, bool], dict[int | str | None, dict[Operations, None]]] = {}
    for dependence in found:
        through = dependence.through
        alike = items.setdefault((dependence.parameter, through is None), {})
        operations = alike.setdefault(dependence.index, {})
        if through is not None:
            operations[through] = None
    for alike in items.values():
        if len(alike) > _MOST_ITEMS:
            together = {one: None for operations in alike.values() for one in operations}
            alike.clear()
            alike[None] = together
    return frozenset(
        Dependence(parameter, index, joined(list(operations)) if operations else None)
        for (parameter, _), alike in items.items()
        for index, operations in alike.items()
    )


def through(
    found: Iterable[Dependence], module: Module, node: ast.expr, *, traced_only: bool = False
) -> Dependences:
    """The dependences of the result of an operation; with `traced_only`, one on tracers alone."""
    results: dict[Operations | None, Operations] = {}
    after: set[Dependence] = set()
    for dependence in found:
        before = dependence.through
        if before is None and traced_only:
            after.add(dependence)
            continue
        if before not in results:
            results[before] = Operations((module, node), () if before is None else (before,))
        after.add(Dependence(dependence.parameter, dependence.index, results[before]))
    return frozenset(after)
