"""The settings of JAX that a unit's imports make: its configuration, and environment variables."""

from __future__ import annotations

import os
import sys
from typing import Any, Dict

from . import options

_VARIABLE = "os.environ "
_READ = ("CUDA_", "JAX_", "LIBTPU_", "TF_", "XLA_")

# The settings before the project, and after the unit is imported.
_before: Dict[str, Any] = {}
_imported: Dict[str, Any] = {}


def install() -> None:
    """Note the settings without the project."""
    _before.update(_now())


def begin() -> None:
    """Note the settings after the unit is imported; for later requests, return to them."""
    if not _imported:
        _imported.update(_now())
    for name, value in _now().items():
        held = _imported.get(name)
        if value == held:
            continue
        if not name.startswith(_VARIABLE):
            sys.modules["jax"].config.update(name, held)
        elif held is None:
            del os.environ[name[len(_VARIABLE) :]]
        else:
            os.environ[name[len(_VARIABLE) :]] = held


def changed() -> Dict[str, str]:
    """Return the settings that are not as they were before the project, by name."""
    now = _now()
    names = sorted({*now, *_before})
    return {name: repr(now.get(name)) for name in names if now.get(name) != _before.get(name)}


def is_set_by(qualname: str) -> bool:
    """Return whether the unit itself has changed any; for a module, whether importing it has."""
    return _now() != _imported or (not qualname and _imported != _before)


def _now() -> Dict[str, Any]:
    variables = {_VARIABLE + k: v for k, v in os.environ.items() if k.startswith(_READ)}
    return {**sys.modules["jax"].config.values, **options.ignored, **variables}
