"""JAX 0.7 to 0.9: `user_frames` takes a traceback."""

from __future__ import annotations

from typing import Any

from . import jax_0_4


class Internals(jax_0_4.Internals):
    """Overrides access to user frames."""

    def _frames(self, source_info: Any) -> Any:
        return self._used["user_frames"](source_info.traceback)
