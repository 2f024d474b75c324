"""Equinox modules are trees: they only have to come through files whole."""

from __future__ import annotations

import typing

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from recorded_calls import exercise, recorded
from worker_package import load_worker

eqx = pytest.importorskip("equinox")
pure_functions = load_worker("frameworks.pure_functions")
pickling = load_worker("transfer.pickling")

X = jnp.linspace(-1.0, 1.0, 6).reshape(2, 3)


class Net(eqx.Module):
    layers: list
    scale: jax.Array
    name: str = eqx.field(static=True)
    activation: typing.Callable = jax.nn.relu

    def __init__(self, key, name="net"):
        first, second = jax.random.split(key)
        self.layers = [eqx.nn.Linear(3, 4, key=first), eqx.nn.MLP(4, 2, 5, 1, key=second)]
        self.scale = jnp.asarray(2.0)
        self.name = name

    @recorded
    def __call__(self, x, *, key=None):
        x = self.activation(self.layers[0](x)) * self.scale
        return self.layers[1](x) if self.name == "net" else x


def test_equinox_modules(record):
    net = Net(jax.random.PRNGKey(0))

    @eqx.filter_jit
    @eqx.filter_grad
    def run(net):
        return jnp.sum(jax.vmap(net)(X))

    cases = record(run, net)
    assert len(cases) == 2
    for case in cases:
        back = case["args"][0]
        assert case["context"] is None
        assert jax.tree_util.tree_structure(back) == jax.tree_util.tree_structure(net)
        jax.tree_util.tree_map(
            np.testing.assert_array_equal, *(eqx.filter(n, eqx.is_array) for n in (back, net))
        )
        assert back.activation is jax.nn.relu
        (prepared,) = pure_functions.prepare(Net.__call__, case)
        np.testing.assert_allclose(exercise(prepared), net(case["args"][1]), rtol=1e-5)


def test_equinox_state_and_functions(tmp_path):
    norm, state = eqx.nn.make_with_state(eqx.nn.BatchNorm)(3, "batch", mode="batch")
    pickling.save((norm, state, eqx.filter_jit), tmp_path / "saved.pkl")
    norm2, state2, function = pickling.load(tmp_path / "saved.pkl")
    assert function is eqx.filter_jit
    first = jax.vmap(norm, axis_name="batch", in_axes=(0, None), out_axes=(0, None))(X, state)
    second = jax.vmap(norm2, axis_name="batch", in_axes=(0, None), out_axes=(0, None))(X, state2)
    np.testing.assert_array_equal(first[0], second[0])
