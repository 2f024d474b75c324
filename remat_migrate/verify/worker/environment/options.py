"""Options of JAX that were removed: they can be set to anything, and have one value."""

from __future__ import annotations

import functools
from typing import Any, Callable, Dict


def settle(kind: Any, values: Dict[str, Any]) -> None:
    """Let options of a class of configurations be set to anything, and read as these values."""
    update = kind.update

    @functools.wraps(update)
    def update_others(self: Any, name: str, value: Any) -> None:
        if name not in values:
            update(self, name, value)

    kind.update = update_others
    for name, value in values.items():
        setattr(kind, name, property(_constant(value), lambda self, value: None))


def _constant(value: Any) -> Callable[[Any], Any]:
    return lambda self: value
