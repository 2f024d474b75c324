"""A plan as text: which stages it checkpoints, and what it promises and measures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ...measure.worker.records import BODY, WRAPPED
from ...measure.worker.schedules import described, sizes_of
from ...plan.chain import GROUP
from .display import Screen, pluralize, printable
from .weights import devices, fit_lines, operations, size

if TYPE_CHECKING:
    from ...engine.fix_rounds import FileChange
    from ...measure.worker.records import Cost, NamedValue
    from ...plan.plan import Obstacle, Placement, Plan, StageDecision


def plan_lines(plan: Plan, screen: Screen) -> Iterator[str]:
    """Yield all that is known about a plan."""
    title = f"{printable(plan.found.target)}, planned for {printable(plan.budget)}"
    of_budget = f" ({size(plan.budget_bytes)})" if plan.budget.endswith("%") else ""
    how = "traced" if plan.bare_compiled is None else f"compiled for {plan.found.backend}"
    where = f", {devices(plan.found.devices)}"
    yield screen.paint(f"{title}{of_budget}, {how} with jax {plan.found.jax}{where}", "bold")
    yield f"  without checkpoints  traced {_need(plan.bare, plan)}{_also(plan.bare_compiled)}"
    if sites := plan.found.sites:
        count = pluralize(len(sites), "checkpoint")
        figures = _need(plan.now, plan) + _also(plan.now_compiled)
        yield f"  current              traced {figures}, {count}"
    best = plan.best
    difference = _difference(best.promised, best.measured)
    yield f"  planned              traced {_need(best.measured, plan)}{_also(best.compiled)}"
    promised = _need(best.promised, plan)
    yield f"  estimated            from the stages {promised}; traced {difference}"
    yield ""
    if not plan.is_met:
        kind = plan.basis.partition(" ")[0]
        share = best.peak / max(plan.bare_compiled or plan.bare.peak_bytes, 1)
        text = f"The budget cannot be met: the lowest {kind} peak found is {size(best.peak)}"
        yield screen.paint(f"{text}, {share:.0%} of that without checkpoints.", "red", "bold")
        name = f"; this one is {printable(plan.best.name)}" if plan.best.name else ""
        compiled = f", {len(plan.candidates)} of them compiled" if plan.candidates else ""
        tried = f"{pluralize(plan.tried, 'placement')} traced, all obvious ones included"
        traced = min((one.measured.peak_bytes for one in plan.candidates), default=best.peak)
        bare = plan.bare_compiled or plan.bare.peak_bytes
        if traced / plan.bare.peak_bytes < plan.budget_bytes / bare:
            yield (
                f"A trace meets it. XLA for {plan.found.backend} may merge recomputation with the"
                " forward pass; with --no-compile, the trace decides."
            )
        yield f"{tried}{compiled}{name}. It needs:"
    else:
        by = "met by the trace" if best.compiled is None else "met"
        text = f"The budget is {by}: {size(best.peak)} of {size(plan.budget_bytes)}, {plan.basis}."
        yield screen.paint(text, "green", "bold")
        if not best.runs:
            yield "No checkpoint is needed."
    for stage in plan.best.stages:
        runs = f"in {printable(stage.function)}, {pluralize(stage.times, 'time')}"
        yield f"{screen.path(stage.path)}:{stage.line}  {runs}: {_decision(stage)}"
    for value in plan.values:
        place = f"{screen.path(value.path)}:{value.line}"
        yield f"{place}  {_value(value)}"
    yield from _fallback_lines(plan, screen)
    if sites:
        yield ""
        yield (
            "The current checkpoints already need as little: the plan is in place."
            if plan.is_in_place
            else "The plan replaces the current checkpoints, which are removed."
        )
    if plan.bare_compiled is not None:
        yield ""
        yield f"Compiled for {plan.found.backend}, with gradients, beside the traced peak:"
        yield _compiled(plan.bare_compiled, plan.bare, plan, "no checkpoint")
        for one in plan.candidates:
            mark = " (planned)" if one is plan.best else ""
            yield _compiled(one.peak, one.measured, plan, _named(one) + mark)
    else:
        yield ""
        yield "Not compiled; with --compile, the compiled programs decide."
    if plan.found.device is not None:
        yield ""
        yield from fit_lines(plan.needed_bytes, plan.found.device, plan.basis, screen)


def _fallback_lines(plan: Plan, screen: Screen) -> Iterator[str]:
    """Yield why a better placement cannot be written, and what is lost."""
    if plan.unwritten is None:
        return
    better, best = plan.unwritten, plan.best
    yield ""
    yield screen.paint("A better placement cannot be written into the source:", "yellow")
    for one in plan.obstacles:
        yield f"  {screen.path(one.path)}:{one.line}: {printable(one.reason)}"
    yield f"  {_named(better)}: {_need(better.measured, plan)}"
    yield f"  this one compared with it: {_difference(better.measured, best.measured)}"
    if not plan.is_met and best.runs:
        yield f"  `--budget {best.peak}B` writes the lowest that can be written"


def unwritable_lines(obstacles: Sequence[Obstacle], screen: Screen) -> Iterator[str]:
    """Yield why no placement can be written."""
    for one in obstacles:
        yield f"{screen.path(one.path)}:{one.line}: cannot rewrite this: {printable(one.reason)}"
    yield "No files changed. Change the source by hand, then plan again."


def written_lines(changes: Sequence[FileChange], how: str, screen: Screen) -> Iterator[str]:
    """Yield where a plan was written, and how."""
    for change in changes:
        yield f"{screen.path(change.path)}: written {how}; `remat-migrate undo` reverts it"


def exceeded_line(plan: Plan, cost: Cost, compiled: int | None) -> str:
    """Return what a rewritten source needs that needs more than planned."""
    planned = plan.best
    text = f"{_difference(planned.measured, cost)} compared with the plan"
    if compiled is not None and planned.compiled is not None:
        text += f"; {plan.basis} {size(compiled)}, planned {size(planned.compiled)}"
    return f"the rewritten source needs {size(cost.peak_bytes)}, traced: {text}"


def rewritten_lines(
    promised: Placement, plan: Plan, cost: Cost, compiled: int | None
) -> Iterator[str]:
    """Yield what the rewritten source needs compared with the plan."""
    if promised is not plan.best:
        yield f"  promised   traced {_need(promised.measured, plan)}{_also(promised.compiled)}"
        yield f"  instead    {_named(plan.best)}"
    yield f"  planned    traced {_need(plan.best.measured, plan)}{_also(plan.best.compiled)}"
    difference = _difference(promised.measured, cost)
    yield f"  rewritten  traced {_need(cost, plan)}{_also(compiled)}: {difference}"


def _also(compiled: int | None) -> str:
    return "" if compiled is None else f"; compiled {size(compiled)}"


def _compiled(compiled: int, traced: Cost, plan: Plan, name: str) -> str:
    return f"  {size(compiled):>8} / {_need(traced, plan)}  {name}"


def _named(placement: Placement) -> str:
    """Return the name of an obvious placement, and the lines with a checkpoint."""
    parts = [f"line {s.line}: {_decision(s)}" for s in placement.stages if s.decision != "plain"]
    name = [f"{printable(placement.name)}:"] if placement.name else []
    return " ".join([*name, "; ".join(parts) or "no checkpoint"])


def _need(need: Cost, plan: Plan) -> str:
    ratio = need.flops / plan.bare.flops if plan.bare.flops else 1.0
    return f"{size(need.peak_bytes):>8}  {operations(need.flops)}, x{ratio:.3f}"


def _difference(expected: Cost, actual: Cost) -> str:
    peak = (actual.peak_bytes - expected.peak_bytes) / max(expected.peak_bytes, 1)
    flops = (actual.flops - expected.flops) / max(expected.flops, 1)
    return f"{peak:+.1%} memory, {flops:+.1%} operations"


def _decision(stage: StageDecision) -> str:
    """Return `all under a checkpoint with policy=dots_saveable`."""
    policy = f" with policy={printable(stage.policy)}" if stage.policy else ""
    if stage.decision == "plain":
        return "no checkpoint"
    if sizes_of(stage.decision):
        return described(stage.decision)
    if stage.decision == BODY:
        return f"a checkpoint on the loop body{policy}, prevent_cse=False"
    if stage.times == 1 and stage.decision == WRAPPED:
        return f"a checkpoint{policy}"
    groups = f"checkpoints in groups ({_group(stage)})"
    under = groups if stage.decision == GROUP else "a checkpoint"
    return f"all under {under}{policy}"


def _value(value: NamedValue) -> str:
    return (
        f'in {printable(value.function)}: checkpoint_name(..., "{printable(value.name)}"),'
        f" {size(value.bytes)} for {operations(value.flops)}"
    )


def _group(stage: StageDecision) -> str:
    lines = [line for line in stage.group if line]
    if len(set(lines)) == 1:
        return f"{len(lines)} each"
    return "lines " + ", ".join(map(str, dict.fromkeys(lines)))
