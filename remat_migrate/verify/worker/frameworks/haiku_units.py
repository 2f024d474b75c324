"""Run Haiku units inside a transform: their parameters are initialised, then applied."""

from __future__ import annotations

import copy
import re
import sys
from typing import Any, Callable, Dict, NamedTuple, Optional, Tuple

import jax

from .abstraction import PureCall, evaluated, mapped, parts_of

CONTEXT = {"library": "haiku"}


class Deferred(NamedTuple):
    """An object that can only be created inside a transform: its class and arguments."""

    cls: Any
    kwargs: Dict[str, Any]


def haiku() -> Any:
    """Return `haiku`, if the user's code has imported it."""
    module = sys.modules.get("haiku")
    return module if hasattr(module, "transform_with_state") else None


def is_module(value: Any) -> bool:
    """Return whether a value is an instance of a Haiku module."""
    library = haiku()
    return library is not None and isinstance(value, library.Module)


def is_deferred(cls: type) -> bool:
    """Return whether a class is one of Haiku modules."""
    library = haiku()
    return library is not None and issubclass(cls, library.Module)


def _frame() -> Any:
    """Return Haiku's frame for the transform being run, or None outside of one."""
    base = sys.modules.get("haiku._src.base")
    stack = getattr(base, "frame_stack", None)
    return base.current_frame() if base is not None and stack else None


def capture(args: Any, kwargs: Dict[str, Any]) -> Optional[Dict[str, Any]]:
    """Return the context of a unit that is called inside a transform, or None."""
    return CONTEXT if haiku() is not None and _frame() is not None else None


def _rebuilt(argument: Any) -> Any:
    """Return a copy of an object that is a pytree, such as a key that can be used once."""
    if isinstance(argument, (dict, list, tuple)):
        return argument
    return jax.tree_util.tree_map(lambda leaf: leaf, argument)


def _key(number: int) -> Any:
    return jax.random.PRNGKey(number)


def _is_made_inside(value: Any) -> bool:
    """Return whether a value is a module, or becomes one, which only a transform can hold."""
    return is_module(value) or type(value) is Deferred


class PureUnit:
    """A unit as functions of parameters, state, key, and arguments; see `pure_functions`."""

    def __init__(self, unit: Callable[..., Any], args: Tuple[Any, ...], kwargs: Dict[str, Any]):
        self.unit = unit
        self.wants_context = bool(parts_of((args, kwargs), _is_made_inside))
        self.init_call = PureCall("init", self.init, ({"rng": _key(0)}, *args), kwargs)

    def apply_call(self, traced: bool) -> PureCall:
        """Return what runs with initialised parameters; see `pure_functions.prepare`."""
        params, state = evaluated(*self.init_call[1:], shapes_do=traced)
        return self._applied(params, state, _key(1))

    def initialised(self) -> Any:
        """See `pure_functions.initialised`."""
        key, *args = self.init_call.args
        fresh = {name: _rebuilt(value) for name, value in self.init_call.kwargs.items()}
        params, state = self.init(key, *map(_rebuilt, args), **fresh)
        apply = self._applied(params, state, _key(0))
        return apply.function(*apply.args, **apply.kwargs)[0]

    def _applied(self, params: Any, state: Any, key: Any) -> PureCall:
        known = {"params": params, "state": state, "rng": key}
        args = (known, *self.init_call.args[1:])
        return PureCall("apply", self.apply, args, self.init_call.kwargs)

    def init(self, state: Dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        """Return the initialised parameters and state."""
        return self.transformed(args, kwargs).init(state["rng"])

    def apply(self, state: Dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        """Return the unit's result and the state after it."""
        known = [state[name] for name in ("params", "state", "rng")]
        return self.transformed(args, kwargs).apply(*known)

    def transformed(self, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Any:
        """Return the unit with all its arguments, inside a transform."""

        def body() -> Any:
            positional, named = _Moving(_frame().frame_id).moved((args, kwargs))
            return self.unit(*positional, **named)

        return haiku().transform_with_state(body)


class _Moving:
    """Copies modules into another transform, each once: a call may leave traced values on them."""

    def __init__(self, frame_id: Any) -> None:
        self.frame_id = frame_id
        self.made: Dict[int, Any] = {}

    def moved(self, value: Any) -> Any:
        """Return a value with its modules copied and its deferred objects created."""
        return mapped(value, _is_made_inside, self._made)

    def _made(self, part: Any) -> Any:
        if isinstance(part, Deferred):
            return part.cls(**self.moved(part.kwargs))
        if id(part) not in self.made:
            self.copy(part)
        return self.made[id(part)]

    def copy(self, module: Any) -> None:
        """Copy a module and those in its attributes."""
        result = copy.copy(module)
        self.made[id(module)] = result
        for name, part in list(vars(module).items()):
            object.__setattr__(result, name, self.moved(part))
        object.__setattr__(result, "_submodules", set(getattr(module, "_submodules", ())))
        object.__setattr__(result, "_creation_frame_id", self.frame_id)


def wanted_by(error: BaseException) -> Optional[Dict[str, Any]]:
    """Return the context that is missing when Haiku raises this error, or None."""
    if haiku() is None:
        return None
    asks = (
        r"must be (initialized inside|used as part of|used inside) an? `?hk\.transform"
        r"|should not be used outside of hk\.transform"
    )
    return CONTEXT if re.search(asks, str(error)) else None
