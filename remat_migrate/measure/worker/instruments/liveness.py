"""Compute the peak of live bytes of a jaxpr, run in the order of its equations.

Arguments do not count; outputs count until the end. Views, such as reshapes and transposes, share
the bytes of their operand, except for transposes that a loop reads. A loop needs the peak of its
body in addition to its outputs; a checkpoint needs the larger of its peak and its outputs. Calls of
jitted functions are inlined. Arrays that a policy offloads to host memory do not count. Fusion,
scheduling and merged operations only show in the compiled program.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from typing import Any

import numpy as np

from ..inlining import inlined
from ..internals import internals

VIEWS = frozenset(
    [
        "broadcast_in_dim",
        "copy",
        "name",
        "optimization_barrier",
        "reduce_precision",
        "reshape",
        "squeeze",
        "stop_gradient",
        "transpose",
    ]
)

# Primitives whose result may have the shape of an input, but needs more than one of its elements.
_NOT_ELEMENTWISE = ("cholesky", "dot_general", "fft", "sort", "triangular_solve")


def peak(jaxpr: Any, arguments: int | None = None, counted: Collection[Any] = ()) -> int:
    """Return the peak of live bytes.

    Args:
        jaxpr: open or closed jaxpr, without dead code.
        arguments: bytes of the arguments of a training step, None for any other program. A step
            has its arguments and outputs throughout, an output in the memory of a donated argument
            of the same type where there is one. Its end, where elementwise operations update
            parameters and optimizer state, needs no further memory.
        counted: arguments that count, from the start to their last use.
    """
    if arguments is None:
        return Liveness(jaxpr, counted=counted).peak()
    opened = internals().opened(jaxpr)
    free = Counter(str(variable.aval) for variable in donated_arguments(opened))
    kept = arguments
    for atom in set(_variables(opened.outvars)).difference(opened.invars):
        if free[str(atom.aval)]:
            free[str(atom.aval)] -= 1
        else:
            kept += size(atom.aval)
    return Liveness(jaxpr, is_step=True).peak() + kept


def donated_arguments(jaxpr: Any) -> set[Any]:
    """Return the arguments of an open jaxpr that it donates to a jitted function."""
    arguments = set(jaxpr.invars)
    return {
        atom
        for equation in jaxpr.eqns
        if internals().is_inlined_call(equation)
        for atom, is_donated in zip(equation.invars, equation.params.get("donated_invars", ()))
        if is_donated and not internals().is_literal(atom) and atom in arguments
    }


def host_bytes(jaxpr: Any) -> int:
    """Return the bytes that a jaxpr moves to host memory, in all iterations of its loops."""
    total = 0
    for equation in internals().opened(jaxpr).eqns:
        _, bodies, times = internals().inner(equation)
        total += times * sum(map(host_bytes, bodies))
        if internals().name(equation) == "device_put":
            total += sum(size(one.aval) for one in equation.outvars if _is_on_host(one.aval))
    return total


def size(aval: Any) -> int:
    """Return the bytes of an array of this abstract value; 0 if it is not an array."""
    shape, dtype = getattr(aval, "shape", None), getattr(aval, "dtype", None)
    if shape is None or dtype is None:
        return 0
    try:
        itemsize = np.dtype(dtype).itemsize
    except TypeError:
        # PRNG keys, and types that numpy lacks.
        itemsize = getattr(dtype, "itemsize", 4)
    return math.prod(map(int, shape)) * int(itemsize)


def _is_on_host(aval: Any) -> bool:
    """Return whether an array is offloaded to host memory; known since jax 0.7."""
    space = getattr(aval, "memory_space", None)
    return getattr(space, "name", None) == "Host"


def _variables(atoms: Iterable[Any]) -> Iterator[Any]:
    return (atom for atom in atoms if not internals().is_literal(atom))


class Liveness:
    """The lifetimes of the values of a jaxpr, with calls of jitted functions inlined."""

    def __init__(
        self,
        jaxpr: Any,
        known: dict[int, int] | None = None,
        *,
        is_step: bool = False,
        counted: Collection[Any] = (),
    ) -> None:
        """Find the first and last use of each value.

        Args:
            jaxpr: open or closed jaxpr, without dead code.
            known: cache of the peaks of jaxprs inside it.
            is_step: whether it is a training step, whose outputs do not count.
            counted: arguments that count.
        """
        self._known = {} if known is None else known
        opened = inlined(jaxpr)[0]
        self._equations = opened.eqns
        # For each view, its operand.
        self._operand: dict[Any, Any] = {}
        # The last equation that uses each value or a view of it.
        self._last: dict[Any, int] = {}
        # The equation that makes each value that is not a view, and its bytes.
        self._made: dict[Any, tuple[int, int]] = {}
        looped: set[Any] = set()
        for equation in reversed(opened.eqns):
            is_view = internals().name(equation) in VIEWS and not looped.isdisjoint(
                equation.outvars
            )
            if is_view or internals().inner(equation)[0] == "loop":
                looped.update(_variables(equation.invars))
        for number, equation in enumerate(opened.eqns):
            self._last.update((self._root(v), number) for v in _variables(equation.invars))
            name = internals().name(equation)
            # A loop cannot read across the order of an array in memory.
            is_copied = name == "transpose" and not looped.isdisjoint(equation.outvars)
            if name in VIEWS and not is_copied:
                pairs = zip(equation.outvars, equation.invars)
                self._operand.update(p for p in pairs if not internals().is_literal(p[1]))
            for made in equation.outvars:
                if made not in self._operand:
                    count = 0 if _is_on_host(made.aval) else size(made.aval)
                    self._made[made] = number, count
        outputs = [self._root(variable) for variable in _variables(opened.outvars)]
        self._last.update(dict.fromkeys(outputs, len(opened.eqns)))
        self._made.update(
            {v: (-1, size(v.aval)) for v in opened.invars if v in counted and v in self._last}
        )
        if is_step:
            self._made.update({v: (self._made[v][0], 0) for v in outputs if v in self._made})
            while self._equations and _is_fused(self._equations[-1]):
                self._equations = self._equations[:-1]

    def _root(self, variable: Any) -> Any:
        """Return the value that a view shares its bytes with."""
        while variable in self._operand:
            variable = self._operand[variable]
        return variable

    def peak(self) -> int:
        """Return the peak of live bytes."""
        freed: dict[int, list[Any]] = {}
        for variable, number in self._last.items():
            freed.setdefault(number, []).append(variable)
        live = most = sum(count for made, count in self._made.values() if made < 0)
        for number, equation in enumerate(self._equations):
            made = sum(self.size_of(v) for v in set(equation.outvars) if self._is_made(v))
            how, bodies, _ = internals().inner(equation)
            inside = max(map(self._peak_of, bodies), default=0)
            most = max(most, live + (made + inside if how == "loop" else max(made, inside)))
            live += made - sum(map(self.size_of, freed.get(number, ())))
        return max(most, live)

    def _is_made(self, variable: Any) -> bool:
        return variable in self._made and variable in self._last

    def _peak_of(self, body: Any) -> int:
        opened = internals().opened(body)
        if id(opened) not in self._known:
            self._known[id(opened)] = Liveness(body, self._known).peak()
        return self._known[id(opened)]

    def named(self, name: str) -> tuple[int, Any]:
        """Return the number of the equation that gives a name, and the value that gets it."""
        return next(
            (number, equation.outvars[0])
            for number, equation in enumerate(self._equations)
            if internals().name(equation) == "name" and internals().label(equation) == name
        )

    def is_used(self, variable: Any, after: int) -> bool:
        """Return whether a value or a view of it is used after an equation."""
        return self._last.get(self._root(variable), -1) > after

    def size_of(self, variable: Any) -> int:
        """Return the bytes of a value; 0 for an argument."""
        return self._made.get(self._root(variable), (0, 0))[1]

    def live_after(self, number: int) -> int:
        """Return the bytes of the values that are made up to an equation and used after it."""
        return sum(
            count
            for variable, (made, count) in self._made.items()
            if made <= number < self._last.get(variable, -1)
        )


def _is_fused(equation: Any) -> bool:
    """Return whether XLA fuses an equation at the end of a program with others there."""
    name = internals().name(equation)
    if name in VIEWS or name.startswith("reduce_"):
        return True
    shape = getattr(equation.outvars[0].aval, "shape", None)
    shapes = (getattr(atom.aval, "shape", None) for atom in equation.invars)
    is_elementwise = name not in _NOT_ELEMENTWISE and not internals().inner(equation)[0]
    return is_elementwise and all(one in ((), shape) for one in shapes)
