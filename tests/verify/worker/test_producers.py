"""Inputs that the project makes: parameters of its initialisers, settings, documented shapes."""

from __future__ import annotations

import importlib
import sys

import jax
import jax.numpy as jnp
import pytest
from worker_package import load_worker

make = load_worker("inputs.make")
documented = load_worker("producers.documented")
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


def exercised(x, spans, mask, image, n):
    """Uses everything.

    Args:
        x: float array of shape [batch, time, dim].
        spans: integers (batch, 2).
        mask (bool, optional): padding.
        image: `n` of them.
    """


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("x", ((2, 4, 8), "float32")),
        ("spans", ((2, 2), "int32")),
        ("mask", None),
        ("image", None),
        ("n", None),
    ],
)
def test_documented_shapes(name, said):
    found = documented.array_of(exercised, name)
    assert (found and found.value) == said


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


def test_strings_in_settings_of_a_function_vary(project):
    module = project(
        norms="""
        import jax.numpy as jnp

        def get_config():
            return dict(norm="batch", eps=1e-5)

        def normalize(x, kind):
            return x - x.mean() if kind == "layer" else jnp.tanh(x)

        def apply(x, cfg):
            return normalize(x, cfg["norm"]) + cfg["eps"]
        """
    )
    found = {case["args"][1]["norm"] for case in cases_of(module, "apply").values()}
    assert found == {"batch", "layer", "other"}


PARSER = """
import argparse
import jax.numpy as jnp

def make_parser():
    parser = argparse.ArgumentParser()
    parser.add_argument("--clip-eps", type=float, default=0.2)
    parser.add_argument("-n", "--hidden", type=int, required=True)
    parser.add_argument("--clip-value", action="store_true")
    return parser

def loss(x, args):
    clipped = jnp.clip(x, -args.clip_eps, args.clip_eps) if args.clip_value else x
    return clipped.sum() * args.hidden
"""


def test_settings_of_a_command_line(project):
    module = project(train=PARSER)
    found = [case["args"][1] for case in cases_of(module, "loss").values()]
    assert {args.clip_value for args in found} == {True, False}
    assert 0.2 in {args.clip_eps for args in found}


FACTORY = """
import jax.numpy as jnp

def make(cfg):
    width = cfg.width
{bound}

    def loss(x):
        return {loss} * width

    return loss
"""


def test_attributes_that_only_migrated_or_returned_code_reads(project, tmp_path):
    module = project(m=FACTORY.format(bound="", loss="x * cfg.value_scale"))
    new = tmp_path / "migrated" / f"project_{tmp_path.name}"
    new.mkdir(parents=True)
    text = FACTORY.format(bound="    rate = cfg.new_rate", loss="x * cfg.value_scale * rate")
    (new / "m.py").write_text(text)
    constructions.of_project(root_of(module)).migrated = str(tmp_path / "migrated")
    cases = [case["args"][0] for case in cases_of(module, "make").values()]
    assert all(hasattr(cfg, "value_scale") and hasattr(cfg, "new_rate") for cfg in cases)
    # Each is varied, so that one in place of the other shows.
    assert len({(cfg.value_scale, cfg.new_rate) for cfg in cases}) > 1


OPTIONS = """
import jax, jax.numpy as jnp

METHODS = {"euler": jnp.sin, "rk4": jnp.cos}

def rollout(x, steps=2, method="rk4", activation="relu", flip=False):
    x = getattr(jax.nn, activation)(METHODS[method](x))
    return -x if flip else x

def loss(x, **options):
    return rollout(x, steps=3, **options).sum()
"""


def test_options_that_are_passed_on(project):
    found = [case["kwargs"] for case in cases_of(project(m=OPTIONS), "loss").values()]
    assert {} in found
    assert "euler" in {each.get("method") for each in found}
    assert any(each.get("activation") == "gelu" for each in found)
    assert any(each.get("flip") for each in found)


NETWORK = """
import dataclasses
import jax.numpy as jnp

@dataclasses.dataclass(frozen=True)
class NetConfig:
    width: int = 6
    mixing: str = "all"
    loss: str = "noise"
    weight: float = 0.0

class Mixer:
    def __call__(self, x, mixing):
        return x - x.mean(0) if mixing == "batch" else x

class Block:
    def __init__(self):
        self.mixer = Mixer()

    def __call__(self, x, mixing):
        return jnp.tanh(self.mixer(x, mixing))

class Net:
    def __init__(self, cfg):
        self.cfg = cfg
        self.blocks = [Block() for _ in range(2)]

    def __call__(self, x, t, train=False):
        for i, block in enumerate(self.blocks):
            x = block(x, self.cfg.mixing if i else "all")
        return x.reshape(-1, self.cfg.width) * t[:, None]
"""
TRAINING = """
def loss(model, x, t, train=True):
    out = model(x, t, train)
    penalty = model.cfg.weight * (2.0 if model.cfg.loss == "noise" else out.sum())
    return (out ** 2).mean() + penalty
"""


def test_an_argument_that_is_called_is_an_instance_of_a_class_of_the_project(project):
    module = project(network=NETWORK, training=TRAINING)
    classes = [sys.modules[module.__name__.replace("training", "network")].NetConfig]
    cases = cases_of(module, "loss", classes)
    models = [case["args"][0] for case in cases.values()]
    assert {type(model).__name__ for model in models} == {"Net"}
    # The block passes it on to a layer whose class is not known there.
    assert "batch" in {model.cfg.mixing for model in models}
    # It has no effect while the weight is zero.
    assert any(model.cfg.loss == "other" and model.cfg.weight for model in models)


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


ACTIVE = """
import contextlib
import dataclasses

@dataclasses.dataclass(frozen=True)
class Settings:
    rule: str = "sum"
    double: bool = False
    unread: bool = False

_ACTIVE = [Settings()]

@contextlib.contextmanager
def override(**changes):
    _ACTIVE.append(dataclasses.replace(_ACTIVE[-1], **changes))
    try:
        yield _ACTIVE[-1]
    finally:
        _ACTIVE.pop()
"""
READER = """
from . import active

def reduce(x):
    cfg = active._ACTIVE[-1]
    found = x.sum() if cfg.rule == "sum" else x.max()
    return 2 * found if cfg.double else found
"""


def test_settings_are_overridden_by_the_project_s_own_context_manager(project):
    module = project(active=ACTIVE, reader=READER)
    unit = load_worker("load").Unit(module.reduce, None, module)
    cases = load_worker("unit_cases").all_cases(unit, [], root_of(module)).cases
    [(about, case)] = [(about, case) for about, case in cases if "within" in case]
    assert about == "override(double=True and rule='other')"
    before = module.reduce(*case["args"])
    with load_worker("producers.overrides").active(case):
        assert module.reduce(*case["args"]) == 2 * case["args"][0].max()
    assert module.reduce(*case["args"]) == before
