"""Tests of the worker compile many small programs, each run once or twice."""

import jax
import pytest


@pytest.fixture(scope="package", autouse=True)
def _compile_quickly():
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)
