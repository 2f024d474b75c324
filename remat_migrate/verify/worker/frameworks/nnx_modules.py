"""Flax NNX modules: objects that hold their own variables."""

from __future__ import annotations

import sys
from typing import Any


def nnx() -> Any:
    """Return `flax.nnx`, if the user's code has imported it."""
    module = sys.modules.get("flax.nnx")
    return module if hasattr(module, "Rngs") else None


def is_module_class(cls: Any) -> bool:
    """Return whether a value is a class of NNX modules."""
    library = nnx()
    return library is not None and isinstance(cls, type) and issubclass(cls, library.Module)
