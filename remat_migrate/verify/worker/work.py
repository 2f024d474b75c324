"""Measures of work that are the same in every run, on any machine and under any load."""

from __future__ import annotations

import contextlib
import math
from typing import Any, Iterator

import jax

# `jax.core` no longer exports it.
_Primitive: Any = next(c for c in type(jax.lax.add_p).__mro__ if c.__name__ == "Primitive")


class TooManyOperations(BaseException):
    """A pass traces more operations than it may."""


class TracedOperations:
    """How many operations all passes of this process have traced."""

    def __init__(self) -> None:
        self.count = 0
        self._last = 0

    @contextlib.contextmanager
    def counted(self, most: float = math.inf) -> Iterator[None]:
        """Count the operations that are traced meanwhile; raise if they are more than `most`."""
        start = self.count
        bind = _Primitive.bind

        def count_and_bind(primitive: Any, *args: Any, **params: Any) -> Any:
            self.count += 1
            if self.count - start > most:
                raise TooManyOperations
            return bind(primitive, *args, **params)

        _Primitive.bind = count_and_bind
        try:
            yield
        finally:
            _Primitive.bind = bind
            self._last = self.count - start

    @contextlib.contextmanager
    def again(self) -> Iterator[None]:
        """Count as many operations as the last time."""
        self.count += self._last
        yield


operations = TracedOperations()
