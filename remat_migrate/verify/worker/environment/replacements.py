"""What removed functions did, in terms of what there is."""

from __future__ import annotations

from typing import Any, Callable, Sequence

import jax
import jax.numpy as jnp

NINF = -float("inf")


class _Index:
    """`jax.ops.index[1:, 2]` is the index itself."""

    def __getitem__(self, index: Any) -> Any:
        return index


index = _Index()


def identity(value: Any, *args: Any, **kwargs: Any) -> Any:
    """Return the value."""
    return value


def index_update(x: Any, idx: Any, y: Any, *args: Any, **kwargs: Any) -> Any:
    """Return a copy of an array with some entries set."""
    return jnp.asarray(x).at[idx].set(y)


def index_add(x: Any, idx: Any, y: Any, *args: Any, **kwargs: Any) -> Any:
    """Return a copy of an array with values added to some entries."""
    return jnp.asarray(x).at[idx].add(y)


def index_mul(x: Any, idx: Any, y: Any, *args: Any, **kwargs: Any) -> Any:
    """Return a copy of an array with some entries multiplied."""
    return jnp.asarray(x).at[idx].multiply(y)


def index_min(x: Any, idx: Any, y: Any, *args: Any, **kwargs: Any) -> Any:
    """Return a copy of an array with the smaller values at some entries."""
    return jnp.asarray(x).at[idx].min(y)


def index_max(x: Any, idx: Any, y: Any, *args: Any, **kwargs: Any) -> Any:
    """Return a copy of an array with the larger values at some entries."""
    return jnp.asarray(x).at[idx].max(y)


def tie_in(x: Any, y: Any) -> Any:
    """Return the second argument, as since omnistaging."""
    return y


def pvary(x: Any, axis_name: Any) -> Any:
    """Mark a value as varying over mesh axes."""
    return jax.lax.pcast(x, axis_name, to="varying")


def msort(a: Any) -> Any:
    """Return an array sorted along its first axis."""
    return jnp.sort(a, axis=0)


def host_ids() -> Sequence[int]:
    """Return the indices of all processes."""
    return list(range(jax.process_count()))


def disable_x64(*args: Any) -> Any:
    """Return a context without 64-bit types."""
    return jax.enable_x64(False)


def device_put_replicated(x: Any, devices: Sequence[Any]) -> Any:
    """Return values with a leading axis over devices."""
    return jax.tree_util.tree_map(lambda leaf: jnp.stack([leaf] * len(devices)), x)


def device_put_sharded(shards: Sequence[Any], devices: Sequence[Any]) -> Any:
    """Return shards stacked along a leading axis."""
    return jax.tree_util.tree_map(lambda *leaves: jnp.stack(leaves), *shards)


def host_call(callback: Callable[..., Any], arg: Any, *, result_shape: Any = None) -> Any:
    """Return the result of a Python function."""
    return jax.pure_callback(callback, result_shape, arg)


def id_tap(tap: Callable[..., Any], arg: Any, *, result: Any = None, **kwargs: Any) -> Any:
    """Return the argument, or the result, and call the function with the argument."""
    jax.debug.callback(lambda value: tap(value, ()), arg)
    return arg if result is None else result


def id_print(arg: Any, *, result: Any = None, **kwargs: Any) -> Any:
    """Return the argument, or the result."""
    return arg if result is None else result


def named_call(function: Callable[..., Any], *, name: Any = None) -> Callable[..., Any]:
    """Return a function with a name scope."""
    return jax.named_call(function, name=name)
