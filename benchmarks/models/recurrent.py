"""An LSTM, scanned over time, with a head on each of its states."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name

from .placements import OUTSIDE_LOOPS, Variant, policies, shape

STEPS, BATCH, INPUTS, WIDTH, CLASSES = 144, 128, 128, 512, 512
NAMES = ("gates", "state")


def cell(parameters: Any, carried: Any, x: Any) -> Any:
    """Apply an LSTM cell."""
    state, memory = carried
    joined = x @ parameters["input"] + state @ parameters["state"] + parameters["bias"]
    inwards, forget, outwards, new = jnp.split(checkpoint_name(joined, "gates"), 4, -1)
    memory = jax.nn.sigmoid(forget) * memory + jax.nn.sigmoid(inwards) * jnp.tanh(new)
    state = checkpoint_name(jax.nn.sigmoid(outwards) * jnp.tanh(memory), "state")
    return (state, memory), state


def head(parameters: Any, states: Any, targets: Any) -> Any:
    """Return the cross entropy of a class per step."""
    scores = jax.nn.log_softmax(states @ parameters["head"], -1)
    return -jnp.take_along_axis(scores, targets[..., None], -1).mean()


def over(step: Any, **options: Any) -> Any:
    """Return a scan with the same parameters in each step."""

    def scanned(parameters: Any, carried: Any, inputs: Any) -> Any:
        return jax.lax.scan(lambda c, x: step(parameters, c, x), carried, inputs, **options)

    return scanned


def in_groups(length: int, outer: Any, step: Any) -> Any:
    """Return a scan over groups of steps, each of which is a scan."""

    def scanned(parameters: Any, carried: Any, inputs: Any) -> Any:
        groups = inputs.reshape(-1, length, *inputs.shape[1:])
        carried, states = over(outer(over(step)))(parameters, carried, groups)
        return carried, states.reshape(-1, *states.shape[2:])

    return scanned


def loss_of(scan: Any, last: Any = head) -> Any:
    """Return the loss of all steps."""

    def loss(parameters: Any, inputs: Any, targets: Any) -> Any:
        zeros = jnp.zeros((BATCH, WIDTH), inputs.dtype)
        _, states = scan(parameters, (zeros, zeros), inputs)
        return last(parameters, states, targets)

    return loss


def last_only(scan: Any) -> Any:
    """Return the loss of the last step only, which does not stack the states."""

    def loss(parameters: Any, inputs: Any, targets: Any) -> Any:
        zeros = jnp.zeros((BATCH, WIDTH), inputs.dtype)
        (state, _), _ = scan(parameters, (zeros, zeros), inputs)
        return head(parameters, state, targets[-1])

    return loss


def variants() -> dict[str, Variant]:
    """Return the network with many placements of checkpoints."""
    parameters = {
        "input": shape(INPUTS, 4 * WIDTH),
        "state": shape(WIDTH, 4 * WIDTH),
        "bias": shape(4 * WIDTH),
        "head": shape(WIDTH, CLASSES),
    }
    targets = shape(STEPS, BATCH, dtype="int32")
    args = (parameters, shape(STEPS, BATCH, INPUTS), targets)
    checkpointed = jax.checkpoint(cell)
    unfenced = jax.checkpoint(cell, prevent_cse=False)
    placed = {
        "no checkpoint": over(cell),
        "body": over(checkpointed),
        "body, prevent_cse=False": over(unfenced),
        "scan as one": jax.checkpoint(over(cell)),
        "scan as one, body too": jax.checkpoint(over(checkpointed)),
        "no checkpoint, unroll=4": over(cell, unroll=4),
        "body, unroll=4": over(checkpointed, unroll=4),
    }
    for length in (4, 12, 36):
        placed[f"groups of {length}"] = in_groups(length, jax.checkpoint, cell)
        placed[f"groups of {length}, both"] = in_groups(length, jax.checkpoint, checkpointed)
    placed["groups of 12, body"] = in_groups(12, lambda scan: scan, checkpointed)
    for name, policy in policies(NAMES).items():
        placed[f"body, {name}"] = over(jax.checkpoint(cell, policy=policy))
    found = {name: Variant(loss_of(scan), args) for name, scan in placed.items()}
    for name in ("no checkpoint", "body", "groups of 12", "groups of 12, both"):
        found[f"{name}, last state"] = Variant(last_only(placed[name]), args)
    found["head"] = Variant(loss_of(over(cell), jax.checkpoint(head)), args)
    found["body and head"] = Variant(loss_of(over(checkpointed), jax.checkpoint(head)), args)
    found["whole loss"] = Variant(jax.checkpoint(loss_of(over(cell))), args)
    unrolled = loss_of(over(unfenced, unroll=4))
    why = OUTSIDE_LOOPS + " (unrolled steps are outside the loop)"
    found["body, prevent_cse=False, unroll=4"] = Variant(unrolled, args, why)
    return found
