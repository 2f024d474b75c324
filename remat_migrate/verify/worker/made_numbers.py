"""Random numbers for arrays, of ordinary size."""

from __future__ import annotations

from typing import Any, Tuple

import jax.numpy as jnp
import numpy as np


def made_numbers(
    random: np.random.Generator,
    shape: Tuple[int, ...],
    dtype: Any,
    positive: bool = False,
    most: int = 4,
) -> np.ndarray:
    """Return random numbers, those for inexact dtypes as float64.

    These lie in (-1, 1), or in (0.5, 1.5) if they must be `positive`. Integers are below `most`.
    """
    kind = jnp.dtype(dtype)
    if kind == np.bool_:
        return np.asarray(random.random(shape) < 0.7)
    if jnp.issubdtype(kind, jnp.integer):
        return np.asarray(random.integers(0, most, shape)).astype(kind)
    low = 0.5 if positive else -1.0
    return np.asarray(random.uniform(low, low + (1.0 if positive else 2.0), shape))
