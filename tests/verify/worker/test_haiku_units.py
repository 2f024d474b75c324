"""Haiku units as plain functions, also of what was captured while they ran."""

from __future__ import annotations

import functools

import haiku as hk
import jax
import jax.numpy as jnp
import pytest
import recorded_calls
from recorded_calls import TRANSFORMS, case_of, exercise, made, plain, recorded
from support import some_slow
from worker_package import load_worker

haiku_units = load_worker("frameworks.haiku_units")
pure_functions = load_worker("frameworks.pure_functions")
pickling = load_worker("transfer.pickling")

X = jnp.linspace(-1.0, 1.0, 6).reshape(2, 3)


class HaikuBlock(hk.Module):
    def __init__(self, width, activation=jax.nn.relu, name=None):
        super().__init__(name=name)
        self.width = width
        self.activation = activation
        self.norm = hk.LayerNorm(-1, True, True)

    @recorded
    def __call__(self, x, train=False):
        x = self.norm(hk.Linear(self.width)(x))
        if train:
            x = hk.dropout(hk.next_rng_key(), 0.5, x)
        count = hk.get_state("count", (), init=jnp.zeros)
        hk.set_state("count", count + 1)
        return self.activation(x)


@recorded
def haiku_function(x, width=3):
    x = hk.Linear(width, name="again")(x)
    return x + jax.random.normal(hk.next_rng_key(), x.shape)


@recorded
def haiku_takes_module(x, block):
    return block(hk.Linear(3)(x))


def haiku_model(x, train=False):
    block = HaikuBlock(3)
    x = hk.Linear(3)(block(x, train))
    x = haiku_function(x) + haiku_function(x)
    x = haiku_takes_module(x, block)
    return recorded(plain)(HaikuBlock(3)(x))


@pytest.fixture(scope="module")
def haiku_cases(tmp_path_factory):
    """The calls recorded when a model runs under a transformation."""
    model = hk.transform_with_state(haiku_model)
    params, state = model.init(jax.random.PRNGKey(0), X)

    def run(params, x):
        outputs, _ = model.apply(params, state, jax.random.PRNGKey(1), x, True)
        return jnp.sum(outputs)

    @functools.cache
    def cases(transform):
        folder = tmp_path_factory.mktemp("record")
        return recorded_calls.record(folder, TRANSFORMS[transform](run), params, X)

    return cases


@pytest.mark.parametrize(
    "transform", some_slow(["plainly", "jit", "grad", "checkpoint"], "checkpoint")
)
def test_haiku_captured(haiku_cases, transform):
    blocks = [case for case in haiku_cases(transform) if isinstance(case["args"][0], HaikuBlock)]
    by_name = {case["args"][0].module_name: case for case in blocks}
    assert set(by_name) == {"haiku_block", "haiku_block_1"}
    for name, case in by_name.items():
        init, apply = pure_functions.prepare(HaikuBlock.__call__, case)
        assert {f"{name}/linear", f"{name}/~/layer_norm"} == set(exercise(init)[0])
        exercise(apply)


def test_haiku_functions(haiku_cases):
    cases = haiku_cases("jit")
    functions = [c for c in cases if not c["kwargs"] and len(c["args"]) == 1]
    made_modules = functions[0]
    init, apply = pure_functions.prepare(haiku_function, made_modules)
    assert set(exercise(init)[0]) == {"again"}
    exercise(apply)
    assert [p.label for p in pure_functions.prepare(plain, functions[-1])] == [""]


def test_haiku_functions_that_take_modules(haiku_cases):
    cases = haiku_cases("jit")
    (case,) = [c for c in cases if len(c["args"]) == 2 and isinstance(c["args"][1], HaikuBlock)]
    for prepared in pure_functions.prepare(haiku_takes_module, case):
        exercise(prepared)


def test_haiku_captured_while_initialising(record):
    model = hk.transform_with_state(haiku_model)
    cases = record(lambda: model.init(jax.random.PRNGKey(0), X))
    block = next(case for case in cases if isinstance(case["args"][0], HaikuBlock))
    init, apply = pure_functions.prepare(HaikuBlock.__call__, block)
    exercise(init)
    exercise(apply)


def test_haiku_made():
    init, apply = pure_functions.prepare(haiku_function, made(haiku_function, X, width=2))
    assert exercise(init)[0]["again"]["w"].shape == (3, 2)
    exercise(apply)


def test_haiku_made_of_a_method(tmp_path):
    """A Haiku module cannot be made outside of a transform; it is made where it is used."""
    with pytest.raises(ValueError, match="transform") as caught:
        HaikuBlock(2)
    context = pure_functions.context_from_error(caught.value)
    assert haiku_units.is_deferred(HaikuBlock)
    assert not haiku_units.is_deferred(dict)
    pickling.save(haiku_units.Deferred(HaikuBlock, {"width": 2}), tmp_path / "saved.pkl")
    block = pickling.load(tmp_path / "saved.pkl")
    result = jax.eval_shape(
        lambda x: pure_functions.initialised(HaikuBlock.__call__, (block, x), {}, context), X
    )
    assert result.shape == (2, 2)
    init, apply = pure_functions.prepare(
        HaikuBlock.__call__, case_of(block, X, True, context=context)
    )
    assert exercise(init)[0]["haiku_block/linear"]["w"].shape == (3, 2)
    exercise(apply)
