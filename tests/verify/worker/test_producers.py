"""Inputs that the project makes: parameters of its initialisers, settings."""

from __future__ import annotations

import importlib
import sys

import jax
import jax.numpy as jnp
import pytest
from worker_package import load_worker

make = load_worker("inputs.make")
initialisers = load_worker("producers.initialisers")
constructions = load_worker("instances.constructions")


@pytest.fixture
def project(package):
    """Return a function that writes modules into a package and imports them all."""

    def write(**modules):
        name = package(**modules)
        return [importlib.import_module(f"{name}.{module}") for module in modules][-1]

    return write


def root_of(module):
    return module.__file__.rpartition("/")[0].rpartition("/")[0]


def cases_of(module, name, classes=()):
    hints = {"class": None, "classes": list(classes), "root": root_of(module)}
    made = make.make_cases(getattr(module, name), f"m:{name}", hints)
    assert made.cases, made.detail
    return dict(made.cases)


LAYERS = """
import jax
import jax.numpy as jnp

def init_linear(key, n_in, n_out):
    return {"w": jax.random.normal(key, (n_in, n_out)), "b": jnp.zeros(n_out)}

def linear(p, x):
    return x @ p["w"] + p["b"]
"""
MODEL = """
import types
import jax
import jax.numpy as jnp
from . import layers

def settings(**changes):
    values = dict(width=6, heads=2, depth=2, rate=0.0, act="gelu")
    return types.SimpleNamespace(**{**values, **changes})

def init(key, cfg):
    keys = jax.random.split(key, cfg.depth + 1)
    block = lambda k: {"qkv": layers.init_linear(k, cfg.width, 3 * cfg.width)}
    table = jax.random.normal(keys[0], (11, cfg.width))
    return {"table": table, "blocks": [block(k) for k in keys[1:]]}

def block(params, x, key, cfg, train):
    b, t, c = x.shape
    q, k, v = jnp.split(layers.linear(params["qkv"], x), 3, axis=-1)
    q = q.reshape(b, t, cfg.heads, c // cfg.heads)
    h = jax.nn.gelu(v) if cfg.act == "gelu" else jnp.tanh(v)
    if train and cfg.rate > 0:
        h = h * jax.random.bernoulli(key, 1 - cfg.rate, h.shape)
    return x + h + q.reshape(x.shape)

def forward(params, tokens, key, cfg, train=False):
    x = params["table"][tokens]
    for p, k in zip(params["blocks"], jax.random.split(key, cfg.depth)):
        x = jax.checkpoint(lambda p, x, k: block(p, x, k, cfg, train))(p, x, k)
    return x
"""


def test_parameters_are_those_of_the_initialiser(project):
    model = project(layers=LAYERS, model=MODEL)
    params, tokens, _, cfg = cases_of(model, "forward").popitem()[1]["args"][:4]
    assert params["table"].shape == (11, 6)
    assert [p["qkv"]["w"].shape for p in params["blocks"]] == [(6, 18), (6, 18)]
    # The layers differ, and so do biases that are initialised with zeros.
    assert not jnp.allclose(*[p["qkv"]["w"] for p in params["blocks"]])
    assert jnp.abs(params["blocks"][0]["qkv"]["b"]).min() > 0
    assert tokens.dtype == jnp.int32
    assert (cfg.width, cfg.depth) == (6, 2)


def test_parameters_are_followed_through_loops_and_lambdas(project):
    model = project(layers=LAYERS, model=MODEL)
    params, x, _, cfg, _ = next(iter(cases_of(model, "block").values()))["args"]
    assert params["qkv"]["w"].shape == (6, 18)
    assert x.shape[-1] == cfg.width


def test_settings_vary_as_far_as_they_are_read(project):
    model = project(layers=LAYERS, model=MODEL)
    found = [case["args"][3] for case in cases_of(model, "forward").values()]
    assert {cfg.rate > 0 for cfg in found} == {True, False}
    assert {cfg.act == "gelu" for cfg in found} == {True, False}
    assert {cfg.width for cfg in found} == {6}


def test_settings_of_a_class_that_no_annotation_names(project):
    config = """
    import dataclasses

    @dataclasses.dataclass(frozen=True)
    class Config:
        features: int = 4
        extra: int = 0
        mode: str = "a"
    """
    net = """
    import jax
    import jax.numpy as jnp

    def create_params(key, features, extra=0):
        return [jax.random.normal(k, (features + extra, features)) for k in jax.random.split(key)]

    def apply(params, x, cfg):
        if cfg.extra:
            x = jnp.concatenate([x, jnp.ones((cfg.extra,))])
        return (x @ params[0] + params[1].sum()) * (2.0 if cfg.mode == "b" else 1.0)
    """
    module = project(config=config, net=net)
    config = sys.modules[module.__name__.replace("net", "config")].Config
    found = [case["args"] for case in cases_of(module, "apply", [config]).values()]
    assert {cfg.mode for _, _, cfg in found} >= {"a", "b"}
    # The parameters follow a count that is zero by default.
    assert {(cfg.extra, params[0].shape) for params, _, cfg in found} == {(0, (4, 4)), (2, (6, 4))}


def test_other_settings_of_the_class_of_a_default(project):
    module = project(
        policies="""
        import dataclasses
        import jax.numpy as jnp
        from typing import Any

        @dataclasses.dataclass(frozen=True)
        class Policy:
            compute: Any = jnp.bfloat16

        FULL = Policy(jnp.float32)
        MIXED = Policy()

        def scaled(x, policy=MIXED):
            return (x.astype(policy.compute) * 3).astype(x.dtype)
        """
    )
    hints = {"class": None, "classes": [], "root": root_of(module)}
    made = make.make_cases(module.scaled, "m:scaled", hints)
    assert {case["args"][1] for _, case in made.cases} == {module.FULL, module.MIXED}


def test_initialisers_are_found_by_data_flow(project):
    module = project(
        step="""
        import jax

        def make_table(key):
            return jax.random.normal(key, (5, 3))

        def lookup(table, index):
            return table[index]

        def main():
            tables = {"a": make_params(jax.random.PRNGKey(0))}
            for name, one in tables.items():
                lookup(one["deep"][0], 1)
            first, second = make_params(jax.random.PRNGKey(1))
            return lookup(second, 2)

        def make_params(key):
            return {"deep": [make_table(key)]}
        """
    )
    found = initialisers.Initialisers(constructions.of_project(root_of(module)))
    texts = [(one.function.__name__, one.path[:1]) for one in found.of(module.lookup, "table")]
    assert ("make_params", (1,)) in texts


def test_unpacked_arrays_that_are_computed_with():
    def pendulum(state, dt):
        angle, speed = state
        return state + dt * jnp.stack([speed, -jnp.sin(angle)])

    made = make.make_cases(pendulum, "m:pendulum", {})
    assert made.cases, made.detail
    assert made.cases[0][1]["args"][0].shape[0] == 2


def test_unpacked_arrays_that_are_computed_with_in_a_loop():
    def rollout(state, steps=3, method="euler"):
        def body(state, _):
            angle, speed = state
            change = jnp.stack([speed, -jnp.sin(angle)])
            return state + (0.1 if method == "euler" else 0.2) * change, None

        return jax.lax.scan(body, state, None, length=steps)[0]

    made = make.make_cases(rollout, "m:rollout", {})
    assert made.cases, made.detail
    assert made.cases[0][1]["args"][0].shape[0] == 2


def test_indices_into_known_arrays():
    def rows(index):
        return jnp.arange(12.0).reshape(4, 3)[index]

    made = make.make_cases(rows, "m:rows", {})
    assert made.cases, made.detail
    assert jnp.issubdtype(jnp.asarray(made.cases[0][1]["args"][0]).dtype, jnp.integer)
    assert jax.tree_util.tree_leaves(rows(*made.cases[0][1]["args"]))


STUDENT = """
from typing import Any, NamedTuple
import flax.linen as nn
import jax
import jax.numpy as jnp

class State(NamedTuple):
    params: Any
    step: Any

class Student(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(3)(x)

def init(key, features=5):
    return State(Student().init(key, jnp.zeros((1, features)))["params"], jnp.zeros((), jnp.int32))

def loss(params, x):
    def out(p):
        return Student().apply({"params": p}, x).sum()
    return jax.checkpoint(lambda p: jax.grad(out)(p))(params)["Dense_0"]["bias"].sum()
"""


def test_parameters_are_part_of_the_state_that_the_project_initialises(project):
    pytest.importorskip("flax")
    cases = cases_of(project(student=STUDENT), "loss")
    params, x = next(iter(cases.values()))["args"]
    # Neither the whole state nor variables with the width of any input.
    assert params["Dense_0"]["kernel"].shape == (5, 3)
    assert x.shape[-1] == 5
