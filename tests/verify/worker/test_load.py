"""Names to the objects that they stand for."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from worker_package import load_worker

load = load_worker("load")

MODULE = """\
import functools
import numpy as np

RATE = 0.5
TABLE = np.arange(3)
_hidden = 4
NAME = "text"


def plain(x):
    return x + 1


partial = functools.partial(plain, 3)
VALUE = [1, 2]


def decorated(function):
    @functools.wraps(function)
    def wrapper(*args):
        return 10 * function(*args)
    return wrapper


@decorated
def wrapped(x):
    return x


class Net:
    scale = 2.0

    def method(self, x):
        return self.scale * x

    @staticmethod
    def static(x):
        return x - 1

    @classmethod
    def made(cls, x):
        return cls.__name__, x

    @property
    def double(self):
        return 2 * self.scale

    class Inner:
        def method(self):
            return 5
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The name of a module that can be imported."""
    (tmp_path / "loaded_by_name.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    yield "loaded_by_name"
    sys.modules.pop("loaded_by_name", None)


def unit(module: str, qualname: str) -> Any:
    return load.load_unit(module, "", qualname)


def test_functions(module: str) -> None:
    assert unit(module, "plain").function(1) == 2
    assert unit(module, "wrapped").function(1) == 10
    assert unit(module, "partial").function() == 4
    for name in ("plain", "wrapped", "partial"):
        assert unit(module, name).owner is None


def test_methods(module: str) -> None:
    found = unit(module, "Net.method")
    assert found.owner.__name__ == "Net"
    assert found.function(found.owner(), 3) == 6.0
    found = unit(module, "Net.double")
    assert found.function(found.owner()) == 4.0
    found = unit(module, "Net.static")
    assert (found.function(3), found.owner) == (2, None)
    found = unit(module, "Net.made")
    assert (found.function(3), found.owner) == (("Net", 3), None)
    found = unit(module, "Net.Inner.method")
    assert (found.function(found.owner()), found.owner.__qualname__) == (5, "Net.Inner")


def test_values(module: str) -> None:
    assert unit(module, "VALUE").function() == [1, 2]
    values = unit(module, "").function()
    assert list(values) == ["RATE", "TABLE"]
    assert values["RATE"] == 0.5
    np.testing.assert_array_equal(values["TABLE"], [0, 1, 2])


@pytest.mark.parametrize(
    ("qualname", "words"),
    [
        ("gone", "loaded_by_name has no gone after it is imported"),
        ("Net.gone", "has no Net.gone"),
        ("plain.inner", "has no plain.inner"),
        ("Net", "Net is a class"),
        ("Net.scale", "Net.scale is not callable: it is a float"),
    ],
)
def test_reports_objects_that_are_not_callable(module: str, qualname: str, words: str) -> None:
    with pytest.raises(load.NotFound) as caught:
        unit(module, qualname)
    assert words in str(caught.value)


def test_file_name_that_is_not_a_module_name(tmp_path: Path) -> None:
    file = tmp_path / "01-train.py"
    file.write_text("def run():\n    return 7\n")
    found = load.load_unit(None, str(file), "run")
    assert found.function() == 7
    assert load.load_unit(None, str(file), "run").function is found.function
    del sys.modules[found.module.__name__]


def test_failing_module_is_imported_again(tmp_path: Path) -> None:
    file = tmp_path / "02-train.py"
    file.write_text("raise SystemExit(3)\n")
    for _ in range(2):
        with pytest.raises(SystemExit):
            load.load_module(None, str(file))
