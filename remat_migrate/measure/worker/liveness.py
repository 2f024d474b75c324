"""The peak of live bytes while a jaxpr runs in the order of its equations.

Arguments are there throughout and not counted; outputs are, until the end. What only looks at an
array in another way (a reshape, a transpose) shares its bytes. A loop needs what its body needs at
its peak besides what it gives; a call no more than what it gives, if that is more than its peak.
Nothing is known here of what a compiler fuses, reorders or merges: the compiled program knows.
"""

from __future__ import annotations

import math
from typing import Any, Dict, List, Optional

import numpy as np

from .internals import internals

_VIEWS = frozenset(
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


def peak(jaxpr: Any, known: Optional[Dict[int, int]] = None) -> int:
    """The most bytes that are live at once besides the arguments.

    Args:
        jaxpr: open or closed, without dead code.
        known: peaks of jaxprs that have been looked at, by their `id`; it is filled.
    """
    known = {} if known is None else known
    opened = internals().opened(jaxpr)
    if id(opened) not in known:
        known[id(opened)] = _Peak(opened, known).bytes
    return known[id(opened)]


def size(aval: Any) -> int:
    """The bytes of an array with this shape and dtype; 0 of what is no array."""
    shape, dtype = getattr(aval, "shape", None), getattr(aval, "dtype", None)
    if shape is None or dtype is None:
        return 0
    try:
        itemsize = np.dtype(dtype).itemsize
    except TypeError:
        # Keys of random numbers, and types that numpy does not have.
        itemsize = getattr(dtype, "itemsize", 4)
    return math.prod(map(int, shape)) * int(itemsize)


class _Peak:
    def __init__(self, jaxpr: Any, known: Dict[int, int]) -> None:
        self._known = known
        self._is_literal = internals().is_literal
        self._source: Dict[Any, Any] = {}
        for equation in jaxpr.eqns:
            if equation.primitive.name in _VIEWS:
                for made, looked_at in zip(equation.outvars, equation.invars):
                    if not self._is_literal(looked_at):
                        self._source[made] = looked_at
        self._freed = self._ends(jaxpr)
        self.bytes = self._run(jaxpr)

    def _root(self, variable: Any) -> Any:
        while variable in self._source:
            variable = self._source[variable]
        return variable

    def _ends(self, jaxpr: Any) -> Dict[int, List[Any]]:
        """The variables whose bytes are given back after each equation."""
        last: Dict[Any, int] = {}
        for number, equation in enumerate(jaxpr.eqns):
            for atom in equation.invars:
                if not self._is_literal(atom):
                    last[self._root(atom)] = number
        for atom in jaxpr.outvars:
            if not self._is_literal(atom):
                last[self._root(atom)] = len(jaxpr.eqns)
        self._used = last
        ends: Dict[int, List[Any]] = {}
        for variable, number in last.items():
            ends.setdefault(number, []).append(variable)
        return ends

    def _run(self, jaxpr: Any) -> int:
        sizes: Dict[Any, int] = {}
        live = most = 0
        for number, equation in enumerate(jaxpr.eqns):
            made = 0
            for variable in equation.outvars:
                if variable not in self._source and variable in self._used:
                    sizes[variable] = size(variable.aval)
                    made += sizes[variable]
            how, inner, _ = internals().inner(equation)
            inside = max((peak(body, self._known) for body in inner), default=0)
            most = max(most, live + (made + inside if how == "loop" else max(made, inside)))
            live += made
            for variable in self._freed.get(number, ()):
                # Arguments have no size here.
                live -= sizes.pop(variable, 0)
        return max(most, live)
