"""A convolutional network of decreasing resolution, whose first stages have most residuals."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name

from .placements import (
    OUTSIDE_LOOPS,
    Stage,
    Variant,
    chain,
    each,
    placements,
    policies,
    segmented,
    shape,
    with_policies,
)

BATCH, SIDE, COLOURS, CLASSES, GROUPS = 16, 128, 3, 100, 8
# Output channels and stride of each stage.
STAGES = ((32, 1), (64, 2), (64, 1), (128, 2), (128, 1), (256, 2))
NAMES = ("convolved", "expanded")


def convolution(x: Any, kernel: Any, stride: int = 1) -> Any:
    """Apply a convolution with padding."""
    return jax.lax.conv_general_dilated(
        x, kernel, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def normal(x: Any, scale: Any) -> Any:
    """Apply group normalisation."""
    batch, height, width, channels = x.shape
    grouped = x.reshape(batch, height, width, GROUPS, channels // GROUPS)
    mean = grouped.mean((1, 2, 4), keepdims=True)
    variance = grouped.var((1, 2, 4), keepdims=True)
    return ((grouped - mean) * jax.lax.rsqrt(variance + 1e-5)).reshape(x.shape) * scale


def stage_of(stride: int) -> Stage:
    """Return a residual block of two convolutions."""

    def stage(parameters: Any, x: Any) -> Any:
        first = checkpoint_name(convolution(x, parameters["first"], stride), "convolved")
        hidden = jax.nn.relu(normal(first, parameters["scale_1"]))
        second = checkpoint_name(convolution(hidden, parameters["second"]), "expanded")
        shortcut = convolution(x, parameters["shortcut"], stride)
        return jax.nn.relu(normal(second, parameters["scale_2"]) + shortcut)

    return stage


def head(parameters: Any, x: Any, targets: Any) -> Any:
    """Return the cross entropy of the classes."""
    scores = jax.nn.log_softmax(x.mean((1, 2)) @ parameters, -1)
    return -jnp.take_along_axis(scores, targets[:, None], -1).mean()


def loss_of(body: Stage) -> Any:
    """Return the loss of a network with this body."""

    def loss(parameters: Any, pictures: Any, targets: Any) -> Any:
        return head(parameters["head"], body(parameters["stages"], pictures), targets)

    return loss


def variants() -> dict[str, Variant]:
    """Return the network with many placements of checkpoints."""
    stages = [stage_of(stride) for _, stride in STAGES]
    own, before = [], COLOURS
    for channels, _ in STAGES:
        own.append(
            {
                "first": shape(3, 3, before, channels),
                "second": shape(3, 3, channels, channels),
                "shortcut": shape(1, 1, before, channels),
                "scale_1": shape(channels),
                "scale_2": shape(channels),
            }
        )
        before = channels
    parameters = {"stages": own, "head": shape(before, CLASSES)}
    args = (parameters, shape(BATCH, SIDE, SIDE, COLOURS), shape(BATCH, dtype="int32"))
    placed = {**placements(stages), **with_policies(stages, NAMES)}
    found = {name: Variant(loss_of(stage), args) for name, stage in placed.items()}
    bare = loss_of(chain(stages))
    found["whole loss"] = Variant(jax.checkpoint(bare), args)
    for name, policy in policies(NAMES).items():
        found[f"whole loss, {name}"] = Variant(jax.checkpoint(bare, policy=policy), args)
    merged = loss_of(segmented(stages, each(stages), prevent_cse=False))
    found["each stage, prevent_cse=False"] = Variant(merged, args, OUTSIDE_LOOPS)
    return found
