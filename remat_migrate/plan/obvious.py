"""The obvious placements: what a user would try by hand, which are candidates of every plan."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from ..measure.worker.records import BODY, PLAIN, WRAPPED, Chain
from .chain import Arc, Writable, occurrences


def obvious_paths(
    chain: Chain, arcs: Sequence[Sequence[Arc]], source: Writable | None = None
) -> Iterator[tuple[str, tuple[Arc, ...]]]:
    """Yield the name and path of each obvious placement of a chain.

    These are checkpoints on every stage and on every stage that repeats, each with every policy,
    and on all of them but the last. A stage that is a loop over layers gets one on its body.

    Args:
        chain: the chain.
        arcs: the arcs that start at each stage.
        source: the source that the placements are written into, if any.
    """
    places = occurrences(chain)
    every = [number for number, link in enumerate(chain.links) if link.heavy]
    loops = {arc.start for here in arcs for arc in here if arc.kind == BODY}
    repeated = [n for n in every if n in loops or len(places[chain.links[n].place]) > 1]
    policies = dict.fromkeys(arc.policy for here in arcs for arc in here if arc.kind == WRAPPED)
    kinds = {"every stage": every}
    if 0 < len(repeated) < len(every):
        kinds["every repeated stage"] = repeated
    for name, chosen in kinds.items():
        for policy in policies:
            suffix = f" with {policy}" if policy else ""
            yield name + suffix, _path(arcs, chosen, policy)
        last = chain.links[chosen[-1]].place
        is_tied = source is not None and not source.allows_all_but_last(last, WRAPPED)
        if len(chosen) > 1 and not (is_tied and len(places[last]) > 1):
            yield f"{name} but the last", _path(arcs, chosen[:-1], None)


def _path(
    arcs: Sequence[Sequence[Arc]], chosen: Collection[int], policy: str | None
) -> tuple[Arc, ...]:
    path = []
    for number, here in enumerate(arcs):
        single = {(arc.kind, arc.policy): arc for arc in here if arc.stop == number + 1}
        # A policy that makes no difference to a stage is not among its arcs.
        kinds = ((kind, one) for kind in (BODY, WRAPPED) for one in (policy, None))
        wrapped = next((single[kind] for kind in kinds if kind in single), None)
        path.append(wrapped if number in chosen and wrapped else single[PLAIN, None])
    return tuple(path)
