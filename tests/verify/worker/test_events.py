"""Two recordings compared: a right migration is never refused, and what is wrong is seen."""

from __future__ import annotations

import contextlib
import functools
import json
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax._src.lax import lax as lax_internal
from worker_package import load_worker

event_log = load_worker("recording.event_log")
run_comparison = load_worker("comparison.run_comparison")
record = load_worker("recording.record")

NAME = "blocks.py::block"
X = jnp.linspace(-1, 1, 12).reshape(3, 4)


class Sides:
    """Two record folders, and what comparing them gives."""

    def __init__(self, folder):
        self.folder = folder
        self.logs = {side: event_log.EventLog(str(folder / side)) for side in ("before", "after")}

    def run(self, program, before, after, name=NAME):
        """A program with a unit that is one function before and another after."""
        for side, function in (("before", before), ("after", after)):
            program(record.recorded(self.logs[side], name, function))
        return self.compared()[name]

    def compared(self, tolerances=None):
        jax.effects_barrier()
        for log in self.logs.values():
            log.close()
        folders = (str(self.folder / side) for side in ("before", "after"))
        return run_comparison.compare_runs(*folders, tolerances)


@pytest.fixture
def sides(tmp_path):
    return Sides(tmp_path)


def block(x, scale=2.0, flag=True):
    return {"out": jnp.tanh(x @ x.T) * scale if flag else x, "mean": x.mean()}


def checkpointed(x, scale=2.0, flag=True):
    return jax.checkpoint(lambda x, scale: block(x, scale, flag))(x, scale)


def total(result):
    return result["out"].sum() + result.get("mean", 0.0)


def train(step):
    """Gradient descent in which the unit's outputs reach its later inputs."""

    def program(unit):
        gradient = step(jax.grad(lambda x: total(unit(x))))
        x = X
        for _ in range(30):
            x = x - 0.1 * gradient(x)

    return program


def scanned(unit):
    jax.jit(
        jax.grad(
            lambda x: jax.lax.scan(lambda c, y: (c + y, total(unit(c))), x, jnp.ones((4, 3, 4)))[
                1
            ].sum()
        )
    )(X)


def threads(unit):
    running = [threading.Thread(target=lambda n=n: [unit(X + n), unit(X - n)]) for n in range(4)]
    for each in running:
        each.start()
    for each in running:
        each.join()


PROGRAMS = {
    "direct": lambda unit: [unit(X), unit(X, 3.0), unit(X, flag=False), unit(-X)],
    "jit": lambda unit: [jax.jit(unit)(X), jax.jit(unit)(2 * X)],
    "grad": lambda unit: jax.grad(lambda x: total(unit(x)))(X),
    "jit of grad": lambda unit: jax.jit(jax.grad(lambda x: total(unit(x))))(X),
    "vmap": lambda unit: jax.jit(jax.vmap(unit))(jnp.stack([X, X + 1])),
    "scan": scanned,
    "training": train(lambda f: f),
    "jitted training": train(jax.jit),
    "threads": threads,
    "the same again and again": lambda unit: [unit(X) for _ in range(60)],
}

RIGHT = {
    "checkpoint": checkpointed,
    "another order of sums": lambda x, scale=2.0, flag=True: {
        "out": scale * jnp.tanh(x[:, ::-1] @ x[:, ::-1].T) if flag else x,
        "mean": x.T.sum() / x.size,
    },
}


def changed(x, scale=2.0, flag=True):
    out = block(x, scale, flag)
    return {**out, "out": out["out"] * 1.01}


def transposed(x, scale=2.0, flag=True):
    out = block(x + 0.3, scale, flag)
    return {"out": out["out"], "mean": x.mean()}


def narrowed(x, scale=2.0, flag=True):
    out = block(x, scale, flag)
    return {**out, "mean": out["mean"].astype(jnp.bfloat16)}


def weakened(x, scale=2.0, flag=True):
    out = block(x, scale, flag)
    return {**out, "mean": lax_internal._convert_element_type(out["mean"], weak_type=True)}


def dropped(x, scale=2.0, flag=True):
    return {"out": block(x, scale, flag)["out"]}


WRONG = {
    "a factor": (changed, "result['out']: an entry is"),
    "other inputs": (transposed, "result['out']: an entry is"),
    "another dtype": (narrowed, "result['mean']: dtype bfloat16, was float32"),
    "another weak type": (weakened, "result['mean']: is weakly typed, was strongly"),
    "a result missing": (dropped, "result['mean'] is missing"),
}


@pytest.fixture(scope="module")
def compare_with_block(tmp_path_factory):
    """Compare the calls of a function with those of `block`, which is recorded once a program."""

    def recorded(program, function):
        folder = str(tmp_path_factory.mktemp("record"))
        log = event_log.EventLog(folder)
        PROGRAMS[program](record.recorded(log, NAME, function))
        jax.effects_barrier()
        log.close()
        return folder

    before = functools.cache(lambda program: recorded(program, block))
    return lambda program, after: run_comparison.compare_runs(
        before(program), recorded(program, after)
    )[NAME]


@pytest.mark.parametrize("right", RIGHT)
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_right_migration(program, right, compare_with_block):
    found = compare_with_block(program, RIGHT[right])
    assert found["verdict"] == "equal", found
    assert found["calls"] >= 1
    assert found["max_rel"] < 1e-3
    assert found["failure"] is None
    if right == "checkpoint" and program in ("direct", "jit", "vmap"):
        assert found["max_abs"] < 1e-6
        assert found["detail"] == ""


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_wrong_migration(program, wrong, compare_with_block):
    function, detail = WRONG[wrong]
    found = compare_with_block(program, function)
    assert found["verdict"] == "differs", found
    assert detail in found["detail"]


def test_detects_swapped_entries(sides):
    # Most sums are the same, and so are the first and the last entry.
    x = jnp.asarray(np.random.default_rng(0).normal(size=(40, 40)))
    found = sides.run(
        lambda unit: unit(x),
        lambda x: x * 1.0,
        lambda x: x.at[3, 4].set(x[5, 6]).at[5, 6].set(x[3, 4]),
    )
    assert found["verdict"] in ("equal", "differs")
    assert (
        sides.run(lambda unit: unit(x), lambda x: x * 1.0, lambda x: x.T, "t")["verdict"]
        == "differs"
    )


def test_a_call_that_is_edited(sides):
    """A keyword by position, a default written out, a Python number traced."""
    calls = {
        "before": lambda unit: [unit(X, flag=False), unit(X), unit(X, scale=2.5)],
        "after": lambda unit: [unit(X, 2.0, False), unit(X, 2.0, True), jax.jit(unit)(X, 2.5)],
    }

    def program(unit):
        calls[order.pop()](unit)

    order = ["after", "before"]
    found = sides.run(
        program,
        lambda x, scale=2.0, flag=True: x * scale,
        lambda x, scale=2.0, flag=True: x * scale,
    )
    assert found["verdict"] == "equal", found
    assert found["calls"] == 3 or "2 of 3" in found["detail"]


def fails(x, scale=2.0, flag=True):
    if (x > 0).any():
        return block(x, scale, flag)
    return block(x, scale, flag)


@pytest.mark.parametrize("program", ["jit", "grad of jit", "scan"])
def test_failures_only_when_traced(program, sides):
    def tried(unit):
        run = PROGRAMS.get(program) or (lambda unit: jax.grad(jax.jit(lambda x: total(unit(x))))(X))
        with contextlib.suppress(jax.errors.ConcretizationTypeError):
            run(unit)

    found = sides.run(tried, block, fails)
    assert found["verdict"] == "fails-after"
    assert found["failure"]["type"] == "jax.errors.TracerBoolConversionError"
    assert "Attempted boolean conversion" in found["detail"]


def raising(kind):
    def function(x):
        raise kind("about 1 thing")

    return function


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        (raising(ValueError), raising(ValueError), "fails-before"),
        (raising(ValueError), raising(TypeError), "differs"),
        (raising(ValueError), lambda x: x, "fails-before"),
        (lambda x: x, raising(ValueError), "fails-after"),
    ],
)
def test_errors(before, after, verdict, sides):
    def program(unit):
        with contextlib.suppress(ValueError, TypeError):
            unit(3)

    assert sides.run(program, before, after)["verdict"] == verdict


def test_a_failure_in_both_and_a_drifted_call(sides):
    """An error that both runs catch is no failure of a later call of the same shapes."""

    def program(unit):
        try:
            jax.jit(unit)(X)
        except jax.errors.ConcretizationTypeError:
            unit(X + drift.pop())

    drift = [0.5, 0.0]  # the inputs of the two runs are not the same
    found = sides.run(program, fails, fails)
    assert found["verdict"] == "fails-before"


def test_random_inputs_are_no_difference(sides):
    generator = np.random.default_rng(0)

    def program(unit):
        unit(X)
        for _ in range(3):
            unit(generator.normal(size=(3, 4)))

    found = sides.run(program, block, block)
    assert found["verdict"] == "equal"
    assert found["calls"] == 1
    assert found["detail"] == (
        "3 of 4 calls of the old code and 3 of 4 of the new had inputs that the other run lacks"
    )


def test_random_results_are_no_difference(sides):
    generator = np.random.default_rng(0)
    found = sides.run(
        lambda unit: [unit(4) for _ in range(3)],
        lambda n: generator.normal(size=n),
        lambda n: generator.normal(size=n),
    )
    assert found["verdict"] == "not-exercised"
    assert "old code itself gives different results" in found["detail"]


def test_one_run_alone(sides):
    record.recorded(sides.logs["before"], "old", abs)(1)
    record.recorded(sides.logs["after"], "new", abs)(1)
    found = sides.compared()
    assert {name: (each["verdict"], each["detail"]) for name, each in found.items()} == {
        "old": ("not-exercised", "the command reaches it only in the old code"),
        "new": ("not-exercised", "the command reaches it only in the new code"),
    }
    assert run_comparison.compare_runs(str(sides.folder / "none"), str(sides.folder / "none")) == {}


def test_truncated_recordings(sides, monkeypatch):
    """A run that is cut off earlier than the other is no difference."""
    monkeypatch.setattr(event_log, "MOST_EVENTS", 5)
    order = [range(3, 12), range(8)]
    found = sides.run(lambda unit: [unit(n) for n in order.pop()], lambda n: n + 1, lambda n: n + 1)
    assert found["verdict"] == "equal"
    assert found["detail"] == "not all calls were recorded"


def test_a_process_that_was_killed(sides):
    sides.run(lambda unit: [unit(1), unit(2)], abs, abs)
    for side in ("before", "after"):
        (file,) = (sides.folder / side).glob("*/events.jsonl")
        file.write_text(file.read_text()[:-30])
    assert sides.compared()[NAME]["verdict"] == "equal"


def test_low_precision_widens_the_tolerance(sides):
    def coarse(x):
        return x * (1 + 4e-3)

    def program(unit):
        unit(X)

    assert sides.run(program, lambda x: x, coarse)["verdict"] == "differs"
    sides.run(program, lambda x: x.astype(jnp.bfloat16), lambda x: x.astype(jnp.bfloat16), "other")
    assert sides.compared()[NAME]["verdict"] == "equal"


def test_tolerances_of_the_user(sides):
    sides.run(lambda unit: unit(X), lambda x: x, lambda x: x * 1.01)
    assert sides.compared()[NAME]["verdict"] == "differs"
    assert sides.compared({"float32": 0.01})[NAME]["verdict"] == "equal"
    assert sides.compared({"*": 1000.0})[NAME]["verdict"] == "equal"


def test_integers_are_exact(sides):
    found = sides.run(lambda unit: unit(X), lambda x: x.argmax(), lambda x: x.argmin())
    assert found["verdict"] == "differs"
    assert found["detail"] == "the result: an entry is 0, was 11"


def test_cancelling_terms(sides):
    x = jnp.array([1.0, 1e-8, -1.0])
    found = sides.run(lambda unit: unit(x), lambda x: x[0] + x[1] + x[2], lambda x: x.at[1].get())
    assert found["verdict"] == "equal"


def test_specials(sides):
    y = jnp.array([jnp.nan, 1.0, jnp.inf])
    assert sides.run(lambda unit: unit(y), lambda y: y, lambda y: y)["verdict"] == "equal"
    found = sides.run(lambda unit: unit(y), lambda y: y, lambda y: jnp.nan_to_num(y), "other")
    assert "finite" in found["detail"]


def test_recorded_cases(sides):
    sides.run(lambda unit: [unit(X, flag=False), unit(X)], block, block)
    record.recorded(sides.logs["before"], "held", lambda lock: 1)(threading.Lock())
    sides.compared()
    found = run_comparison.recorded_cases(str(sides.folder / "before"))
    assert [case["about"] for case in found[NAME]["cases"]] == ["flag=False", "flag=True"]
    assert found[NAME]["detail"] == ""
    assert found["held"]["cases"] == []
    assert found["held"]["detail"].startswith("the inputs cannot be pickled: ")
    json.dumps(found)
