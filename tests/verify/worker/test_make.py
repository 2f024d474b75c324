"""Inputs for units of every kind: those that come out must run, and exercise what branches."""

from __future__ import annotations

import dataclasses
import enum
import functools
from collections.abc import Callable
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from worker_package import load_worker

from remat_migrate.verify.inputs import MAGNITUDES, RESIZED

pytestmark = pytest.mark.slow

make = load_worker("inputs.make")

FLAX = pytest.importorskip("flax.linen")


REPEATED = (RESIZED, "bfloat16 arrays", "other values of", *MAGNITUDES)


def cases_of(unit, cls=None, classes=()):
    """What the cases are about, and the cases; each has been called here as well.

    Without those that repeat the first with other sizes, magnitudes, or precision.
    """
    made = make.make_cases(unit, cls, classes)
    assert made.cases, made.detail
    for _, case in made.cases:
        assert set(case) == {"args", "kwargs", "context"}
        if case["context"] is None:
            unit(*case["args"], **case["kwargs"])
    return {about: case for about, case in made.cases if not about.startswith(REPEATED)}


def shapes(tree):
    return jax.tree_util.tree_map(jnp.shape, tree)


@dataclasses.dataclass(frozen=True)
class Config:
    width: int = 8
    pool: str = "mean"
    residual: bool = True
    unread: bool = False


class Weights(NamedTuple):
    kernel: jax.Array
    bias: jax.Array


class Mode(enum.Enum):
    TRAIN = 1
    EVALUATE = 2


# Structure


def nested(params, x):
    h = (x - jnp.mean(x, -1, keepdims=True)) * params["norm"]["scale"] + params["norm"]["bias"]
    return jnp.tanh(h @ params["in"]) @ params["out"]


def test_nested_dictionaries_of_parameters():
    (case,) = cases_of(nested).values()
    params, x = case["args"]
    assert shapes(params) == {
        "norm": {"scale": (8,), "bias": (8,)},
        "in": (8, 8),
        "out": (8, 8),
    }
    assert type(params) is dict
    assert x.shape == (2, 4, 8)


def by_attribute(params, x):
    return jnp.dot(x, params.kernel) + params.bias


def test_attributes():
    (case,) = cases_of(by_attribute, classes=[Config, Weights]).values()
    assert isinstance(case["args"][0], Weights)
    (case,) = cases_of(by_attribute).values()
    leaves = jax.tree_util.tree_leaves(case["args"][0])
    assert {leaf.shape for leaf in leaves} == {(8, 8), (8,)}


def gradient(params, batch):
    return jax.jit(jax.value_and_grad(lambda p: jnp.mean((nested(p, batch["x"]) - 1.0) ** 2)))(
        params
    )


def test_through_grad_and_jit():
    (case,) = cases_of(gradient).values()
    assert set(case["args"][0]) == {"norm", "in", "out"}


def optional_entry(params, x):
    x = x @ params["w"]
    if "b" in params:
        x = x + params["b"]
    return x


def test_entry_that_may_be_missing():
    entries = [set(case["args"][0]) for case in cases_of(optional_entry).values()]
    assert {"w"} in entries
    assert {"w", "b"} in entries


def continued(x, cache: dict[str, jax.Array] | None = None):
    start = cache["tokens"] if cache else jnp.zeros_like(x)
    return x - start


def test_dictionary_whose_truth_is_asked_for_has_entries():
    caches = [case["args"][1] for case in cases_of(continued).values()]
    assert None in caches
    assert any(cache and set(cache) == {"tokens"} for cache in caches)


# Values that Python needs


def switched(x, is_training, causal=True):
    x = jnp.sin(x) if is_training else x
    return jnp.cumsum(x) if causal else x


def test_all_combinations_of_switches():
    seen = {case["args"][1:] for case in cases_of(switched).values()}
    assert seen == {(a, b) for a in (True, False) for b in (True, False)}


def chosen(x, kind):
    if kind == "sin":
        return jnp.sin(x)
    elif kind in ("cos", "tan"):
        return getattr(jnp, kind)(x)
    raise ValueError(kind)


def test_every_string_that_is_compared():
    assert {case["args"][1] for case in cases_of(chosen).values()} == {"sin", "cos", "tan"}
    assert all(type(case["args"][1]) is str for case in cases_of(chosen).values())


def sharpened(x, amount):
    if amount > 3.0:
        return x * amount
    return x


def test_both_sides_of_a_number():
    amounts = [case["args"][1] for case in cases_of(sharpened).values()]
    assert min(amounts) < 3.0 < max(amounts)


def configured(x, cfg):
    x = x + 1.0 if cfg.residual else x
    x = jnp.reshape(x, (-1, cfg.width))
    return jnp.mean(x) if cfg.pool == "mean" else jnp.sum(x)


def test_configuration_of_the_project():
    cases = cases_of(configured, classes=[Weights, Config])
    configs = [case["args"][1] for case in cases.values()]
    assert {type(cfg) for cfg in configs} == {Config}
    assert {cfg.residual for cfg in configs} == {True, False}
    assert {cfg.pool == "mean" for cfg in configs} == {True, False}
    assert {cfg.unread for cfg in configs} == {False}
    assert any("residual=False" in about for about in cases)


def masked(x, mask: jax.Array | None = None, remat: bool = False):
    return x if mask is None else jnp.where(mask > 0, x, -1.0 if remat else 0.0)


def test_an_optional_array_is_tried_together_with_each_flag():
    given = {(case["args"][1] is None, case["args"][2]) for case in cases_of(masked).values()}
    assert given == {(True, False), (False, False), (True, True), (False, True)}


def variadic(x, *flags, **options):
    for flag in flags:
        x = jnp.sin(x) if flag else x
    return x**2 if options.get("square") else x


def test_variadic():
    cases = cases_of(variadic).values()
    assert {len(case["args"]) for case in cases} >= {1, 3}
    assert any(case["kwargs"] == {"square": True} for case in cases)


# Annotations


def annotated(
    x: jax.Array,
    count: int,
    mode: Literal["a", "b"],
    state: Mode,
    sizes: tuple[int, float],
    tables: dict[str, jax.Array],
    stack: list[jax.Array],
    either: int | None,
    activation: Callable[[jax.Array], jax.Array],
    weights: Weights,
):
    y = activation(x) @ weights.kernel + weights.bias + tables["t"] + sum(stack)
    y = y * count if mode == "a" else y
    return y * sizes[1] if state is Mode.TRAIN and either is None else y


def test_annotations():
    cases = list(cases_of(annotated).values())
    assert {case["args"][2] for case in cases} == {"a", "b"}
    assert {case["args"][3] for case in cases} == set(Mode)
    sizes = cases[0]["args"][4]
    assert [type(part) for part in sizes] == [int, float]
    assert isinstance(cases[0]["args"][9], Weights)


def test_jaxtyping():
    jaxtyping = pytest.importorskip("jaxtyping")

    def typed(x, w, ids, scale, three, half):
        return x @ w * scale + w[ids] + jnp.sum(three), half

    typed.__annotations__ = {
        "x": jaxtyping.Float[jax.Array, "batch time dim"],
        "w": jaxtyping.Float[jax.Array, "dim dim"],
        "ids": jaxtyping.Int[jax.Array, "batch time"],
        "scale": jaxtyping.Float[jax.Array, ""],
        "three": jaxtyping.Float[jax.Array, "*any 3"],
        "half": jaxtyping.Float[jax.Array, "dim//2"],
    }
    (case,) = cases_of(typed).values()
    found = [(a.shape, str(a.dtype)) for a in case["args"]]
    assert found == [
        ((2, 4, 8), "float32"),
        ((8, 8), "float32"),
        ((2, 4), "int32"),
        ((), "float32"),
        ((2, 3), "float32"),
        ((4,), "float32"),
    ]


def chunked(x, chunk_size=2048):
    parts = x.reshape(x.shape[0], x.shape[1] // chunk_size, chunk_size, -1)
    return jnp.cumsum(parts, axis=2).reshape(x.shape)


def test_large_defaults_of_sizes_shrink_where_arrays_are_smaller():
    case = next(iter(cases_of(chunked).values()))
    assert case["args"][1] < 2048


# Arrays


def attention(query, key, value, mask):
    scores = jnp.einsum("bqhd,bkhd->bhqk", query, key)
    weights = jax.nn.softmax(jnp.where(mask[:, None, None, :], scores, -1e9))
    return jnp.einsum("bhqk,bkhd->bqhd", weights, value)


def test_attention():
    (case,) = cases_of(attention).values()
    query, key, _, mask = case["args"]
    assert query.shape == key.shape
    assert query.ndim == 4
    assert mask.dtype == bool


def noisy(key, x, rate):
    keep = jax.random.bernoulli(key, 1.0 - rate, x.shape)
    return jnp.where(keep, x / (1.0 - rate), 0.0)


def test_random_key():
    for case in cases_of(noisy).values():
        jax.random.uniform(case["args"][0])


def fixed_sizes(x, y):
    return jnp.reshape(x, (5, 3)) @ y[:3], jnp.cross(y[:3], jnp.ones(3))


def test_sizes_that_the_code_fixes():
    (case,) = cases_of(fixed_sizes).values()
    assert case["args"][0].size == 15


def same_again(x, w):
    return x @ w


def test_same_inputs_each_time():
    first, second = (make.make_cases(same_again) for _ in range(2))
    for (_, one), (_, other) in zip(first.cases, second.cases, strict=True):
        for a, b in zip(one["args"], other["args"], strict=True):
            np.testing.assert_array_equal(a, b)


def changing(params, x):
    return x @ params.pop("w")


def test_case_is_not_what_the_unit_has_changed():
    made = make.make_cases(changing)
    assert [set(case["args"][0]) for _, case in made.cases] == [{"w"}] * len(made.cases)
    assert made.cases


# Methods


class Plain:
    def __init__(self, scale, depth):
        self.scale = scale
        self.depth = depth

    def __call__(self, x, train):
        for _ in range(self.depth):
            x = jnp.sin(x) * self.scale
        return x if train else -x


def test_method_of_a_plain_class():
    cases = cases_of(Plain.__call__, Plain)
    assert {case["args"][2] for case in cases.values()} == {True, False}
    assert all(isinstance(case["args"][0], Plain) for case in cases.values())


class Block(FLAX.Module):
    features: int
    rate: float
    residual: bool = False
    activation: Callable = jnp.tanh

    @FLAX.compact
    def __call__(self, x, deterministic):
        h = self.activation(FLAX.Dense(self.features)(x))
        h = FLAX.Dropout(self.rate)(h, deterministic=deterministic)
        return x + h if self.residual else h


def test_flax_module():
    cases = cases_of(Block.__call__, Block)
    seen = {(case["args"][0].residual, case["args"][2]) for case in cases.values()}
    assert seen == {(a, b) for a in (True, False) for b in (True, False)}
    assert {case["context"]["library"] for case in cases.values()} == {"flax"}


def haiku_net(x, train):
    import haiku

    x = haiku.Linear(3)(x)
    return jnp.tanh(x) if train else x


def test_haiku_function():
    pytest.importorskip("haiku")
    cases = cases_of(haiku_net)
    assert {case["args"][1] for case in cases.values()} == {True, False}
    assert {case["context"]["library"] for case in cases.values()} == {"haiku"}


def test_equinox_module():
    equinox = pytest.importorskip("equinox")

    class Layer(equinox.Module):
        linear: equinox.nn.Linear

        def __init__(self, in_size, out_size, key):
            self.linear = equinox.nn.Linear(in_size, out_size, key=key)

        def __call__(self, x, train):
            return self.linear(x) if train else x

    cases = cases_of(Layer.__call__, Layer)
    assert {case["args"][2] for case in cases.values()} == {True, False}


# What cannot be made, and limits


def impossible(x):
    raise RuntimeError("needs a file of ours")


def test_reasons_for_no_cases():
    made = make.make_cases(impossible)
    assert made.cases == []
    assert "needs a file of ours" in made.detail
    assert "input_" not in made.detail


def test_time_limit():
    made = make.make_cases(nested, end=0.0)
    assert made.cases == []
    assert "no tries left" in made.detail


def test_units_that_are_no_plain_functions():
    cases_of(jax.jit(nested))
    partial = functools.partial(noisy, rate=0.5)
    made = make.make_cases(partial)
    assert made.cases, made.detail


@dataclasses.dataclass(frozen=True)
class Wide:
    width: int = 48
    scaled: bool = True


def projected(w, x, cfg):
    x = x * cfg.width if cfg.scaled else x
    return jnp.tanh(x.reshape(-1, 4, cfg.width)) @ w


def test_settings_known_by_their_fields_give_arrays_their_width():
    for case in cases_of(projected, classes=[Wide]).values():
        assert isinstance(case["args"][2], Wide)
        assert case["args"][1].shape[-1] == 48


def grouped(w, x, mask, group=128):
    tokens = jnp.reshape(x, (-1, group, x.shape[-1]))
    return jnp.tanh(tokens @ w).reshape(x.shape) * mask[..., None]


def test_lengths_are_multiples_of_what_a_reshape_wants():
    args = cases_of(grouped)[""]["args"]
    assert [shapes(arg) for arg in args] == [(8, 8), (2, 64, 8), (2, 64), ()]


def strict(x, cfg):
    if cfg.pool not in ("mean", "max"):
        raise ValueError(cfg.pool)
    return jnp.mean(x) if cfg.pool == "mean" else jnp.max(x)


def test_cases_are_about_what_they_say():
    cases = cases_of(strict, classes=[Config])
    assert {about: case["args"][1].pool for about, case in cases.items()} == {
        "cfg.pool='mean'": "mean",
        "cfg.pool='max'": "max",
    }


def test_nnx_module_with_labels():
    nnx = pytest.importorskip("flax.nnx")

    class Net(nnx.Module):
        def __init__(self, width, *, rngs):
            self.inner = nnx.Linear(width, width, rngs=rngs)
            self.scale = jax.random.normal(rngs.params(), (width,))
            self.labels = nnx.Embed(4, width, rngs=rngs)

        def __call__(self, x, t, y, train):
            x = self.inner(x) * self.scale
            condition = self.inner(jnp.concatenate([jnp.cos(t[:, None] * jnp.ones(8))], -1))
            x = x + (condition + self.labels(y))[:, None]
            return jnp.tanh(x) if train else x

    cases = cases_of(Net.__call__, Net)
    assert {case["args"][4] for case in cases.values()} == {True, False}
    for case in cases.values():
        assert case["args"][3].dtype == jnp.int32
