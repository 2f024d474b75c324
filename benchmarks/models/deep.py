"""A decoder of many wide blocks with one or four checkpoints each, for the cost of measuring."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp

from .placements import Variant, chain, shape
from .transformer import HEAD_WIDTH, block, feed_forward, normal

WIDTH, BATCH, LENGTH, DTYPE = 4096, 8, 2048, "bfloat16"
# Shapes of the parameters of a block.
SHAPES = {
    "qkv": (WIDTH, 3 * WIDTH),
    "out": (WIDTH, WIDTH),
    "up": (WIDTH, 4 * WIDTH),
    "down": (4 * WIDTH, WIDTH),
    "scale_1": (WIDTH,),
    "scale_2": (WIDTH,),
}


def mixed(scores: Any, v: Any) -> Any:
    """Mix values by the softmax of scores."""
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores, -1), v)


def attended(parameters: Any, x: Any) -> Any:
    """Compute attention with two checkpoints inside."""
    batch, length, width = x.shape
    normalised = jax.checkpoint(normal)(x, parameters["scale_1"])
    joined = normalised @ parameters["qkv"]
    q, k, v = (part.reshape(batch, length, -1, HEAD_WIDTH) for part in jnp.split(joined, 3, -1))
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / HEAD_WIDTH**0.5
    weighted = jax.checkpoint(mixed)(scores, v)
    return weighted.reshape(batch, length, width) @ parameters["out"]


def block_of_four(parameters: Any, x: Any) -> Any:
    """Compute a block with four checkpoints, two of them nested in a third."""
    x = x + jax.checkpoint(attended)(parameters, x)
    return x + jax.checkpoint(feed_forward)(parameters, x)


def variant(blocks: int, checkpoints: int) -> Variant:
    """Return a decoder with 0, 1 or 4 checkpoints in each block."""
    stage = {0: block, 1: jax.checkpoint(block), 4: block_of_four}[checkpoints]
    body = chain([stage] * blocks)

    def loss(parameters: Any, x: Any) -> Any:
        return (body(parameters, x).astype(jnp.float32) ** 2).mean()

    one = {name: shape(*dimensions, dtype=DTYPE) for name, dimensions in SHAPES.items()}
    return Variant(loss, ([one] * blocks, shape(BATCH, LENGTH, WIDTH, dtype=DTYPE)))


def parameters(blocks: int) -> int:
    """Return the number of parameters."""
    return blocks * sum(math.prod(dimensions) for dimensions in SHAPES.values())
