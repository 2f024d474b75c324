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


def checkpointed(entry: Entry, flat: Flat, kinds: Mapping[tuple[int, int], Kind]) -> Run:
    """Return the target with checkpoints on runs of equations of its loss, given their kinds."""
    if entry.how.by != NONE:
        return flat.staged(kinds)

    def observer(loss: TracedLoss) -> Callable[..., Sequence[Any]]:
        again = Flat(loss)
        return again.staged(kinds) if again.key == flat.key else loss.evaluate

    def program(*arrays: Any) -> Any:
        with interception.plan({}, LEAVE_OUT), observed(observer):
            return entry.forward(*arrays)

    return program
