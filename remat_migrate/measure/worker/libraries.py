"""Libraries that apply `jax.checkpoint` for their users, and only when a function is called.

The line that a user edits is the one that asks the library: `nn.remat(Block)`. It is noted here,
and the checkpoints that follow are put down to it.
"""

from __future__ import annotations

import functools
from typing import Any, Callable, Dict, Tuple

from ...verify.worker.importing import after_import
from .interception import caller, forget_folders, note_type, on_behalf_of

# What libraries offer in the place of `jax.checkpoint`: module, and its functions.
_OFFERED: Dict[str, Tuple[str, ...]] = {
    "flax.linen": ("remat", "checkpoint"),
    "flax.linen.partitioning": ("remat",),
    "flax.core.lift": ("remat", "checkpoint"),
    "flax.nnx": ("remat",),
    "haiku": ("remat",),
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
    for name in _OFFERED[module.__name__]:
        offered = getattr(module, name, None)
        if callable(offered):
            setattr(module, name, _noting(offered, module.__name__ + "." + name))


def _noting(offered: Callable[..., Any], api: str) -> Callable[..., Any]:
    @functools.wraps(offered)
    def remat(*args: Any, **options: Any) -> Any:
        place = caller()
        with on_behalf_of(api, place):
            made = offered(*args, **options)
        if isinstance(made, type):
            note_type(made, api, place)
            return made
        if not callable(made):
            return made

        @functools.wraps(made)
        def lifted(*inputs: Any, **keywords: Any) -> Any:
            with on_behalf_of(api, place):
                return made(*inputs, **keywords)

        return lifted

    return remat
