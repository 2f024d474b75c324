"""How the worker makes instances of modules with configurations, in projects on disk."""

from __future__ import annotations

import importlib

import pytest
from worker_package import load_worker

constructions = load_worker("instances.constructions")
sizes = load_worker("instances.sizes")
make = load_worker("inputs.make")
pytest.importorskip("flax")


@pytest.fixture
def project(package):
    """Return a function that writes modules into a package and imports one of them."""

    def write(**modules):
        return importlib.import_module(f"{package(**modules)}.{next(iter(modules))}")

    return write


def cases_of(module, name):
    owner, _, method = name.partition(".")
    cls = getattr(module, owner) if method else None
    unit = getattr(cls, method) if method else getattr(module, owner)
    root = module.__file__.rpartition("/")[0].rpartition("/")[0]
    made = make.make_cases(unit, f"m:{name}", {"class": cls, "classes": [], "root": root})
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


def test_arguments_are_those_of_the_call_in_the_project(project):
    module = project(
        heads="""
        import flax.linen as nn

        class Attention(nn.Module):
            width: int
            heads: int

            @nn.compact
            def __call__(self, x):
                assert self.width % self.heads == 0 and self.heads == 6
                return nn.DenseGeneral((self.heads, self.width // self.heads))(x)
        """,
        model="""
        from .heads import Attention

        def model():
            width = 60
            return Attention(width, heads=6)
        """,
    )
    instance, _ = cases_of(module, "Attention.__call__")[0]["args"]
    assert instance.heads == 6


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


def test_size_of_heads_without_their_number(project):
    module = project(
        heads="""
        import flax.linen as nn

        class Scores(nn.Module):
            head_dim: int

            @nn.compact
            def __call__(self, query):
                assert query.shape[-1] == self.head_dim
                return nn.Dense(self.head_dim)(query)

        def scores():
            return Scores(head_dim=6)
        """
    )
    for case in cases_of(module, "Scores.__call__"):
        layer, query = case["args"]
        assert query.shape[-1] == layer.head_dim


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


def test_types_of_settings_within_settings_vary(project):
    module = project(
        options="""
        import dataclasses
        from typing import Any
        import flax.linen as nn
        import jax.numpy as jnp

        @dataclasses.dataclass(frozen=True)
        class Layer:
            width: int
            dtype: Any = jnp.float32

        @dataclasses.dataclass(frozen=True)
        class Config:
            layer: Layer = Layer(width=8)

        class Model(nn.Module):
            config: Config

            @nn.compact
            def __call__(self, x):
                layer = self.config.layer
                return nn.Dense(layer.width, dtype=layer.dtype)(x)
        """
    )
    layers = [case["args"][0].config.layer for case in cases_of(module, "Model.__call__")]
    assert {layer.dtype.__name__ for layer in layers} == {"float32", "bfloat16"}


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


def test_stand_ins_for_settings_are_read_both_ways(project):
    module = project(
        forward="""
        import jax.numpy as jnp

        def forward(x, cfg):
            if cfg.get("scaled", False):
                x = x / 2
            return jnp.tanh(x) * cfg["heads"] + cfg.eps
        """
    )
    cases = cases_of(module, "forward")
    assert all(case["args"][1].eps and case["args"][1]["heads"] for case in cases)


def test_defaults_of_an_annotated_configuration_shrink(project):
    module = project(
        forward="""
        from .config import BartConfig

        def forward(x, config: BartConfig):
            return x.reshape(*x.shape[:-1], config.heads, config.d_model // config.heads)
        """,
        config=CONFIG,
    )
    x, config = cases_of(module, "forward")[0]["args"]
    assert config.d_model == x.shape[-1] == 64


def test_protocols_of_functions_are_functions(project):
    module = project(
        callbacks="""
        from typing import Protocol
        import jax

        class Stage(Protocol):
            def __call__(self, x, scale): ...

        def run(x, stage: Stage):
            return jax.vmap(stage)(x, x + 1)
        """
    )
    assert callable(cases_of(module, "run")[0]["args"][1])


@pytest.mark.parametrize(
    ("given", "shrunk"),
    [
        (
            {"hidden_size": 768, "num_heads": 12, "vocab_size": 30522, "num_layers": 12},
            {"hidden_size": 48, "num_heads": 12, "vocab_size": 96, "num_layers": 2},
        ),
        # Each head keeps an even size, as rotary embeddings need.
        ({"width": 300, "num_heads": 3}, {"width": 12, "num_heads": 3}),
        ({"features": 64, "mlp_dim": 96}, {"features": 8, "mlp_dim": 12}),
        ({"features": 7, "mlp_dim": 14}, {"features": 7, "mlp_dim": 14}),
        ({"image_size": 224, "patch_size": 16}, {"image_size": 32, "patch_size": 16}),
        ({"max_seq_len": 4096, "chunk_size": 128}, {"max_seq_len": 64, "chunk_size": 2}),
        ({"vocab_size": 50257, "eos_token_id": 50256}, {"vocab_size": 96, "eos_token_id": 95}),
        ({"block_out_channels": (128, 256)}, {"block_out_channels": (8, 16)}),
    ],
)
def test_sizes_shrink_in_proportion(given, shrunk):
    assert sizes.levels(given)[0] == shrunk
    assert sizes.levels(given)[-1] == given


def test_flags_in_the_default_of_a_field_vary(project):
    module = project(
        model="""
        import dataclasses

        import flax.linen as nn

        @dataclasses.dataclass(frozen=True)
        class Remat:
            enabled: bool = False

        class Stack(nn.Module):
            width: int = 4
            remat: Remat = Remat()

            @nn.compact
            def __call__(self, x):
                layer = nn.remat(nn.Dense) if self.remat.enabled else nn.Dense
                return layer(self.width)(x)
        """
    )
    made = [case["args"][0] for case in cases_of(module, "Stack.__call__")]
    assert {stack.remat.enabled for stack in made} == {False, True}
