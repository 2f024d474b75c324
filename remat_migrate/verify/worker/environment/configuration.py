"""The settings that modules of the project make: each unit has those of its own imports.

They are JAX's configuration and environment variables that JAX reads. A worker imports many
modules, and what one of them sets is not meant for the others.
"""

from __future__ import annotations

import functools
import os
import sys
from typing import Any, Dict, List, Tuple

from . import projects

# Before the name of an environment variable.
_VARIABLE = "os.environ "
_READ = ("CUDA_", "JAX_", "LIBTPU_", "TF_", "XLA_")

# What modules have set when they were imported: the file, the name, and the value.
_imported: List[Tuple[str, str, Any]] = []
# What the unit has set itself since `apply`.
_set_by_unit: Dict[str, Any] = {}
# The values before the project.
_before: Dict[str, Any] = {}


def install(jax: Any) -> None:
    """Note from now on what the project sets."""
    kind = type(jax.config)
    update = kind.update

    @functools.wraps(update)
    def noting(self: Any, name: str, value: Any) -> None:
        held = self.values.get(name)
        update(self, name, value)
        _note(name, held, value)

    kind.update = noting
    variables: Any = type(os.environ)
    set_variable, delete_variable = variables.__setitem__, variables.__delitem__

    def setting(self: Any, name: str, value: str) -> None:
        held = self.get(name)
        set_variable(self, name, value)
        if name.startswith(_READ):
            _note(_VARIABLE + name, held, value)

    def deleting(self: Any, name: str) -> None:
        held = self.get(name)
        delete_variable(self, name)
        if name.startswith(_READ):
            _note(_VARIABLE + name, held, None)

    variables.__setitem__, variables.__delitem__ = setting, deleting


def _note(name: str, held: Any, value: Any) -> None:
    frame: Any = sys._getframe(2)
    ours = False
    while frame is not None:
        path = frame.f_code.co_filename
        if projects.is_project_file(path):
            ours = True
            if frame.f_code.co_name == "<module>":
                _before.setdefault(name, held)
                _imported.append((os.path.realpath(path), name, value))
                return
        frame = frame.f_back
    if ours:
        _before.setdefault(name, held)
        _set_by_unit[name] = value


def apply(jax: Any, path: str) -> None:
    """Set what a file of the project and the files that it imports do."""
    _set_by_unit.clear()
    wanted = dict(_before)
    wanted.update(_of_imports(path))
    for name, value in wanted.items():
        if not name.startswith(_VARIABLE):
            if jax.config.values.get(name) != value:
                jax.config.update(name, value)
        elif value is None:
            os.environ.pop(name[len(_VARIABLE) :], None)
        else:
            os.environ[name[len(_VARIABLE) :]] = value


def changed(path: str) -> Dict[str, str]:
    """Return the settings that a file, those that it imports, or the unit have changed."""
    found = dict(_of_imports(path), **_set_by_unit)
    return {name: repr(value) for name, value in found.items() if value != _before[name]}


def is_set_by(path: str, qualname: str) -> bool:
    """Return whether the unit itself has set anything; for a module, when it was imported."""
    of_module = not qualname and any(file == os.path.realpath(path) for file, _, _ in _imported)
    return of_module or bool(_set_by_unit)


def _of_imports(path: str) -> Dict[str, Any]:
    files = {os.path.realpath(file) for file in projects.reached(path)}
    return {name: value for file, name, value in _imported if file in files}
