"""The settings of JAX that a unit or its imports make: configuration, environment variables."""

from __future__ import annotations

import functools
import os
import sys
from typing import Any, Dict, List, Set

from . import projects

_VARIABLE = "os.environ "
_READ = ("CUDA_", "JAX_", "LIBTPU_", "TF_", "XLA_")

# The settings before the project, and after the unit is imported.
_before: Dict[str, Any] = {}
_imported: Dict[str, Any] = {}
# The names that code has set since `begin`, to whatever value, and those that the imports have.
_set: List[str] = []
_set_by_imports: List[str] = []
# The environment variables that code of the project has read in this process.
read: Set[str] = set()


def install() -> None:
    """Note from now on what code sets."""
    _before.update(_now())
    _note_names(type(sys.modules["jax"].config), "update")
    for method in ("__setitem__", "__delitem__"):
        _note_names(type(os.environ), method)
    look_up = type(os.environ).__getitem__

    def noting(self: Any, name: str) -> str:
        frame: Any = sys._getframe(1)
        while frame and frame.f_globals.get("__name__") in ("os", "collections.abc"):
            frame = frame.f_back
        if frame and projects.is_project_file(frame.f_code.co_filename):
            read.add(name)
        return look_up(self, name)

    type(os.environ).__getitem__ = noting  # type: ignore[method-assign]


def _note_names(kind: Any, method: str) -> None:
    original = getattr(kind, method)

    @functools.wraps(original)
    def noting(self: Any, name: str, *value: Any) -> None:
        if self is not os.environ or name.startswith(_READ):
            _set.append(name)
        original(self, name, *value)

    setattr(kind, method, noting)


def begin() -> None:
    """Note the settings after the unit is imported; for later requests, return to them."""
    if not _imported:
        _imported.update(_now())
        _set_by_imports.extend(_set)
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
    _set.clear()


def changed() -> Dict[str, str]:
    """Return the settings that are not as they were before the project, by name."""
    now = _now()
    names = sorted({*now, *_before})
    return {name: repr(now.get(name)) for name in names if now.get(name) != _before.get(name)}


def is_set_by(qualname: str) -> bool:
    """Return whether the unit itself has set any; for a module, whether importing it has."""
    return bool(_set or (not qualname and _set_by_imports))


def _now() -> Dict[str, Any]:
    variables = {_VARIABLE + k: v for k, v in os.environ.items() if k.startswith(_READ)}
    return {**sys.modules["jax"].config.values, **variables}
