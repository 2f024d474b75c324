"""The stack of traces and the options that JAX removed have stand-ins with the same meaning."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from worker_package import load_worker

replacements = load_worker("environment.replacements")
options = load_worker("environment.options")


def levels() -> tuple[int, int]:
    stack = replacements.thread_local_state.trace_state.trace_stack
    assert stack.dynamic == replacements.find_top_trace(())
    return stack.stack[-1].level, replacements.find_top_trace(()).main.level


def test_levels_of_traces() -> None:
    found = [levels()]

    def noting(x: jax.Array) -> jax.Array:
        found.append(levels())
        return x * 2

    jax.jit(noting)(1.0)
    jax.grad(noting)(1.0)  # takes no operations on constants
    jax.jit(lambda x: jax.jit(lambda y: noting(y))(noting(x)))(1.0)  # not cached
    assert found == [(0, 0), (1, 1), (1, 0), (1, 1), (2, 2)]


def test_top_trace_of_values() -> None:
    found = []

    def noting(x: jax.Array) -> jax.Array:
        found.append((replacements.find_top_trace((x,)).level, replacements.cur_sublevel()))
        return x

    jax.vmap(noting)(jnp.ones(3))
    noting(jnp.ones(3))
    assert found == [(1, 0), (0, 0)]


def test_removed_options_have_their_final_value() -> None:
    class Config:
        jax_array = "known"

        def update(self, name: str, value: object) -> None:
            raise AttributeError(name)

    config = Config()
    options._add(config)
    config.update("jax_omnistaging", True)
    assert (config.jax_array, config.jax_omnistaging) == ("known", True)  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="jax_unknown"):
        config.update("jax_unknown", 1)
