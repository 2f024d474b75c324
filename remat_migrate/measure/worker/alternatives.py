"""Measure alternatives: other policies, and checkpoints on the stages of the function.

Each alternative traces the whole function again, differentiated in the same way.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import jax

from . import interception
from .entry import NONE, Entry
from .gradients import flat_loss, gradient
from .instruments.compiled import temporary_bytes
from .instruments.flops import flops
from .instruments.liveness import host_bytes
from .instruments.residuals import residual_sizes
from .interception import KEEP, LEAVE_OUT, MARK, Decision
from .internals import internals
from .kinds import DOTS_POLICIES, POLICIES, Kind, can_differentiate, every_policy
from .named_values import names_in
from .records import BODY, Alternative, Cost
from .schedules import described, schedules
from .sites import FLOPS_TOLERANCE, PEAK_TOLERANCE
from .stages import Flat, Stage

_STAGE_POLICIES = POLICIES[:2]
_GROUPS = (2, 4)
# A policy is worth mentioning if it keeps this share of the savings for this share of the work.
_MOST, _LITTLE = 0.9, 0.5


class Variant(NamedTuple):
    """An alternative: a program, and how its checkpoints are applied while it is traced.

    Attributes:
        name: its name.
        program: computes the gradient.
        decision: how its checkpoints are applied, None if it has none of its own.
        lines: file and line of each stage under a checkpoint.
        policy: the policy of all checkpoints, or the empty string.
        loss: what the program differentiates, if it has a checkpoint on the whole function.
    """

    name: str
    program: Callable[..., Any]
    decision: Decision | None = None
    lines: tuple[tuple[Path, int], ...] = ()
    policy: str = ""
    loss: Callable[..., Any] | None = None


def variants(entry: Entry, has_sites: bool, are_all: bool) -> Iterator[Variant]:
    """Yield the alternatives of a function, each to be measured before the next.

    Args:
        entry: the function.
        has_sites: whether it applies checkpoints.
        are_all: whether to yield all of them. Otherwise, these are the usual placements for a
            function without checkpoints, and segments of long loops for another one.
    """
    flat = flat_loss(entry)
    names = names_in(internals().opened(entry.forward_pass).eqns)
    every = every_policy([name for name in names if not name.startswith(MARK)])
    every = [policy for policy in every if can_differentiate(flat.jaxpr, policy)]
    usable = [policy for policy in POLICIES if policy in every]
    if has_sites and not are_all:
        if loops := list(_of_loops(entry, flat, ())):
            yield from (*_of_sites(entry, has_sites, ()), *loops)
        return
    yield from _of_sites(entry, has_sites, every if are_all else ())
    for policy in (usable if has_sites else every) if are_all else ():
        whole = flat.staged({(0, len(flat.jaxpr.eqns)): _options(policy)})
        program = gradient(entry, flat, {(0, len(flat.jaxpr.eqns)): _options(policy)}, {})
        used = "" if has_sites else policy
        yield Variant(f"whole function with {policy}", program, None, (), used, whole)
    yield from _of_stages(entry, flat, usable, not are_all)
    yield from _of_loops(entry, flat, [one for one in usable if one in _STAGE_POLICIES])


def cheaper_policy(entry: Entry, cost: Cost, bare: Cost) -> Alternative | None:
    """Return the policy that keeps most of the savings of all checkpoints for far less work.

    Args:
        entry: the function.
        cost: its cost as it is.
        bare: its cost without checkpoints.
    """
    saved, added = bare.peak_bytes - cost.peak_bytes, cost.flops - bare.flops
    if saved <= PEAK_TOLERANCE * bare.peak_bytes or added <= FLOPS_TOLERANCE * bare.flops:
        return None
    found: list[Alternative] = []
    jaxpr = flat_loss(entry).jaxpr
    for policy in reversed(DOTS_POLICIES):
        if not can_differentiate(jaxpr, policy):
            continue
        variant = Variant(policy, entry.differentiated, _with_policy(policy))
        found.append(measured(variant, entry, False))
    keeping = [
        one
        for one in found
        if bare.peak_bytes - one.peak_bytes >= _MOST * saved
        and one.flops - bare.flops <= _LITTLE * added
    ]
    return min(keeping, key=lambda one: one.flops, default=None)


def measured(variant: Variant, entry: Entry, compiling: bool | None) -> Alternative:
    """Measure an alternative.

    Args:
        variant: the alternative.
        entry: the function.
        compiling: whether to compile it; if it is None, only other policies are compiled.
    """
    program, policy = variant.program, variant.policy
    with interception.plan({}, variant.decision) if variant.decision else nullcontext():
        jaxpr, kept = entry.traced(program), None
        if policy and entry.how.by != NONE:
            kept = sum(residual_sizes(entry, variant.loss))
        compiled = None
        if compiling or (policy and compiling is None):
            # On the CPU, what a policy offloads is in the same memory.
            on_host = host_bytes(jaxpr) if jax.default_backend() == "cpu" else 0
            compiled = temporary_bytes(entry, program) - on_host
    costs = entry.peak(jaxpr), flops(jaxpr), compiled
    return Alternative(variant.name, *costs, False, variant.lines, policy, kept)


def _of_sites(entry: Entry, has_sites: bool, policies: Sequence[str]) -> Iterator[Variant]:
    program = entry.differentiated
    yield Variant("as it is" if has_sites else "no checkpoint", program, KEEP)
    if not has_sites:
        return
    yield Variant("no checkpoint", program, LEAVE_OUT)
    for policy in policies:
        label = "its checkpoints with " + policy
        yield Variant(label, program, _with_policy(policy), policy=policy)


def _with_policy(policy: str) -> Decision:
    return Decision(policy=lambda site, own: _options(policy)["policy"])


def _of_stages(
    entry: Entry, flat: Flat, policies: Sequence[str], only_stages: bool
) -> Iterator[Variant]:
    on_stages = [policy for policy in policies if policy in _STAGE_POLICIES]
    for chain in flat.chains():
        path, function, numbers = chain[0].path, chain[0].function, _lines(chain)
        where = f"{os.path.basename(path)}:{','.join(map(str, numbers))} in {function}"
        lines = tuple((Path(path), line) for line in numbers)
        flat.cut([(stage.start, stage.stop) for stage in chain])
        for policy in on_stages:
            for name, runs in _placements(chain, only_stages):
                program = gradient(entry, flat, {run: _options(policy) for run in runs}, {})
                label = f"{name} of {where}{_suffix(policy)}"
                yield Variant(label, program, lines=lines)


def _of_loops(entry: Entry, flat: Flat, policies: Sequence[str]) -> Iterator[Variant]:
    """Yield checkpoints on the bodies of loops, with these policies, and on segments of loops."""
    for number in flat.scans():
        if not flat.frames[number]:
            continue
        path, _, line = flat.frames[number][0]
        where = "the scan at %s:%d" % (os.path.basename(path), line)
        steps = internals().inner(flat.jaxpr.eqns[number])[2]
        kinds = {f"body of {where}{_suffix(one)}": Kind(BODY, one) for one in policies}
        kinds |= {f"{described(one)} of {where}": Kind(one) for one in schedules(steps)}
        for label, kind in kinds.items():
            program = gradient(entry, flat, {}, {number: kind})
            yield Variant(label, program, lines=((Path(path), line),))


def _suffix(policy: str) -> str:
    return "" if policy == "nothing_saveable" else " with " + policy


def _options(policy: str) -> dict[str, Any]:
    return Kind(policy=policy).options


def _lines(chain: Sequence[Stage]) -> list[int]:
    return sorted({stage.line for stage in chain})


def _placements(
    chain: Sequence[Stage], only_usual: bool
) -> Iterator[tuple[str, list[tuple[int, int]]]]:
    """Yield placements of checkpoints on a chain: a name, and the runs of equations."""
    runs = [(stage.start, stage.stop) for stage in chain]
    count = len(runs)
    yield "all %d stages" % count, runs
    yield "all stages but the last", runs[:-1]
    if len(_lines(chain)) == 1 and _are_adjacent(runs):
        root = math.isqrt(count)
        for size in (root,) if only_usual else sorted({*_GROUPS, root}):
            if not 1 < size < count:
                continue
            starts = range(0, count, size)
            groups = [(runs[n][0], runs[min(n + size, count) - 1][1]) for n in starts]
            yield "groups of %d stages" % size, groups
    elif count > 2 and not only_usual:
        for line in _lines(chain):
            own = [(stage.start, stage.stop) for stage in chain if stage.line == line]
            yield "line %d alone" % line, own


def _are_adjacent(runs: list[tuple[int, int]]) -> bool:
    return all(first[1] == second[0] for first, second in zip(runs, runs[1:]))
