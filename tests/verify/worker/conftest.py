"""Tests of the worker compile many small programs, each run once or twice."""

import functools

import jax
import pytest
import recorded_calls


@pytest.fixture(scope="package", autouse=True)
def _compile_quickly():
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


@pytest.fixture
def record(tmp_path):
    return functools.partial(recorded_calls.record, tmp_path)
