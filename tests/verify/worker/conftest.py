"""Tests of the worker compile many small programs, the same ones again and again."""

import functools
import sys
import textwrap

import jax
import pytest
import recorded_calls
from jax.experimental.compilation_cache import compilation_cache


@pytest.fixture(scope="package", autouse=True)
def _compile_quickly(tmp_path_factory):
    settings = {
        "jax_disable_most_optimizations": True,
        "jax_compilation_cache_dir": str(tmp_path_factory.mktemp("compiled")),
        "jax_persistent_cache_min_compile_time_secs": 0.0,
        "jax_persistent_cache_min_entry_size_bytes": -1,
    }
    before = {name: jax.config.values[name] for name in settings}
    for changes in (settings, before):
        for name, value in changes.items():
            jax.config.update(name, value)
        compilation_cache.reset_cache()  # it looks at the settings once
        if changes is settings:
            yield


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
