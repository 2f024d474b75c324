"""Options of JAX that were removed when they got their final value."""

from __future__ import annotations

import functools
import sys
from typing import Any, Callable, Dict

from ..import_hooks import after_import
from . import ledger
from .ledger import Reason

# By the changelog.
_FINAL: Dict[str, Any] = {
    "jax_array": True,
    "jax_enable_mlir": True,
    "jax_eager_pmap": True,
    "jax_enable_memories": True,
    "jax_experimental_name_stack": True,
    "jax_jit_pjit_api_merge": True,
    "jax_omnistaging": True,
    "jax_parallel_functions_output_gda": False,
    "jax_pmap_no_rank_reduction": True,
    "jax_remat_opt_barrier": True,
    "jax_spmd_mode": "allow_all",
    "jax_unique_mhlo_module_names": False,
    "omnistaging_enabled": True,
}


def install() -> None:
    """Let code read and set these options, which have their final value."""
    after_import("jax", lambda module: _add(module.config))


def _add(config: Any) -> None:
    gone = {name: value for name, value in _FINAL.items() if not hasattr(config, name)}
    settle(type(config), gone, _note)


def settle(kind: Any, values: Dict[str, Any], note: Callable[[str, Any], None]) -> None:
    """Let options of a class of configurations be set to anything, and read as these values.

    `note(name, frame)` is called for each use, with the frame of the user.
    """
    update = kind.update

    @functools.wraps(update)
    def update_others(self: Any, name: str, value: Any) -> None:
        if name in values:
            note(name, sys._getframe(1))
        else:
            update(self, name, value)

    def settled(name: str) -> Any:
        def get(self: Any) -> Any:
            note(name, sys._getframe(1))
            return values[name]

        return property(get, lambda self, value: note(name, sys._getframe(1)))

    kind.update = update_others
    for name in values:
        setattr(kind, name, settled(name))


def _note(name: str, frame: Any) -> None:
    reason = Reason("jax.config." + name, "-> %s" % _FINAL[name], "bridged")
    ledger.note(frame.f_code.co_filename, reason)
