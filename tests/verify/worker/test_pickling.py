"""A value that is saved and loaded again is the same, bit by bit and type by type."""

from __future__ import annotations

import dataclasses
import enum
import functools
import math
import re
import sys
import threading
import types
import typing

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from worker_package import load_worker

pickling = load_worker("transfer.pickling")


@pytest.fixture
def through(tmp_path):
    """Save and load a value."""

    def trip(value):
        pickling.save(value, tmp_path / "value.pkl")
        return pickling.load(tmp_path / "value.pkl")

    return trip


class Mode(enum.Enum):
    TRAIN = "train"
    EVAL = "eval"


class Colour(enum.IntFlag):
    RED = 1
    BLUE = 2


class Pair(typing.NamedTuple):
    left: typing.Any
    right: typing.Any = 0


@dataclasses.dataclass(frozen=True)
class Settings:
    width: int
    sizes: tuple = ()


class Bag:
    def __init__(self, **things):
        self.__dict__.update(things)

    @staticmethod
    def static(x):
        return x


def scaled(factor):
    def inner(x, plus=1):
        return factor * x + plus

    return inner


module_level_lambda = lambda x: x + 7  # noqa: E731


def decorate(function):
    @functools.wraps(function)
    def wrapper(*args):
        return function(*args)

    return wrapper


@decorate
def decorated(x):
    return x


PLAIN = [
    (1, (2, [3]), {1: "a"}),
    Mode.EVAL,
    Colour.RED | Colour.BLUE,
    Pair(1, [2]),
    Settings(3, sizes=(1,)),
    re.compile("a+", re.IGNORECASE),
    jnp.dtype("bfloat16"),
    jax.tree_util.tree_structure({"a": (1, None), "b": [2]}),
]


@pytest.mark.parametrize("value", PLAIN, ids=lambda value: type(value).__name__)
def test_plain_values(through, value):
    back = through({"x": value, "y": (value,)})
    assert back["x"] == value
    assert repr(back["y"][0]) == repr(value)
    assert type(back["x"]) is type(value)


NAMED = [
    len,
    Bag,
    Bag.static,
    Mode,
    scaled,
    decorated,
    module_level_lambda,
    np.add,
    np.linalg.norm,
    jnp.sin,
    jnp.bfloat16,
    jax.checkpoint_policies.everything_saveable,
    jax,
    types.FunctionType,
]


@pytest.mark.parametrize("value", NAMED, ids=lambda value: value.__name__)
def test_named_objects(through, value):
    assert through([value])[0] is value


def test_wrapped_functions(through):
    """In another process the decorator may leave the function unchanged."""
    assert through(decorated.__wrapped__) is decorated.__wrapped__
    assert through(decorated) is decorated


DTYPES = ["bool", "int8", "uint32", "float64", "complex64", "bfloat16", "float8_e5m2", "int4"]


def as_bits(array):
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def random_array(dtype, shape=(3, 5)):
    kind = jnp.dtype(dtype)
    size = math.prod(shape)
    if kind == np.bool_:
        return np.arange(size).reshape(shape) % 2 == 0
    if "4" in kind.name and kind.itemsize == 1 and "float" not in kind.name:
        return (np.arange(size) % 7).reshape(shape).astype(kind)
    raw = np.random.default_rng(0).integers(0, 256, size * kind.itemsize, dtype=np.uint8)
    return raw.view(kind).reshape(shape)


def same_array(back, array):
    assert type(back) is type(array)
    assert back.dtype == array.dtype
    assert back.shape == array.shape
    np.testing.assert_array_equal(as_bits(back), as_bits(array))


@pytest.mark.parametrize("dtype", DTYPES)
def test_jax_arrays(through, dtype):
    with jax.enable_x64(True):
        array = jnp.asarray(random_array(dtype))
    assert array.dtype == jnp.dtype(dtype)
    back = through(array)
    same_array(back, array)
    assert back.weak_type is array.weak_type is False


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 5), (), (0, 2)], ids=["matrix", "scalar", "empty"])
def test_shapes_and_types_alone(tmp_path, dtype, shape):
    array = np.asarray(random_array(dtype, shape))
    with jax.enable_x64(True):
        values = [array, jnp.asarray(array), array]
    pickling.save(values, tmp_path / "value.pkl", positive=())
    back = pickling.load(tmp_path / "value.pkl")
    assert [type(one) for one in back] == [np.ndarray, type(values[1]), np.ndarray]
    assert {(one.dtype, one.shape) for one in back} == {(array.dtype, shape)}
    assert back[0] is back[2]
    numbers = np.asarray(back[0]).astype(complex)
    assert (abs(numbers) <= 1).all()
    if array.size > 1:
        assert len(set(numbers.ravel().tolist())) > 1
        assert (as_bits(back[0]) != as_bits(array)).any()


def test_what_is_no_number_is_kept(tmp_path):
    generator = np.random.RandomState(3)
    values = [np.array(["a"]), np.float32(7.5), generator, np.zeros(3, jax.dtypes.float0)]
    pickling.save(values, tmp_path / "value.pkl", positive=())
    text, number, drawing, zeros = pickling.load(tmp_path / "value.pkl")
    assert (text.tolist(), number, zeros.dtype) == (["a"], 7.5, jax.dtypes.float0)
    assert drawing.rand() == generator.rand()


def test_keys(through):
    keys = [jax.random.key(7), jax.random.split(jax.random.key(1))]
    keys.append(jax.random.key(7, impl="rbg"))
    for key in keys:
        back = through(key)
        assert back.dtype == key.dtype
        np.testing.assert_array_equal(jax.random.key_data(back), jax.random.key_data(key))
    same_array(through(jax.random.PRNGKey(0)), jax.random.PRNGKey(0))


def test_abstract_values(through):
    for value in (
        jax.ShapeDtypeStruct((2, 3), jnp.bfloat16),
        jax.ShapeDtypeStruct((), jnp.float32, weak_type=True),
    ):
        back = through(value)
        assert back == value
        assert back.weak_type == value.weak_type


class Moody:
    def __init__(self):
        self.part = self

    @property
    def __class__(self):
        raise OSError("not today")


def test_objects_whose_own_code_raises(through):
    with pytest.raises(pickling.CannotSave, match="not today"):
        through(Moody())


def generate():
    yield 1


@pytest.mark.parametrize(
    "value",
    [
        {"args": (1, {"file": sys.__stderr__})},
        {"args": (), "kwargs": {"rows": generate()}},
        [Bag(inner=[threading.RLock()])],
        jax.jit(lambda x: x),
        jax.vmap(scaled),
        types.new_class("Unnamed"),
    ],
)
def test_refused_values(tmp_path, value):
    with pytest.raises(pickling.CannotSave):
        pickling.save(value, tmp_path / "saved.pkl")
    assert not (tmp_path / "saved.pkl").exists()


def test_traced_values(tmp_path):
    @jax.jit
    def traced(x):
        with pytest.raises(pickling.CannotSave, match="a value that JAX is tracing"):
            pickling.save([x], tmp_path / "saved.pkl")
        return x

    traced(1.0)


def test_objects_defined_in_the_script(tmp_path, monkeypatch):
    """What a script defines is pickled under the module name that other processes import."""
    script = types.ModuleType("__main__")
    exec("class Thing:\n    pass\ndef work(x):\n    return x\n", script.__dict__)
    monkeypatch.setitem(sys.modules, "__main__", script)
    with pytest.raises(pickling.CannotSave, match="the script that is being run"):
        pickling.save(script.Thing(), tmp_path / "saved.pkl")
    pickling.save([script.Thing(), script.work], tmp_path / "saved.pkl", main="trainer")
    with pytest.raises(pickling.CannotLoad, match="trainer"):
        pickling.load(tmp_path / "saved.pkl")
    monkeypatch.setitem(sys.modules, "trainer", script)
    thing, work = pickling.load(tmp_path / "saved.pkl")
    assert type(thing) is script.Thing
    assert work is script.work


def test_missing_names(tmp_path, monkeypatch):
    module = types.ModuleType("passing")
    exec("def gone():\n    pass\n", module.__dict__)
    monkeypatch.setitem(sys.modules, "passing", module)
    pickling.save(module.gone, tmp_path / "saved.pkl")
    del module.gone
    with pytest.raises(pickling.CannotLoad, match=r"cannot find passing\.gone: AttributeError"):
        pickling.load(tmp_path / "saved.pkl")


def test_a_migrated_body_is_the_function_that_is_loaded(tmp_path, monkeypatch):
    """A function defined in another one has the code of this process, not the saved code."""
    text = "def make(k):\n    def inner(x):\n        return {}\n    return inner\n"
    module = types.ModuleType("edited")
    exec(text.format("x * k"), module.__dict__)
    monkeypatch.setitem(sys.modules, "edited", module)
    pickling.save(module.make(3), tmp_path / "saved.pkl")
    exec(text.format("(x + 0) * k + abs(0)"), module.__dict__)
    assert pickling.load(tmp_path / "saved.pkl")(5) == 15
    exec("def make(k):\n    return None\n", module.__dict__)
    with pytest.raises(pickling.CannotLoad, match="inner: 0 functions are called inner, not 1"):
        pickling.load(tmp_path / "saved.pkl")
