"""Tests of the worker compile many small programs, each run once or twice."""

import functools
import sys
import textwrap

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


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Return a function that writes modules into a package and returns the package's name."""
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)

    def write(**modules):
        folder = tmp_path / f"project_{tmp_path.name}"
        folder.mkdir()
        (folder / "__init__.py").touch()
        for name, text in modules.items():
            (folder / f"{name}.py").write_text(textwrap.dedent(text))
        return folder.name

    yield write
    for name in set(sys.modules) - before:
        del sys.modules[name]
