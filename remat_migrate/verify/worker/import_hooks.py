"""Run a function right after a module is first imported, without importing the module."""

from __future__ import annotations

import importlib.util
import sys
from typing import Any, Callable, Optional

Action = Callable[[Any], None]


def after_import(name: str, action: Action) -> None:
    """Call `action(module)` after the module of that name is imported; at once if it is."""
    if name in sys.modules:
        action(sys.modules[name])
    else:
        sys.meta_path.insert(0, _Finder(name, action))


class _Finder:
    """A finder whose loader runs the action after the module."""

    def __init__(self, name: str, action: Action) -> None:
        self._name = name
        self._action = action
        self._finding = False

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Optional[Any]:
        """Return the spec that the other finders give, with a loader that runs the action."""
        if name != self._name or self._finding:
            return None
        self._finding = True
        try:
            spec: Any = importlib.util.find_spec(name)
        finally:
            self._finding = False
        run = getattr(getattr(spec, "loader", None), "exec_module", None)
        if run is None:
            return spec

        def exec_module(module: Any) -> None:
            run(module)
            self._action(module)

        spec.loader.exec_module = exec_module
        return spec
