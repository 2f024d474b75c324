"""Parameters of networks: what `net.apply(params, ...)` gets comes from the network's `init`."""

import flax.linen as nn
import haiku as hk
import jax
import jax.numpy as jnp
import pytest
from flax import nnx

from remat_migrate.verify.worker.inputs.make import make_cases


class Net(nn.Module):
    @nn.compact
    def __call__(self, x, train=False):
        x = nn.BatchNorm(use_running_average=not train)(nn.Dense(6)(x))
        return nn.Dropout(0.5, deterministic=not train)(x)


net = Net()


def flax_loss(params, stats, x, y, rng, train):
    variables = {"params": params, "batch_stats": stats}
    mutable = ["batch_stats"] if train else False
    out = net.apply(variables, x, train=train, rngs={"dropout": rng}, mutable=mutable)
    return jnp.sum((out[0] - y if train else out - y) ** 2)


def flax_gradient(variables, x, rngs):
    return jax.grad(lambda v: net.apply(v, x, train=True, rngs=rngs, mutable=True)[0].sum())(
        variables
    )


@jax.jit
def built_inside(x, params):
    def loss(params):
        return nn.Dense(5).apply({"params": params}, x).sum()

    return jax.tree_util.tree_map(
        lambda one, step: one - 0.1 * step, params, jax.grad(loss)(params)
    )


def forward(x, scale):
    return hk.Linear(3)(x) * scale


network = hk.transform(forward)
init_fn, apply_fn = hk.transform_with_state(forward)


def haiku_loss(params: hk.Params, rng, x, scale: float):
    return jax.value_and_grad(lambda p: network.apply(p, rng, x, scale).sum())(params)


def haiku_unpacked(params, state, x):
    return apply_fn(params, state, None, x, 2.0)


class NnxNet(nnx.Module):
    def __init__(self, width: int, *, rngs: nnx.Rngs):
        self.up = nnx.Linear(width, 5, rngs=rngs)

    def __call__(self, x):
        return self.up(x)


def nnx_loss(model: NnxNet, x):
    return model(x).sum()


def shapes(tree):
    return jax.tree_util.tree_map(jnp.shape, tree)


def first(unit):
    made = make_cases(unit)
    assert made.cases, made.detail
    return made.cases[0][1]["args"]


def test_flax_collections():
    params, stats, x, y, _, train = first(flax_loss)
    assert train is True
    assert shapes(params)["BatchNorm_0"] == {"bias": (6,), "scale": (6,)}
    assert shapes(params)["Dense_0"] == {"kernel": (x.shape[-1], 6), "bias": (6,)}
    assert shapes(stats) == {"BatchNorm_0": {"mean": (6,), "var": (6,)}}
    assert (stats["BatchNorm_0"]["var"] > 0).all()
    assert y.shape  # a scalar would hide what happens to the axes


def test_flax_network_built_inside_a_jit():
    x, params = first(built_inside)
    assert shapes(params) == {"kernel": (x.shape[-1], 5), "bias": (5,)}


def test_flax_variables_and_keys():
    variables, _, rngs = first(flax_gradient)
    assert set(variables) == {"params", "batch_stats"}
    assert set(rngs) == {"dropout"}


def test_flax_biases_are_not_zero():
    params = first(flax_loss)[0]
    assert (params["Dense_0"]["bias"] != 0).all()


@pytest.mark.parametrize("unit", [haiku_loss, haiku_unpacked])
def test_haiku(unit):
    params, *_ = arguments = first(unit)
    x = arguments[2]
    assert shapes(params) == {"linear": {"w": (x.shape[-1], 3), "b": (3,)}}


def test_nnx():
    model, x = first(nnx_loss)
    assert model(x).shape == (*x.shape[:-1], 5)
