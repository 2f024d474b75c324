"""The functions inside pytest fixtures, which are objects that cannot be called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def function_of(value: Any) -> Any:
    """Return the function of a pytest fixture; None for anything else."""
    place = _place(value)
    return None if place is None else getattr(*place)


def replace_function(value: Any, change: Callable[[Any], Any]) -> bool:
    """Put another function into a fixture. Returns whether it is one."""
    place = _place(value)
    if place is None:
        return False
    holder, name = place
    setattr(holder, name, change(getattr(holder, name)))
    return True


def _place(value: Any) -> tuple[Any, str] | None:
    """Return the object that holds the function of a fixture, and the attribute name."""
    kind = type(value)
    if kind.__module__ == "_pytest.fixtures" and kind.__name__ == "FixtureFunctionDefinition":
        return value, "_fixture_function"
    if hasattr(value, "_pytestfixturefunction"):  # before pytest 8.4 it is a function that fails
        holder = getattr(value, "__pytest_wrapped__", None)
        return (holder, "obj") if hasattr(holder, "obj") else None
    return None
