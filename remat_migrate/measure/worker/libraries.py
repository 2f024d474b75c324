"""Libraries that apply `jax.checkpoint` for their users, and only when a function is called.

The line that a user edits is the one that asks the library: `nn.remat(Block)`. It is noted here,
and the checkpoints that follow are put down to it. What the library gives stays what it is: a
function is called through another one, and classes and objects are only noted, since to wrap them
would change which parameters a model has.
"""

from __future__ import annotations

import functools
import inspect
import sys
from typing import Any, Callable, Dict, Tuple

import jax

from ...verify.worker.importing import after_import
from .interception import (
    Asked,
    caller,
    described,
    forget_folders,
    is_library,
    note_object,
    note_type,
)

# What libraries offer in the place of `jax.checkpoint`: module, and its functions.
_OFFERED: Dict[str, Tuple[str, ...]] = {
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
# The module that users know a function by, where it is reached through another one, too.
_PUBLIC = {
    "flax.core": "flax.core.lift",
    "flax.linen.transforms": "flax.linen",
    "flax.nnx.transforms.autodiff": "flax.nnx",
}
_LIBRARIES = ("flax", "haiku", "equinox")


def install() -> None:
    """Note who asks these libraries for checkpoints, once each is imported."""
    for library in _LIBRARIES:
        after_import(library, lambda module: forget_folders())
    for module in _OFFERED:
        after_import(module, _patch)


def _patch(module: Any) -> None:
    forget_folders()
    home = _PUBLIC.get(module.__name__, module.__name__)
    for name in _OFFERED[module.__name__]:
        offered = getattr(module, name, None)
        if callable(offered) and not hasattr(offered, "is_noting"):
            setattr(module, name, _noting(offered, home + "." + name))


def _noting(offered: Callable[..., Any], api: str) -> Callable[..., Any]:
    subject = next(iter(inspect.signature(offered).parameters))

    @functools.wraps(offered)
    def remat(*args: Any, **options: Any) -> Any:
        if is_library(sys._getframe(1).f_code.co_filename):
            return offered(*args, **options)  # the library's own, for what it was asked before
        function = args[0] if args else options.get(subject)
        if callable(function):
            return _asked(offered, api, function, args, options)
        made = offered(*args, **options)
        if not callable(made):
            return made

        @functools.wraps(made)
        def decorate(function: Any, *others: Any, **more: Any) -> Any:
            return _asked(made, api, function, (function, *others), more)

        return decorate

    remat.is_noting = True  # type: ignore[attr-defined]
    return remat


def _asked(
    offered: Callable[..., Any],
    api: str,
    function: Any,
    args: Tuple[Any, ...],
    options: Dict[str, Any],
) -> Any:
    """What the library makes of a function or class, with whose line its checkpoints go down to."""
    # Read by name from this frame, and from that of `lifted`.
    asked_for_checkpoint = Asked(api, caller(), *described(function))
    made = offered(*args, **options)
    if isinstance(made, type):
        note_type(made, asked_for_checkpoint)
        return made
    if not jax.tree_util.all_leaves([made]):
        note_object(made, asked_for_checkpoint)
        return made
    if not callable(made):
        return made

    @functools.wraps(made)
    def lifted(*inputs: Any, **keywords: Any) -> Any:
        assert asked_for_checkpoint
        return made(*inputs, **keywords)

    return lifted
