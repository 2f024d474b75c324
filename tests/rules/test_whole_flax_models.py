"""RMT301 in Flax models: through a training state, and around a whole stack of layers."""

from __future__ import annotations

import pytest
from support import findings

from remat_migrate.text import apply_edits

HEAD = """\
import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from flax.training.train_state import TrainState


class Block(nn.Module):
    @nn.compact
    def __call__(self, x):
        return x + nn.Dense(8)(nn.tanh(nn.Dense(8)(x)))


class Stack(nn.Module):
    n: int = 4

    @nn.compact
    def __call__(self, x):
        for _ in range(self.n):
            x = Block()(x)
        return x
"""

NET = """
@nn.remat
class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        for _ in range(4):
            x = Block()(x)
        return nn.Dense(1)(x)
"""

STEP = """
@jax.jit
def train_step(state, x, y):
    def loss_fn(params):
        out = state.apply_fn({"params": params}, x)
        return jnp.mean((out - y) ** 2)
    grads = jax.grad(loss_fn)(state.params)
    return state.apply_gradients(grads=grads)
"""

WHOLE = {
    "state": NET
    + """
def make(rng, x):
    model = Net()
    params = model.init(rng, x)["params"]
    return TrainState.create(apply_fn=model.apply, params=params, tx=optax.sgd(0.1))
"""
    + STEP,
    "apply": NET.replace("@nn.remat\n", "")
    + """
def make(model, rng, x):
    params = model.init(rng, x)["params"]
    apply = jax.checkpoint(model.apply)
    return TrainState.create(apply_fn=apply, params=params, tx=optax.sgd(0.1))

def main(x):
    return make(Net(), jax.random.key(0), x)
"""
    + STEP,
    "stack": """class Model(nn.Module):
    @nn.compact
    def __call__(self, tokens):
        x = nn.Embed(32, 8)(tokens)
        x = nn.remat(Stack)(4)(x)
        x = nn.LayerNorm()(x)
        return nn.Dense(32)(x)

def loss(params, tokens, y):
    out = Model().apply(params, tokens)
    return optax.softmax_cross_entropy_with_integer_labels(out, y).mean()

step = jax.value_and_grad(loss)
""",
    "stack_state": """RematStack = nn.remat(Stack)

class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.Dense(8)(x)
        x = RematStack(6, name="stack")(x)
        return nn.Dense(2)(x)

def make(rng, x):
    model = Model()
    params = model.init(rng, x)["params"]
    return TrainState.create(apply_fn=model.apply, params=params, tx=optax.sgd(0.1))
"""
    + STEP,
}


@pytest.mark.parametrize("name", WHOLE)
def test_found(name: str) -> None:
    [finding] = findings(HEAD + WHOLE[name], select="RMT301")
    part = "a whole stack of layers" in finding.message
    assert part == (name in ("stack", "stack_state"))


def test_the_head_is_checkpointed_too() -> None:
    code = WHOLE["stack"].replace("nn.Dense(32)", "nn.remat(nn.Dense)(32)")
    assert [f.code for f in findings(HEAD + code, select="RMT3")] == ["RMT301", "RMT302"]


def test_the_layers_are_checkpointed() -> None:
    head = HEAD.replace("for _ in range(self.n)", "for i in range(self.n)")
    code = head + WHOLE["stack"].replace("nn.Embed(32, 8)", "nn.Dense(8)").replace("tokens", "x")
    code = code.replace(
        "optax.softmax_cross_entropy_with_integer_labels(out, y)", "((out - y) ** 2)"
    )
    [finding] = findings(code, select="RMT301")
    assert finding.fix is not None
    text = apply_edits(code, finding.fix.edits)
    assert "x = nn.remat(lambda self: Block()(x))(self)" in text
    assert 'x = Stack(4, name="CheckpointStack_0")(x)' in text


def test_a_stack_beside_a_vocabulary_is_not_moved() -> None:
    head = HEAD.replace("for _ in range(self.n)", "for i in range(self.n)")
    [finding] = findings(head + WHOLE["stack"], select="RMT301")
    assert finding.fix is not None
    assert finding.fix.safety == "manual"
    assert "a large head follows the stack, so measure both" in finding.reason


OTHER = {
    "method": NET
    + """
def make(rng, x):
    return TrainState.create(apply_fn=Net().apply, params=1, tx=optax.sgd(0.1))

def train_step(state, x):
    def loss_fn(params):
        return state.apply_fn({"params": params}, x, method="encode").sum()
    return jax.grad(loss_fn)(state.params)
""",
    "unseen_model": NET
    + """
def make(model, rng, x):
    return TrainState.create(apply_fn=model.apply, params=1, tx=optax.sgd(0.1))
"""
    + STEP,
}


@pytest.mark.parametrize("name", OTHER)
def test_left_alone(name: str) -> None:
    assert findings(HEAD + OTHER[name], select="RMT301") == []
