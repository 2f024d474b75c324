"""The costs of the stages of a loss as parts of a training step.

A step has values of its own while it differentiates the loss, such as its arguments and the sums of
gradients, and may differentiate the loss once for each part of a batch.
"""

from __future__ import annotations

from typing import Callable, Mapping, Tuple

from ..records import WRAPPED, Chain, Choice, Need
from ..stage_costs import Kind

_Trace = Callable[[Mapping[Tuple[int, int], Kind]], Need]


def in_step(chain: Chain, bare: Need, trace: _Trace, *, is_divided: bool) -> Chain:
    """Return a chain with costs that are those of the whole step on one device.

    Args:
        chain: the stages of the loss.
        bare: the cost of the step without checkpoints.
        trace: traces the step with checkpoints on some runs of equations.
        is_divided: whether the values are divided over several devices.
    """
    every = {
        (link.start, link.stop): choice
        for link in chain.links
        for choice in link.choices
        if link.heavy and (choice.kind, choice.policy) == (WRAPPED, None)
    }
    need = trace(dict.fromkeys(every, Kind(WRAPPED)))
    recomputed = sum(choice.flops for choice in every.values())
    times = (need.flops - bare.flops) / recomputed if recomputed else 1.0
    plain, wrapped = _peak(chain, {}), _peak(chain, every)
    share = 1.0
    if is_divided and plain > wrapped and bare.peak_bytes > need.peak_bytes:
        share = (bare.peak_bytes - need.peak_bytes) / (plain - wrapped)
    others = bare.peak_bytes - share * plain

    def scaled(choice: Choice) -> Choice:
        return choice._replace(
            inputs=round(choice.inputs * share),
            others=round(choice.others * share),
            peak=max(round(choice.peak * share + others), 0),
            flops=round(choice.flops * times),
        )

    return Chain(
        tuple(
            link._replace(
                inputs=tuple((maker, round(count * share)) for maker, count in link.inputs),
                cotangent=round(link.cotangent * share),
                flops=round(link.flops * times),
                choices=tuple(map(scaled, link.choices)),
            )
            for link in chain.links
        )
    )


def _peak(chain: Chain, chosen: Mapping[Tuple[int, int], Choice]) -> int:
    """Return the peak of a chain with some choices, and no other checkpoints."""
    peak = held = 0
    for link in chain.links:
        choice = chosen.get((link.start, link.stop), link.choices[0])
        peak = max(peak, held + choice.peak)
        held += choice.inputs + choice.others
    return peak
