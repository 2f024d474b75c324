"""Units that need no surroundings."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from recorded_calls import case_of, exercise, plain
from worker_package import load_worker

pure_functions = load_worker("frameworks.pure_functions")

X = jnp.linspace(-1.0, 1.0, 6).reshape(2, 3)


def test_plain_functions():
    (prepared,) = pure_functions.prepare(plain, case_of(X, flag=True))
    assert prepared.label == ""
    np.testing.assert_array_equal(exercise(prepared), jnp.sin(X))
    assert pure_functions.capture((X,), {}) is None
    assert pure_functions.context_from_error(ValueError("nothing about modules")) is None
