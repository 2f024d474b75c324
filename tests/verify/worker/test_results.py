"""What a unit returns, compared where JAX alone would see one opaque leaf."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from worker_package import load_worker

results = load_worker("comparison.results")
evaluate = load_worker("comparison.evaluate")
unit_cases = load_worker("unit_cases")
load = load_worker("load")
shim = load_worker("shim")
compare = load_worker("comparison.compare")


def verdict(before: Any, after: Any, tmp_path: Path, *args: Any, then: Any = None) -> Any:
    """The comparison of two functions for one case."""
    for name, unit in (("before", before), ("after", after)):
        case = {"args": args, "kwargs": {}, "context": None}
        if then is not None:
            case["then"] = then
        evaluate.evaluate(results.run_whole(unit), case, str(tmp_path / name))
    return compare.compare(str(tmp_path / "before"), str(tmp_path / "after"))


@dataclasses.dataclass
class Output:
    """Not registered with JAX."""

    loss: Any
    name: str = "loss"


class Net:
    """Keeps what it computes."""

    def __init__(self) -> None:
        self.last: Any = None

    def remember(self, x: Any, scale: float) -> None:
        self.last = {"x": [x * scale]}


def returns_record(scale: float) -> Callable[[Any], Any]:
    return lambda x: {"out": Output(x * scale)}


def returns_layer(scale: float) -> Callable[[Any], Any]:
    def layer(y: Any) -> Any:
        return y * scale

    return lambda x: {"layer": layer, "x": x}


def yields(scale: float) -> Callable[[Any], Any]:
    def generate(x: Any) -> Iterator[Any]:
        yield x
        yield x * scale

    return generate


def changes_object(scale: float) -> Callable[[Any], Any]:
    def change(x: Any) -> Any:
        net = Net()
        net.remember(x, scale)
        return net

    return change


@pytest.mark.parametrize("make", [returns_record, yields, changes_object])
def test_values_inside_objects_and_generators(make: Callable[[float], Any], tmp_path: Path) -> None:
    x = jnp.arange(3.0)
    same = verdict(make(2.0), make(2.0), tmp_path / "same", x)
    assert same.verdict == "equal"
    wrong = verdict(make(2.0), make(2.5), tmp_path / "wrong", x)
    assert wrong.verdict == "differs"
    assert wrong.max_abs == pytest.approx(1.0)


def test_rounding_in_a_record_is_no_difference(tmp_path: Path) -> None:
    def nearly(x: Any) -> Any:
        return {"out": Output(x * np.float32(2.0000002))}

    assert verdict(returns_record(2.0), nearly, tmp_path, jnp.arange(3.0) / 3).verdict == "equal"


def test_a_method_that_returns_nothing(tmp_path: Path) -> None:
    def wrong(self: Net, x: Any, scale: float) -> None:
        self.last = {"x": [x * scale + 1]}

    x = jnp.arange(3.0)
    net = Net()
    assert verdict(Net.remember, Net.remember, tmp_path / "same", net, x, 2.0).verdict == "equal"
    assert verdict(Net.remember, wrong, tmp_path / "wrong", net, x, 2.0).verdict == "differs"


def test_functions_are_compared_by_calling_them(tmp_path: Path) -> None:
    x = jnp.arange(3.0)
    then = {"of": "['layer']", "args": (x,), "kwargs": {}}
    right, wrong = returns_layer(2.0), returns_layer(2.5)
    assert verdict(right, right, tmp_path / "same", x, then=then).verdict == "equal"
    assert verdict(right, wrong, tmp_path / "wrong", x, then=then).verdict == "differs"


def test_functions_that_nothing_calls_prove_nothing(tmp_path: Path) -> None:
    def first() -> Any:
        return lambda x: x

    def second() -> Any:
        return lambda x: -x

    assert verdict(first, second, tmp_path).verdict == "not-exercised"


def test_names_of_functions_are_no_difference(tmp_path: Path) -> None:
    def named(x: Any) -> Any:
        def inner(y: Any) -> Any:
            return y

        return {"f": inner, "partial": functools.partial(inner, 1), "x": x}

    def unnamed(x: Any) -> Any:
        return {"f": lambda y: y, "partial": functools.partial(lambda y: y, 1), "x": x}

    assert verdict(named, unnamed, tmp_path, jnp.ones(2)).verdict == "equal"
    number = verdict(named, lambda x: {"f": x, "partial": x, "x": x}, tmp_path, jnp.ones(2))
    assert number.detail == "result['f']: is a function on only one side"


def test_an_object_that_contains_itself() -> None:
    net = Net()
    net.last = net
    assert results.unfolded(net) == {"Net": {"last": None}}


def test_cases_of_what_a_unit_returns() -> None:
    def factory(depth: int) -> Callable[..., Any]:
        def layer(x: Any, train: bool) -> Any:
            return jnp.sin(x) * depth if train else x

        return layer

    cases = unit_cases.all_cases(load.Unit(factory, None, None), []).cases
    called = {case["then"]["args"][1] for about, case in cases if "its result called" in about}
    assert called == {True, False}


def test_wrapper_may_drop_the_removed_option(tmp_path: Path) -> None:
    def old(f: Callable[..., Any], concrete: bool = False, scale: float = 1.0) -> Any:
        return f(scale)

    def new(f: Callable[..., Any], scale: float = 1.0) -> Any:
        return f(scale)

    case = unit_cases._by_name(old, {"args": (jnp.sin, True, 2.0), "kwargs": {}, "context": None})
    for name, unit in (("before", old), ("after", new)):
        evaluate.evaluate(unit, case, str(tmp_path / name))
    assert compare.compare(str(tmp_path / "before"), str(tmp_path / "after")).verdict == "equal"


def test_functions_that_make_checkpoints_are_not_units(tmp_path: Path) -> None:
    file = tmp_path / "aliases.py"
    file.write_text(
        "import functools\n"
        "OPTIONS = dict(concrete=True, policy=print)\n"
        "def make(checkpoint):\n"
        "  global alias\n"
        "  alias = functools.partial(checkpoint, concrete=True)\n"
    )
    load.load_module(None, str(file)).make(shim.plain("fun"))
    for name in ("alias", "OPTIONS"):
        with pytest.raises(load.NotFound, match="are compared"):
            load.load_unit(None, str(file), name)


def test_constructors_make_objects(tmp_path: Path) -> None:
    file = tmp_path / "net.py"
    file.write_text("class Net:\n  def __init__(self, w, f=abs):\n    self.w, self.f = w, f\n")
    unit = load.load_unit(None, str(file), "Net.__init__")
    assert unit.owner is None
    assert list(inspect.signature(unit.function).parameters) == ["w", "f"]
    assert results.unfolded(unit.function(2.0)) == {"Net": {"w": 2.0, "f": abs}}


def test_signature_is_kept() -> None:
    whole = results.run_whole(yields(1.0))
    assert list(inspect.signature(whole).parameters) == ["x"]
