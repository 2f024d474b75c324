"""What else could be done: other policies, and checkpoints on the stages instead.

Each alternative is the whole function again, traced under the same differentiation. Those that no
other one beats in both peak memory and operations are the Pareto front.
"""

from __future__ import annotations

import os
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

import jax

from . import interception
from .entry import NONE, Entry
from .instruments.compiled import compile_program
from .instruments.flops import flops
from .instruments.liveness import peak
from .interception import LEAVE_OUT, Decision, Site
from .internals import internals
from .stages import Chain, Flat

# The policies that need no names, and are of use on any device.
POLICIES = (
    "nothing_saveable",
    "dots_with_no_batch_dims_saveable",
    "dots_saveable",
    "everything_saveable",
)
_STAGE_POLICIES = ("nothing_saveable", "dots_with_no_batch_dims_saveable")
_GROUPS = (2, 4)


class Alternative(NamedTuple):
    """One way to place checkpoints.

    Attributes:
        name: which, in words.
        peak_bytes: the peak of live bytes of the gradient computation.
        flops: its floating-point operations.
        compiled_bytes: temporary memory of the compiled program, None where it was not compiled.
        lines: the lines of source that it would put under checkpoints, with their file.
        pareto: whether no other one is better in both.
    """

    name: str
    peak_bytes: int
    flops: int
    compiled_bytes: Optional[int]
    lines: Tuple[Tuple[str, int], ...]
    pareto: bool = False


Program = Callable[..., Any]


def alternatives(
    entry: Entry, sites: List[Site], compiling: bool, stages_alone: bool = False
) -> List[Alternative]:
    """Measure all ways, the cheapest in memory first.

    Args:
        entry: the function.
        sites: its checkpoints.
        compiling: whether to compile each, too.
        stages_alone: only the usual placements on stages: for a function that has no checkpoint.
    """
    found: List[Alternative] = []
    for name, decisions, default in _of_sites(sites, stages_alone):
        with interception.plan(decisions, default):
            found.append(_measured(name, entry.differentiated, entry, compiling, ()))
    if entry.how.by != NONE:
        for name, program, lines in _of_stages(entry, stages_alone):
            found.append(_measured(name, program, entry, compiling, lines))
    return front(found)


def front(found: List[Alternative]) -> List[Alternative]:
    """Sorted by peak, with the Pareto front marked; of those that are equal the first one stays."""
    ordered = sorted(
        enumerate(found), key=lambda item: (item[1].peak_bytes, item[1].flops, item[0])
    )
    least: Optional[int] = None
    marked = []
    for _, one in ordered:
        best = least is None or one.flops < least
        marked.append(one._replace(pareto=best))
        least = one.flops if best else least
    return marked


def _measured(
    name: str,
    program: Program,
    entry: Entry,
    compiling: bool,
    lines: Tuple[Tuple[str, int], ...],
) -> Alternative:
    traced = jax.make_jaxpr(program)(*entry.shapes)
    jaxpr = internals().dead_code_removed(traced) if entry.how.jit else internals().opened(traced)
    compiled = compile_program(program, *entry.shapes).temporary_bytes if compiling else None
    return Alternative(name, peak(jaxpr), flops(jaxpr), compiled, lines)


def _of_sites(
    sites: List[Site], stages_alone: bool
) -> Iterator[Tuple[str, Dict[Site, Decision], Decision]]:
    yield "as it is" if sites else "no checkpoint", {}, interception.KEEP
    if not sites:
        return
    yield "no checkpoint", dict.fromkeys(sites, LEAVE_OUT), LEAVE_OUT
    if stages_alone:
        return
    for policy in POLICIES:
        options = (("policy", getattr(jax.checkpoint_policies, policy)),)
        yield (
            "its checkpoints with " + policy,
            dict.fromkeys(sites, Decision(True, options)),
            interception.KEEP,
        )


def _of_stages(
    entry: Entry, stages_alone: bool
) -> Iterator[Tuple[str, Program, Tuple[Tuple[str, int], ...]]]:
    flat = Flat(entry)
    count = len(flat.jaxpr.eqns)

    def program(wrapped: Dict[Tuple[int, int], Dict[str, Any]]) -> Program:
        return entry.gradient_of(flat.staged(wrapped))

    for policy in () if stages_alone else POLICIES:
        yield "whole function with " + policy, program({(0, count): _options(policy)}), ()
    for chain in flat.chains():
        where = "%s:%s in %s" % (
            os.path.basename(chain.path),
            ",".join(map(str, chain.lines)),
            chain.function,
        )
        lines = tuple((chain.path, line) for line in chain.lines)
        for policy in _STAGE_POLICIES:
            for name, runs in _placements(chain, stages_alone):
                wrapped = {run: _options(policy) for run in runs}
                label = "%s of %s" % (name, where)
                if policy != "nothing_saveable":
                    label += " with " + policy
                yield label, program(wrapped), lines
    for name, lines, wrapped_scans in _of_scans(flat):
        for policy in _STAGE_POLICIES:
            label = name if policy == "nothing_saveable" else name + " with " + policy
            yield label, entry.gradient_of(flat.scanned(wrapped_scans, _options(policy))), lines


def _options(policy: str) -> Dict[str, Any]:
    return {"policy": getattr(jax.checkpoint_policies, policy)}


def _placements(chain: Chain, usual_alone: bool) -> Iterator[Tuple[str, List[Tuple[int, int]]]]:
    runs = [(stage.start, stage.stop) for stage in chain.heavy]
    count = len(runs)
    yield "all %d stages" % count, runs
    yield "all stages but the last", runs[:-1]
    if usual_alone:
        return
    if len(chain.lines) == 1 and _adjacent(runs):
        for size in _GROUPS:
            if count % size == 0 and count // size > 1:
                groups = [
                    (runs[first][0], runs[first + size - 1][1]) for first in range(0, count, size)
                ]
                yield "groups of %d stages" % size, groups
    elif count > 2:
        for line in chain.lines:
            own = [(s.start, s.stop) for s in chain.heavy if s.line == line]
            yield "line %d alone" % line, own


def _adjacent(runs: List[Tuple[int, int]]) -> bool:
    return all(first[1] == second[0] for first, second in zip(runs, runs[1:]))


def _of_scans(flat: Flat) -> Iterator[Tuple[str, Tuple[Tuple[str, int], ...], Tuple[int, ...]]]:
    """The scans at the top of a function whose bodies could be under a checkpoint."""
    for number in flat.scans():
        frames = flat.frames[number]
        if frames:
            path, _, line = frames[0]
            yield (
                "body of the scan at %s:%d" % (os.path.basename(path), line),
                ((path, line),),
                (number,),
            )
