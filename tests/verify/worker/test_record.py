"""Recording units under all that JAX does to a function; nothing that it computes changes."""

from __future__ import annotations

import functools
import inspect
import threading
from typing import Any

import equinox as eqx
import flax.linen as nn
import haiku as hk
import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
from worker_package import load_worker

from remat_migrate.verify.command import RecordedCalls, recorded_calls

pickling = load_worker("transfer.pickling")
recording = load_worker("recording")

NAME = "blocks.py::f"
X = jnp.arange(4.0) / 4


class Recorder:
    """A log of its own, and what is in it."""

    def __init__(self, folder):
        self.folder = folder
        self.log = recording.CallLog(str(folder))

    def __call__(self, function: Any, name: str = NAME) -> Any:
        return recording.recorded(self.log, name, function)

    def run(self, name: str = NAME) -> RecordedCalls:
        return recorded_calls(self.folder).get(name, RecordedCalls())

    def cases(self, name: str = NAME):
        return [pickling.load(line["file"]) for line in self.run(name).cases]

    def shapes(self, name: str = NAME):
        """The shape of the last argument of each case."""
        return [jnp.shape(case["args"][-1]) for case in self.cases(name)]


@pytest.fixture
def recorder(tmp_path):
    return Recorder(tmp_path)


def f(x, scale=2.0, *, flag=True):
    """Doc."""
    return jnp.sin(x) * scale if flag else x


def test_a_direct_call(recorder):
    unit = recorder(f)
    unit(X, flag=False)
    unit(np.ones((2, 3), np.float32), 3.0)
    unit(X + 1, flag=False)
    first, second = recorder.cases()
    assert (first["kwargs"], first["context"]) == ({"flag": False}, None)
    (x,) = first["args"]
    assert isinstance(x, jax.Array)
    assert (x.shape, x.dtype, x.weak_type) == ((4,), jnp.float32, False)
    array, scale = second["args"]
    assert type(array) is np.ndarray
    assert (array.shape, array.dtype, scale) == ((2, 3), np.float32, 3.0)
    assert [line["about"] for line in recorder.run().cases] == ["flag=False", "flag=True"]


STACK = jnp.stack([X, X + 1, X + 2])

TRANSFORMED = {
    "jit": lambda g: jax.jit(g)(X),
    "jit twice": lambda g: [jax.jit(g)(X), jax.jit(g)(X + 1)],
    "grad": lambda g: jax.grad(lambda x: g(x).sum())(X),
    "jit of grad": lambda g: jax.jit(jax.grad(lambda x: g(x).sum()))(X),
    "hessian": lambda g: jax.hessian(lambda x: g(x).sum())(X),
    "jvp": lambda g: jax.jvp(g, (X,), (X,)),
    "linearize": lambda g: jax.linearize(g, X)[1](X),
    "vmap": lambda g: jax.vmap(g)(STACK),
    "vmap of another axis": lambda g: jax.vmap(g, in_axes=1, out_axes=1)(STACK.T),
    "vmap of grad": lambda g: jax.vmap(jax.grad(lambda x: g(x).sum()))(STACK),
    "scan": lambda g: jax.lax.scan(lambda c, x: (c, g(x)), 0, STACK),
    "grad of scan": lambda g: jax.grad(
        lambda s: jax.lax.scan(lambda c, x: (c, g(x)), 0.0, s)[1].sum()
    )(STACK),
    "cond": lambda g: jax.lax.cond(X[0] < 1, g, lambda x: x, X),
    "while": lambda g: jax.lax.while_loop(lambda c: c[0] < 1, lambda c: (c[0] + 1, g(X)), (0, X)),
    "checkpoint": lambda g: jax.checkpoint(g)(X),
    "jit of grad of checkpoint": lambda g: jax.jit(jax.grad(lambda x: jax.checkpoint(g)(x).sum()))(
        X
    ),
    "ensure_compile_time_eval": lambda g: jax.jit(lambda x: _constant(g) + x)(X),
    "disable_jit": lambda g: _without_jit(g),
    "custom_jvp": lambda g: jax.jit(jax.grad(_custom(g)))(X),
    "checking leaks": lambda g: _checked(g),
    "eval_shape": lambda g: jax.eval_shape(g, X).shape,
    "transposition": lambda g: jax.linear_transpose(lambda x: g(x, flag=False), X)(X),
    "export": lambda g: jax.export.export(jax.jit(g))(X).call(X),
    "shard_map": lambda g: _sharded(g),
}


def _constant(g):
    with jax.ensure_compile_time_eval():
        return g(X)


def _without_jit(g):
    with jax.disable_jit():
        return jax.jit(g)(X)


def _checked(g):
    with jax.checking_leaks():
        return jax.jit(g)(X)


def _custom(g):
    h = jax.custom_jvp(lambda x: g(x).sum())
    h.defjvp(lambda primals, tangents: (h(*primals), tangents[0].sum()))
    return h


def _sharded(g):
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("x",))
    spec = jax.sharding.PartitionSpec("x")
    return jax.jit(jax.shard_map(lambda x: g(x), mesh=mesh, in_specs=spec, out_specs=spec))(X)


@pytest.mark.parametrize("name", TRANSFORMED)
def test_under_a_transformation(name, recorder):
    run = TRANSFORMED[name]
    expected = run(f)
    found = run(recorder(f))
    jax.tree.map(np.testing.assert_array_equal, found, expected)
    assert recorder.shapes() == [X.shape]
    assert recorder.run().detail == ""


def test_the_program_is_unchanged(recorder):
    program = jax.make_jaxpr(jax.jit(jax.grad(lambda x: recorder(f)(x).sum())))(X)
    assert str(program) == str(jax.make_jaxpr(jax.jit(jax.grad(lambda x: f(x).sum())))(X))


def test_references_are_not_recorded(recorder):
    unit = recorder(lambda ref: ref[...])
    jax.jit(unit)(jax.new_ref(X))
    assert recorder.cases() == []
    assert "the inputs cannot be pickled" in recorder.run().detail


def test_an_error_of_a_call(recorder):
    unit = recorder(lambda x: X if x > 0 else -X)
    with pytest.raises(jax.errors.TracerBoolConversionError):
        jax.jit(unit)(1.0)
    with pytest.raises(TypeError):
        unit(1.0, 2.0)
    traced, direct = recorder.cases()
    assert traced["args"][0].weak_type
    assert direct["args"] == (1.0, 2.0)


def test_calls_within_a_call(recorder):
    def down(n):
        return X if n == 0 else inner(n - 1) * 2

    inner = recorder(down)
    inner(3)
    assert [case["args"] for case in recorder.cases()] == [(3,)]


# -- what stands for the unit


def test_recorded_function_is_a_function(recorder):
    unit = recorder(f)
    assert inspect.isfunction(unit)
    assert inspect.signature(unit) == inspect.signature(f)
    assert inspect.getfullargspec(unit) == inspect.getfullargspec(f)
    assert (unit.__name__, unit.__doc__, unit.__wrapped__) == ("f", "Doc.", f)
    jax.jit(unit, static_argnames="flag")(X, flag=False)


def current(function):
    """A recorder in a class that can be found by name: that of the test under way."""

    @functools.wraps(function)
    def recording(*args, **kwargs):
        return CURRENT[0](function)(*args, **kwargs)

    return recording


CURRENT: list[Recorder] = []


@pytest.fixture
def current_recorder(recorder):
    CURRENT[:] = [recorder]
    return recorder


class FlaxBlock(nn.Module):
    width: int

    @current
    @nn.compact
    def __call__(self, x, train):
        x = nn.Dense(self.width)(x)
        return nn.Dropout(0.5, deterministic=not train)(x)


class FlaxNet(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.remat(FlaxBlock, static_argnums=(2,))(4)(x, False)


class HaikuBlock(hk.Module):
    @current
    def __call__(self, x):
        return hk.Linear(4)(x)


class EquinoxNet(eqx.Module):
    weight: jax.Array
    inference: bool = False

    @current
    def __call__(self, x):
        return self.weight * x


def test_equinox(current_recorder):
    net = EquinoxNet(X)
    eqx.filter_grad(lambda n: n(X).sum())(net)
    eqx.filter_jit(net)(X)
    EquinoxNet(X, True)(X)
    cases = current_recorder.cases()
    assert [case["args"][0].inference for case in cases] == [False, True]
    assert cases[0]["args"][0].weight.shape == X.shape


def test_flax(current_recorder):
    key = jax.random.key(0)
    block = FlaxBlock(4)
    variables = block.init(key, X, train=False)
    expected = block.apply(variables, X, train=True, rngs={"dropout": key})
    jitted = jax.jit(lambda v, x: block.apply(v, x, train=True, rngs={"dropout": key}))
    np.testing.assert_array_equal(jitted(variables, X), expected)
    loaded = current_recorder.cases()
    assert loaded[-1]["context"] == {"library": "flax"}
    assert loaded[-1]["args"][0] == block
    net = FlaxNet()
    jax.jit(jax.grad(lambda v: net.apply(v, X).sum()))(net.init(key, X))
    assert len(current_recorder.cases()) > len(loaded)


def test_haiku(current_recorder):
    run = hk.transform(lambda x: HaikuBlock()(x))
    params = run.init(jax.random.key(0), X)
    out = jax.jit(run.apply)(params, None, X)
    np.testing.assert_allclose(out, run.apply(params, None, X), rtol=1e-6)
    assert current_recorder.cases()[0]["context"]["library"] == "haiku"


# -- limits and trouble


def test_cases_of_each_kind(recorder):
    unit = recorder(lambda x, n, flag: x)
    for flag in (True, True, False):
        for n in range(5):
            unit(X, n, flag)
    unit(jnp.ones(7), 0, True)
    kept = [case["args"] for case in recorder.cases()]
    assert [(x.size, n, flag) for x, n, flag in kept] == [
        (4, 0, True),
        (4, 1, True),
        (4, 2, True),
        (4, 0, False),
    ]


class Settings:
    def __init__(self, training):
        self.training = training


def test_flags_in_objects(recorder):
    unit = recorder(lambda settings, x: x)
    for training in (False, False, True):
        unit(Settings(training), X)
    kept = [case["args"][0].training for case in recorder.cases()]
    assert kept == [False, True]


def test_reports_unsaved_values(recorder):
    lock = threading.Lock()
    recorder(lambda x, held: x)(X, lock)
    found = recorder.run()
    assert (found.called, found.cases) == (True, [])
    assert "lock" in found.detail


def test_an_error_in_recording_is_noted_and_the_call_goes_on(recorder, monkeypatch):
    monkeypatch.setattr(recording, "described", lambda *_: 1 / 0)
    assert recorder(lambda n: n + 1)(1) == 2
    assert "ZeroDivisionError" in recorder.run().detail
