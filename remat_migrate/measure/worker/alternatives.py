"""Measure alternatives: other policies, and checkpoints on segments of long loops.

Each alternative traces the whole function again, differentiated in the same way.
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Iterator
from typing import NamedTuple

import jax

from . import interception
from .entry import Entry, Run
from .gradients import checkpointed, flat_loss
from .instruments.compiled import compiled
from .instruments.liveness import host_bytes
from .instruments.residuals import cost_and_jaxpr
from .interception import KEEP, LEAVE_OUT, MARK, Decision
from .internals import internals
from .kinds import POLICIES, Kind, can_differentiate, every_policy
from .named_values import names_in
from .records import WRAPPED, Alternative
from .schedules import LONG, described, schedules
from .stages import Flat, combinations


class Variant(NamedTuple):
    """An alternative: a program, and how its checkpoints are applied while it is traced.

    Attributes:
        name: its name.
        decision: how its checkpoints are applied.
        run: another implementation of the target, None for the target itself.
        policy: the policy of all checkpoints, or the empty string.
    """

    name: str
    decision: Decision = KEEP
    run: Run | None = None
    policy: str = ""


def variants(entry: Entry, has_sites: bool, are_all: bool) -> Iterator[Variant]:
    """Yield the alternatives of a function, each to be measured before the next.

    Args:
        entry: the function.
        has_sites: whether it applies checkpoints.
        are_all: whether to yield all policies; otherwise, these are segments of long loops.
    """
    flat, instead = flat_loss(entry), " in place of its checkpoints" if has_sites else ""
    loops = list(_long_loops(entry, flat))
    if not are_all and not loops:
        return
    yield Variant("as it is" if has_sites else "no checkpoint")
    if has_sites:
        yield Variant("no checkpoint", LEAVE_OUT)
    if are_all:
        names = names_in(internals().opened(entry.forward_pass).eqns)
        every = every_policy([name for name in names if not name.startswith(MARK)])
        every = [policy for policy in every if can_differentiate(flat.jaxpr, policy)]
        for policy in every if has_sites else ():
            label = "its checkpoints with " + policy
            yield Variant(label, _with_policy(policy), policy=policy)
        for policy in POLICIES if has_sites else every:
            if policy in every:
                whole = {(0, len(flat.jaxpr.eqns)): Kind(WRAPPED, policy)}
                label = f"whole function with {policy}{instead}"
                run = checkpointed(entry, flat, whole)
                yield Variant(label, run=run, policy="" if has_sites else policy)
    for label, run in loops:
        yield Variant(label + instead, run=run)


def _long_loops(entry: Entry, flat: Flat) -> Iterator[tuple[str, Run]]:
    """Yield the loops of many steps in segments, and Python loops in groups of iterations."""
    for number in flat.scans():
        if flat.frames[number]:
            path, _, line = flat.frames[number][0]
            for one in schedules(internals().inner(flat.jaxpr.eqns[number])[2]):
                label = f"{described(one)} of the scan at {os.path.basename(path)}:{line}"
                yield label, checkpointed(entry, flat, {(number, number + 1): Kind(one)})
    found: dict[tuple[tuple[int, int], ...], str] = {}
    for chain in combinations(flat):
        for (path, _, line), stages in itertools.groupby(chain, key=lambda stage: stage[2:5]):
            own = list(stages)
            size = math.isqrt(len(own))
            groups = [own[start : start + size] for start in range(0, len(own), size)]
            runs = tuple((group[0].start, group[-1].stop) for group in groups)
            if len(own) >= LONG:
                label = f"groups of {size} runs of {os.path.basename(path)}:{line}"
                found.setdefault(runs, label)
    for runs, label in found.items():
        yield label, checkpointed(entry, flat, dict.fromkeys(runs, Kind(WRAPPED)))


def measured(variant: Variant, entry: Entry, compiling: bool | None) -> Alternative:
    """Measure an alternative.

    Args:
        variant: the alternative.
        entry: the function.
        compiling: whether to compile it; if it is None, only other policies are compiled.
    """
    name, decision, run, policy = variant
    with interception.plan({}, decision):
        cost, jaxpr = cost_and_jaxpr(entry, run)
        needed = None
        if compiling or (policy and compiling is None):
            # On the CPU, what a policy offloads is in the same memory.
            on_host = host_bytes(jaxpr) if jax.default_backend() == "cpu" else 0
            needed = compiled(entry, run).temporary - on_host
    return Alternative(
        name, cost.peak_bytes, cost.flops, needed, False, policy, cost.residual_bytes
    )


def _with_policy(policy: str) -> Decision:
    return Decision(policy=lambda site, own: Kind(policy=policy).options["policy"])
