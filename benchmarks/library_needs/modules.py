"""List the public functions to probe."""

from __future__ import annotations

import importlib
import inspect
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any

PACKAGES = (
    "jax",
    "jax.numpy",
    "jax.lax",
    "jax.nn",
    "jax.nn.initializers",
    "jax.random",
    "jax.scipy",
    "jax.image",
    "jax.ops",
    "jax.tree",
    "jax.tree_util",
    "jax.dtypes",
    "jax.debug",
    "jax.flatten_util",
    "jax.ad_checkpoint",
    "jax.experimental.shard_map",
    "optax",
    "optax.losses",
    "optax.schedules",
    "optax.tree_utils",
    "optax.projections",
    "einops",
    "flax.linen",
    "haiku",
)
_SUBMODULES = ("jax.numpy", "jax.lax", "jax.scipy")
# Functions that act on the process, files or devices, or wait for input.
_SKIPPED_NAMES = """
    jax.clear_backends jax.clear_caches jax.print_environment_info jax.live_arrays
    jax.debug.breakpoint jax.numpy.save jax.numpy.savez jax.numpy.load jax.numpy.fromfile
    jax.numpy.set_printoptions jax.numpy.get_printoptions jax.numpy.printoptions
    jax.debug.visualize_array_sharding jax.debug.visualize_sharding jax.set_mesh
    jax.make_user_context jax.make_array_from_callback jax.make_array_from_single_device_arrays
    jax.make_array_from_process_local_data jax.make_mesh jax.live_executables jax.lax.infeed
    jax.lax.outfeed jax.lax.create_token jax.lax.after_all jax.default_backend jax.devices
    jax.local_devices jax.device_count jax.local_device_count jax.process_count jax.process_index
    jax.process_indices jax.host_count jax.host_id jax.host_ids jax.array_garbage_collection_guard
    jax.default_device jax.default_prng_impl jax.legacy_prng_key jax.transfer_guard
    jax.transfer_guard_device_to_device jax.transfer_guard_device_to_host
    jax.transfer_guard_host_to_device jax.numpy_dtype_promotion jax.numpy_rank_promotion jax.pmap
    jax.shard_map jax.smap jax.reshard jax.device_put_replicated jax.device_put_sharded
    haiku.dynamic_unroll haiku.static_unroll haiku.deep_rnn_with_skip_connections
    jax.block_until_ready jax.copy_to_host_async
"""
_SKIPPED = frozenset(_SKIPPED_NAMES.split())


def public_functions(
    packages: tuple[str, ...] = PACKAGES,
) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield the public functions of all installed packages, with their qualified names."""
    seen: set[str] = set()
    for package in packages:
        try:
            module = importlib.import_module(package)
        except ImportError:
            continue
        for name, function in _functions(module, package in _SUBMODULES):
            if name not in seen and name not in _SKIPPED and not _is_setting(function):
                seen.add(name)
                yield name, function


def _is_setting(function: Callable[..., Any]) -> bool:
    """Return whether a function changes a setting of JAX, such as `jax.debug_nans`."""
    return "new_val" in (parameters_of(function) or {})


def _functions(
    module: types.ModuleType, submodules: bool
) -> Iterator[tuple[str, Callable[..., Any]]]:
    if submodules:
        for attribute in _attributes(module):
            child = f"{module.__name__}.{attribute}"
            try:
                inner = importlib.import_module(child)
            except ImportError:
                continue
            yield from _functions(inner, submodules)
        for child in ("cluster.vq", "sparse.linalg", "spatial.transform"):
            if module.__name__ == "jax.scipy":
                yield from _functions(importlib.import_module(f"jax.scipy.{child}"), False)
    for attribute in _attributes(module):
        value = getattr(module, attribute)
        if is_function(value):
            yield f"{module.__name__}.{attribute}", value


def _attributes(module: types.ModuleType) -> list[str]:
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in sorted(dir(module)):
            if name.startswith("_"):
                continue
            try:
                getattr(module, name)
            except AttributeError:
                continue  # removed, raises with a message
            found.append(name)
    return found


# Lifted transformations only run inside a module.
_LIFTED = ("flax.core.", "flax.linen.transforms", "flax.linen.module", "flax.linen.spmd",
           "flax.linen.summary", "flax.linen.partitioning", "haiku._src.transform",
           "haiku._src.lift", "haiku._src.summarise", "haiku._src.dot")  # fmt: skip


def is_function(value: object) -> bool:
    """Return whether an object is a function; classes are not, except for `jnp.float32`."""
    if isinstance(value, type):
        return type(value).__name__ == "_ScalarMeta"
    if isinstance(value, types.ModuleType | types.GenericAlias) or not callable(value):
        return False
    if type(value).__module__.startswith("typing") or hasattr(value, "__origin__"):
        return False
    return not (getattr(value, "__module__", None) or "").startswith(_LIFTED)


def parameters_of(function: Callable[..., Any]) -> dict[str, inspect.Parameter] | None:
    """Return the parameters of a function; None if it has no signature."""
    if hasattr(function, "nin") and hasattr(function, "nout"):  # a ufunc
        kind = inspect.Parameter.POSITIONAL_ONLY
        names = ("x",) if function.nin == 1 else tuple(f"x{i + 1}" for i in range(function.nin))
        return {name: inspect.Parameter(name, kind) for name in names}
    try:
        found = dict(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return None
    return {n: p for n, p in found.items() if not n.startswith("_")}
