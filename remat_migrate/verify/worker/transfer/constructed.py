"""Objects that the worker constructed itself, and how.

An object may hold functions that no other process can load, such as `jax.checkpoint(self.encode)`.
The other side constructs it again, with its own constructor, and takes over the other attributes.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

_MOST = 256
_calls: OrderedDict[int, tuple[Any, Any, Any]] = OrderedDict()


def construct(cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return an instance of a class, and remember the arguments."""
    made = cls(*args, **kwargs)
    _calls[id(made)] = (made, args, kwargs)
    while len(_calls) > _MOST:
        _calls.popitem(last=False)
    return made


def reduced(value: Any) -> tuple[Any, ...] | None:
    """Return how to construct an object again, see `__reduce__`; None if it is not known."""
    made, args, kwargs = _calls.get(id(value), (None, (), {}))
    if made is None or made is not value:
        return None
    held = getattr(value, "__dict__", {})
    state = {name: part for name, part in held.items() if not callable(part)}
    return construct, (type(value), args, kwargs), state
