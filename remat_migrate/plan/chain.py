"""A chain of stages, and the decisions that are possible for each run of stages.

A gradient computation runs the stages forward and then backward. While a stage runs backward, the
residuals of all earlier stages are live, as well as its own memory. A placement of checkpoints is
therefore a path of arcs: each covers one or more stages, adds its residuals to those of the path
before it, and has a peak on top of them. The FLOPs add up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ..measure.worker.records import PLAIN, WRAPPED, Chain, Choice, Cost, Link

GROUP = "group"

# File, function and line.
Place = tuple[str, str, int]
# Start, stop, kind and policy of a checkpoint on a run of equations.
Run = tuple[int, int, str, "str | None"]

# A longer group saves almost nothing: it drops the arrays between its stages, and while it runs
# backward it holds all their residuals.
_LONGEST_GROUP = 20


@dataclass(frozen=True, slots=True)
class Arc:
    """A decision for a run of stages.

    Attributes:
        start: the first stage.
        stop: the end of the run.
        kind: no checkpoint, a checkpoint on the stage, on its loop's body, or on a group of stages.
        policy: the policy of the checkpoint, or None.
        lines: the lines of the stages.
        saved: bytes of residuals.
        peak: peak of live bytes while the run is differentiated, on top of earlier residuals.
        flops: recomputed FLOPs.
    """

    start: int
    stop: int
    kind: str
    policy: str | None
    lines: tuple[int, ...]
    saved: int
    peak: int
    flops: int


# Returns whether the checkpoint of an arc can be written into the source.
Allows = Callable[[Chain, Arc], bool]


def promise(path: Sequence[Arc], forward: int = 0) -> Cost:
    """Return the expected cost of a path, given the FLOPs without checkpoints."""
    saved = peak = 0
    for arc in path:
        peak = max(peak, saved + arc.peak)
        saved += arc.saved
    return Cost(peak, forward + sum(arc.flops for arc in path))


def runs_of(chain: Chain, path: Sequence[Arc]) -> tuple[Run, ...]:
    """Return the start, stop, kind and policy of each checkpoint of a path."""
    return tuple(
        (
            chain[arc.start].start,
            chain[arc.stop - 1].stop,
            WRAPPED if arc.kind == GROUP else arc.kind,
            arc.policy,
        )
        for arc in path
        if arc.kind != PLAIN
    )


def arcs(chain: Chain, allows: Allows | None = None) -> list[list[Arc]]:
    """Return the arcs that start at each stage; only those that can be written, if it is known."""
    found = ([*_single(chain, start), *_groups(chain, start)] for start in range(len(chain)))
    return [[arc for arc in here if allows is None or allows(chain, arc)] for here in found]


def _single(links: Sequence[Link], start: int) -> Iterator[Arc]:
    link = links[start]
    for choice in link.choices if link.heavy else link.choices[:1]:
        kind, policy, saved = choice.kind, choice.policy, choice.inputs + choice.others
        yield Arc(start, start + 1, kind, policy, (link.line,), saved, choice.peak, choice.flops)


def _groups(links: Sequence[Link], start: int) -> Iterator[Arc]:
    """Yield checkpoints on several stages, of which the first and the last are heavy.

    The whole group is recomputed. Until its backward pass ends, the residuals that its stages have
    without a checkpoint are live, as well as its inputs and cotangents.
    """
    if not links[start].heavy:
        return
    heavy = 1
    for stop in range(start + 2, len(links) + 1):
        if links[stop - 1].heavy:
            heavy += 1
            if heavy > _LONGEST_GROUP or links[stop - 1].place[:2] != links[start].place[:2]:
                return  # a group is written as a function of its own
            yield from _group(links, start, stop)


def _group(links: Sequence[Link], start: int, stop: int) -> Iterator[Arc]:
    members = links[start:stop]
    given = [sum(count for maker, count in one.inputs if maker < start) for one in members]
    inputs, cotangent = sum(given), members[-1].cotangent
    lines = tuple(member.line for member in members)
    policies = (one.policy for member in members for one in member.choices if one.kind == WRAPPED)
    for policy in dict.fromkeys(policies):
        chosen = [_wrapped(member, policy) for member in members]
        # The output of each stage is recomputed for the next one. A policy that saves products then
        # also saves the last product of each stage, which the stage alone does not need.
        others = [choice.others for choice in chosen]
        for number, member in enumerate(members[:-1]):
            if policy is not None and others[number]:
                others[number] += member.cotangent
        kept = sum(others)
        peak = held = passed = 0
        for number, (member, own, keeping) in enumerate(zip(members, given, others, strict=True)):
            plain = member.choices[0]
            passed += keeping
            # The policy's residuals of later stages are live, too.
            after = kept - passed + (cotangent if number < len(members) - 1 else 0)
            peak = max(peak, plain.peak + held + inputs - own + after)
            held += plain.others + max(plain.inputs - own, 0)
        again = sum(choice.flops for choice in chosen)
        if policy is None:
            # All stages but the last are recomputed in full, for the input of the next one.
            again = sum(member.flops for member in members[:-1]) + chosen[-1].flops
        yield Arc(start, stop, GROUP, policy, lines, inputs + kept, peak, again)


def _wrapped(link: Link, policy: str | None) -> Choice:
    """Return the choice for a policy; one that makes no difference to the stage is not listed."""
    found = {one.policy: one for one in link.choices if one.kind == WRAPPED}
    return found.get(policy, found[None])


def occurrences(chain: Chain) -> dict[Place, list[int]]:
    """Return the heavy stages that each line runs."""
    found: dict[Place, list[int]] = {}
    for number, link in enumerate(chain):
        if link.heavy:
            found.setdefault(link.place, []).append(number)
    return found
