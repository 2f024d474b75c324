"""Run the old code under conditions that no migration changes, to see how far its results move.

Variations of an evaluation:

- "random": seeds of Python and NumPy are others, and the clock is ahead. Results that change
  depend on random numbers without a seed, on the time, or on state that an earlier run left.
- "rounding": every floating-point input is moved by one unit in the last place of the lowest
  precision that the code computes in; without such inputs, the numbers that JAX draws are. Where
  rounding moves a bfloat16 or chaotic computation, a migration that only changes how XLA fuses its
  operations may move it, too.
- "returned": what edited checkpoints return is changed, see `applications.moving`.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import time
from typing import Any, Callable, Iterator, List

import jax
import jax.numpy as jnp
import numpy as np

from ..jaxprs import inner_jaxprs
from .entries import SMALL, TOLERANCES

RANDOM, ROUNDING, RETURNED = "random", "rounding", "returned"

# Not a multiple of a second, minute or day.
_AHEAD_NANOSECONDS = 123_456_789_123

_FEW, _LARGEST_STEP = 8, 1e-6

_DRAWS = ("normal", "truncated_normal", "uniform")


def lowest_precision(function: Callable[..., Any], arrays: List[Any]) -> str:
    """Return the coarsest floating-point dtype that a function computes in.

    Empty if there is none, or if the function cannot be traced because it needs values.
    """
    try:
        jaxpr = jax.make_jaxpr(function)(arrays).jaxpr
    except Exception:  # evaluation reports it
        return ""
    return coarsest(set(_dtypes(jaxpr)))


def coarsest(dtypes: Any) -> str:
    """Return the dtype of least precision by name, or an empty string if there is none."""
    return max(sorted(dtypes), key=lambda name: TOLERANCES.get(name, SMALL), default="")


def _dtypes(jaxpr: Any) -> Iterator[str]:
    """Yield the floating-point dtypes of what a jaxpr and those inside it compute."""
    for equation in jaxpr.eqns:
        for variable in equation.outvars:
            dtype = getattr(variable.aval, "dtype", None)
            if dtype is not None and jnp.issubdtype(dtype, jnp.inexact):
                yield str(dtype)
        for inner in inner_jaxprs(equation.params.values()):
            yield from _dtypes(inner)


def _factors(array: Any, precision: str, seed: int) -> Any:
    """Return factors, in float64, that move each entry of an array up or down by rounding."""
    kinds: Any = (array.dtype, precision or array.dtype)
    units = [float(jnp.finfo(kind).eps) for kind in kinds]  # type: ignore[no-untyped-call]
    signs = np.random.RandomState(seed).choice([-1.0, 1.0], array.shape)
    return 1.0 + signs * max(*units, min(_FEW * units[0], _LARGEST_STEP))


def moved(array: Any, precision: str, seed: int) -> Any:
    """Return an array with each entry moved up or down by rounding.

    By one unit in the last place of the precision, and by a few of an array of many digits, because
    the first operation may round one away.
    """
    wide = np.asarray(array).astype(np.complex128 if array.dtype.kind == "c" else np.float64)
    result = (wide * _factors(array, precision, seed)).astype(array.dtype)
    return result if isinstance(array, np.ndarray) else jnp.asarray(result)


@contextlib.contextmanager
def draws_moved() -> Iterator[None]:
    """Move each number that JAX draws, such as those that parameters are initialised with."""

    def moving(draw: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(draw)
        def moved_draw(*args: Any, **kwargs: Any) -> Any:
            drawn = draw(*args, **kwargs)
            return drawn * jnp.asarray(_factors(drawn, "", drawn.size % 2**32), drawn.dtype)

        return moved_draw

    # Initialisers of parameters use the second.
    modules = [jax.random, sys.modules["jax._src.random"]]
    before = [(module, name, getattr(module, name)) for module in modules for name in _DRAWS]
    jax.clear_caches()  # type: ignore[no-untyped-call]
    try:
        for module, name, draw in before:
            setattr(module, name, moving(draw))
        yield
    finally:
        for module, name, draw in before:
            setattr(module, name, draw)
        jax.clear_caches()  # type: ignore[no-untyped-call]


@contextlib.contextmanager
def clock_ahead() -> Iterator[None]:
    """Let the clock of the `time` module be ahead."""
    seconds, nanoseconds = time.time, time.time_ns
    time.time = lambda: seconds() + _AHEAD_NANOSECONDS / 1e9
    time.time_ns = lambda: nanoseconds() + _AHEAD_NANOSECONDS
    try:
        yield
    finally:
        time.time, time.time_ns = seconds, nanoseconds
