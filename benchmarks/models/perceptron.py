"""A multilayer perceptron whose layers differ in width, and in residuals by a factor of eight."""

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

ROWS = 8192
WIDTHS = (512, 2048, 1024, 3072, 512, 1536, 384, 1024)
OUTER = 512


def layer(parameters: Any, x: Any) -> Any:
    """Apply a gated layer with normalisation and a residual connection."""
    up, gate, down, scale = parameters
    mean = x.mean(-1, keepdims=True)
    normal = (x - mean) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-6) * scale
    hidden = checkpoint_name(jax.nn.gelu(normal @ up), "hidden")
    gated = checkpoint_name(jnp.tanh(normal @ gate), "gate")
    return x + (hidden * gated) @ down


def loss_of(hidden: Stage) -> Any:
    """Return the mean squared error of a chain."""

    def loss(parameters: Any, x: Any, target: Any) -> Any:
        return ((hidden(parameters, x) - target) ** 2).mean()

    return loss


def variants() -> dict[str, Variant]:
    """Return the perceptron with many placements of checkpoints."""
    stages = [layer] * len(WIDTHS)
    parameters = [
        (shape(OUTER, width), shape(OUTER, width), shape(width, OUTER), shape(OUTER))
        for width in WIDTHS
    ]
    args = (parameters, shape(ROWS, OUTER), shape(ROWS, OUTER))
    names = ("hidden", "gate")
    placed = {**placements(stages), **with_policies(stages, names)}
    found = {name: Variant(loss_of(stage), args) for name, stage in placed.items()}
    bare = loss_of(chain(stages))
    found["whole loss"] = Variant(jax.checkpoint(bare), args)
    for name, policy in policies(names).items():
        found[f"whole loss, {name}"] = Variant(jax.checkpoint(bare, policy=policy), args)
    merged = loss_of(segmented(stages, each(stages), prevent_cse=False))
    found["each stage, prevent_cse=False"] = Variant(merged, args, OUTSIDE_LOOPS)
    return found
