"""JAX 0.7 to 0.9: the lines of user code are asked of the traceback itself."""

from __future__ import annotations

from typing import Any

from . import jax_0_4


class Internals(jax_0_4.Internals):
    """As before 0.7, but for tracebacks."""

    def _frames(self, source_info: Any) -> Any:
        return self._used["user_frames"](source_info.traceback)
