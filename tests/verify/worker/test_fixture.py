"""Pytest's fixtures as units: found, and recorded inside pytest."""

from __future__ import annotations

from typing import Any

import pytest
from worker_package import load_worker

fixture = load_worker("recording.pytest_fixtures")
load = load_worker("load")


@pytest.fixture
def three() -> int:
    return 3


class BeforePytest84:
    """As pytest up to 8.3 made a fixture: a function that fails, with the real one beside it."""

    class Holder:
        def __init__(self, obj: Any) -> None:
            self.obj = obj

    def __init__(self, function: Any) -> None:
        self._pytestfixturefunction = object()
        self.__pytest_wrapped__ = self.Holder(function)

    def __call__(self) -> None:
        pytest.fail("called directly")


def made(kind: str) -> Any:
    def function() -> int:
        return 3

    return pytest.fixture(function) if kind == "today" else BeforePytest84(function)


@pytest.mark.parametrize("kind", ["today", "before 8.4"])
def test_function_is_found_and_replaced(kind: str) -> None:
    value = made(kind)
    assert fixture.function_of(value)() == 3
    assert fixture.replace_function(value, lambda function: lambda: function() + 1)
    assert fixture.function_of(value)() == 4


@pytest.mark.parametrize("value", [print, 3, None, BeforePytest84])
def test_other_objects_are_not_fixtures(value: Any) -> None:
    assert fixture.function_of(value) is None
    assert not fixture.replace_function(value, lambda function: None)


def test_unit_is_the_function() -> None:
    unit = load.load_unit(None, __file__, "three")
    assert unit.is_fixture
    assert unit.function() == 3


def test_replaced_function_is_the_one_that_pytest_runs(pytester_project: Any) -> None:
    assert pytester_project == ["replaced"]


@pytest.fixture
def pytester_project(request: pytest.FixtureRequest) -> list[str]:
    """What a pytest fixture gives whose function was replaced before pytest looked at it."""
    return [request.getfixturevalue("answer")]


@pytest.fixture
def answer() -> str:
    return "original"


assert fixture.replace_function(answer, lambda function: lambda: "replaced")
