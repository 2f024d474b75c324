"""Values of the program whose `__getattr__` raises something else than AttributeError."""

from __future__ import annotations

import importlib
import pickle
import textwrap

import jax.numpy as jnp
import pytest
from worker_package import load_worker

digests = load_worker("program.digests")
lookup = load_worker("lookup")
make = load_worker("inputs.make")
pickling = load_worker("transfer.pickling")
results = load_worker("comparison.results")
stand_in = load_worker("inputs.stand_in")

PROJECT = """
import haiku as hk
import jax
import jax.numpy as jnp


class Node(dict):
    __getattr__ = dict.__getitem__


CONFIG = Node(block=Node(width=3, rate=0.5, gate=True), vocab=5)


class Block(hk.Module):
    def __init__(self, config, name=None):
        super().__init__(name)
        self.config = config

    def __call__(self, x, is_training):
        y = jnp.tanh(hk.Linear(self.config.width)(x))
        if self.config.gate:
            y = y * hk.Linear(self.config.width, name="gate")(x)
        return hk.dropout(hk.next_rng_key(), self.config.rate, y) if is_training else y


def model(x):
    return Block(CONFIG.block)(x, True)


def entry(x):
    return jnp.sin(x) * CONFIG.block.width
"""


class Mapping(dict):
    __getattr__ = dict.__getitem__


class Called:
    def __init__(self, **kwargs):
        self.kwargs = kwargs

    def __getattr__(self, name):
        if name == "kwargs":
            raise AttributeError(name)
        try:
            return self.kwargs[name]
        except KeyError:
            raise RuntimeError(f"no option {name}") from None

    def __call__(self, x):
        return x * self.scale


class Failing:
    @property
    def shape(self):
        raise ValueError("not yet known")


@pytest.mark.parametrize("make_one", [Mapping, Called])
def test_what_is_lacking_is_absent(make_one):
    value = make_one(scale=2.0)
    assert lookup.has(value, "scale")
    assert lookup.attribute(value, "scale") == 2.0
    assert not lookup.has(value, "shape")
    assert lookup.attribute(value, "shape", 7) == 7
    assert lookup.unwrapped(value) is value


def test_properties_that_fail_are_reported():
    with pytest.raises(ValueError, match="not yet known"):
        lookup.has(Failing(), "shape")


def test_such_values_are_saved_compared_and_fed_to_functions():
    called = Called(scale=2.0)
    assert digests.parameter(Mapping(a=1), str) != digests.parameter(Mapping(a=2), str)
    assert digests.parameter(called, str) != digests.parameter(Called(scale=3.0), str)
    assert not pickling.names.is_named(called)
    assert pickle.loads(pickle.dumps(Mapping(a=1))) == {"a": 1}
    x = jnp.arange(3.0)
    assert not jnp.array_equal(stand_in.Function()(x, called), x)


def cases_of(module, name):
    owner, _, method = name.partition(".")
    cls = getattr(module, owner) if method else None
    unit = getattr(cls, method) if method else getattr(module, owner)
    root = module.__file__.rpartition("/")[0]
    made = make.make_cases(unit, f"m:{name}", {"class": cls, "classes": [], "root": root})
    assert made.cases, made.detail
    return [case for _, case in made.cases]


def test_units_with_such_configurations_run(tmp_path, monkeypatch):
    pytest.importorskip("haiku")
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "with_nodes.py").write_text(textwrap.dedent(PROJECT))
    module = importlib.import_module("with_nodes")
    cases = cases_of(module, "Block.__call__")
    assert {case["args"][2] for case in cases} == {True, False}
    for case in cases_of(module, "entry"):
        assert jnp.all(jnp.isfinite(module.entry(*case["args"])))
