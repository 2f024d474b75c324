"""Replace every checkpoint function by one that returns the wrapped function unchanged.

`jax.checkpoint(f)` has the values and gradients of `f`, so code in the old API run with this in
place gives the values and gradients that its migrated form must have. `install()` changes JAX for
the whole process: call it in a process of its own, before the code under test is imported.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from typing import Any

OLD_FLAG = "jax_new_checkpoint"


def plain(fun: Callable[..., Any], *args: Any, **options: Any) -> Callable[..., Any]:
    """Return `fun`, whatever the options, including `concrete`, by position or keyword."""
    return fun


def plain_module(prefix: str) -> Callable[..., Any]:
    """Return the plain form of a Flax lifted transform.

    Flax names an unnamed submodule after its class, and its transforms prefix the name
    (`CheckpointDense_0`), so a wrapped class becomes a subclass with that name.
    """

    def wrap(target: Any, *args: Any, **options: Any) -> Any:
        if not isinstance(target, type):
            return target
        return type(f"{prefix}{target.__name__}", (target,), {"__module__": target.__module__})

    return wrap


def install() -> None:
    """Replace the functions of jax, and of flax and haiku if installed, by plain ones."""
    import jax
    import jax.ad_checkpoint

    _replace("jax", plain, "checkpoint", "remat")
    _replace("jax.ad_checkpoint", plain, "checkpoint", "remat")
    if importlib.util.find_spec("flax"):
        _replace("flax.linen", plain_module("Checkpoint"), "checkpoint", "remat")
        _replace("flax.linen.transforms", plain_module("Checkpoint"), "checkpoint", "remat")
        _replace("flax.linen.partitioning", plain_module("Core_remat_static"), "remat")
    if importlib.util.find_spec("haiku"):
        _replace("haiku", plain, "remat")
    _accept_old_flag(type(jax.config))


def _replace(module: str, function: Callable[..., Any], *names: str) -> None:
    for name in names:
        setattr(importlib.import_module(module), name, function)


def _accept_old_flag(config: Any) -> None:
    """Accept any value for `jax_new_checkpoint`, which reads as True, as the migration assumes."""
    update = config.update

    def update_unless_old(self: Any, name: str, value: Any) -> None:
        if name != OLD_FLAG:
            update(self, name, value)

    config.update = update_unless_old
    setattr(config, OLD_FLAG, property(lambda self: True, lambda self, value: None))
