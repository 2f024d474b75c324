"""Floating-point operations of a jaxpr.

A matrix product of (m, k) by (k, n) is 2 m k n; a convolution twice its outputs times what each
sums over; a reduction an operation for each entry that it reads; any other arithmetic an operation
for each entry that it gives. What only moves entries is free. A scan counts as often as it runs, a
`while` once, for how often it runs is not known, and of branches the dearest.
"""

from __future__ import annotations

import math
from typing import Any, Dict, Optional

from ..internals import internals

_MOVES = frozenset(
    [
        "broadcast_in_dim",
        "concatenate",
        "convert_element_type",
        "copy",
        "copy_p",
        "device_put",
        "dynamic_slice",
        "dynamic_update_slice",
        "iota",
        "name",
        "optimization_barrier",
        "pad",
        "reduce_precision",
        "reshape",
        "rev",
        "select_n",
        "slice",
        "split",
        "squeeze",
        "stop_gradient",
        "transpose",
    ]
)


def flops(jaxpr: Any, known: Optional[Dict[int, int]] = None) -> int:
    """The operations of a jaxpr, those inside its equations included.

    Args:
        jaxpr: open or closed.
        known: those of jaxprs that have been counted, by their `id`; it is filled.
    """
    known = {} if known is None else known
    opened = internals().opened(jaxpr)
    key = id(opened)
    if key not in known:
        known[key] = sum(of_equation(equation, known) for equation in opened.eqns)
    return known[key]


def of_equation(equation: Any, known: Dict[int, int]) -> int:
    """The operations of one equation."""
    how, inner, times = internals().inner(equation)
    if how == "branches":
        return max(flops(branch, known) for branch in inner)
    if how:
        return times * sum(flops(body, known) for body in inner)
    name = internals().name(equation)
    if name == "dot_general":
        (contracted, _), _ = equation.params["dimension_numbers"]
        shape = equation.invars[0].aval.shape
        summed = math.prod(int(shape[axis]) for axis in contracted)
        return 2 * _entries(equation.outvars[0]) * summed
    if name == "conv_general_dilated":
        kernel = equation.invars[1].aval.shape
        outputs = kernel[equation.params["dimension_numbers"].rhs_spec[0]]
        summed = math.prod(map(int, kernel)) // max(int(outputs), 1)
        return 2 * _entries(equation.outvars[0]) * summed
    if name in _MOVES:
        return 0
    if name.startswith("reduce"):
        return sum(map(_entries, equation.invars))
    return sum(map(_entries, equation.outvars))


def _entries(atom: Any) -> int:
    shape = getattr(atom.aval, "shape", None)
    return 0 if shape is None else math.prod(map(int, shape))
