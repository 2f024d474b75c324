"""Flax units as plain functions, also of what was captured while they ran."""

from __future__ import annotations

import functools
from typing import Any

import flax
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from recorded_calls import TRANSFORMS, exercise, made, plain, recorded
from support import some_slow
from worker_package import load_worker

pure_functions = load_worker("frameworks.pure_functions")
pickling = load_worker("transfer.pickling")

X = jnp.linspace(-1.0, 1.0, 6).reshape(2, 3)


class Block(nn.Module):
    features: int
    act: Any = nn.relu
    kernel_init: Any = nn.initializers.lecun_normal()

    @nn.compact
    @recorded
    def __call__(self, x, flip=False):
        x = nn.Dense(self.features, kernel_init=self.kernel_init)(x)
        return self.act(-x if flip else x)


class Noisy(nn.Module):
    rate: float = 0.5

    @nn.compact
    @recorded
    def __call__(self, x, train):
        x = nn.Dense(4, name="inward")(x)
        x = nn.BatchNorm(use_running_average=not train)(x)
        x = nn.Dropout(self.rate, deterministic=not train)(x)
        self.sow("intermediates", "mean", x.mean())
        if train:
            x = x + jax.random.normal(self.make_rng("noise"), x.shape)
        return x


class WithSetup(nn.Module):
    width: int = 4

    def setup(self):
        self.inward = nn.Dense(self.width)
        self.layers = [nn.Dense(self.width), nn.Dense(self.width)]

    @recorded
    def encode(self, x, *, scale=1.0):
        x = self.inward(x) * scale
        for layer in self.layers:
            x = layer(x)
        return x

    def __call__(self, x):
        return self.encode(x, scale=0.5)


class Parent(nn.Module):
    depth: int = 2
    remat: bool = False

    @nn.compact
    def __call__(self, x, train=False):
        kind = nn.remat(Block) if self.remat else Block
        for i in range(self.depth):
            x = kind(3, name=f"block{i}")(x)
        return Noisy()(x, train)


@functools.cache
def parent_variables():
    return Parent().init(jax.random.PRNGKey(0), X)


def test_flax_made():
    prepared = pure_functions.prepare(Block.__call__, made(Block.__call__, Block(5), X, flip=True))
    assert [p.label for p in prepared] == ["init", "apply"]
    output, variables = exercise(prepared[0])
    assert variables["params"]["Dense_0"]["kernel"].shape == (3, 5)
    applied, changed = exercise(prepared[1])
    np.testing.assert_array_equal(applied, output)
    assert not changed
    np.testing.assert_array_equal(applied, Block(5).apply(variables, X, flip=True))


@pytest.mark.parametrize("train", some_slow([True, False], True))
def test_flax_made_learns_which_keys_it_needs(train):
    init, apply = pure_functions.prepare(Noisy.__call__, made(Noisy.__call__, Noisy(), X, train))
    _, variables = exercise(init)
    assert set(variables) == {"params", "batch_stats"}
    _, changed = exercise(apply)
    assert set(changed) == {"batch_stats", "intermediates"}
    moved = changed["batch_stats"]["BatchNorm_0"]["mean"]
    assert bool(jnp.any(moved != 0)) is train
    assert set(apply.args[0]["rngs"]) == {"dropout"} | ({"noise"} if train else set())


def free_function(x, width):
    return nn.Dense(width)(jnp.sin(x))


class UsesFunctions(nn.Module):
    @nn.compact
    def __call__(self, x):
        return recorded(free_function)(x, 3) + recorded(plain)(x)


def test_flax_functions_that_make_modules(record):
    init, apply = pure_functions.prepare(free_function, made(free_function, X, 4))
    assert exercise(init)[1]["params"]["Dense_0"]["kernel"].shape == (3, 4)
    exercise(apply)
    first, second = record(lambda: UsesFunctions().init(jax.random.PRNGKey(0), X))
    assert [p.label for p in pure_functions.prepare(free_function, first)] == ["init", "apply"]
    assert [p.label for p in pure_functions.prepare(plain, second)] == [""]


def test_flax_made_that_cannot_be_initialised():
    case = made(Block.__call__, Block(5), X)
    case["args"] = (Block(5), "no array")
    (init,) = pure_functions.prepare(Block.__call__, case)
    assert init.label == "init"
    with pytest.raises(IndexError):
        init.function(*init.args, **init.kwargs)


def test_flax_values_inside_fields(tmp_path):
    """Also a module's classes, functions made by functions, and modules in containers."""
    module = Holder(
        layers=(Block(2, kernel_init=nn.initializers.normal(0.3)), Block(3, act=nn.gelu)),
        by_name={"a": Block(4)},
        kind=Block,
    )
    pickling.save(module, tmp_path / "saved.pkl")
    back = pickling.load(tmp_path / "saved.pkl")
    variables = module.init(jax.random.PRNGKey(0), X)
    again = back.init(jax.random.PRNGKey(0), X)
    jax.tree_util.tree_map(np.testing.assert_array_equal, again, variables)
    np.testing.assert_array_equal(back.apply(variables, X), module.apply(variables, X))


class Holder(nn.Module):
    layers: tuple
    by_name: dict
    kind: Any

    @nn.compact
    def __call__(self, x):
        for layer in (*self.layers, self.by_name["a"], self.kind(2)):
            x = layer(x)
        return x


def test_flax_bound_modules_are_saved_unbound(tmp_path):
    variables = WithSetup().init(jax.random.PRNGKey(0), X)
    bound = WithSetup().bind(variables)
    pickling.save([bound, bound.inward], tmp_path / "saved.pkl")
    back, inward = pickling.load(tmp_path / "saved.pkl")
    assert back.scope is None
    assert inward.scope is None
    assert inward.name == "inward"
    np.testing.assert_array_equal(back.apply(variables, X), bound(X))


def loss(variables, x, module, **options):
    outputs = module.apply(variables, x, **options)
    return sum(jnp.sum(leaf**2) for leaf in jax.tree_util.tree_leaves(outputs))


@pytest.mark.parametrize("transform", some_slow(TRANSFORMS, "jit of grad", "scan"))
def test_flax_captured_under_transformations(record, transform):
    parent = Parent(remat=True)
    run = TRANSFORMS[transform](functools.partial(loss, module=parent))
    cases = [c for c in record(run, parent_variables(), X) if isinstance(c["args"][0], Block)]
    assert {case["args"][0].name for case in cases} == {"block0", "block1"}
    for case in cases[:2]:
        assert type(case["args"][0]) is Block
        init, apply = pure_functions.prepare(Block.__call__, case)
        output, _ = exercise(init)
        np.testing.assert_allclose(exercise(apply)[0], output, rtol=1e-5)


def test_flax_captured_while_initialising(record):
    cases = record(lambda: Parent().init(jax.random.PRNGKey(0), X))
    assert len(cases) == 3
    for case in cases:
        unit = type(case["args"][0]).__call__
        init, apply = pure_functions.prepare(unit, case)
        assert set(init.args[0]["rngs"]) >= {"params"}
        assert "params" in exercise(init)[1]
        exercise(apply)


class Sharing(nn.Module):
    """Uses a layer that another module owns: an embedding tied to the last layer."""

    inner: nn.Module
    others: tuple = ()

    @nn.compact
    @recorded
    def __call__(self, x):
        x = nn.Dense(3)(self.inner(x))
        for other in self.others:
            x = other(x)
        return x


class Owner(nn.Module):
    def setup(self):
        self.shared = nn.Dense(3)
        self.user = Sharing(self.shared, (self.shared, Block(3)))

    def __call__(self, x):
        return self.user(self.shared(x))


def test_flax_modules_with_another_parent(record):
    variables = Owner().init(jax.random.PRNGKey(0), X)
    cases = record(jax.jit(Owner().apply), variables, X)
    case = next(case for case in cases if isinstance(case["args"][0], Sharing))
    for prepared in pure_functions.prepare(Sharing.__call__, case):
        exercise(prepared)


@recorded
def apply_layer(x, layer, call=None):
    return (call or layer)(jnp.sin(x))


class PassesLayers(nn.Module):
    def setup(self):
        self.layer = nn.Dense(3)
        self.embed = nn.Embed(5, 3)

    def __call__(self, x):
        return apply_layer(x, self.layer), apply_layer(x, None, call=self.embed.attend)


def test_flax_modules_as_other_arguments(record):
    model = PassesLayers()
    variables = model.init(jax.random.PRNGKey(0), X)
    cases = record(jax.jit(model.apply), variables, X)
    for case in cases:
        for prepared in pure_functions.prepare(apply_layer, case):
            exercise(prepared)


@flax.struct.dataclass
class State:
    params: Any
    step: int = flax.struct.field(pytree_node=False, default=0)


def test_flax_structs_and_frozen_dicts(tmp_path):
    value = [State(flax.core.freeze({"a": {"w": X}}), 3), flax.core.freeze({"b": 1})]
    pickling.save(value, tmp_path / "saved.pkl")
    state, frozen = pickling.load(tmp_path / "saved.pkl")
    assert type(frozen) is flax.core.FrozenDict
    assert state.step == 3
    np.testing.assert_array_equal(state.params["a"]["w"], X)
    boxed = nn.Partitioned(X, names=("a", None))
    pickling.save(boxed, tmp_path / "boxed.pkl")
    assert pickling.load(tmp_path / "boxed.pkl").names == ("a", None)


def test_traced_programs_have_abstract_variables():
    case = {"args": (Block(4), X), "kwargs": {}, "context": {"library": "flax"}}
    init, apply = pure_functions.prepare(Block.__call__, case, traced=True)
    assert isinstance(init.args[2], jax.Array)
    kernel = apply.args[0]["variables"]["params"]["Dense_0"]["kernel"]
    assert isinstance(kernel, jax.ShapeDtypeStruct)
