"""Attributes of values of the user's program, whatever their `__getattr__` raises.

A mapping with `__getattr__ = dict.__getitem__` raises KeyError for an attribute that it lacks,
which `getattr` with a default, `hasattr`, and `inspect.unwrap` do not expect.
"""

from __future__ import annotations

import inspect
from types import CodeType
from typing import Any, Dict, FrozenSet, Optional


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


def code_names(code: CodeType) -> FrozenSet[str]:
    """Return the names of variables and attributes in some code, and in the functions inside."""
    inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return frozenset(code.co_names).union(*map(code_names, inner))


VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def signature(function: Any) -> Optional[inspect.Signature]:
    """Return the signature of a callable, or None if Python cannot tell.

    That of a class is its constructor's, also if its metaclass passes any arguments on to it.
    """
    try:
        made = inspect.signature(function)
        passed_on = isinstance(function, type) and all(
            parameter.kind in VARIADIC for parameter in made.parameters.values()
        )
        if passed_on and made.parameters and type(function).__call__ is not type.__call__:
            own = inspect.signature(function.__init__)
            return own.replace(parameters=list(own.parameters.values())[1:])
    except (TypeError, ValueError, NameError):
        return None
    return made


def bound(function: Any, args: Any, kwargs: Any) -> Optional[inspect.BoundArguments]:
    """Return arguments by parameter; None if there is no signature, or it does not take them."""
    made = signature(function)
    try:
        return made.bind(*args, **kwargs) if made else None
    except TypeError:
        return None


def fits(function: Any, args: Any, kwargs: Any) -> bool:
    """Return whether a function's parameters take some arguments."""
    return signature(function) is None or bound(function, args, kwargs) is not None


def named_arguments(function: Any, args: Any, kwargs: Dict[str, Any]) -> Dict[str, Any]:
    """Return arguments by the names of their parameters, with defaults."""
    found = bound(function, args, kwargs)
    if found is None:  # the call raises it again
        return {**{"argument %d" % i: value for i, value in enumerate(args)}, **kwargs}
    found.apply_defaults()
    return dict(found.arguments)
