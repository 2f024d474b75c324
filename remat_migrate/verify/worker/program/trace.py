"""Trace a function of arrays into programs: its values, and its derivatives both ways.

Nothing is computed: the arrays are abstract. While a function is traced, its checkpoints run what
they wrap, so derivatives that it takes itself are those of the program without checkpoints.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Sequence

import jax
import jax.numpy as jnp

from .. import coverage, jax_internals
from ..environment import caches
from ..failures import describe
from ..lookup import attribute
from .digests import Opaque
from .numbering import Numbering

Arrays = List[Any]
Program = Dict[str, Any]

# Raised where Python code needs the value of a traced array.
CONCRETE = (
    jax.errors.ConcretizationTypeError,
    jax.errors.NonConcreteBooleanIndexError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
)


def programs(
    function: Callable[[Arrays], Arrays],
    arrays: Sequence[Any],
    inexact: Sequence[int],
    place_of: Callable[[Any], str],
    thorough: bool = True,
) -> Dict[str, Program]:
    """Return the programs of a function: `forward`, `vjp`, and `jvp` where it has custom rules.

    Each is {"outputs": numbers, "types": of the outputs, "values": what is known about each number,
    "given": inputs and constants, "returned": what edited checkpoints return, with their names,
    "donated": inputs that a call may overwrite, "shared": for each output the first that is the
    same}, or {"error": how tracing failed, "is_concrete":
    whether it needs the value of an array} or {"opaque": what cannot be compared}. `forward` has
    "fails", too, where only the code as it is written, with its checkpoints, cannot be traced.

    Args:
        function: takes a list of arrays, and returns one.
        arrays: arrays, of which only shapes and dtypes matter.
        inexact: the indices of the arrays to differentiate with respect to.
        place_of: returns the user's file and line for the source information of an equation.
        thorough: whether to trace the vjp where it follows from the forward program, too. Without
            custom rules all derivatives do.
    """
    structs = [abstract(array) for array in arrays]
    forward = _program(function, [structs], place_of, is_forward=True)
    found = {"forward": forward}
    results = [aval for aval in forward.pop("avals", ()) if is_inexact(aval)]
    if forward.get("checkpoints") and (failure := _checkpointed(function, structs)):
        forward["fails"] = failure["error"]
    if not inexact or not results or not (thorough or forward["custom"]):
        return found
    results = [abstract(aval) for aval in results]

    def of_inexact(given: Arrays, changed: Arrays) -> Arrays:
        filled = list(given)
        for index, array in zip(inexact, changed):
            filled[index] = array
        return [out for out in function(filled) if is_inexact(out)]

    def vjp(given: Arrays, cotangents: Arrays) -> Arrays:
        chosen = [given[i] for i in inexact]
        results, pull_back = jax.vjp(lambda changed: of_inexact(given, changed), chosen)
        return [*results, *pull_back(cotangents)[0]]

    def jvp(given: Arrays, tangents: Arrays) -> Arrays:
        chosen = [given[i] for i in inexact]
        results, changes = jax.jvp(
            lambda changed: of_inexact(given, changed), (chosen,), (tangents,)
        )
        return [*results, *changes]

    found["vjp"] = _checkpointed(vjp, structs, results) if forward["checkpoints"] else {}
    if not found["vjp"]:
        found["vjp"] = _program(vjp, [structs, results], place_of)
    if forward["custom"]:
        found["jvp"] = _program(jvp, [structs, [structs[i] for i in inexact]], place_of)
    for kind in ("vjp", "jvp"):
        found.get(kind, {}).pop("avals", None)
    return found


def _checkpointed(function: Callable[..., Arrays], *arrays: Arrays) -> Program:
    """Return how tracing fails with the checkpoints in place.

    They trace their results, and allow fewer effects.
    """
    caches.clear()
    try:
        jax.eval_shape(function, *arrays)
    except Exception as error:
        return {"error": describe(error)}
    return {}


def is_inexact(value: Any) -> bool:
    """Return whether a value has a dtype of floats or complex numbers."""
    dtype = attribute(value, "dtype")
    return dtype is not None and bool(jnp.issubdtype(dtype, jnp.inexact))


def abstract(array: Any) -> Any:
    """Return the shape and dtype of an array."""
    return jax.ShapeDtypeStruct(array.shape, array.dtype)  # type: ignore[no-untyped-call]


def _program(
    function: Callable[..., Arrays],
    args: Any,
    place_of: Callable[[Any], str],
    is_forward: bool = False,
) -> Program:
    caches.clear()
    try:
        with jax_internals.dissolved() as applied, coverage.marking(is_forward) as marked:
            closed = jax.make_jaxpr(function)(*args)
    except Exception as error:
        return {"error": describe(error), "is_concrete": isinstance(error, CONCRETE)}
    numbering = Numbering(place_of)
    inputs = ["input %d %s" % (i, v.aval.str_short()) for i, v in enumerate(closed.jaxpr.invars)]
    try:
        outputs = numbering.numbers(closed.jaxpr, closed.consts, inputs)
    except Opaque as error:
        return {"opaque": str(error)}
    if marked - {name for name, _ in numbering.returned}:
        return {"opaque": "what its checkpoints return is computed where it is traced"}
    variables = list(map(id, closed.jaxpr.outvars))
    return {
        "outputs": [*outputs, numbering.effects],
        "shared": list(map(variables.index, variables)),
        "types": [_type(variable.aval) for variable in closed.jaxpr.outvars],
        "values": numbering.values,
        "returned": numbering.returned,
        "given": sorted(numbering.given),
        "custom": numbering.has_custom_rules,
        "checkpoints": len(applied),
        "donated": sorted(numbering.donated),
        "avals": [variable.aval for variable in closed.jaxpr.outvars],
    }


def _type(aval: Any) -> str:
    return str(aval.str_short()) + (" weak" if getattr(aval, "weak_type", False) else "")
