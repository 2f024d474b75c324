"""All that is private to JAX: no other module of `verify` imports it."""

from __future__ import annotations

import contextlib
from typing import Any, Iterator, List

import jax
from jax._src import ad_checkpoint, config
from jax._src.lax import lax

_MISSING = object()


def weakly_typed(array: Any) -> Any:
    """Return an array as a weakly typed one."""
    return lax._convert_element_type(array, array.dtype, weak_type=True)


def mark(array: Any, name: str) -> None:
    """Put an equation into the program that is traced; it is never removed.

    It returns its operand, and belongs to the trace that it is made in.
    """
    # Operations on constants may be computed at once; a mark must stay.
    with config.eager_constant_folding(False):
        primitive: Any = ad_checkpoint.name_p
        primitive.bind(array, name=name)


@contextlib.contextmanager
def dissolved() -> Iterator[List[None]]:
    """Make every checkpoint run what it wraps, in functions that are traced meanwhile.

    Yields a list with an entry for each checkpoint that ran.
    """
    module: Any = ad_checkpoint
    applied: List[None] = []

    def inlined(*args: Any, **params: Any) -> Any:
        applied.append(None)
        return module.remat_p.impl(*args, **params)

    def expanded(self: Any, *args: Any) -> Any:
        applied.append(None)
        return self.expand(*args)

    with contextlib.ExitStack() as stack:
        # Neither traces of before are used, nor are those made here used later: JAX caches them by
        # a context that this option, which only warns, is a part of.
        stack.enter_context(jax.numpy_rank_promotion("warn"))
        stack.enter_context(_replaced(module.remat_p, "bind", inlined))
        traced = getattr(module, "RematTraced", None)
        if traced is not None:  # jax_remat3
            stack.enter_context(_replaced(traced, "__call__", expanded))
            stack.enter_context(_replaced(module, "checkpoint_name3", lambda name, x: x))
        yield applied


@contextlib.contextmanager
def _replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    before = vars(owner).get(name, _MISSING)
    setattr(owner, name, value)
    try:
        yield
    finally:
        if before is _MISSING:
            delattr(owner, name)
        else:
            setattr(owner, name, before)
