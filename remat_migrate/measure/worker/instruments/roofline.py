"""Count the work of a jaxpr for a roofline estimate: operations by precision, and bytes moved.

Elementwise operations are fused with those that make their inputs or read their results, so only
what other operations make or read counts as moved. Views move nothing.
"""

from __future__ import annotations

from typing import Any, Dict, Set

import jax.numpy as jnp
import numpy as np

from ..internals import internals
from ..records import Work
from .flops import flops_of_equation
from .liveness import VIEWS, is_elementwise, size

_PRODUCTS = ("dot_general", "conv_general_dilated")


def work(jaxpr: Any) -> Work:
    """Return the work of an open or closed jaxpr, without dead code."""
    return _work(internals().opened(jaxpr), {}, {})


def _work(jaxpr: Any, known: Dict[int, Work], counted: Dict[int, int]) -> Work:
    """Return the work of an open jaxpr; the others are caches of jaxprs by `id`."""
    if id(jaxpr) not in known:
        fused, read = _fused(jaxpr)
        low = others = moved = 0
        for equation in jaxpr.eqns:
            how, inner, times = internals().inner(equation)
            if how:
                parts = [_work(internals().opened(body), known, counted) for body in inner]
                if how == "branches":
                    parts = [max(parts, key=lambda part: part.low_flops + part.flops)]
                low += times * sum(part.low_flops for part in parts)
                others += times * sum(part.flops for part in parts)
                moved += times * sum(part.bytes for part in parts)
                continue
            count = flops_of_equation(equation, counted)
            if internals().name(equation) in _PRODUCTS and _is_low(equation):
                low += count
            else:
                others += count
            if internals().name(equation) not in VIEWS:
                moved += sum(
                    size(atom.aval)
                    for atom in equation.invars
                    if not internals().is_literal(atom)
                    and not (atom in fused and is_elementwise(equation))
                )
                moved += sum(
                    size(made.aval)
                    for made in equation.outvars
                    if made not in fused or made in read
                )
        known[id(jaxpr)] = Work(low, others, moved)
    return known[id(jaxpr)]


def _fused(jaxpr: Any) -> Any:
    """Return the results of elementwise operations, and the values that others read or return."""
    fused: Set[Any] = set()
    read: Set[Any] = {atom for atom in jaxpr.outvars if not internals().is_literal(atom)}
    for equation in jaxpr.eqns:
        if is_elementwise(equation):
            fused.update(equation.outvars)
        else:
            read.update(atom for atom in equation.invars if not internals().is_literal(atom))
    return fused, read


def _is_low(equation: Any) -> bool:
    """Return whether a product is of arrays in 16 bits or less."""
    return all(
        jnp.issubdtype(atom.aval.dtype, np.inexact) and atom.aval.dtype.itemsize <= 2
        for atom in equation.invars[:2]
    )
