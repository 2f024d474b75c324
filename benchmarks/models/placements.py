"""Placements of checkpoints on a chain of stages.

A stage takes its parameters and the output of the stage before it. The value of a checkpoint on a
stage depends on the sizes of its residuals and its output.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax

Stage = Callable[[Any, Any], Any]
Segment = tuple[int, int]

OUTSIDE_LOOPS = "prevent_cse=False outside a loop"


class Variant(NamedTuple):
    """A model with some placement of checkpoints.

    Attributes:
        loss: function to differentiate by its first argument.
        args: shapes of its arguments.
        excluded: why the variant does not count, or the empty string.
    """

    loss: Callable[..., Any]
    args: tuple[Any, ...]
    excluded: str = ""


def shape(*dimensions: int, dtype: Any = "float32") -> Any:
    """Return the shape of an array."""
    make: Any = jax.ShapeDtypeStruct
    return make(dimensions, dtype)


def chain(stages: Sequence[Stage]) -> Stage:
    """Return a stage that runs several stages in order, each with its own parameters."""

    def chained(parameters: Any, x: Any) -> Any:
        for stage, own in zip(stages, parameters, strict=True):
            x = stage(own, x)
        return x

    return chained


def segmented(
    stages: Sequence[Stage],
    segments: Sequence[Segment],
    inside: Callable[[Sequence[Stage]], Stage] = chain,
    **options: Any,
) -> Stage:
    """Return a chain with a checkpoint on each segment of stages.

    Args:
        stages: the chain.
        segments: start and stop of each segment, in order.
        inside: joins the stages of a segment.
        options: options of the checkpoints.
    """

    def chained(parameters: Any, x: Any) -> Any:
        done = 0
        for start, stop in segments:
            x = chain(stages[done:start])(parameters[done:start], x)
            x = jax.checkpoint(inside(stages[start:stop]), **options)(parameters[start:stop], x)
            done = stop
        return chain(stages[done:])(parameters[done:], x)

    return chained


def each(stages: Sequence[Stage], length: int = 1) -> list[Segment]:
    """Return segments of equal length; the last one may be shorter."""
    count = len(stages)
    return [(start, min(start + length, count)) for start in range(0, count, length)]


def placements(stages: Sequence[Stage]) -> dict[str, Stage]:
    """Return placements of checkpoints without a policy."""
    count, single = len(stages), each(stages)
    half = count // 2

    def each_inside(inner: Sequence[Stage]) -> Stage:
        return segmented(inner, each(inner))

    return {
        "no checkpoint": chain(stages),
        "first stage": segmented(stages, single[:1]),
        "last stage": segmented(stages, single[-1:]),
        "each stage": segmented(stages, single),
        "each but the last": segmented(stages, single[:-1]),
        "each but the first": segmented(stages, single[1:]),
        "every other stage": segmented(stages, single[::2]),
        "first half, each stage": segmented(stages, single[:half]),
        "second half, each stage": segmented(stages, single[half:]),
        "first half as one": segmented(stages, [(0, half)]),
        "second half as one": segmented(stages, [(half, count)]),
        "groups of 2": segmented(stages, each(stages, 2)),
        "groups of 3": segmented(stages, each(stages, 3)),
        "groups of 2, each stage inside": segmented(stages, each(stages, 2), each_inside),
    }


def policies(names: Sequence[str]) -> dict[str, Any]:
    """Return policies for a model that names some of its values."""
    offered = jax.checkpoint_policies
    return {
        "dots": offered.dots_saveable,
        "dots without batch": offered.dots_with_no_batch_dims_saveable,
        "everything": offered.everything_saveable,
        "an unknown name": offered.save_only_these_names("unknown"),
        **{f"only {name}": offered.save_only_these_names(name) for name in names},
        **{f"any name but {name}": offered.save_any_names_but_these(name) for name in names[:1]},
    }


def with_policies(stages: Sequence[Stage], names: Sequence[str]) -> dict[str, Stage]:
    """Return placements of a checkpoint on each stage, by policy."""
    return {
        f"each stage, {name}": segmented(stages, each(stages), policy=policy)
        for name, policy in policies(names).items()
    }
