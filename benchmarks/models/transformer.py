"""A decoder with a large vocabulary, with a Python loop or a scan over its blocks."""

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

BLOCKS, WIDTH, LENGTH, BATCH, VOCABULARY = 6, 512, 512, 4, 8192
HEAD_WIDTH = 64
NAMES = ("attention", "hidden")


def normal(x: Any, scale: Any) -> Any:
    """Apply RMS normalisation."""
    return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6) * scale


def attention(parameters: Any, x: Any) -> Any:
    """Apply causal multi-head attention."""
    batch, length, width = x.shape
    joined = normal(x, parameters["scale_1"]) @ parameters["qkv"]
    q, k, v = (part.reshape(batch, length, -1, HEAD_WIDTH) for part in jnp.split(joined, 3, -1))
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / HEAD_WIDTH**0.5
    allowed = jnp.tril(jnp.ones((length, length), bool))
    weights = jax.nn.softmax(jnp.where(allowed, scores, -1e9), -1)
    mixed = jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(batch, length, width)
    return checkpoint_name(mixed @ parameters["out"], "attention")


def feed_forward(parameters: Any, x: Any) -> Any:
    """Apply a feed-forward layer."""
    hidden = normal(x, parameters["scale_2"]) @ parameters["up"]
    return jax.nn.gelu(checkpoint_name(hidden, "hidden")) @ parameters["down"]


def block(parameters: Any, x: Any) -> Any:
    """Apply attention and a feed-forward layer with residual connections."""
    x = x + attention(parameters, x)
    return x + feed_forward(parameters, x)


def block_of(attend: Stage, feed: Stage) -> Stage:
    """Return a block of two given parts."""

    def made(parameters: Any, x: Any) -> Any:
        x = x + attend(parameters, x)
        return x + feed(parameters, x)

    return made


def head(parameters: Any, x: Any, targets: Any) -> Any:
    """Return the cross entropy of the next token."""
    scores = jax.nn.log_softmax(x @ parameters["head"], -1)
    return -jnp.take_along_axis(scores, targets[..., None], -1).mean()


def parameters_of(lead: tuple[int, ...] = ()) -> dict[str, Any]:
    """Return the parameters of a block, with optional leading dimensions."""
    return {
        "qkv": shape(*lead, WIDTH, 3 * WIDTH),
        "out": shape(*lead, WIDTH, WIDTH),
        "up": shape(*lead, WIDTH, 4 * WIDTH),
        "down": shape(*lead, 4 * WIDTH, WIDTH),
        "scale_1": shape(*lead, WIDTH),
        "scale_2": shape(*lead, WIDTH),
    }


def loss_of(body: Stage, last: Any = head) -> Any:
    """Return the loss of a network with this body."""

    def loss(parameters: Any, tokens: Any, targets: Any) -> Any:
        x = parameters["embedding"][tokens]
        return last(parameters, body(parameters["blocks"], x), targets)

    return loss


def args_of(blocks: Any) -> tuple[Any, ...]:
    """Return the arguments of a loss, given the parameters of its blocks."""
    parameters = {
        "embedding": shape(VOCABULARY, WIDTH),
        "blocks": blocks,
        "head": shape(WIDTH, VOCABULARY),
    }
    tokens = shape(BATCH, LENGTH, dtype="int32")
    return parameters, tokens, tokens


def unrolled() -> dict[str, Variant]:
    """Return variants with the blocks in a Python loop."""
    stages = [block] * BLOCKS
    args = args_of([parameters_of()] * BLOCKS)
    placed = {**placements(stages), **with_policies(stages, NAMES)}
    inner = {
        "attention": block_of(jax.checkpoint(attention), feed_forward),
        "feed-forward": block_of(attention, jax.checkpoint(feed_forward)),
        "attention and feed-forward": block_of(
            jax.checkpoint(attention), jax.checkpoint(feed_forward)
        ),
    }
    for name, made in inner.items():
        placed[name] = chain([made] * BLOCKS)
        placed[f"each stage and its {name}"] = segmented([made] * BLOCKS, each(stages))
    found = {name: Variant(loss_of(stage), args) for name, stage in placed.items()}
    plain, single = chain(stages), segmented(stages, each(stages))
    found["head"] = Variant(loss_of(plain, jax.checkpoint(head)), args)
    found["each stage and head"] = Variant(loss_of(single, jax.checkpoint(head)), args)
    found["whole loss"] = Variant(jax.checkpoint(loss_of(plain)), args)
    found["whole loss of each stage"] = Variant(jax.checkpoint(loss_of(single)), args)
    for name, policy in policies(NAMES).items():
        found[f"whole loss, {name}"] = Variant(jax.checkpoint(loss_of(plain), policy=policy), args)
    merged = {
        "each stage": segmented(stages, each(stages), prevent_cse=False),
        "groups of 2": segmented(stages, each(stages, 2), prevent_cse=False),
    }
    for name, stage in merged.items():
        found[f"{name}, prevent_cse=False"] = Variant(loss_of(stage), args, OUTSIDE_LOOPS)
    return found


def scanned() -> dict[str, Variant]:
    """Return variants with a scan over the blocks."""
    args = args_of(parameters_of((BLOCKS,)))

    def over(step: Stage, **options: Any) -> Stage:
        def body(parameters: Any, x: Any) -> Any:
            return jax.lax.scan(lambda x, own: (step(own, x), None), x, parameters, **options)[0]

        return body

    def grouped(length: int, outer: Any, inner: Any) -> Stage:
        def body(parameters: Any, x: Any) -> Any:
            groups = jax.tree.map(lambda a: a.reshape(-1, length, *a.shape[1:]), parameters)
            return over(outer(over(inner(block))))(groups, x)

        return body

    def plain(step: Stage) -> Stage:
        return step

    checkpointed = jax.checkpoint(block)
    unfenced = jax.checkpoint(block, prevent_cse=False)
    placed = {
        "no checkpoint": over(block),
        "body": over(checkpointed),
        "body, prevent_cse=False": over(unfenced),
        "no checkpoint, unroll=2": over(block, unroll=2),
        "body, unroll=2": over(checkpointed, unroll=2),
        "body, unroll=3": over(checkpointed, unroll=3),
        "attention in body": over(block_of(jax.checkpoint(attention), feed_forward)),
        "feed-forward in body": over(block_of(attention, jax.checkpoint(feed_forward))),
        "scan as one": jax.checkpoint(over(block)),
        "scan as one, body too": jax.checkpoint(over(checkpointed)),
        "groups of 2": grouped(2, jax.checkpoint, plain),
        "groups of 3": grouped(3, jax.checkpoint, plain),
        "groups of 2, body": grouped(2, plain, jax.checkpoint),
        "groups of 2, both": grouped(2, jax.checkpoint, jax.checkpoint),
        "groups of 3, both": grouped(3, jax.checkpoint, jax.checkpoint),
    }
    for name, policy in policies(NAMES).items():
        placed[f"body, {name}"] = over(jax.checkpoint(block, policy=policy))
    found = {name: Variant(loss_of(stage), args) for name, stage in placed.items()}
    found["head"] = Variant(loss_of(over(block), jax.checkpoint(head)), args)
    found["body and head"] = Variant(loss_of(over(checkpointed), jax.checkpoint(head)), args)
    found["whole loss"] = Variant(jax.checkpoint(loss_of(over(block))), args)
    for name, policy in policies(NAMES).items():
        whole = jax.checkpoint(loss_of(over(block)), policy=policy)
        found[f"whole loss, {name}"] = Variant(whole, args)
    found["body, prevent_cse=False, unroll=2"] = Variant(
        loss_of(over(unfenced, unroll=2)),
        args,
        OUTSIDE_LOOPS + " (unrolled steps are outside the loop)",
    )
    return found
