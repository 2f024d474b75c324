"""Searches that come to the right inputs in several steps, or tell them from a traceback."""

import sys

import flax.linen as nn
import haiku as hk
import jax
import jax.numpy as jnp
from worker_package import load_worker

make = load_worker("inputs.make")
shapes = load_worker("inputs.shapes")


def inputs_of(unit, cls=None):
    made = make.make_cases(unit, cls)
    assert made.cases, made.detail
    return made.cases[0][1]["args"]


def test_a_size_of_one_is_no_better_than_the_size_that_fits():
    choice = load_worker("inputs.node").array((2, 4))
    message = "Incompatible shapes for broadcasting: shapes=[(2, 1, 4), (8, 3, 6)]"
    first = [one.value[0] for one in shapes.repairs(choice, message, ())][:4]
    assert (2, 6) in first
    assert not any(1 in shape for shape in first)


def with_grid(u):
    grid = jnp.linspace(0.0, 1.0, u.shape[-1])[None]
    return jnp.ones((2, 4)) @ jnp.concatenate([u, grid])


def test_sizes_of_concatenations():
    assert inputs_of(with_grid)[0].shape[0] == 3


def fused(x, w, heads):
    """The message tells the rest of a division, and the statement the number of parts."""
    q, k, v = jnp.split(x @ w, 3, axis=-1)
    return (q + k + v).reshape(*x.shape[:-1], heads, -1)


def test_parts_of_split_weights_are_whole():
    x, w, heads = inputs_of(fused)
    assert w.shape == (x.shape[-1], 3 * x.shape[-1])
    assert x.shape[-1] % heads == 0


def clips(x):
    batch, time, height, width, channels = x.shape
    return x.reshape(batch * time, height, width, channels).mean((1, 2))


def test_more_axes_than_any_name_suggests():
    assert len(inputs_of(clips)[0].shape) == 5


class Patches(nn.Module):
    @nn.compact
    def __call__(self, clip):
        batch, time, _height, _width, _channels = clip.shape
        return nn.Dense(3)(clip.reshape(batch, time, -1))


def patches_loss(params, clip, key):
    first, second = jax.random.split(key)
    noise = jax.random.normal(first, clip.shape)
    return Patches().apply({"params": params}, clip + noise, rngs={"dropout": second}).mean()


def test_the_key_stays_a_key_where_a_network_refuses_its_input():
    _, clip, key = inputs_of(patches_loss)
    assert len(clip.shape) == 5
    assert key.dtype == jnp.uint32


class Encoder(nn.Module):
    """Its mask has another rank; in the loss, nothing but JAX's message tells so."""

    @nn.compact
    def __call__(self, images, pixels):
        x = nn.Conv(4, (2, 2), strides=(2, 2))(images)
        b, h, w, d = x.shape
        keep = pixels[:, ::2, ::2][:, :h, :w].reshape(b, h * w)
        return x.reshape(b, h * w, d) * keep[..., None]


def encoder_loss(params, batch):
    return Encoder().apply({"params": params}, batch["images"], batch["valid"]).sum()


def test_arguments_of_a_network_that_fails_to_initialise():
    _, batch = inputs_of(encoder_loss)
    assert batch["images"].ndim == 4
    assert batch["valid"].ndim >= 3


ONCE = """
    import jax

    class OneTimeKey:
        def __init__(self, key):
            self._key, self._used = key, False

        def split(self, count):
            assert not self._used
            self._used = True
            return jax.random.split(self._key, count)

    jax.tree_util.register_pytree_node(
        OneTimeKey, lambda k: ((k._key,), None), lambda _, keys: OneTimeKey(keys[0])
    )

    def noise(x, safe_key):
        return x + jax.random.normal(safe_key.split(2)[0], x.shape)
"""


def test_an_object_in_place_of_a_key(package, tmp_path):
    load_worker("environment.projects").add(str(tmp_path))
    module = f"{package(keys=ONCE)}.keys"
    __import__(module)
    keys = sys.modules[module]
    _, safe_key = inputs_of(keys.noise)
    assert type(safe_key) is keys.OneTimeKey

    def scaled(x, safe_key):
        return hk.Linear(3)(keys.noise(x, safe_key))

    # Haiku runs it twice: to initialise, and to apply.
    initialised = load_worker("frameworks.pure_functions").initialised
    args = (jnp.ones((2, 3)), safe_key)
    assert initialised(scaled, args, {}, {"library": "haiku"}).shape == (2, 3)
