"""Trace the residuals: the values that a forward pass keeps for the backward pass."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax

from ..entry import NONE, Entry, Run, Unfit
from ..inlining import inlined
from ..internals import internals
from ..records import Cost, Residual
from .flops import flops
from .liveness import peak, size


def residuals(entry: Entry) -> list[Residual]:
    """Return all residuals: constants and arguments first, then values in the order of computation.

    Lists the same values as `jax.ad_checkpoint.print_saved_residuals`, except that only arguments
    that are differentiated count, that the outputs of jitted functions have the lines of their
    operations, and that names also show in versions of JAX that round a named value.

    Raises:
        Unfit: the function takes gradients itself.
    """
    _check_loss(entry)
    _, jaxpr, shapes = entry.gradient_jaxpr()
    opened, constants, frames_of = inlined(jaxpr)
    held = set(_held(opened, *shapes))
    origins = ["from a constant"] * len(constants)
    origins += ["from the argument " + name for name in entry.names()]
    found = [
        Residual(_text(variable.aval), size(variable.aval), origin)
        for variable, origin in zip(opened.invars, origins)
        if variable in held
    ]
    makers = {variable: equation for equation in opened.eqns for variable in equation.outvars}
    for variable, maker in makers.items():
        if variable in held:
            while _rounds_to_own_precision(maker) and maker.invars[0] in makers:
                maker = makers[maker.invars[0]]
            origin, name = "output of " + internals().name(maker), ""
            if internals().name(maker) == "name":
                name = internals().label(maker)
                origin = f"named '{name}'"
            path, _, line = next(iter(frames_of(maker)), ("", "", 0))
            place = Path(path) if path else None
            found.append(
                Residual(_text(variable.aval), size(variable.aval), origin, name, place, line)
            )
    return found


def passes(entry: Entry) -> tuple[str, str]:
    """Return the jaxprs of the forward and the backward pass as text.

    The outputs of the forward pass after the value are the residuals. They are the inputs of the
    backward pass, before the cotangent.

    Raises:
        Unfit: the function takes gradients itself.
    """
    _check_loss(entry)
    made: Any = jax.make_jaxpr(entry.pulled_back, return_shape=True)
    forward, shapes = made(*entry.shapes)
    backward: Any = jax.make_jaxpr(lambda pull, cotangent: pull(cotangent))(shapes[1], shapes[0])
    return forward.pretty_print(use_color=False), backward.pretty_print(use_color=False)


def _check_loss(entry: Entry) -> None:
    if entry.how.by == NONE:
        raise Unfit("it takes gradients itself: name the loss to see its residuals and passes")


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


def cost_and_jaxpr(entry: Entry, run: Run | None = None) -> tuple[Cost, Any]:
    """Return the cost of the gradient computation, and its jaxpr.

    Args:
        entry: the function.
        run: another implementation of it, see `Entry.with_residuals`.
    """
    gradient, jaxpr, shapes = entry.gradient_jaxpr(run)
    opened = internals().opened(jaxpr)
    passed = {*opened.invars, *opened.constvars}
    kept = sum(size(atom.aval) for atom in _held(opened, *shapes) if atom not in passed)
    cost = peak(gradient, entry.counted), flops(gradient), None if entry.how.by == NONE else kept
    return Cost(*cost), gradient


def _held(opened: Any, outputs: Any, held: Any) -> list[Any]:
    """Return the variables among a jaxpr's outputs that follow `outputs`: the residuals."""
    first = len(jax.tree_util.tree_leaves(outputs))
    count = len(jax.tree_util.tree_leaves(held))
    variables = opened.outvars[first : first + count]
    return list(dict.fromkeys(atom for atom in variables if not internals().is_literal(atom)))
