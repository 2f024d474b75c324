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
from typing import TYPE_CHECKING, Any
import flax.linen as nn, jax.numpy as jnp
if TYPE_CHECKING:
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

class Stack(nn.Module):
    cfg: Any

    def setup(self):
        cfg = self.cfg
        self.embed = nn.Embed(cfg.vocab_size, cfg.d_model)
        self.positions = nn.Embed(cfg.max_length, cfg.d_model)
        self.layers = [Layer(cfg) for _ in range(cfg.layers)]

    def __call__(self, input_ids):
        x = self.embed(input_ids) + self.positions(jnp.arange(input_ids.shape[1]))
        for layer in self.layers:
            x = layer(x)
        return self.embed.attend(x)
"""


def test_class_is_found_by_an_annotation_for_type_checkers(project):
    module = project(layers=LAYERS, config=CONFIG)
    instance, x = cases_of(module, "Layer.__call__")[0]["args"]
    config = instance.config
    assert type(config).__name__ == "BartConfig"
    # The width is 64, four for each of 16 heads, and the inner one four times as much.
    assert (config.d_model, config.heads, config.ffn_dim) == (64, 16, 256)
    assert (config.vocab_size, config.layers, config.max_length) == (96, 2, 16)
    assert x.shape[-1] == 64


def test_arguments_are_those_of_the_call_in_the_project(project):
    module = project(layers=LAYERS, config=CONFIG)
    instance, _ = cases_of(module, "Attention.__call__")[0]["args"]
    assert (instance.embed_dim, instance.num_heads) == (64, 16)


def test_class_is_found_by_the_attributes_that_are_read(project):
    module = project(layers=LAYERS, config=CONFIG)
    instance, ids = cases_of(module, "Stack.__call__")[0]["args"]
    assert type(instance.cfg).__name__ == "BartConfig"
    assert ids.dtype == "int32"


def test_presets_are_found_through_the_functions_that_select_them(project):
    module = project(
        experts="""
        import dataclasses
        from typing import Any
        import flax.linen as nn

        @dataclasses.dataclass
        class Expert:
            width: int
            heads: int
            head_dim: int

        def get_config(variant):
            if variant == "large":
                return Expert(width=2048, heads=8, head_dim=256)
            return Expert(width=1024, heads=8, head_dim=256)

        class Mixture(nn.Module):
            configs: Any
            dtype: str

            @nn.compact
            def __call__(self, x):
                assert len({config.head_dim for config in self.configs}) == 1
                first, second = self.configs
                y = nn.DenseGeneral((first.heads, first.head_dim))(x.astype(self.dtype))
                return nn.Dense(second.width)(y.reshape(*x.shape[:-1], -1))
        """,
        factory="""
        import not_installed
        from . import experts as e

        class Model:
            def __init__(self, variant: str = "large", dtype: str = "bfloat16"):
                first = e.get_config(variant)
                self.llm = e.Mixture(configs=[first, e.get_config("small")], dtype=dtype)
        """,
    )
    instance, _ = cases_of(module, "Mixture.__call__")[0]["args"]
    assert [vars(config) for config in instance.configs] == [
        {"width": 64, "heads": 8, "head_dim": 8},
        {"width": 32, "heads": 8, "head_dim": 8},
    ]


def test_dictionaries_of_presets_serve_classes_that_read_attributes(project):
    module = project(
        presets="""
        import jax.numpy as jnp

        CONFIGS = {"small": {"n_embd": 768, "n_head": 12, "eps": 1e-5}}

        class Head:
            def __init__(self, config):
                self.scale = config.n_embd // config.n_head
                self.eps = config.eps

            def __call__(self, x):
                return x * self.scale + self.eps
        """
    )
    instance = cases_of(module, "Head.__call__")[0]["args"][0]
    assert (instance.scale, instance.eps) == (4, 1e-5)


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


def test_options_and_types_of_settings_within_settings_vary(project):
    module = project(
        options="""
        import dataclasses
        from typing import Any
        import flax.linen as nn
        import jax
        import jax.numpy as jnp

        ACTIVATIONS = {"relu": nn.relu, "gelu": nn.gelu}

        @dataclasses.dataclass(frozen=True)
        class Layer:
            width: int
            activation: str = "relu"
            pool: str = "first"
            policy: str = "dots"
            dtype: Any = jnp.float32

        @dataclasses.dataclass(frozen=True)
        class Config:
            layer: Layer = Layer(width=8)

        def policy_of(name):
            if name == "dots":
                return jax.checkpoint_policies.checkpoint_dots
            if name in ("all", "everything"):
                return jax.checkpoint_policies.everything_saveable
            raise ValueError(name)

        class Model(nn.Module):
            config: Config

            def setup(self):
                layer = self.config.layer
                self.policy = policy_of(layer.policy)
                self.dense = nn.Dense(layer.width, dtype=layer.dtype)

            def __call__(self, x):
                layer = self.config.layer
                x = jax.checkpoint(ACTIVATIONS[layer.activation])(self.dense(x))
                return x[:, 0] if layer.pool == "first" else x.mean(axis=1)
        """
    )
    layers = [case["args"][0].config.layer for case in cases_of(module, "Model.__call__")]
    assert {layer.activation for layer in layers} == {"relu", "gelu"}
    assert {layer.pool for layer in layers} == {"first", "other"}
    assert {layer.policy for layer in layers} == {"dots", "all", "everything"}
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


def test_settings_that_a_class_makes_itself_are_filled_in(project):
    module = project(
        layer="""
        class RequiredValue:
            pass

        REQUIRED = RequiredValue()

        class Config:
            def __init__(self, **fields):
                self.__dict__.update({"name": REQUIRED, "num_stages": REQUIRED, **fields})

        class Passing(type):
            def __call__(cls, *args, **kwargs):
                return super().__call__(*args, **kwargs)

        class Layer(metaclass=Passing):
            def __init__(self, cfg, *, parent):
                assert parent is None
                assert isinstance(cfg.name, str)
                self.config = cfg

            @classmethod
            def default_config(cls):
                return Config(owner=cls)

            def __call__(self, x):
                return x * self.config.num_stages
        """
    )
    instance = cases_of(module, "Layer.__call__")[0]["args"][0]
    assert instance.config.num_stages == 2
    assert instance.config.owner is module.Layer


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


EXPERTS = """
import dataclasses
from typing import Optional, Sequence
import flax.linen as nn, jax, jax.numpy as jnp

@dataclasses.dataclass
class Config:
    width: int
    depth: int

def get_config(variant):
    return Config(width=2048, depth=18) if variant == "large" else Config(width=1024, depth=18)

class Experts(nn.Module):
    configs: Sequence[Config]

    @nn.compact
    def __call__(self, xs: Sequence[Optional[jax.Array]]):
        kernels = [
            self.param(f"kernel{i}", nn.initializers.ones, (config.width, 4))
            for i, config in enumerate(self.configs)
        ]
        return [x @ kernel for x, kernel in zip(xs, kernels)]

    def create(self):
        self([jnp.ones((1, config.width)) for config in self.configs])

def model():
    return Experts(configs=[get_config("large"), get_config("small")])
"""


def test_elements_of_a_list_have_the_sizes_of_the_settings_beside_them(project):
    (case, *_) = cases_of(project(experts=EXPERTS), "Experts.__call__")
    module, xs = case["args"]
    assert [x.shape[-1] for x in xs] == [config.width for config in module.configs]
    assert len({x.shape[-1] for x in xs}) == 2


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
