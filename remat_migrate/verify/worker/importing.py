"""Something done right after a module has run for the first time, without importing it."""

from __future__ import annotations

import sys
from typing import Any, Callable, Optional


def after_import(name: str, action: Callable[[Any], None]) -> None:
    """Call `action(module)` when the module of that name has been imported, at once if it has."""
    if name in sys.modules:
        action(sys.modules[name])
    else:
        sys.meta_path.insert(0, _Finder(name, action))


class _Finder:
    def __init__(self, name: str, action: Callable[[Any], None]) -> None:
        self._name = name
        self._action = action

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Optional[Any]:
        if name != self._name:
            return None
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        for finder in list(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find is not None else None
            if spec is not None:
                break
        else:
            return None
        run = getattr(spec.loader, "exec_module", None)
        if run is not None:

            def exec_module(module: Any) -> None:
                run(module)
                self._action(module)

            spec.loader.exec_module = exec_module
        return spec
