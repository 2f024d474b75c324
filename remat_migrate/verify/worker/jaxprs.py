"""Jaxprs as all releases of JAX have them: open or closed, and in the parameters of primitives."""

from __future__ import annotations

from typing import Any, Iterable, Iterator, Optional, Tuple

from .lookup import attribute, has


def is_jaxpr(value: Any) -> bool:
    """Return whether a value is a jaxpr, closed or open."""
    return has(value, "eqns") or has(attribute(value, "jaxpr"), "eqns")


def opened(jaxpr: Any) -> Tuple[Any, Tuple[Any, ...]]:
    """Return an open jaxpr and its constants."""
    inner = getattr(jaxpr, "jaxpr", jaxpr)
    return inner, tuple(getattr(jaxpr, "consts", None) or ())


def called_jaxpr(params: Any) -> Optional[Any]:
    """Return the one jaxpr that a call primitive runs, or None."""
    for name in ("jaxpr", "call_jaxpr", "fun_jaxpr"):
        if is_jaxpr(params.get(name)):
            return params[name]
    return None


def inner_jaxprs(values: Iterable[Any]) -> Iterator[Any]:
    """Yield the open jaxprs among the values of an equation's parameters."""
    for value in values:
        if isinstance(value, (tuple, list)):
            yield from inner_jaxprs(value)
        elif is_jaxpr(value):
            yield opened(value)[0]
