"""Fixtures that run programs under JAX and the command line in separate processes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

RUNNER = Path(__file__).parent / "run_programs.py"

Arrays = Mapping[str, np.ndarray]
Outcome = Arrays | str


@pytest.fixture(scope="session")
def jax_environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Environment variables of a JAX process: CPU only, with a shared compilation cache."""
    return {
        **os.environ,
        "JAX_PLATFORMS": "cpu",
        "JAX_COMPILATION_CACHE_DIR": str(tmp_path_factory.mktemp("compiled")),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]),
        "PYTHONDONTWRITEBYTECODE": "1",
    }


@pytest.fixture(scope="session")
def run_programs(
    jax_environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., dict[str, Outcome]]:
    """Run `targets` ("module:function") in `folder`; return the arrays by name, or a traceback, for
    each.

    With `plain`, every checkpoint is replaced by the plain function; with `lenient`, only those
    that current JAX rejects.
    """

    def run(
        folder: Path, *targets: str, plain: bool = False, lenient: bool = False
    ) -> dict[str, Outcome]:
        mode = "plain" if plain else "lenient" if lenient else "real"
        output = tmp_path_factory.mktemp("values")
        subprocess.run(
            [sys.executable, RUNNER, mode, output, *targets],
            cwd=folder,
            env=jax_environment,
            check=True,
        )
        return {target: _outcome(output, target.replace(":", ".")) for target in targets}

    return run


def _outcome(output: Path, name: str) -> Outcome:
    if (failure := output / f"{name}.txt").exists():
        return failure.read_text()
    with np.load(output / f"{name}.npz") as arrays:
        return dict(arrays)


@pytest.fixture(scope="session")
def remat_migrate() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the command line in a folder."""

    def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "remat_migrate", *arguments],
            cwd=folder,
            capture_output=True,
            text=True,
        )

    return run


@pytest.fixture(scope="session")
def assert_equal_arrays() -> Callable[..., None]:
    """Check that names, shapes and types are equal, and values up to `rtol` of the largest entry.

    The tolerance is relative to the largest entry of the array, so that sums with cancelling terms
    pass; `atol` is relative to the largest entry of all arrays.
    """

    def check(expected: Arrays, actual: Arrays, rtol: float, atol: float = 0.0) -> None:
        assert list(actual) == list(expected)
        largest = max((np.max(np.abs(a), initial=0.0) for a in expected.values()), default=0.0)
        for name, array in expected.items():
            other = actual[name]
            assert (other.shape, other.dtype) == (array.shape, array.dtype), name
            assert np.all(np.isfinite(array.astype(complex))), name
            allowed = rtol * np.max(np.abs(array), initial=0.0) + atol * largest
            apart = other.astype(complex) - array.astype(complex)
            difference = np.max(np.abs(apart), initial=0.0)
            assert difference <= allowed, f"{name}: {difference} apart, {allowed} allowed"

    return check
