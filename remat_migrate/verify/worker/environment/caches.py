"""Functions of the project that cache arrays: `@functools.lru_cache`.

The first call may be under a trace that the cache outlives. Arguments of a cache are no traced
values, so what it keeps can be computed at once, as if the first call had been outside a trace.
"""

from __future__ import annotations

import functools
import sys
from typing import Any, Callable

from . import projects


def install() -> None:
    """Let the caches of the project hold values."""
    original = functools.lru_cache

    @functools.wraps(original)
    def lru_cache(maxsize: Any = 128, typed: bool = False) -> Any:
        if callable(maxsize):
            return lru_cache()(maxsize)
        decorate = original(maxsize, typed)
        return lambda function: decorate(_computing(function))

    functools.lru_cache = lru_cache


def _computing(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of the project that computes even if it is traced; others unchanged."""
    code = getattr(function, "__code__", None)
    if code is None or not projects.is_project_file(code.co_filename):
        return function

    @functools.wraps(function)
    def computed(*args: Any, **kwargs: Any) -> Any:
        jax = sys.modules.get("jax")
        if not hasattr(jax, "ensure_compile_time_eval"):
            return function(*args, **kwargs)
        try:
            with jax.ensure_compile_time_eval():  # type: ignore[union-attr]
                return function(*args, **kwargs)
        except Exception:  # it uses traced values that are no arguments
            return function(*args, **kwargs)

    return computed
