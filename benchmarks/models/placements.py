"""Placements of checkpoints on a chain of stages, and what a variant of a model is.

A stage takes its parameters and what the stage before gives. Stages need not be alike: what a
checkpoint on one of them is worth depends on what it keeps inside and on what it hands on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax

Stage = Callable[[Any, Any], Any]
Segment = tuple[int, int]

OUTSIDE_LOOPS = "prevent_cse=False outside a loop"


class Variant(NamedTuple):
    """A model with its checkpoints in certain places.

    Attributes:
        loss: the function that is differentiated by its first argument.
        args: its arguments, as shapes.
        excluded: why it does not count, or nothing.
    """

    loss: Callable[..., Any]
    args: tuple[Any, ...]
    excluded: str = ""


def shape(*dimensions: int, dtype: Any = "float32") -> Any:
    """An array of this shape, without values."""
    make: Any = jax.ShapeDtypeStruct
    return make(dimensions, dtype)


def chain(stages: Sequence[Stage]) -> Stage:
    """One stage after the other, each with its own parameters."""

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
    """The chain with a checkpoint around each segment of stages.

    Args:
        stages: the chain.
        segments: first stage and the one after the last, in order; the others have no checkpoint.
        inside: makes one stage of those in a segment.
        options: of the checkpoints.
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
    """Segments of so many stages, the last one perhaps shorter."""
    count = len(stages)
    return [(start, min(start + length, count)) for start in range(0, count, length)]


def placements(stages: Sequence[Stage]) -> dict[str, Stage]:
    """Ways to place plain checkpoints on a chain."""
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
    """Policies for a model that gives some of its values these names."""
    offered = jax.checkpoint_policies
    return {
        "dots": offered.dots_saveable,
        "dots without batch": offered.dots_with_no_batch_dims_saveable,
        "everything": offered.everything_saveable,
        "a name that is not there": offered.save_only_these_names("not there"),
        **{f"only {name}": offered.save_only_these_names(name) for name in names},
        **{f"any name but {name}": offered.save_any_names_but_these(name) for name in names[:1]},
    }


def with_policies(stages: Sequence[Stage], names: Sequence[str]) -> dict[str, Stage]:
    """Each stage with a checkpoint, under each policy."""
    return {
        f"each stage, {name}": segmented(stages, each(stages), policy=policy)
        for name, policy in policies(names).items()
    }
