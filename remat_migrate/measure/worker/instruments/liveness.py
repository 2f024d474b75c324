"""Compute the peak of live bytes of a jaxpr, run in the order of its equations.

Arguments do not count; outputs count until the end. Views, such as reshapes and transposes, share
the bytes of their operand. A loop needs the peak of its body in addition to its outputs; a
checkpoint needs the larger of its peak and its outputs. Calls of jitted functions are inlined.
Arrays that a policy offloads to host memory do not count. Fusion, scheduling and merged operations
only show in the compiled program.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator
from typing import (
    Any,
    NamedTuple,
)

import numpy as np

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

# Primitives whose result has the shape of an input, but needs more than one of its elements.
_NOT_ELEMENTWISE = frozenset(
    (
        "cholesky",
        "cumlogsumexp",
        "cummax",
        "cummin",
        "cumprod",
        "cumsum",
        "dot_general",
        "fft",
        "optimization_barrier",
        "random_bits",
        "rev",
        "sort",
        "triangular_solve",
    )
)


def peak(jaxpr: Any, arguments: int | None = None, counted: Collection[Any] = ()) -> int:
    """Return the peak of live bytes.

    Args:
        jaxpr: open or closed jaxpr, without dead code.
        arguments: bytes of the arguments of a training step, None for any other program. A step
            has its arguments and outputs throughout, an output in the memory of a donated argument
            of the same type where there is one. At its end, where parameters and optimizer state
            are updated, elementwise operations are fused.
        counted: arguments that count, from the start to their last use.
    """
    if arguments is None:
        return _Liveness(internals().opened(jaxpr), {}, counted=counted).peak()
    opened = internals().opened(jaxpr)
    free = Counter(str(variable.aval) for variable in donated_arguments(opened))
    kept = arguments
    outputs = {atom for atom in opened.outvars if not _is_literal(atom)}
    for atom in outputs.difference(opened.invars):
        if free[str(atom.aval)]:
            free[str(atom.aval)] -= 1
        else:
            kept += size(atom.aval)
    return _Liveness(opened, {}, is_step=True).peak() + kept


def donated_arguments(jaxpr: Any) -> set[Any]:
    """Return the arguments of an open jaxpr that it donates to a jitted function."""
    arguments = set(jaxpr.invars)
    return {
        atom
        for equation in jaxpr.eqns
        if internals().is_inlined_call(equation)
        for atom, is_donated in zip(equation.invars, equation.params.get("donated_invars", ()))
        if is_donated and not _is_literal(atom) and atom in arguments
    }


def _peak(jaxpr: Any, known: dict[int, int]) -> int:
    """Return the peak of a jaxpr."""
    opened = internals().opened(jaxpr)
    if id(opened) not in known:
        known[id(opened)] = _Liveness(opened, known).peak()
    return known[id(opened)]


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


class LiveAtMark:
    """The values that are live at an equation that names a value.

    Attributes:
        bytes: bytes of the values that are used afterwards, except arguments.
    """

    def __init__(self, jaxpr: Any, mark: str) -> None:
        """Find the name `mark`.

        Args:
            jaxpr: open jaxpr, without dead code.
            mark: name that occurs once; the value that it names does not count.
        """
        self._run = run = _Liveness(jaxpr, {})
        self._names = run.named()
        self._at, marked = self._names[mark]
        self.bytes = run.live_after(self._at) - run.size_of(marked)

    def is_read(self, variable: Any) -> bool:
        """Return whether an argument is used after the mark."""
        return self._run.last_use(variable) > self._at

    def is_named(self, name: str) -> bool:
        """Return whether the value of another name is used after the mark."""
        if name not in self._names:
            return False  # dead code
        return self._run.last_use(self._names[name][1]) > self._at


class _Step(NamedTuple):
    """An equation of an inlined jaxpr. Values have unique names, even if a jaxpr is called twice.

    Attributes:
        equation: the equation.
        read: names of its inputs, except literals.
        made: names of its outputs, each with its bytes.
    """

    equation: Any
    read: tuple[Any, ...]
    made: tuple[tuple[Any, int], ...]


class _Liveness:
    """The lifetimes of the values of an open jaxpr."""

    def __init__(
        self,
        jaxpr: Any,
        known: dict[int, int],
        *,
        is_step: bool = False,
        counted: Collection[Any] = (),
    ) -> None:
        """Find the first and last use of each value.

        Args:
            jaxpr: open jaxpr.
            known: cache of peaks.
            is_step: whether it is a training step, whose outputs do not count.
            counted: arguments that count.
        """
        self._known = known
        # For each view, the name of its operand.
        self._operand: dict[Any, Any] = {}
        names = {variable: variable for variable in (*jaxpr.constvars, *jaxpr.invars)}
        self._steps = list(self._inlined(jaxpr, names))
        # The last step that uses each value or a view of it.
        self._last: dict[Any, int] = {}
        for number, step in enumerate(self._steps):
            for name in step.read:
                self._last[self._root(name)] = number
        for atom in jaxpr.outvars:
            if not _is_literal(atom):
                self._last[self._root(names[atom])] = len(self._steps)
        # The step that makes each value that is not a view, and its bytes.
        self._made: dict[Any, tuple[int, int]] = {
            name: (number, count)
            for number, step in enumerate(self._steps)
            for name, count in step.made
            if name not in self._operand
        }
        given = (name for name in jaxpr.invars if name in counted and name in self._last)
        self._made.update({name: (-1, size(name.aval)) for name in given})
        self._given = sum(count for made, count in self._made.values() if made < 0)
        if is_step:
            self._fuse_end()
            for name, (number, _) in self._made.items():
                if self._last.get(name) == len(self._steps):
                    self._made[name] = number, 0

    def _fuse_end(self) -> None:
        """Give no bytes to elementwise results that only elementwise operations and sums read.

        Their inputs are live until the last use of the result instead. This holds for operations
        that no matrix product, loop or call depends on.
        """
        needed: set[Any] = set()
        for number in reversed(range(len(self._steps))):
            step = self._steps[number]
            roots = {self._root(name) for name in step.read}
            made = [self._root(name) for name, _ in step.made]
            name = internals().name(step.equation)
            fuses = is_elementwise(step.equation)
            is_sum = name.startswith("reduce_")
            if not (fuses or is_sum or name in VIEWS) or needed.intersection(made):
                needed |= roots
            elif fuses and made[0] in self._made:
                last = self._last.get(made[0], -1)
                if last < len(self._steps):
                    self._made[made[0]] = number, 0
                    for root in roots:
                        self._last[root] = max(self._last.get(root, -1), last)

    def _inlined(self, jaxpr: Any, names: dict[Any, Any]) -> Iterator[_Step]:
        """Yield the equations in order, with calls of jitted functions inlined.

        Args:
            jaxpr: open jaxpr.
            names: names of its variables; those of its equations' outputs are added.
        """
        for equation in jaxpr.eqns:
            if internals().is_inlined_call(equation):
                _, (body,), _ = internals().inner(equation)
                inner = internals().opened(body)
                own: dict[Any, Any] = {variable: object() for variable in inner.constvars}
                for variable, atom in zip(inner.invars, equation.invars):
                    own[variable] = object() if _is_literal(atom) else names[atom]
                yield from self._inlined(inner, own)
                for variable, atom in zip(equation.outvars, inner.outvars):
                    names[variable] = object() if _is_literal(atom) else own[atom]
                continue
            made = []
            for variable in equation.outvars:
                names[variable] = object()
                count = 0 if _is_on_host(variable.aval) else size(variable.aval)
                made.append((names[variable], count))
            if internals().name(equation) in VIEWS:
                for variable, operand in zip(equation.outvars, equation.invars):
                    if not _is_literal(operand):
                        self._operand[names[variable]] = names[operand]
            read = tuple(names[atom] for atom in equation.invars if not _is_literal(atom))
            yield _Step(equation, read, tuple(made))

    def _root(self, name: Any) -> Any:
        """Return the value that a view shares its bytes with."""
        while name in self._operand:
            name = self._operand[name]
        return name

    def peak(self) -> int:
        """Return the peak of live bytes."""
        most = self.live_at_end()
        for step, before, made, _ in self._run():
            how, bodies, _ = internals().inner(step.equation)
            inside = max((_peak(body, self._known) for body in bodies), default=0)
            most = max(most, before + (made + inside if how == "loop" else max(made, inside)))
        return most

    def live_at_end(self) -> int:
        """Return the bytes of the outputs."""
        return self.live_after(len(self._steps) - 1)

    def _run(self) -> Iterator[tuple[_Step, int, int, int]]:
        """Yield each step with the bytes live before it, made by it, and live after it."""
        freed: dict[int, list[Any]] = {}
        for name, number in self._last.items():
            freed.setdefault(number, []).append(name)
        live = self._given
        for number, step in enumerate(self._steps):
            before = live
            made = sum(self.size_of(name) for name, _ in step.made if name in self._last)
            live += made - sum(map(self.size_of, freed.get(number, ())))
            yield step, before, made, live

    def named(self) -> dict[str, tuple[int, Any]]:
        """Return for each `checkpoint_name` its step and the value that it names."""
        return {
            internals().label(step.equation): (number, self._root(step.made[0][0]))
            for number, step in enumerate(self._steps)
            if internals().name(step.equation) == "name"
        }

    def last_use(self, name: Any) -> int:
        """Return the last step that uses a value or a view of it, or -1."""
        return self._last.get(self._root(name), -1)

    def size_of(self, name: Any) -> int:
        """Return the bytes of a value; 0 for an argument."""
        return self._made.get(self._root(name), (0, 0))[1]

    def live_after(self, step: int) -> int:
        """Return the bytes of the values that are made up to a step and used after it."""
        return sum(
            count
            for name, (made, count) in self._made.items()
            if made <= step < self._last.get(name, -1)
        )


def is_elementwise(equation: Any) -> bool:
    """Return whether an equation computes each element from the same elements of its inputs."""
    if len(equation.outvars) != 1 or internals().inner(equation)[0]:
        return False
    if internals().name(equation) in _NOT_ELEMENTWISE:
        return False
    shape = getattr(equation.outvars[0].aval, "shape", None)
    return all(getattr(atom.aval, "shape", None) in ((), shape) for atom in equation.invars)


def _is_literal(atom: Any) -> bool:
    return internals().is_literal(atom)
