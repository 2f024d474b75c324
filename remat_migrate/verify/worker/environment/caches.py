"""Functions of the project that cache arrays: `@functools.lru_cache`.

What a cache keeps from a trace is of no use after it. Each run of a unit starts with empty caches,
so that only what goes wrong within a run goes wrong.
"""

from __future__ import annotations

import functools
import weakref
from typing import Any

from . import projects

_caches: weakref.WeakSet[Any] = weakref.WeakSet()


def install() -> None:
    """Note the caches of the project."""
    original = functools.lru_cache

    @functools.wraps(original)
    def lru_cache(maxsize: Any = 128, typed: bool = False) -> Any:
        if callable(maxsize):
            return lru_cache()(maxsize)
        decorate = original(maxsize, typed)

        def cached(function: Any) -> Any:
            made = decorate(function)
            code = getattr(function, "__code__", None)
            if code is not None and projects.is_project_file(code.co_filename):
                _caches.add(made)
            return made

        return cached

    functools.lru_cache = lru_cache


def clear() -> None:
    """Empty the caches of the project."""
    for cache in list(_caches):
        cache.cache_clear()
