"""A chain of stages, and all that can be done with each run of them.

A gradient computation runs the stages one after the other and then backward. While a stage runs
backward, what all stages before it have kept is live, and what it needs itself. So a placement is a
path through arcs: each leads over one stage or several, adds what it keeps to what is kept so far,
and needs its own peak besides what was kept before. Its operations add up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

PLAIN, WRAPPED, BODY, GROUP = "plain", "wrapped", "body", "group"

# A group of more stages than this saves next to nothing: what it drops are the arrays between its
# stages, and it must hold all that they keep while it runs backward.
_LONGEST_GROUP = 20


@dataclass(frozen=True, slots=True)
class Choice:
    """One thing that can be done with a stage.

    Attributes:
        kind: nothing, a checkpoint on it, or one on the body of its loop over layers.
        policy: the policy of the checkpoint, None without one.
        inputs: bytes that are kept of what earlier stages made.
        others: bytes that are kept besides.
        peak: the most bytes that are live while it runs, besides what earlier stages keep.
        flops: operations more than without a checkpoint.
    """

    kind: str
    policy: str | None
    inputs: int
    others: int
    peak: int
    flops: int


@dataclass(frozen=True, slots=True)
class Link:
    """A stage.

    Attributes:
        start: its first operation.
        stop: the first one after it.
        line: the line of source that runs it.
        heavy: whether it is worth a checkpoint of its own.
        inputs: what earlier stages made and it keeps under a checkpoint: by which, and bytes.
        cotangent: bytes that its backward pass is given.
        flops: operations of its forward pass.
        choices: what can be done with it; the first is nothing.
    """

    start: int
    stop: int
    line: int
    heavy: bool
    inputs: tuple[tuple[int, int], ...]
    cotangent: int
    flops: int
    choices: tuple[Choice, ...]


@dataclass(frozen=True, slots=True)
class Chain:
    """The stages of a function, in order and without gaps.

    Attributes:
        path: the file.
        function: the function whose lines the stages are.
        links: the stages.
    """

    path: str
    function: str
    links: tuple[Link, ...]


@dataclass(frozen=True, slots=True)
class Arc:
    """A decision about a run of stages.

    Attributes:
        start: the first stage.
        stop: the first one after it.
        kind: nothing, a checkpoint on the one stage, on its loop's body, or on several as a group.
        policy: the policy of the checkpoint.
        lines: the lines of the stages.
        saved: bytes that are kept while all other stages run backward.
        peak: the most bytes that are live while the run does, besides what was kept before.
        flops: operations more than without a checkpoint.
    """

    start: int
    stop: int
    kind: str
    policy: str | None
    lines: tuple[int, ...]
    saved: int
    peak: int
    flops: int


@dataclass(frozen=True, slots=True)
class Promise:
    """What a path needs.

    Attributes:
        peak_bytes: the most bytes that are live at once.
        flops: operations more than without checkpoints.
    """

    peak_bytes: int
    flops: int


def promise(path: Sequence[Arc]) -> Promise:
    """What a path needs."""
    saved = peak = 0
    for arc in path:
        peak = max(peak, saved + arc.peak)
        saved += arc.saved
    return Promise(peak, sum(arc.flops for arc in path))


def arcs(chain: Chain, *, grouped: bool = True) -> list[list[Arc]]:
    """For each stage the arcs that start there, those of groups among them if they are wanted."""
    return [
        [*_single(chain.links, start), *(_groups(chain.links, start) if grouped else ())]
        for start in range(len(chain.links))
    ]


def _single(links: Sequence[Link], start: int) -> Iterator[Arc]:
    link = links[start]
    for choice in link.choices if link.heavy else link.choices[:1]:
        saved = choice.inputs + choice.others
        yield Arc(
            start,
            start + 1,
            choice.kind,
            choice.policy,
            (link.line,),
            saved,
            choice.peak,
            choice.flops,
        )


def _groups(links: Sequence[Link], start: int) -> Iterator[Arc]:
    """Checkpoints on several stages, of which the first and the last are heavy.

    The group is computed again as a whole: what its stages keep without a checkpoint is live, with
    what the group was given and the cotangents that it was given, until its backward pass has come
    to its beginning.
    """
    if not links[start].heavy:
        return
    last = min(len(links), _end_of(links, start))
    for stop in range(start + 2, last + 1):
        if links[stop - 1].heavy:
            yield from _group(links, start, stop)


def _end_of(links: Sequence[Link], start: int) -> int:
    """Where the longest group from a stage on ends."""
    heavy = 0
    for number in range(start, len(links)):
        heavy += links[number].heavy
        if heavy == _LONGEST_GROUP:
            return number + 1
    return len(links)


def _group(links: Sequence[Link], start: int, stop: int) -> Iterator[Arc]:
    members = links[start:stop]
    given = [sum(count for maker, count in one.inputs if maker < start) for one in members]
    inputs, cotangent = sum(given), members[-1].cotangent
    lines = tuple(member.line for member in members)
    for policy in (choice.policy for choice in members[0].choices if choice.kind == WRAPPED):
        chosen = [_wrapped(member, policy) for member in members]
        # What a stage gives is computed again for the next one: where a policy keeps products, also
        # that of the last product of each stage, which the stage alone does not need.
        others = [choice.others for choice in chosen]
        for number, member in enumerate(members[:-1]):
            if policy is not None and others[number]:
                others[number] += member.cotangent
        kept = sum(others)
        peak = held = passed = 0
        for number, (member, own, keeping) in enumerate(zip(members, given, others, strict=True)):
            plain = member.choices[0]
            passed += keeping
            # What the policy keeps of the stages that come after is live, too.
            after = kept - passed + (cotangent if number < len(members) - 1 else 0)
            peak = max(peak, plain.peak + held + inputs - own + after)
            held += plain.others + max(plain.inputs - own, 0)
        again = sum(choice.flops for choice in chosen)
        if policy is None:
            # All but the last must give what the next one is given.
            again = sum(member.flops for member in members[:-1]) + chosen[-1].flops
        yield Arc(start, stop, GROUP, policy, lines, inputs + kept, peak, again)


def _wrapped(link: Link, policy: str | None) -> Choice:
    return next(one for one in link.choices if (one.kind, one.policy) == (WRAPPED, policy))


def chain_from(data: Mapping[str, Any]) -> Chain:
    """A chain as the measuring process describes it."""
    return Chain(
        data["path"],
        data["function"],
        tuple(
            Link(
                one["start"],
                one["stop"],
                one["line"],
                one["heavy"],
                tuple((maker, count) for maker, count in one["inputs"]),
                one["cotangent"],
                one["flops"],
                tuple(Choice(**choice) for choice in one["choices"]),
            )
            for one in data["links"]
        ),
    )


def occurrences(chain: Chain) -> dict[int, list[int]]:
    """For each line the heavy stages that it runs."""
    found: dict[int, list[int]] = {}
    for number, link in enumerate(chain.links):
        if link.heavy:
            found.setdefault(link.line, []).append(number)
    return found
