"""The lowest precision that a program rounds to, which decides how far its results may be apart."""

from __future__ import annotations

import re
from typing import Any, Iterable, Iterator, Set

import jax.numpy as jnp

from ..jaxprs import inner_jaxprs
from .entries import SMALL, TOLERANCES

_CONVERT, _LOOPS = "convert_element_type", ("scan", "while")
# Primitives that move entries and round none.
_MOVES = re.compile(
    "broadcast_in_dim|concatenate|copy|dynamic_slice|dynamic_update_slice|expand_dims|gather|name"
    "|optimization_barrier|pad|reshape|rev|select_n|slice|squeeze|stop_gradient|transpose"
)


def lowest_precision(jaxpr: Any) -> str:
    """Return the coarsest floating-point dtype that a program rounds to; empty if there is none.

    An argument that is converted is rounded in the same way by every program: what is computed from
    it may well have more digits. So matrices in bfloat16 whose products are summed in float32 are
    held to float32.
    """
    return coarsest(_rounded(jaxpr, is_computed=False))


def coarsest(dtypes: Iterable[str]) -> str:
    """Return the dtype of least precision by name, or an empty string if there is none."""
    return max(sorted(set(dtypes) - {""}), key=lambda n: TOLERANCES.get(n, SMALL), default="")


def _rounded(jaxpr: Any, is_computed: bool) -> Iterator[str]:
    """Yield the floating-point dtypes that a jaxpr and those inside it round to.

    `is_computed`: whether its arguments are not the program's own.
    """
    computed: Set[Any] = set(jaxpr.invars if is_computed else ())
    for equation in jaxpr.eqns:
        name = equation.primitive.name
        moves = bool(_MOVES.fullmatch(name))
        operands = [atom for atom in equation.invars if not hasattr(atom, "val")]
        of_computed = not computed.isdisjoint(operands)
        if (moves or name == _CONVERT) and not of_computed:
            continue
        computed.update(equation.outvars)
        inner = list(inner_jaxprs(equation.params.values()))
        for each in inner:
            yield from _rounded(each, of_computed or name in _LOOPS)
        for variable in equation.outvars if not moves and not inner else ():
            dtype = getattr(variable.aval, "dtype", None)
            if dtype is not None and jnp.issubdtype(dtype, jnp.inexact):
                yield str(dtype)
