"""Inputs that follow what the project makes: settings, instances, parameters by initialisers."""

from __future__ import annotations

import importlib
import sys

import jax
import jax.numpy as jnp
import pytest
from worker_package import load_worker

make = load_worker("inputs.make")
projects = load_worker("environment.projects")
settings = load_worker("project.settings")
pytest.importorskip("flax")


@pytest.fixture
def project(package, tmp_path):
    """Return a function that writes modules into a package, imports them, and returns the first."""

    def write(**modules):
        projects.add(str(tmp_path))
        name = package(**modules)
        first, *_ = [importlib.import_module(f"{name}.{module}") for module in modules]
        return first

    return write


def cases_of(module, name, classes=()):
    owner, _, method = name.partition(".")
    cls = getattr(module, owner) if method else None
    unit = getattr(cls, method) if method else getattr(module, owner)
    made = make.make_cases(unit, cls, classes)
    assert made.cases, made.detail
    return [case for _, case in made.cases]


CONFIG = """
class PretrainedConfig:
    def __init__(self, **kwargs):
        for name, value in kwargs.items():
            setattr(self, name, value)

class BartConfig(PretrainedConfig):
    def __init__(
        self, vocab_size=50264, d_model=1024, layers=12, heads=16, ffn_dim=4096, norm="rms",
        max_length=1024, **kwargs
    ):
        assert norm in ["rms", "layer"]
        self.vocab_size, self.d_model, self.layers = vocab_size, d_model, layers
        self.heads, self.ffn_dim, self.norm, self.max_length = heads, ffn_dim, norm, max_length
        super().__init__(**kwargs)
"""

LAYERS = """
from __future__ import annotations
from typing import Any
import flax.linen as nn, jax.numpy as jnp
from .config import BartConfig

class Attention(nn.Module):
    config: BartConfig
    embed_dim: int
    num_heads: int

    @nn.compact
    def __call__(self, x):
        size = self.embed_dim // self.num_heads
        assert size * self.num_heads == self.embed_dim == self.config.d_model
        return nn.DenseGeneral((self.num_heads, size))(x)

class Layer(nn.Module):
    config: BartConfig

    @nn.compact
    def __call__(self, x):
        config = self.config
        y = Attention(self.config, embed_dim=config.d_model, num_heads=config.heads)(x)
        y = y.reshape(x.shape) if config.norm == "rms" else y
        return x + nn.Dense(config.d_model)(nn.Dense(config.ffn_dim)(y))
"""


def test_abstract_classes_are_replaced_by_concrete_ones(project):
    module = project(
        base="""
        import abc

        class Base(abc.ABC):
            @abc.abstractmethod
            def inner(self, x): ...

            def __call__(self, x):
                return 2.0 * self.inner(x)

        class Doubled(Base):
            def inner(self, x):
                return x + x
        """
    )
    instance = cases_of(module, "Base.__call__")[0]["args"][0]
    assert type(instance).__name__ == "Doubled"


def test_sizes_that_are_needed_are_kept_and_the_case_is_abstract(project):
    text = LAYERS.replace(
        "config = self.config", "config = self.config\n        assert x.shape[-1] == 1024"
    )
    module = project(layers=text, config=CONFIG)
    instance, x = cases_of(module, "Layer.__call__")[0]["args"]
    assert instance.config.d_model == 1024
    assert type(x).__name__ == "ShapeDtypeStruct"
    assert x.shape[-1] == 1024


def test_flags_and_rates_of_a_configuration_vary(project):
    module = project(
        rates="""
        import dataclasses
        import flax.linen as nn

        @dataclasses.dataclass(frozen=True)
        class Config:
            hidden_size: int = 64
            dropout: float = 0.0
            use_bias: bool = True
            unread: bool = True

        class Dropped(nn.Module):
            config: Config

            @nn.compact
            def __call__(self, x, deterministic: bool):
                x = nn.Dense(self.config.hidden_size, use_bias=self.config.use_bias)(x)
                return nn.Dropout(self.config.dropout)(x, deterministic=deterministic)
        """
    )
    configs = [case["args"][0].config for case in cases_of(module, "Dropped.__call__")]
    assert {config.dropout for config in configs} == {0.0, 0.25}
    assert {config.use_bias for config in configs} == {True, False}
    assert {config.unread for config in configs} == {True}


def test_of_many_flags_all_vary_and_those_that_the_unit_itself_reads_alone(project):
    flags = "abcdefgh"
    module = project(
        flags="""
        import dataclasses
        import flax.linen as nn

        @dataclasses.dataclass(frozen=True)
        class Config:
            {fields}
            use_remat: bool = False

        class Inner(nn.Module):
            config: Config

            @nn.compact
            def __call__(self, x):
                return x * sum([{read}])

        class Outer(nn.Module):
            config: Config

            @nn.compact
            def __call__(self, x):
                inner = nn.remat(Inner) if self.config.use_remat else Inner
                return inner(self.config)(x)
        """.format(
            fields="; ".join(f"{flag}: bool = False" for flag in flags),
            read=", ".join(f"self.config.{flag}" for flag in flags),
        )
    )
    configs = [case["args"][0].config for case in cases_of(module, "Outer.__call__")]
    alone = [c for c in configs if c.use_remat and not any(getattr(c, flag) for flag in flags)]
    assert alone
    for flag in flags:
        assert {getattr(config, flag) for config in configs} == {True, False}


def test_required_strings_are_those_that_the_code_knows(project):
    module = project(
        required="""
        import flax.linen as nn

        class Layer(nn.Module):
            norm_type: str

            @nn.compact
            def __call__(self, x, order: str):
                assert self.norm_type in ["pre", "post"]
                if order not in ("first", "last"):
                    raise ValueError(order)
                y = nn.Dense(8)(x)
                return nn.LayerNorm()(y) if self.norm_type == "pre" else y

        class Model(nn.Module):
            norm_type: str

            @nn.compact
            def __call__(self, x, order: str):
                layer = nn.remat(Layer, static_argnums=(2,))
                return layer(norm_type=self.norm_type)(x, order)
        """
    )
    cases = cases_of(module, "Model.__call__")
    assert {case["args"][0].norm_type for case in cases} == {"pre", "post"}


def test_dropout_is_on_unless_it_is_what_varies(project):
    module = project(
        dropped="""
        import flax.linen as nn

        class Block(nn.Module):
            dropout: float = 0.0

            @nn.compact
            def __call__(self, x, deterministic: bool = True):
                return nn.Dropout(self.dropout)(nn.Dense(8)(x), deterministic=deterministic)
        """
    )
    tried = [(c["args"][0].dropout, c["args"][2]) for c in cases_of(module, "Block.__call__")]
    assert tried[:2] == [(0.25, True), (0.25, False)]
    assert (0.0, True) in tried


def test_a_module_that_reads_a_vocabulary_gets_tokens(project):
    module = project(
        tokens="""
        import flax.linen as nn

        class Model(nn.Module):
            vocab_size: int = 32

            def setup(self):
                self.embed = nn.Embed(self.vocab_size, 8)

            def __call__(self, inputs, targets):
                return self.embed(inputs), self.embed(targets[:, :-1])
        """
    )
    _, inputs, targets = cases_of(module, "Model.__call__")[0]["args"]
    assert str(inputs.dtype) == str(targets.dtype) == "int32"


LINEAR = """
import jax
import jax.numpy as jnp

def init_linear(key, n_in, n_out):
    return {"w": jax.random.normal(key, (n_in, n_out)), "b": jnp.zeros(n_out)}

def linear(p, x):
    return x @ p["w"] + p["b"]
"""
MODEL = """
import dataclasses
import jax
import jax.numpy as jnp
from . import layers

@dataclasses.dataclass(frozen=True)
class Config:
    width: int = 6
    heads: int = 2
    depth: int = 2
    rate: float = 0.0
    act: str = "gelu"

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
    model = project(model=MODEL, layers=LINEAR)
    params, tokens, _, cfg = cases_of(model, "forward", [model.Config])[-1]["args"][:4]
    assert params["table"].shape == (11, 6)
    assert [p["qkv"]["w"].shape for p in params["blocks"]] == [(6, 18), (6, 18)]
    # The layers differ, and so do biases that are initialised with zeros.
    assert not jnp.allclose(*[p["qkv"]["w"] for p in params["blocks"]])
    assert jnp.abs(params["blocks"][0]["qkv"]["b"]).min() > 0
    assert tokens.dtype == jnp.int32
    assert (cfg.width, cfg.depth) == (6, 2)


def test_parameters_of_an_inner_function_fit_its_settings(project):
    model = project(model=MODEL, layers=LINEAR)
    params, x, _, cfg, _ = cases_of(model, "block", [model.Config])[0]["args"]
    assert params["qkv"]["w"].shape == (6, 18)
    assert x.shape[-1] == cfg.width


def test_settings_vary_as_far_as_they_are_read(project):
    model = project(model=MODEL, layers=LINEAR)
    found = [case["args"][3] for case in cases_of(model, "forward", [model.Config])]
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
    module = project(net=net, config=config)
    config = sys.modules[module.__name__.replace("net", "config")].Config
    found = [case["args"] for case in cases_of(module, "apply", [config])]
    assert {cfg.mode for _, _, cfg in found} >= {"a", "b"}
    # The parameters follow a count that is zero by default.
    assert {(cfg.extra, params[0].shape) for params, _, cfg in found} == {(0, (4, 4)), (2, (6, 4))}


def test_unpacked_arrays_that_are_computed_with_in_a_loop():
    def rollout(state, steps=3, method="euler"):
        def body(state, _):
            angle, speed = state
            change = jnp.stack([speed, -jnp.sin(angle)])
            return state + (0.1 if method == "euler" else 0.2) * change, None

        return jax.lax.scan(body, state, None, length=steps)[0]

    made = make.make_cases(rollout)
    assert made.cases, made.detail
    assert made.cases[0][1]["args"][0].shape[0] == 2


def test_indices_into_known_arrays():
    def rows(index):
        return jnp.arange(12.0).reshape(4, 3)[index]

    made = make.make_cases(rows)
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
    params, x = cases[0]["args"]
    # Neither the whole state nor variables with the width of any input.
    assert params["Dense_0"]["kernel"].shape == (5, 3)
    assert x.shape[-1] == 5
