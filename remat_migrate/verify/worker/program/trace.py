"""Trace a function of arrays into programs: its values, and its derivatives both ways.

Nothing is computed: the arrays are abstract. While a function is traced, its checkpoints run what
they wrap, so derivatives that it takes itself are those of the program without checkpoints.
"""

from __future__ import annotations

import contextlib
import sys
from typing import Any, Callable, Dict, Iterator, List, Sequence

import jax
import jax.numpy as jnp

from ..failures import describe
from .digests import Opaque
from .numbering import Numbering

Arrays = List[Any]
Program = Dict[str, Any]


def programs(
    function: Callable[[Arrays], Arrays],
    arrays: Sequence[Any],
    inexact: Sequence[int],
    place_of: Callable[[Any], str],
) -> Dict[str, Program]:
    """Return the programs of a function: `forward`, and `vjp` and `jvp` where it has derivatives.

    Each is {"outputs": numbers, "types": of the outputs, "values": what is known about each number}
    or {"error": how tracing failed} or {"opaque": what cannot be compared}.

    Args:
        function: takes a list of arrays, and returns one.
        arrays: arrays, of which only shapes and dtypes matter.
        inexact: the indices of the arrays to differentiate with respect to.
        place_of: returns the user's file and line for the source information of an equation.
    """
    structs = [abstract(array) for array in arrays]
    found = {"forward": _program(function, [structs], place_of)}
    if not inexact or "outputs" not in found["forward"]:
        return found

    def of_inexact(given: Arrays, changed: Arrays) -> Arrays:
        filled = list(given)
        for index, array in zip(inexact, changed):
            filled[index] = array
        return [out for out in function(filled) if jnp.issubdtype(out.dtype, jnp.inexact)]

    with dissolved():
        results = jax.eval_shape(of_inexact, structs, [structs[i] for i in inexact])
    if not results:
        return found

    def vjp(given: Arrays, cotangents: Arrays) -> Arrays:
        chosen = [given[i] for i in inexact]
        return list(jax.vjp(lambda changed: of_inexact(given, changed), chosen)[1](cotangents)[0])

    def jvp(given: Arrays, tangents: Arrays) -> Arrays:
        chosen = [given[i] for i in inexact]
        return list(jax.jvp(lambda changed: of_inexact(given, changed), (chosen,), (tangents,))[1])

    try:
        # With its checkpoints, which allow fewer effects.
        jax.eval_shape(vjp, structs, results)
    except Exception as error:
        found["vjp"] = {"error": describe(error)}
        return found
    found["vjp"] = _program(vjp, [structs, [abstract(result) for result in results]], place_of)
    found["jvp"] = _program(jvp, [structs, [structs[i] for i in inexact]], place_of)
    return found


def abstract(array: Any) -> Any:
    """Return the shape and dtype of an array."""
    return jax.ShapeDtypeStruct(array.shape, array.dtype)  # type: ignore[no-untyped-call]


def _program(function: Callable[..., Arrays], args: Any, place_of: Callable[[Any], str]) -> Program:
    try:
        with dissolved():
            closed = jax.make_jaxpr(function)(*args)
    except Exception as error:
        return {"error": describe(error)}
    numbering = Numbering(place_of)
    inputs = ["input %d %s" % (i, v.aval.str_short()) for i, v in enumerate(closed.jaxpr.invars)]
    try:
        outputs = numbering.numbers(closed.jaxpr, closed.consts, inputs)
    except Opaque as error:
        return {"opaque": str(error)}
    return {
        "outputs": [*outputs, numbering.effects],
        "types": [_type(variable.aval) for variable in closed.jaxpr.outvars],
        "values": numbering.values,
    }


def _type(aval: Any) -> str:
    return str(aval.str_short()) + (" weak" if getattr(aval, "weak_type", False) else "")


@contextlib.contextmanager
def dissolved() -> Iterator[None]:
    """Make every checkpoint run what it wraps, in functions that are traced meanwhile."""
    module: Any = sys.modules["jax._src.ad_checkpoint"]
    with contextlib.ExitStack() as stack:
        # Neither traces of before are used, nor are those made here used later: JAX caches them by
        # a context that this option, which only warns, is a part of.
        stack.enter_context(jax.numpy_rank_promotion("warn"))
        stack.enter_context(_replaced(module.remat_p, "bind", module.remat_p.impl))
        traced = getattr(module, "RematTraced", None)
        if traced is not None:  # jax_remat3
            stack.enter_context(_replaced(traced, "__call__", lambda self, *a: self.expand(*a)))
            stack.enter_context(_replaced(module, "checkpoint_name3", lambda name, x: x))
        yield


@contextlib.contextmanager
def _replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    missing = object()
    before = vars(owner).get(name, missing)
    setattr(owner, name, value)
    try:
        yield
    finally:
        if before is missing:
            delattr(owner, name)
        else:
            setattr(owner, name, before)
