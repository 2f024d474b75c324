"""A Flax MLP-Mixer with `nn.remat` and `nn.scan`."""

from __future__ import annotations

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name

from .placements import OUTSIDE_LOOPS, Variant, policies, shape

BLOCKS, BATCH, SIDE, PATCH, WIDTH, TOKENS, HIDDEN, CLASSES = 6, 64, 64, 4, 256, 512, 1024, 100
NAMES = ("tokens", "channels")


class Perceptron(nn.Module):
    """A two-layer perceptron."""

    width: int
    label: str

    @nn.compact
    def __call__(self, x: Any) -> Any:
        """Mix the last axis."""
        hidden = checkpoint_name(nn.Dense(self.width, name="up")(x), self.label)
        return nn.Dense(x.shape[-1], name="down")(nn.gelu(hidden))


class Block(nn.Module):
    """A block that mixes patches, then channels."""

    tokens: Any = Perceptron
    channels: Any = Perceptron

    @nn.compact
    def __call__(self, x: Any) -> Any:
        """Apply both perceptrons with residual connections."""
        turned = jnp.swapaxes(nn.LayerNorm(name="normal_1")(x), 1, 2)
        mixed = self.tokens(TOKENS, "tokens", name="tokens_mixed")(turned)
        x = x + jnp.swapaxes(mixed, 1, 2)
        normal = nn.LayerNorm(name="normal_2")(x)
        return x + self.channels(HIDDEN, "channels", name="channels_mixed")(normal)


class Blocks(nn.Module):
    """A chain of blocks, some of them with a checkpoint."""

    wrapped: Any = Block
    numbers: tuple[int, ...] = tuple(range(BLOCKS))

    @nn.compact
    def __call__(self, x: Any) -> Any:
        """Apply all blocks."""
        for number in range(BLOCKS):
            block = self.wrapped if number in self.numbers else Block
            x = block(name=f"block_{number}")(x)
        return x


class Step(nn.Module):
    """A block as the body of a scan."""

    @nn.compact
    def __call__(self, x: Any, _: Any) -> Any:
        """Return the carry and no output."""
        return Block(name="block")(x), None


class Scanned(nn.Module):
    """A scan over the blocks."""

    body: Any = Step

    @nn.compact
    def __call__(self, x: Any) -> Any:
        """Apply all blocks."""
        over = nn.scan(
            self.body, variable_axes={"params": 0}, split_rngs={"params": True}, length=BLOCKS
        )
        return over(name="blocks")(x, None)[0]


class Mixer(nn.Module):
    """An image classifier."""

    blocks: Any = Blocks

    @nn.compact
    def __call__(self, pictures: Any) -> Any:
        """Return logits."""
        x = nn.Conv(WIDTH, (PATCH, PATCH), strides=(PATCH, PATCH), name="patches")(pictures)
        x = x.reshape(x.shape[0], -1, WIDTH)
        x = self.blocks(name="blocks")(x)
        return nn.Dense(CLASSES, name="head")(nn.LayerNorm(name="normal")(x).mean(1))


def variant(model: nn.Module, excluded: str = "") -> Variant:
    """Return the cross entropy of a network with the shapes of its arguments."""

    def loss(parameters: Any, pictures: Any, targets: Any) -> Any:
        scores = jax.nn.log_softmax(model.apply(parameters, pictures), -1)
        return -jnp.take_along_axis(scores, targets[:, None], -1).mean()

    pictures = shape(BATCH, SIDE, SIDE, 3)
    parameters = jax.eval_shape(model.init, jax.eval_shape(lambda: jax.random.key(0)), pictures)
    return Variant(loss, (parameters, pictures, shape(BATCH, dtype="int32")), excluded)


def in_loop(wrapped: Any, numbers: tuple[int, ...] = tuple(range(BLOCKS))) -> nn.Module:
    """Return the network with a Python loop over its blocks."""
    return Mixer(lambda name: Blocks(wrapped, numbers, name=name))


def variants() -> dict[str, Variant]:
    """Return the network with many placements of checkpoints."""
    every = tuple(range(BLOCKS))
    half = BLOCKS // 2
    remat = nn.remat(Block)
    models = {
        "no checkpoint": in_loop(Block),
        "whole network": nn.remat(Mixer)(),
        "all blocks as one": Mixer(nn.remat(Blocks)),
        "each block": in_loop(remat),
        "each block but the last": in_loop(remat, every[:-1]),
        "first block": in_loop(remat, every[:1]),
        "last block": in_loop(remat, every[-1:]),
        "every other block": in_loop(remat, every[::2]),
        "first half": in_loop(remat, every[:half]),
        "second half": in_loop(remat, every[half:]),
        "patches": in_loop(lambda name: Block(tokens=nn.remat(Perceptron), name=name)),
        "channels": in_loop(lambda name: Block(channels=nn.remat(Perceptron), name=name)),
        "both": in_loop(
            lambda name: Block(
                tokens=nn.remat(Perceptron), channels=nn.remat(Perceptron), name=name
            )
        ),
        "scan": Mixer(Scanned),
        "scan, body": Mixer(lambda name: Scanned(nn.remat(Step), name=name)),
        "scan, body, prevent_cse=False": Mixer(
            lambda name: Scanned(nn.remat(Step, prevent_cse=False), name=name)
        ),
        "scan as one": Mixer(nn.remat(Scanned)),
    }
    for name, policy in policies(NAMES).items():
        models[f"each block, {name}"] = in_loop(nn.remat(Block, policy=policy))
        models[f"scan, body, {name}"] = Mixer(
            lambda name, policy=policy: Scanned(nn.remat(Step, policy=policy), name=name)
        )
    found = {name: variant(model) for name, model in models.items()}
    merged = in_loop(nn.remat(Block, prevent_cse=False))
    found["each block, prevent_cse=False"] = variant(merged, OUTSIDE_LOOPS)
    return found
