"""The obvious placements: what a user would try by hand, which are candidates of every plan."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from ..measure.worker.records import BODY, PLAIN, WRAPPED, Chain
from ..measure.worker.schedules import sizes_of
from .chain import Arc, occurrences


def obvious_paths(
    chain: Chain, arcs: Sequence[Sequence[Arc]]
) -> Iterator[tuple[str, tuple[Arc, ...]]]:
    """Yield the name and path of each obvious placement of a chain.

    These are checkpoints on every stage and on every stage that repeats, each with every policy,
    and on all of them but the last, unless that one repeats. A stage that is a loop over layers
    gets one on its body, and a long one may run in segments.

    Args:
        chain: the chain.
        arcs: the arcs that start at each stage.
    """
    places = occurrences(chain)
    every = [number for number, link in enumerate(chain) if link.heavy]
    loops = {arc.start for here in arcs for arc in here if arc.kind == BODY}
    repeated = [n for n in every if n in loops or len(places[chain[n].place]) > 1]
    singles = (arc for here in arcs for arc in here if arc.kind in (WRAPPED, BODY))
    policies = dict.fromkeys(arc.policy for arc in singles)
    kinds = {"every stage": every}
    if 0 < len(repeated) < len(every):
        kinds["every repeated stage"] = repeated
    for name, chosen in kinds.items():
        for policy in policies:
            suffix = f" with {policy}" if policy else ""
            yield name + suffix, _path(arcs, chosen, policy)
        if len(chosen) > 1 and len(places[chain[chosen[-1]].place]) == 1:
            yield f"{name} but the last", _path(arcs, chosen[:-1], None)
    schedules = [[arc for arc in here if sizes_of(arc.kind)] for here in arcs]
    for level in range(max(map(len, schedules), default=0)):
        long = {number: found[level] for number, found in enumerate(schedules) if found[level:]}
        yield "every long loop in segments", _path(arcs, (), None, long)


def _path(
    arcs: Sequence[Sequence[Arc]],
    chosen: Collection[int],
    policy: str | None,
    schedules: Mapping[int, Arc] | None = None,
) -> tuple[Arc, ...]:
    path: list[Arc] = []
    for number, here in enumerate(arcs):
        if schedules and number in schedules:
            path.append(schedules[number])
            continue
        single = {(arc.kind, arc.policy): arc for arc in here if arc.stop == number + 1}
        # A policy that makes no difference to a stage is not among its arcs.
        kinds = ((kind, one) for kind in (BODY, WRAPPED) for one in (policy, None))
        wrapped = next((single[kind] for kind in kinds if kind in single), None)
        path.append(wrapped if number in chosen and wrapped else single[PLAIN, None])
    return tuple(path)
