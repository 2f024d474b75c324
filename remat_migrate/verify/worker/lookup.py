"""Attributes of values of the user's program, whatever their `__getattr__` raises.

A mapping with `__getattr__ = dict.__getitem__` raises KeyError for an attribute that it lacks,
which `getattr` with a default, `hasattr`, and `inspect.unwrap` do not expect.
"""

from __future__ import annotations

import inspect
from typing import Any


def attribute(value: Any, name: str, default: Any = None) -> Any:
    """Return an attribute, or the default for a value that lacks it."""
    try:
        return getattr(value, name, default)
    except Exception:
        if not hasattr(type(value), "__getattr__"):
            raise  # a property that fails
        return default


def has(value: Any, name: str) -> bool:
    """Return whether a value has an attribute."""
    return attribute(value, name, _ABSENT) is not _ABSENT


def unwrapped(value: Any) -> Any:
    """Return what decorators that set `__wrapped__` were applied to."""
    return inspect.unwrap(value) if has(value, "__wrapped__") else value


_ABSENT = object()


def fits(function: Any, args: Any, kwargs: Any) -> bool:
    """Return whether a function's parameters take some arguments."""
    try:
        inspect.signature(function).bind(*args, **kwargs)
    except TypeError:
        return False
    except ValueError:  # it has no signature
        pass
    return True


def named_arguments(function: Any, args: Any, kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return arguments by the names of their parameters, with defaults."""
    try:
        bound = inspect.signature(function).bind(*args, **kwargs)
    except (TypeError, ValueError, NameError):  # it has no signature, or the call raises it again
        return {**{"argument %d" % i: value for i, value in enumerate(args)}, **kwargs}
    bound.apply_defaults()
    return dict(bound.arguments)
