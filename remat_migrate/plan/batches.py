"""Find the largest batch that fits within a budget, with a placement for each batch size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from ..errors import UsageError, VerificationError
from ..measure.options import MeasureOptions
from ..measure.session import Session, measuring
from ..measure.target import Target
from .budget import Budget
from .plan import BatchPlan, Plan
from .planning import OpenSource, planned

# The search ends when the next size to try is closer than this share.
_CLOSE = 64
# How often the batch may double. If the peak has grown by less than this after some doublings, it
# does not depend on the batch.
_DOUBLINGS, _FIRST, _GROWTH = 20, 4, 1.01


def plan_largest_batch(
    target: Target,
    options: MeasureOptions,
    folder: Path,
    budget: Budget,
    *,
    pareto: bool = False,
    offload: bool = False,
    open_source: OpenSource | None = None,
) -> Plan:
    """Return the plan for the largest batch that fits, with the front of batch and recomputation.

    The batch doubles until it does not fit, and the interval is then halved. Sizes that the target
    refuses, such as those that a mesh does not divide, are skipped.

    Args:
        target: the function that is differentiated, or the training step.
        options: how to measure it.
        folder: the folder that names in the options are relative to.
        budget: how much memory it may use, in bytes.
        pareto: as for `plan`, like the other arguments.
        offload: whether policies may offload values to host memory.
        open_source: opens the source.

    Raises:
        UsageError: the budget is a share.
        VerificationError: the target cannot be measured, or has no batch axis.
    """
    if budget.share is not None:
        raise UsageError("--batch auto: needs --budget in bytes, or --device")
    with measuring(target, options, folder) as session:
        found: dict[int, Plan] = {}
        # What the measuring process holds: asking for the next size replaces it.
        present: dict[int, Session] = {}
        if options.compile is None and session.measurement.devices == 1:
            options = replace(options, compile=False)  # each batch would take a minute

        def resized(batch: int) -> Session:
            if batch not in present:
                again = session.again("batch", size=batch)
                present.clear()
                present[batch] = again
            return present[batch]

        def plan_for(batch: int) -> Plan:
            if batch not in found:
                found[batch] = planned(
                    resized(batch),
                    options,
                    budget,
                    pareto=pareto,
                    offload=offload,
                    open_source=open_source,
                )
            return found[batch]

        def is_possible(batch: int) -> bool:
            if batch not in found:
                try:
                    resized(batch)
                except VerificationError:
                    return False
            return True

        start = int(session.ask("batch", size=None)["batch"])
        largest = _largest(plan_for, is_possible, start)
        return replace(plan_for(largest), batch=largest, batches=_front(found))


def _largest(
    plan_for: Callable[[int], Plan], is_possible: Callable[[int], bool], start: int
) -> int:
    """Return the largest size that fits; the smallest that was tried if none does."""
    fits = start
    while not plan_for(fits).is_met:
        if fits == 1 or not is_possible(fits // 2):
            return fits
        fits //= 2
    above = 2 * fits
    for number in range(_DOUBLINGS):
        if not is_possible(above):
            return fits
        if not plan_for(above).is_met:
            break
        growth = plan_for(above).bare.peak_bytes / max(plan_for(start).bare.peak_bytes, 1)
        if number == _FIRST and growth < _GROWTH:
            raise VerificationError(
                f"{plan_for(above).target}: its memory does not depend on the batch axis: give the"
                " function that returns the arguments a parameter `batch`"
            )
        fits, above = above, 2 * above
    unit = _unit(is_possible, fits)
    while above - fits > max(unit, fits // _CLOSE):
        over = plan_for(above)
        # The lowest peak grows at most as the batch does.
        middle = above * over.budget_bytes // max(over.best.peak, 1)
        if not fits + unit <= middle < above:
            middle = (fits + above) // 2
        middle = middle // unit * unit
        if middle <= fits:
            break
        if plan_for(middle).is_met:
            fits = middle
        else:
            above = middle
    return fits


def _unit(is_possible: Callable[[int], bool], size: int) -> int:
    """Return a step between sizes that the target accepts."""
    unit = max(size // _CLOSE, 1)
    unit = 1 << (unit.bit_length() - 1)
    while unit < size and not is_possible(size + unit):
        unit *= 2
    return unit


def _front(found: dict[int, Plan]) -> tuple[BatchPlan, ...]:
    """Return the sizes that fit, except those that a larger one with less recomputation beats."""
    front: list[BatchPlan] = []
    for size in sorted((size for size, plan in found.items() if plan.is_met), reverse=True):
        plan = found[size]
        ratio = plan.best.measured.flops / max(plan.bare.flops, 1)
        if not front or ratio < front[-1].operations:
            host = plan.best.measured.host_bytes
            front.append(BatchPlan(size, plan.best.peak, ratio, plan.seconds, host))
    return tuple(reversed(front))
