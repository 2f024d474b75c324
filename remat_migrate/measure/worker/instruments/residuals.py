"""Trace the residuals: the values that a forward pass keeps for the backward pass."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax

from ..entry import NONE, Entry, Unfit
from ..internals import internals
from ..records import Residual
from .liveness import size


def residuals(entry: Entry) -> list[Residual]:
    """Return all residuals: constants and arguments first, then values in the order of computation.

    Lists the same values as `jax.ad_checkpoint.print_saved_residuals`, except that only arguments
    that are differentiated count, that the outputs of jitted functions have the lines of their
    operations, and that names also show in versions of JAX that round a named value.

    Raises:
        Unfit: the function takes gradients itself.
    """
    jaxpr, shapes = _traced_vjp(entry)
    opened = internals().opened(jaxpr)
    held = set(_held(opened, shapes[0], shapes[1]))
    inputs = [(variable, "from a constant") for variable in opened.constvars]
    inputs += [
        (variable, "from the argument " + name)
        for variable, name in zip(opened.invars, entry.names())
    ]
    found = [
        Residual(_text(variable.aval), size(variable.aval), origin)
        for variable, origin in inputs
        if variable in held
    ]
    for equation in opened.eqns:
        for place, variable in enumerate(equation.outvars):
            if variable in held:
                found.append(_computed(variable.aval, _producer(opened, equation, place)))
    return found


def passes(entry: Entry) -> tuple[str, str]:
    """Return the jaxprs of the forward and the backward pass as text.

    The outputs of the forward pass after the value are the residuals. They are the inputs of the
    backward pass, before the cotangent.

    Raises:
        Unfit: the function takes gradients itself.
    """
    forward, shapes = _traced_vjp(entry)
    backward: Any = jax.make_jaxpr(lambda pull, cotangent: pull(cotangent))(shapes[1], shapes[0])
    return forward.pretty_print(use_color=False), backward.pretty_print(use_color=False)


def _traced_vjp(entry: Entry, loss: Callable[..., Any] | None = None) -> tuple[Any, Any]:
    """Trace the forward pass: return its jaxpr, and the shapes of its value and residuals."""
    if entry.how.by == NONE:
        raise Unfit("it takes gradients itself: name the loss to see its residuals and passes")
    program = functools.partial(_pulled_back, entry, loss) if loss else entry.pulled_back
    jaxpr, shapes = jax.make_jaxpr(program, return_shape=True)(*entry.shapes)
    return jaxpr, shapes


def _pulled_back(entry: Entry, loss: Callable[..., Any], *flat: Any) -> Any:
    leaves = entry.differentiated_leaves()

    def of_leaves(*chosen: Any) -> Any:
        values = {**dict(enumerate(flat)), **dict(zip(leaves, chosen))}
        return loss(*values.values())[0]

    return jax.vjp(of_leaves, *(flat[number] for number in leaves))


def _computed(aval: Any, equation: Any) -> Residual:
    """Return the residual that an equation computes."""
    origin, name = "output of " + internals().name(equation), ""
    if internals().name(equation) == "name":
        name = internals().label(equation)
        origin = f"named '{name}'"
    path, _, line = next(internals().places(equation), ("", "", 0))
    return Residual(_text(aval), size(aval), origin, name, Path(path) if path else None, line)


def _producer(jaxpr: Any, equation: Any, place: int) -> Any:
    """Return the equation that computes an output, looking into jitted functions."""
    atom = equation.outvars[place]
    if internals().is_inlined_call(equation):
        jaxpr = internals().opened(internals().inner(equation)[1][0])
        atom = jaxpr.outvars[place]
    elif _rounds_to_own_precision(equation):
        atom = equation.invars[0]
    else:
        return equation
    for maker in jaxpr.eqns:
        if not internals().is_literal(atom) and atom in maker.outvars:
            return _producer(jaxpr, maker, maker.outvars.index(atom))
    return equation


def _rounds_to_own_precision(equation: Any) -> bool:
    """Return whether this is the no-op rounding that JAX adds to what a checkpoint saves."""
    if internals().name(equation) != "reduce_precision":
        return False
    limits: Any = jax.numpy.finfo
    own = limits(equation.invars[0].aval.dtype).nmant
    return bool(equation.params["mantissa_bits"] == own)


def _text(aval: Any) -> str:
    return "{}[{}]".format(
        getattr(aval, "dtype", aval),
        ",".join(map(str, getattr(aval, "shape", ()))),
    )


def residual_sizes(entry: Entry, loss: Callable[..., Any] | None = None) -> list[int]:
    """Return the bytes of each residual, arguments and constants excluded.

    Args:
        entry: the function.
        loss: another implementation of it, see `Entry.gradient_of`.
    """
    jaxpr, shapes = _traced_vjp(entry, loss)
    return _sizes(jaxpr, shapes[0], shapes[1])


def gradient_and_residual_bytes(entry: Entry) -> tuple[Any, int | None]:
    """Return the jaxpr of the gradient computation, and the total bytes of the residuals.

    The second is None for a function that takes gradients itself.
    """
    if entry.how.by == NONE:
        return entry.gradient_jaxpr(), None
    jaxpr, (outputs, held) = jax.make_jaxpr(entry.with_residuals, return_shape=True)(*entry.shapes)
    gradient = internals().dead_code_removed(jaxpr, len(jax.tree_util.tree_leaves(outputs)))
    return gradient, sum(_sizes(jaxpr, outputs, held))


def _held(jaxpr: Any, outputs: Any, held: Any) -> list[Any]:
    """Return the variables among a jaxpr's outputs that follow `outputs`: the residuals."""
    first = len(jax.tree_util.tree_leaves(outputs))
    count = len(jax.tree_util.tree_leaves(held))
    variables = internals().opened(jaxpr).outvars[first : first + count]
    return list(dict.fromkeys(atom for atom in variables if not internals().is_literal(atom)))


def _sizes(jaxpr: Any, outputs: Any, held: Any) -> list[int]:
    opened = internals().opened(jaxpr)
    passed = set(opened.invars) | set(opened.constvars)
    return [size(atom.aval) for atom in _held(jaxpr, outputs, held) if atom not in passed]
