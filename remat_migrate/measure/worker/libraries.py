"""Attribute checkpoints that libraries apply to the line that asked for them.

Libraries such as Flax apply `jax.checkpoint` when a function is called, but the line that a user
edits is the one that asks for it: `nn.remat(Block)`. A function that a library returns is called
through a wrapper. Classes and objects are only noted, because wrapping them would change the
parameters of a model.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any

import jax

from ...verify.worker.import_hooks import after_import
from .interception import (
    Site,
    caller,
    describe,
    is_library,
    note_object,
    note_type,
)

# Modules and their equivalents of `jax.checkpoint`.
_EQUIVALENTS: dict[str, tuple[str, ...]] = {
    "flax.core.lift": ("remat", "checkpoint", "remat_scan"),
    "flax.core": ("remat", "checkpoint", "remat_scan"),
    "flax.linen": ("remat", "checkpoint", "remat_scan"),
    "flax.linen.transforms": ("remat", "checkpoint", "remat_scan"),
    "flax.linen.partitioning": ("remat",),
    "flax.nnx": ("remat",),
    "flax.nnx.transforms.autodiff": ("remat",),
    "haiku": ("remat",),
    "equinox": ("filter_checkpoint",),
}
# The module to report for functions that several modules export.
_REPORTED_AS = {
    "flax.core": "flax.core.lift",
    "flax.linen.transforms": "flax.linen",
    "flax.nnx.transforms.autodiff": "flax.nnx",
}


def install() -> None:
    """Wrap the functions of these libraries once each is imported."""
    for module in _EQUIVALENTS:
        after_import(module, _patch)


def _patch(module: Any) -> None:
    home = _REPORTED_AS.get(module.__name__, module.__name__)
    for name in _EQUIVALENTS[module.__name__]:
        original = getattr(module, name, None)
        if callable(original) and not hasattr(original, "is_noting"):
            setattr(module, name, _noting(original, home + "." + name))


def _noting(original: Callable[..., Any], api: str) -> Callable[..., Any]:
    subject = next(iter(inspect.signature(original).parameters))

    @functools.wraps(original)
    def remat(*args: Any, **options: Any) -> Any:
        if is_library(sys._getframe(1).f_code.co_filename):
            return original(*args, **options)  # on behalf of an earlier call by the user
        function = args[0] if args else options.get(subject)
        if callable(function):
            return _request(original, api, function, args, options)
        made = original(*args, **options)
        if not callable(made):
            return made

        @functools.wraps(made)
        def decorate(function: Any, *others: Any, **more: Any) -> Any:
            return _request(made, api, function, (function, *others), more)

        return decorate

    remat.is_noting = True  # type: ignore[attr-defined]
    return remat


def _request(
    original: Callable[..., Any],
    api: str,
    function: Any,
    args: tuple[Any, ...],
    options: dict[str, Any],
) -> Any:
    """Call the library, and attribute the checkpoints of the result to the calling line."""
    # Read by name from this frame and from that of `lifted`, see `interception.REQUESTED`.
    requested_site = Site(caller(), api, *describe(function))
    made = original(*args, **options)
    if isinstance(made, type):
        note_type(made, requested_site)
        return made
    if not jax.tree_util.all_leaves([made]):
        note_object(made, requested_site)
        return made
    if not callable(made):
        return made

    @functools.wraps(made)
    def lifted(*inputs: Any, **keywords: Any) -> Any:
        assert requested_site
        return made(*inputs, **keywords)

    return lifted
