"""The table of Apis describes the static arguments of the installed libraries."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

import pytest

from remat_migrate.libraries.apis import APIS

jax = pytest.importorskip("jax")
jnp = importlib.import_module("jax.numpy")


def function(x: Any, flag: bool = False) -> Any:
    return 2 * x if flag else x


def installed(name: str) -> Any:
    module, _, last = name.rpartition(".")
    pytest.importorskip(name.partition(".")[0])
    return getattr(importlib.import_module(module), last)


@pytest.mark.parametrize(
    "name", [n for n, a in APIS.items() if a.removed_in is None and a.static_calls != "unknown"]
)
def test_static_argnames(name: str) -> None:
    since = APIS[name].argnames_since
    named = "static_argnames" in inspect.signature(installed(name)).parameters
    assert named == (since is not None and jax.__version_info__ >= since)


@pytest.mark.parametrize("name", ["jax.checkpoint", "jax.remat"])
@pytest.mark.parametrize("given", [1, (1,), [1], {1}, range(1, 2), True, None])
def test_the_types_of_indices(name: str, given: Any) -> None:
    """The default implementation rejects sets, ranges and other types."""
    fits = type(given).__name__ in APIS[name].static_indices
    wrapped = installed(name)
    if fits:
        assert wrapped(function, static_argnums=given)(1.0, True) == 2.0
    else:
        with pytest.raises(TypeError):
            wrapped(function, static_argnums=given)(1.0, True)


def test_by_position() -> None:
    assert APIS["jax.checkpoint"].static_calls == "by-position"
    wrapped = jax.checkpoint(function, static_argnums=(1,))
    with pytest.raises(ValueError, match="static_argnums"):
        wrapped(1.0, flag=True)
    with pytest.raises(ValueError, match="static_argnums"):
        wrapped(1.0)
    assert APIS["jax.checkpoint"].negative_shift == 0
    assert jax.checkpoint(function, static_argnums=-1)(1.0, True) == 2.0


def flax_result(api: str, indices: Any, *args: Any, **keywords: Any) -> Any:
    linen = pytest.importorskip("flax.linen")

    class Block(linen.Module):
        def __call__(self, x: Any, flag: bool = False) -> Any:
            return 2 * x if flag else x

    return installed(api)(Block, static_argnums=indices)().apply({}, *args, **keywords)


@pytest.mark.parametrize("index", [-1, -2])
def test_negative_indices_of_flax(index: int) -> None:
    shift = APIS["flax.linen.remat"].negative_shift
    assert shift is not None
    if index + shift == -1:
        assert flax_result("flax.linen.remat", index, 1.0, True) == 2.0
    else:
        with pytest.raises(jax.errors.TracerBoolConversionError):
            flax_result("flax.linen.remat", index, 1.0, True)


def test_partitioning_ignores_keywords() -> None:
    name = "flax.linen.partitioning.remat"
    assert APIS[name].static_calls == "keywords-ignored"
    with pytest.warns(RuntimeWarning, match="ignored"):
        assert flax_result(name, (1,), 1.0, flag=True) == 1.0
    assert flax_result(name, (1,), 1.0, True) == 2.0
    assert flax_result(name, [1], 1.0) == 1.0
    with pytest.raises(TypeError):
        flax_result(name, 1, 1.0, True)


def test_nnx_binds_the_call() -> None:
    remat = installed("flax.nnx.remat")
    assert APIS["flax.nnx.remat"].static_calls == "bound"
    wrapped = remat(function, static_argnums=(1,))
    assert wrapped(jnp.ones(()), flag=True) == 2.0
    assert wrapped(jnp.ones(())) == 1.0
