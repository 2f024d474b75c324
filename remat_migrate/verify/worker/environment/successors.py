"""Maps names that JAX, Flax, Haiku, Optax, or NumPy removed to their successors.

A module that lacks a name looks it up in the table of removed names, which is taken from the
changelogs of the libraries. A row therefore holds for every release. A name without a successor has
no row. For a removed module, `sys.modules` has an entry without code. To the user's code, these
names look like names that exist.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import sys
import types
from typing import Any, Dict, Optional, Tuple

from .. import shim
from ..import_hooks import after_import
from . import projects, stand_ins

_ABSENT = object()
# What migrations are about: bridging it would hide a wrong one.
_CHECKPOINTS = frozenset(["checkpoint", "remat", "new_checkpoint", "remat_transform"])


def _read() -> Dict[str, Tuple[str, ...]]:
    with open(os.path.join(os.path.dirname(__file__), "removed_names.txt")) as table:
        rows = [line.split() for line in table if not line.startswith("#")]
    return {old: tuple(new) for old, _, *new in rows}


_ROWS = _read()
# The modules that have members in the table, and the packages around them, those first.
_MODULES = sorted(
    {old[:end] for old in _ROWS for end, character in enumerate(old) if character == "."}
)


class Gone(types.ModuleType):
    """A module that a library no longer has."""

    def __getattr__(self, name: str) -> Any:
        found = _found(self, name)
        if found is None:
            raise AttributeError("%s.%s does not exist" % (self.__name__, name))
        return found


def install() -> None:
    """Give the libraries the names that they removed, once they are imported."""
    for library in sorted({name.partition(".")[0] for name in _MODULES}):
        after_import(library, _extend_library)


def _extend_library(library: Any) -> None:
    top = library.__name__
    for name in _MODULES:
        if name == top or name.startswith(top + "."):
            if _exists(name):
                after_import(name, _extend)
            else:
                sys.modules[name] = Gone(name)


def _exists(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):  # its package is gone, too
        return False


def _extend(module: Any) -> None:
    original = vars(module).get("__getattr__")

    def __getattr__(name: str) -> Any:
        try:
            if original is not None:
                return original(name)
            raise AttributeError("module %r has no attribute %r" % (module.__name__, name))
        except AttributeError:
            found = _found(module, name)
            if found is None:
                raise
            return found

    module.__getattr__ = __getattr__


def _found(module: types.ModuleType, name: str) -> Optional[Any]:
    """Return what stands for a name that a module lacks; None if nothing does."""
    if name.startswith("__"):
        return None
    full = "%s.%s" % (module.__name__, name)
    if full not in sys.modules and hasattr(module, "__path__"):
        with contextlib.suppress(Exception):
            importlib.import_module(full)  # a part that the package no longer imports by itself
    if full in sys.modules:
        return sys.modules[full]
    found = successor(full)
    if found is None:
        return None
    file = sys._getframe(2).f_code.co_filename
    if projects.is_project_file(file):
        stand_ins.note(stand_ins.Reason(full, "-> %s" % found[0], "bridged"))
    return found[1]


def successor(name: str) -> Optional[Tuple[str, Any]]:
    """Return the name and the value of what replaces a missing name; None if nothing does."""
    old = shim.replacement(name)
    if old is not None:
        return name, old
    module, _, member = name.rpartition(".")
    members = (new.replace("*", member) for new in _ROWS.get(module + ".*", ()))
    for new in (*_ROWS.get(name, ()), *members) if member not in _CHECKPOINTS else ():
        value = _value(new)
        if value is not _ABSENT:
            return new, value
    return None


def _value(name: str) -> Any:
    """Return the value of a dotted name."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            value: Any = importlib.import_module(".".join(parts[:end]))
        except Exception:
            continue
        if isinstance(value, Gone):
            continue  # `jax.config` was a module and is an object
        for part in parts[end:]:
            value = getattr(value, part, _ABSENT)
        return value
    return _ABSENT
