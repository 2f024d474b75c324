"""Waiting for a traced value is skipped: JAX explains at length why it has no such method."""

from __future__ import annotations

import functools
from typing import Any

from ..import_hooks import after_import


def install() -> None:
    """Let `jax.block_until_ready` return traced values at once."""
    after_import("jax", _wrap)


def _wrap(jax: Any) -> None:
    original = jax.block_until_ready

    @functools.wraps(original)
    def block_until_ready(x: Any) -> Any:
        traced = any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree_util.tree_leaves(x))
        return x if traced else original(x)

    jax.block_until_ready = block_until_ready
