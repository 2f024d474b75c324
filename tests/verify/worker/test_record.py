"""Recording units under all that JAX does to a function; nothing that it computes changes."""

from __future__ import annotations

import functools
import inspect
import json
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

pickling = load_worker("transfer.pickling")
event_reader = load_worker("recording.event_reader")
event_log = load_worker("recording.event_log")
record = load_worker("recording.record")

NAME = "blocks.py::f"
X = jnp.arange(4.0) / 4


class Recorder:
    """A log of its own, and what is in it."""

    def __init__(self, folder):
        self.folder = folder
        self.log = event_log.EventLog(str(folder))

    def __call__(self, function: Any, name: str = NAME) -> Any:
        return record.recorded(self.log, name, function)

    def run(self):
        jax.effects_barrier()
        self.log.close()
        return event_reader.Run(str(self.folder))

    def calls(self, name: str = NAME):
        return self.run().calls(name).calls

    def samples(self, name: str = NAME):
        """The entries kept of the last input (by name) and the first output of each call."""
        return [(c.inputs[-1][1][9], c.outputs[0][1][9]) for c in self.calls(name)]


@pytest.fixture
def recorder(tmp_path):
    return Recorder(tmp_path)


def f(x, scale=2.0, *, flag=True):
    """Doc."""
    return jnp.sin(x) * scale if flag else x


def close(found, expected):
    assert len(found) == len(expected), found
    for (a, b), (c, d) in zip(sorted(found), sorted(expected), strict=True):
        np.testing.assert_allclose(a, c, rtol=1e-6)
        np.testing.assert_allclose(b, d, rtol=1e-6)


def of(*inputs):
    return [(list(np.asarray(x)), list(np.asarray(f(x)))) for x in inputs]


def test_a_direct_call(recorder):
    unit = recorder(f)
    unit(X, flag=False)
    unit(np.ones(2, np.float32), 3.0)
    first, second = recorder.calls()
    assert [path for path, _ in first.inputs] == ["flag", "scale", "x"]
    assert first.inputs[2][1][:4] == ["array", "float32", [4], False]
    assert first.inputs[:2] == [
        ["flag", ["number", "bool", False]],
        ["scale", ["number", "float", 2.0]],
    ]
    assert second.inputs[2][1][3] is None  # numpy's
    assert first.flags() == "flag=False"
    assert first.traced is None
    case = pickling.load(first.case)
    assert case["kwargs"] == {"flag": False}
    assert case["context"] is None
    np.testing.assert_array_equal(case["args"][0], X)


STACK = jnp.stack([X, X + 1, X + 2])

TRANSFORMED = {
    "jit": (lambda g: jax.jit(g)(X), [X]),
    "jit twice": (lambda g: [jax.jit(g)(X), jax.jit(g)(X + 1)], [X, X + 1]),
    "grad": (lambda g: jax.grad(lambda x: g(x).sum())(X), [X]),
    "jit of grad": (lambda g: jax.jit(jax.grad(lambda x: g(x).sum()))(X), [X]),
    "hessian": (lambda g: jax.hessian(lambda x: g(x).sum())(X), [X]),
    "jvp": (lambda g: jax.jvp(g, (X,), (X,)), [X]),
    "linearize": (lambda g: jax.linearize(g, X)[1](X), [X]),
    "vmap": (lambda g: jax.vmap(g)(STACK), list(STACK)),
    "vmap of another axis": (lambda g: jax.vmap(g, in_axes=1, out_axes=1)(STACK.T), list(STACK)),
    "jit of vmap": (lambda g: jax.jit(jax.vmap(g))(STACK), list(STACK)),
    "vmap of grad": (lambda g: jax.vmap(jax.grad(lambda x: g(x).sum()))(STACK), list(STACK)),
    "scan": (lambda g: jax.lax.scan(lambda c, x: (c, g(x)), 0, STACK), list(STACK)),
    "grad of scan": (
        lambda g: jax.grad(lambda s: jax.lax.scan(lambda c, x: (c, g(x)), 0.0, s)[1].sum())(STACK),
        list(STACK),
    ),
    "cond": (lambda g: jax.lax.cond(X[0] < 1, g, lambda x: x, X), [X]),
    "while": (
        lambda g: jax.lax.while_loop(lambda c: c[0] < 1, lambda c: (c[0] + 1, g(X)), (0, X)),
        [X],
    ),
    "checkpoint": (lambda g: jax.checkpoint(g)(X), [X]),
    "grad of checkpoint": (lambda g: jax.grad(lambda x: jax.checkpoint(g)(x).sum())(X), [X]),
    "jit of grad of checkpoint": (
        lambda g: jax.jit(jax.grad(lambda x: jax.checkpoint(g)(x).sum()))(X),
        [X],
    ),
    "ensure_compile_time_eval": (
        lambda g: jax.jit(lambda x: _constant(g) + x)(X),
        [X],
    ),
    "disable_jit": (lambda g: _without_jit(g), [X]),
    "custom_jvp": (lambda g: jax.jit(jax.grad(_custom(g)))(X), [X]),
    "checking leaks": (lambda g: _checked(g), [X]),
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


@pytest.mark.parametrize("name", TRANSFORMED)
def test_under_a_transformation(name, recorder):
    run, inputs = TRANSFORMED[name]
    expected = run(f)
    found = run(recorder(f))
    jax.tree.map(np.testing.assert_array_equal, found, expected)
    close(recorder.samples(), of(*inputs))
    assert recorder.run().notes == {}


def test_devices_each_record_their_shard(recorder):
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("x",))
    spec = jax.sharding.PartitionSpec("x")
    unit = recorder(f)
    jax.jit(jax.shard_map(lambda x: unit(x), mesh=mesh, in_specs=spec, out_specs=spec))(X)
    close(recorder.samples(), of(X))


def test_a_large_batch_is_cut_short(recorder):
    unit = recorder(f)
    jax.vmap(jax.vmap(unit))(jnp.arange(8000.0).reshape(80, 50, 2))
    assert len(recorder.calls()) == event_log.MOST_EVENTS


def test_transposing_leaves_the_callback_out(recorder):
    unit = recorder(lambda x: 2.0 * x)
    (found,) = jax.linear_transpose(unit, X)(X)
    np.testing.assert_array_equal(found, 2 * X)


def test_exporting_leaves_the_callback_out(recorder):
    jitted = jax.jit(recorder(f))
    jitted(X)
    found = jax.export.export(jitted)(X).call(X)
    np.testing.assert_allclose(found, f(X), rtol=1e-6)
    jitted(X + 1)
    close(recorder.samples(), of(X, X + 1))


def test_other_callbacks_are_unchanged(recorder):
    jax.jit(recorder(f))(X)
    seen = []
    jax.vmap(lambda x: jax.debug.callback(lambda v: seen.append(float(v)), x))(X)
    jax.effects_barrier()
    assert sorted(seen) == list(map(float, X))


def test_random_keys(recorder):
    unit = recorder(lambda key, x: x + jax.random.normal(key, x.shape))
    key = jax.random.key(3)
    unit(key, X)
    jax.jit(unit)(key, X + 1)
    direct, traced = (pickling.load(call.case)["args"] for call in recorder.calls())
    assert direct[0].dtype == traced[0].dtype == key.dtype
    np.testing.assert_array_equal(jax.random.key_data(traced[0]), jax.random.key_data(key))


def test_traced_case_has_the_values_of_jax(recorder):
    unit = recorder(lambda tree, n, flag: tree["w"] * n)
    jax.jit(unit, static_argnums=2)({"w": X, "b": [1.0, jnp.int8(3)]}, 2.5, True)
    (call,) = recorder.calls()
    tree, n, flag = pickling.load(call.case)["args"]
    assert flag is True
    assert isinstance(n, jax.Array)
    assert n.weak_type
    assert not tree["w"].weak_type
    assert tree["b"][1].dtype == jnp.int8
    np.testing.assert_array_equal(tree["w"], X)


def test_low_precision_numbers(recorder):
    unit = recorder(lambda x, y: x)
    args = (jnp.asarray([1, 2.5], jnp.bfloat16), jnp.asarray([0.5], jnp.float8_e4m3fn))
    unit(*args)
    jax.jit(unit)(*args)
    direct, traced = recorder.calls()
    assert direct.inputs == traced.inputs
    assert direct.inputs[0][1][7][0] == 3.5


def test_an_error_is_recorded_and_raised(recorder):
    def choose(x):
        return X if x > 0 else -X

    unit = recorder(choose)
    with pytest.raises(jax.errors.TracerBoolConversionError):
        jax.jit(unit)(1.0)
    with pytest.raises(TypeError):
        unit(1.0, 2.0)
    traced, direct = recorder.calls()
    assert traced.raised["type"] == "jax.errors.TracerBoolConversionError"
    assert traced.inputs == [["x", ["traced", "float32", [], True]]]
    assert direct.raised["type"] == "TypeError"
    assert "positional" in direct.raised["message"]


def test_calls_within_a_call(recorder):
    def down(n):
        return X if n == 0 else inner(n - 1) * 2

    inner = recorder(down)
    inner(3)
    assert [call.inputs for call in recorder.calls()] == [[["n", ["number", "int", 3]]]]


def test_inputs_are_those_before_the_call(recorder):
    def change(values, array):
        values.append(1)
        array[0] = 9.0
        return array

    recorder(change)(values := [], np.zeros(2))
    assert values == [1]
    (call,) = recorder.calls()
    case = pickling.load(call.case)
    assert case["args"][0] == []
    assert case["args"][1].tolist() == [0.0, 0.0]


def test_donated_inputs(recorder):
    unit = recorder(jax.jit(lambda x: x + 1, donate_argnums=0))
    unit(jnp.array([1.0, 2.0]))
    assert recorder.samples() == [([1.0, 2.0], [2.0, 3.0])]


def test_nan_and_empty(recorder):
    unit = recorder(lambda x: (x, None))
    unit(jnp.array([jnp.nan, jnp.inf, 1.0]))
    unit(jnp.zeros((0, 3)))
    first, second = recorder.calls()
    assert first.inputs[0][1][4:9] == [
        3,
        1,
        1,
        [1.0, 1.0, 1.0, pytest.approx(0.354, abs=1e-3)],
        1.0,
    ]
    assert second.inputs[0][1][4] == 0
    assert first.outputs[1] == ["[1]", ["static", "None"]]


# -- what stands for the unit


def test_recorded_function_is_a_function(recorder):
    unit = recorder(f)
    assert inspect.isfunction(unit)
    assert inspect.signature(unit) == inspect.signature(f)
    assert inspect.getfullargspec(unit) == inspect.getfullargspec(f)
    assert (unit.__name__, unit.__doc__, unit.__wrapped__) == ("f", "Doc.", f)
    assert recorder(unit) is unit
    jax.jit(unit, static_argnames="flag")(X, flag=False)


def test_methods(recorder):
    class Block:
        @recorder
        def __call__(self, x):
            return x * self.scale

        @functools.partial(recorder, name="still")
        @staticmethod
        def still(x):
            return x

        @functools.partial(recorder, name="make")
        @classmethod
        def make(cls, x):
            return cls, x

        @functools.partial(recorder, name="width")
        @property
        def width(self):
            return self.scale * 10

        @width.setter
        def width(self, value):
            self.scale = value / 10

        scale = 2.0

    block = Block()
    block.width = 30
    assert (block(1.0), Block.still(3), block.still(3), block.width) == (3.0, 3, 3, 30)
    assert Block.make(4) == (Block, 4)
    (call,) = recorder.calls()
    assert call.inputs == [["self", call.inputs[0][1]], ["x", ["number", "float", 1.0]]] or (
        [path for path, _ in call.inputs] == ["x"]  # the state of an object holds no numbers
    )
    (made,) = recorder.calls("make")
    assert [path for path, _ in made.inputs] == ["cls", "x"]
    (width,) = recorder.calls("width")
    assert width.outputs[0][1] == ["number", "float", 30.0]
    assert len(recorder.calls("still")) == 2


def test_jitted_functions_and_partials(recorder):
    unit = recorder(jax.jit(f, static_argnames="flag"), "jitted")
    assert isinstance(unit, type(jax.jit(f)))
    unit(X, flag=False)
    assert unit.lower(X).compile()(X).shape == (4,)
    np.testing.assert_array_equal(jax.vmap(unit)(STACK), jax.vmap(f)(STACK))
    assert len(recorder.calls("jitted")) == 4
    part = recorder(functools.partial(f, scale=3.0), "part")
    assert part.keywords == {"scale": 3.0}
    jax.jit(part)(X)
    (call,) = recorder.calls("part")
    assert [path for path, _ in call.inputs] == ["flag", "scale", "x"]


def test_custom_vjp_defined_later(recorder):
    @recorder
    @jax.custom_vjp
    def double(x):
        return 2 * x

    double.defvjp(lambda x: (double(x), None), lambda _, g: (7 * g,))
    np.testing.assert_array_equal(jax.grad(lambda x: double(x).sum())(X), jnp.full(4, 7.0))
    assert len(recorder.calls()) == 1


def test_a_jitted_method(recorder):
    class Model:
        @recorder
        @functools.partial(jax.jit, static_argnums=0)
        def step(self, x):
            return x + 1

    np.testing.assert_array_equal(Model().step(X), X + 1)
    (call,) = recorder.calls()
    assert call.inputs[-1][0] == "x"
    assert len(pickling.load(call.case)["args"]) == 2 if call.case else call.case_error


def test_equinox(recorder):
    class Net(eqx.Module):
        weight: jax.Array

        @recorder
        def __call__(self, x):
            return self.weight * x

        @functools.partial(recorder, name="jitted")
        @eqx.filter_jit
        def jitted(self, x, *, flag):
            return self.weight * x if flag else x

    net = Net(X)
    jax.grad(lambda n: n(X).sum())(net)
    eqx.filter_jit(net)(X)
    net.jitted(X, flag=True)
    assert [path for path, _ in recorder.calls()[0].inputs] == ["self.weight", "x"]
    (call,) = recorder.calls("jitted")
    assert [path for path, _ in call.inputs] == ["flag", "self.weight", "x"]
    loose = recorder(eqx.filter_jit(f), "loose")
    eqx.filter_jit(lambda g, x: g(x))(loose, X)  # passed through a transformation as a tree
    assert len(recorder.calls("loose")) == 1


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


def test_flax(current_recorder):
    key = jax.random.key(0)
    block = FlaxBlock(4)
    variables = block.init(key, X, train=False)
    expected = block.apply(variables, X, train=True, rngs={"dropout": key})
    jitted = jax.jit(lambda v, x: block.apply(v, x, train=True, rngs={"dropout": key}))
    np.testing.assert_array_equal(jitted(variables, X), expected)
    calls = current_recorder.calls()
    assert any("context['variables']['params']" in path for path, _ in calls[-1].inputs)
    loaded = [pickling.load(call.case) for call in calls if call.case]
    assert loaded[-1]["context"]["library"] == "flax"
    assert loaded[-1]["args"][0] == block
    net = FlaxNet()
    jax.jit(jax.grad(lambda v: net.apply(v, X).sum()))(net.init(key, X))
    assert len(current_recorder.calls()) > len(calls)


def test_haiku(current_recorder):
    run = hk.transform(lambda x: HaikuBlock()(x))
    params = run.init(jax.random.key(0), X)
    out = jax.jit(run.apply)(params, None, X)
    np.testing.assert_allclose(out, run.apply(params, None, X), rtol=1e-6)
    calls = current_recorder.calls()
    assert len(calls) >= 2
    saved = [pickling.load(call.case)["context"] for call in calls if call.case]
    assert saved, calls[0].case_error
    assert saved[0]["library"] == "haiku"


def test_unrecorded_objects_are_unchanged(recorder):
    def numbers():
        yield 1

    async def later():
        pass

    for thing in (numbers, later, Recorder, 3):
        assert recorder(thing) is thing
    assert len(recorder.run().notes[NAME]) == 3  # two are of one kind


# -- limits and trouble


def test_cases_of_each_kind(recorder):
    unit = recorder(lambda x, n, flag: x)
    for flag in (True, True, False):
        for n in range(5):
            unit(X, n, flag)
    unit(jnp.ones(7), 0, True)
    kept = [pickling.load(call.case)["args"] for call in recorder.calls() if call.case]
    assert [(x.size, n, flag) for x, n, flag in kept] == [
        (4, 0, True),
        (4, 1, True),
        (4, 2, True),
        (4, 0, False),
    ]


def test_large_inputs_are_not_saved_as_cases(recorder, monkeypatch):
    monkeypatch.setattr(event_log, "MOST_CASE_BYTES", 100)
    unit = recorder(lambda x: x)
    unit(np.zeros(20))
    unit(np.zeros(5))
    assert [bool(call.case) for call in recorder.calls()] == [False, True]


def test_reports_unsaved_values(recorder):
    lock = threading.Lock()
    recorder(lambda x, held: x)(X, lock)
    (call,) = recorder.calls()
    assert call.case is None
    assert "lock" in call.case_error


def test_too_many_calls_are_counted(recorder, monkeypatch):
    monkeypatch.setattr(event_log, "MOST_EVENTS", 3)
    unit = recorder(lambda n: n)
    for n in range(5):
        unit(n)
    assert len(recorder.calls()) == 3
    assert recorder.run().calls(NAME).total >= 5


def test_time_is_limited(recorder, monkeypatch):
    unit = recorder(lambda x, keys: x)
    unit(X, {})
    monkeypatch.setattr(event_log, "FREE_SECONDS", -1e6)
    unit(X + 1, {1: 2, "a": 3})  # keys that JAX cannot sort: not quickly told
    unit(X + 2, {})
    jitted = jax.jit(unit)
    jitted(X + 3, {})
    jax.vmap(unit)(STACK, {"n": STACK})
    monkeypatch.undo()
    jitted(X + 4, {})
    found = [call.inputs[-1][1][9][0] for call in recorder.calls()]
    assert found == [0.0, 1.0, 4.0]
    assert recorder.run().calls(NAME).is_cut
    assert recorder.run().calls(NAME).total >= 8


def test_a_long_run_is_traced_again_without_callbacks(recorder, monkeypatch):
    monkeypatch.setattr(event_log, "MOST_EVENTS", 3)
    monkeypatch.setattr(event_log, "MOST_IDLE_SHARE", 0.0)
    traces = []

    @jax.jit
    def step(x):
        traces.append(x)
        return unit(x)

    unit = recorder(f)
    for number in range(20):
        np.testing.assert_allclose(step(X + number), f(X + number), rtol=1e-6)
        jax.effects_barrier()
    assert len(recorder.calls()) == 3
    assert recorder.log.is_over(NAME)
    assert len(traces) == 2
    assert "callback" not in str(jax.make_jaxpr(step)(X))
    # What is not recorded for lack of time may be recorded again, and keeps its callback.
    other = recorder(f, "other")
    assert "callback" in str(jax.make_jaxpr(other)(X))


def test_an_error_in_recording_is_noted_and_the_call_goes_on(recorder, monkeypatch):
    monkeypatch.setattr(record.call_recorder, "of_leaf", lambda leaf: 1 / 0)
    assert recorder(lambda n: n + 1)(1) == 2
    assert "ZeroDivisionError" in recorder.run().notes[NAME][0]


def test_an_error_in_a_callback_is_noted(recorder, monkeypatch):
    monkeypatch.setattr(record.call_recorder, "of_array", lambda *_: 1 / 0)
    np.testing.assert_array_equal(jax.jit(recorder(lambda x: x + 1))(X), X + 1)
    assert "ZeroDivisionError" in recorder.run().notes[NAME][0]


def test_transformations_without_callbacks(recorder, monkeypatch):
    def refuse(*args):
        raise NotImplementedError("no effects here")

    monkeypatch.setattr(jax.debug, "callback", refuse)
    np.testing.assert_array_equal(jax.jit(recorder(lambda x: x + 1))(X), X + 1)
    (call,) = recorder.calls()
    assert call.inputs == [["x", ["traced", "float32", [4], False]]]
    assert "no effects here" in recorder.run().notes[NAME][0]


def test_a_trace_left_in_an_object(recorder):
    class Probe:
        seen: Any = None

        @recorder
        def __call__(self, x):
            self.seen = x
            return x + 1

    probe = Probe()
    for n in (3, 4):
        jax.jit(lambda x: probe(x))(jnp.ones(n))
    assert [c.outputs[0][1][2] for c in recorder.calls()] == [[3], [4]]
    assert recorder.run().notes == {}


def test_events_are_lines_of_json(recorder):
    jax.jit(recorder(f))(X)
    recorder.run()
    (folder,) = recorder.folder.iterdir()
    kinds = [json.loads(line)["kind"] for line in (folder / "events.jsonl").open()]
    assert kinds == ["process", "trace", "call", "count"]
