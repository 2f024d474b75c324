"""Lets `python script.py` compile a script with edited pieces like an imported module.

Python compiles the file that it runs without asking a loader, unless a path hook accepts its path
as it does that of a zip file: then `runpy` runs the module `__main__` that is found there.
"""

from __future__ import annotations

import ast
import importlib.machinery
import importlib.util
import os
import sys
from typing import Any, Optional

from .. import coverage

# What the namespace of a script has in place of the specification of a module.
_PLAIN = "__spec__ = None; __package__ = None; __cached__ = None"


def install() -> None:
    """Accept the paths of files with edited pieces."""
    sys.path_hooks.insert(0, _Script)


class _Script:
    """Finds and loads the module `__main__` in a script."""

    def __init__(self, path: str) -> None:
        if not (os.path.isfile(path) and coverage.is_watched(path)):
            raise ImportError("not a script with edited pieces", path=path)
        self._path = path

    def find_spec(self, name: str, target: Any = None) -> Optional[importlib.machinery.ModuleSpec]:
        """Return the specification of `__main__`."""
        if name != "__main__":
            return None
        spec = importlib.util.spec_from_loader(name, self, origin=self._path)  # type: ignore[arg-type]
        assert spec is not None
        spec.has_location = True
        return spec

    def get_code(self, name: str) -> Any:
        """Return the code of the script, and put its folder on `sys.path` as Python does."""
        folder = os.path.dirname(os.path.realpath(self._path))
        sys.path[:] = [folder if entry == self._path else entry for entry in sys.path]
        with open(self._path, "rb") as file:
            data = file.read()
        tree = ast.parse(data, self._path)
        coverage.watch(tree, self._path, data)
        after = sum(1 for each in tree.body if coverage.is_future_import(each))
        after += ast.get_docstring(tree, clean=False) is not None
        tree.body[after:after] = ast.parse(_PLAIN).body
        return coverage.compiled(tree, self._path, "exec", dont_inherit=True)
