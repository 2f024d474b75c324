"""Count the floating-point operations (FLOPs) of a jaxpr.

A matrix product of (m, k) by (k, n) has 2 m k n; a convolution twice its outputs times the elements
that each sums over; a Fourier transform of n values 5 n log2 n; a solver or decomposition of n by n
a multiple of n^3; a reduction one per input element; other arithmetic one per output element.
Data movement is free. The body of a scan counts once per iteration, and the body of a `while` once,
because its number of iterations is unknown. Of several branches, the most expensive one counts.
"""

from __future__ import annotations

import math
from typing import Any

from ..internals import internals
from .liveness import VIEWS

_DATA_MOVEMENT = VIEWS.union(
    [
        "concatenate",
        "convert_element_type",
        "copy_p",
        "device_put",
        "dynamic_slice",
        "dynamic_update_slice",
        "iota",
        "pad",
        "rev",
        "select_n",
        "slice",
        "split",
    ]
)
# Operations for each element of the argument, and each row or column of the matrix: n^3 / 3, etc.
_LINEAR_ALGEBRA = {
    "cholesky": 1 / 3,
    "lu": 2 / 3,
    "triangular_solve": 1,
    "geqrf": 4 / 3,
    "householder_product": 4 / 3,
    "qr": 4 / 3,
    "eigh": 9,
    "svd": 21,
    "eig": 25,
}
_RANDOM = frozenset(["random_bits", "rng_bit_generator", "rng_uniform", "threefry2x32"])


def flops(jaxpr: Any, known: dict[int, int] | None = None) -> int:
    """Count the operations of a jaxpr, including those inside its equations.

    Args:
        jaxpr: open or closed jaxpr.
        known: cache of counted jaxprs, by their `id`.
    """
    known = {} if known is None else known
    opened = internals().opened(jaxpr)
    key = id(opened)
    if key not in known:
        known[key] = sum(flops_of_equation(equation, known) for equation in opened.eqns)
    return known[key]


def flops_of_equation(equation: Any, known: dict[int, int]) -> int:
    """Count the operations of one equation."""
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
        return 2 * _elements(equation.outvars[0]) * summed
    if name == "conv_general_dilated":
        kernel = equation.invars[1].aval.shape
        outputs = kernel[equation.params["dimension_numbers"].rhs_spec[0]]
        summed = math.prod(map(int, kernel)) // max(int(outputs), 1)
        return 2 * _elements(equation.outvars[0]) * summed
    if name in _DATA_MOVEMENT:
        return 0
    if name == "fft":
        count = math.prod(map(int, equation.params["fft_lengths"]))
        values = max(_elements(equation.invars[0]), _elements(equation.outvars[0]))
        return round(5 * values * math.log2(max(count, 1)))
    if name in _LINEAR_ALGEBRA:
        operand = equation.invars[1 if name == "triangular_solve" else 0]
        size = min(map(int, equation.invars[0].aval.shape[-2:]))
        return round(_LINEAR_ALGEBRA[name] * _elements(operand) * size)
    if name.startswith("reduce"):
        return sum(map(_elements, equation.invars))
    return sum(map(_elements, equation.outvars))


def draws_random_numbers(jaxpr: Any) -> bool:
    """Return whether a jaxpr draws random numbers.

    How they are drawn depends on the backend, and so does the memory for it, which no trace shows.
    """
    return any(
        internals().name(equation) in _RANDOM
        or any(map(draws_random_numbers, internals().inner(equation)[1]))
        for equation in internals().opened(jaxpr).eqns
    )


def _elements(atom: Any) -> int:
    shape = getattr(atom.aval, "shape", None)
    return 0 if shape is None else math.prod(map(int, shape))
