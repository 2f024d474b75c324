"""Cases that find faults: values that vary together, other sizes, stand-ins that use everything."""

import dataclasses
import itertools
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from remat_migrate.verify.worker.inputs import code_usage
from remat_migrate.verify.worker.inputs.make import make_cases
from remat_migrate.verify.worker.inputs.stand_in import Function, Record

WINDOW = 16


@dataclasses.dataclass(frozen=True)
class Config:
    kind: str = "relu"
    dropout: float = 0.0
    scale: float = 2.0
    norm: bool = True


def block(config: Config, x, train: bool):
    if config.kind == "relu":
        x = jax.nn.relu(x)
    x = x * config.scale
    if train and config.dropout > 0.0:
        x = x * (1 - config.dropout)
    return x / (1 + jnp.abs(x).max()) if config.norm else x


def windowed(x):
    position = jnp.arange(x.shape[0])
    return jnp.where(jnp.abs(position[:, None] - position) < WINDOW, x @ x.T, 0.0)


def only_square(x, w):
    if x.shape != (2, 4, 8):
        raise ValueError("x must be of shape (2, 4, 8)")
    return x @ w


def even_length(x, width=5):
    """Works for any batch, but the other axes have to stay."""
    return jnp.reshape(x, (-1, 4, 8)) + width


def applied(fn, x, key, train: bool):
    return fn(x, key, train=train)


def cases(unit, **hints):
    made = make_cases(unit, **hints)
    assert made.cases, made.detail
    return made.cases


def sizes(unit):
    return [case["args"][0].shape for about, case in cases(unit) if about.startswith("other sizes")]


def test_each_value_and_each_pair():
    found = [
        (case["args"][0], case["args"][2]) for about, case in cases(block) if "config" in about
    ]
    values = [(config.kind == "relu", config.dropout > 0, config.norm, t) for config, t in found]
    for left, right in itertools.combinations(range(4), 2):
        assert {(value[left], value[right]) for value in values} == {
            (True, True),
            (True, False),
            (False, True),
            (False, False),
        }
    assert {config.scale for config, _ in found} == {2.0, 1.25}


def test_sizes_exceed_the_constants():
    long, single = sizes(windowed)
    assert long[0] > WINDOW
    assert 1 in single or single == (4, 8)


def test_sizes_that_the_code_refuses():
    assert sizes(only_square) == []


def test_sizes_that_may_vary():
    assert {shape[0] == 1 for shape in sizes(even_length)} == {True, False}
    assert {shape[1:] for shape in sizes(even_length)} == {(4, 8)}


def test_magnitudes():
    by_about = dict(cases(only_square))
    assert np.abs(by_about["large values"]["args"][0]).max() > 10
    assert np.abs(by_about["small values"]["args"][0]).max() < 1e-2
    assert np.ptp(np.log(np.abs(by_about["values of all magnitudes"]["args"][0]))) > 5


def test_integers_of_the_code():
    assert code_usage.integers_read(windowed) >= {WINDOW}
    assert code_usage.integers_read(even_length) >= {4, 5, 8}


X = jnp.arange(8.0).reshape(2, 4)
KEY = jax.random.PRNGKey(0)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((X, True), (X, False)),
        ((X, 1), (X, 2)),
        ((X, 0.1), (X, 0.2)),
        ((X, "a"), (X, "b")),
        ((X, KEY), (X, jax.random.PRNGKey(1))),
        ((X, jnp.sin(X)), (jnp.sin(X), X)),
        (({"w": X, "b": X[0]}, X), ({"w": X[::-1], "b": X[0]}, X)),
        ((X, True, False), (X, False, True)),
        ((X, jnp.array([True, False])), (X, jnp.array([False, True]))),
        ((KEY, (2, 3)), (KEY, (2, 4))),
    ],
)
def test_stand_in_depends_on_everything(left, right):
    first, second = Function()(*left), Function()(*right)
    assert first.shape != second.shape or not np.allclose(first, second)


def test_stand_in_keeps_the_shape_and_has_gradients():
    function = Function()
    assert function({"w": X[0]}, X, True).shape == X.shape
    assert function(KEY, (3, 5), jnp.float32).shape == (3, 5)
    gradient = jax.grad(lambda w, x: function(w, x).sum(), (0, 1))(X[0], X)
    assert all((np.asarray(part) != 0).all() for part in gradient)


def test_stand_in_by_position_or_by_name():
    function = Function(2, ("train",))
    assert np.allclose(function(X, KEY, train=True), function(X, KEY, True))
    assert not np.allclose(function(X, KEY, train=True), function(X, KEY, evaluate=True))
    assert pickle.loads(pickle.dumps(function)) == function


def test_stand_in_is_made_for_a_parameter():
    fn, x, key, train = cases(applied)[0][1]["args"]
    assert fn == Function(2, ("train",))
    assert not np.allclose(fn(x, key, train=train), fn(x, key, train=not train))


def test_records_with_functions_can_be_traced():
    record = Record({"apply_fn": Function(), "params": {"w": X}, "step": 1, "rate": None})
    out = jax.jit(lambda r: r.apply_fn(r.params["w"], r.step))(record)
    assert out.shape == X.shape
