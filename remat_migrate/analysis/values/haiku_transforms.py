"""What `haiku.transform(f)` returns: `init` and `apply`, which call `f` with the arguments after
the state.

Such a pair is an instance of the wrapped function, as a Flax module is an instance of its class:
both have an `apply` that runs something else with some of its arguments.
"""

from __future__ import annotations

import ast

from ..names.module import Module
from .values import NOTHING, Bound, External, Instance, Value, Values, Wrapped

# How many arguments `apply` takes before those of the function: parameters, state, random key.
_LEADING = {"haiku.transform": 2, "haiku.transform_with_state": 3}
_WITHOUT_KEY = "haiku.without_apply_rng"
_METHODS = ("init", "apply")
# Methods of a model that call it.
APPLY = frozenset({"apply", "init", "init_with_output", "lazy_init"})


def transformed(name: str, module: Module, node: ast.expr, inner: Values) -> Values:
    """Return what a Haiku transform makes of its first argument; nothing for other functions."""
    if name in _LEADING:
        return frozenset(Instance(Wrapped(name, value, module, node)) for value in inner)
    if name == _WITHOUT_KEY:
        return frozenset(
            Instance(Wrapped(name, value.cls, module, node))
            for value in inner
            if isinstance(value, Instance) and isinstance(value.cls, Wrapped)
        )
    return NOTHING


def makes_pair(name: str) -> bool:
    """Return whether a function returns such a pair."""
    return name in _LEADING or name == _WITHOUT_KEY


def is_transformed(value: Value) -> bool:
    """Return whether a value is such a pair."""
    match value:
        case Instance(cls=Wrapped(how=how)):
            return makes_pair(how)
    return False


def unpacked(value: Value, step: int) -> Values:
    """Return what `init, apply = haiku.transform(f)` binds to a name."""
    if not is_transformed(value) or step not in (0, 1):
        return NOTHING
    return frozenset((Bound(External(f"flax.linen.Module.{_METHODS[step]}"), value),))


def leading_arguments(method: str, model: Value) -> int:
    """Return how many arguments `apply` or `init` of a model takes before those it passes on."""
    if method != "apply" or not is_transformed(model):
        return 1  # the variables, or the random key
    assert isinstance(model, Instance)
    count, wrapped = 0, model.cls
    while isinstance(wrapped, Wrapped):
        count += -1 if wrapped.how == _WITHOUT_KEY else _LEADING.get(wrapped.how, 0)
        wrapped = wrapped.func
    return count
