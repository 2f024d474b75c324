"""The loss of a target, and the target with checkpoints on the stages of its loss.

The loss is the target itself, or the function that the target differentiates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax

from . import interception
from .differentiation import TracedLoss, observed, taken
from .entry import NONE, Differentiation, Entry, Run, Unfit
from .interception import LEAVE_OUT
from .kinds import Kind
from .sites import Measured, measure
from .stages import Flat

# Options of the checkpoint on a run of equations, and the kind of those on a loop.
Wrapped = Mapping[tuple[int, int], Mapping[str, Any]]
Loops = Mapping[int, Kind]


def measured(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    how: Differentiation,
) -> tuple[Entry, Measured]:
    """Measure a target; one that returns no loss, but takes gradients itself, is a training step.

    Raises:
        Unfit: the target cannot be differentiated as requested.
        Exception: any error that the target raises while it is traced.
    """
    before = taken()
    try:
        entry = Entry(function, args, kwargs, how)
        return entry, measure(entry)
    except Unfit as unfit:
        step = Entry(function, args, kwargs, how._replace(by=NONE))
        try:
            step.forward_jaxpr()
        except Exception:
            raise unfit from None  # neither a loss nor a step
        if taken() == before:
            raise
        return step, measure(step)


def flat_loss(entry: Entry) -> Flat:
    """Trace the loss without checkpoints.

    Of several functions that a target differentiates, this is the one with the most operations.

    Raises:
        Unfit: the target should take gradients itself, but takes none.
    """
    found: dict[Any, list[Flat]] = {}

    def observer(loss: TracedLoss) -> Callable[..., Sequence[Any]]:
        flat = Flat(loss)
        found.setdefault(flat.key, []).append(flat)
        return loss.evaluate

    if entry.how.by != NONE:
        return Flat(TracedLoss(entry.forward_pass, entry.differentiated_leaves(), 1))
    with interception.plan({}, LEAVE_OUT), observed(observer):
        jax.make_jaxpr(entry.forward)(*entry.shapes)
    if not found:
        raise Unfit(
            "it takes no gradient with jax.grad, jax.value_and_grad or jax.vjp (--grad none): name"
            " the loss or the training step"
        )
    return max(found.values(), key=lambda same: len(same) * sum(same[0].flops))[0]


def checkpointed(entry: Entry, flat: Flat, wrapped: Wrapped, loops: Loops) -> Run:
    """Return the target with checkpoints on stages of its loss.

    Args:
        entry: the target.
        flat: its loss.
        wrapped: options of the checkpoint on each run of equations.
        loops: kind of the checkpoints on the body or the segments of each scan.
    """

    def staged(loss: Flat) -> Callable[..., Any]:
        return loss.with_loops(loops).staged(wrapped)

    if entry.how.by != NONE:
        return staged(flat)

    def observer(loss: TracedLoss) -> Callable[..., Sequence[Any]]:
        again = Flat(loss)
        return staged(again) if again.key == flat.key else loss.evaluate

    def program(*arrays: Any) -> Any:
        with interception.plan({}, LEAVE_OUT), observed(observer):
            return entry.forward(*arrays)

    return program
