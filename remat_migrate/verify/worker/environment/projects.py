"""Which files belong to the project under test."""

from __future__ import annotations

import builtins
import functools
import importlib.util
import os
import sys
from typing import Any, Callable, Dict, List, Set

_LIBRARIES = frozenset(["site-packages", "dist-packages"])
_roots: List[str] = []
# The files of the project that each of its files imports.
_imports: Dict[str, Set[str]] = {}

# Every import and many attributes ask for the paths of the same files.
real_path: Callable[[str], str] = functools.lru_cache(maxsize=None)(os.path.realpath)


def add(root: str) -> None:
    """Treat files below this folder as the project's."""
    found = os.path.realpath(root) + os.sep
    if found not in _roots:
        _roots.append(found)


def is_project_file(path: Any) -> bool:
    """Return whether a file is the project's; packages installed below its folder are not."""
    if not isinstance(path, str) or path.startswith("<"):
        return False
    for root in _roots:
        if path.startswith(root) or real_path(path).startswith(root):
            return not _LIBRARIES.intersection(path.split(os.sep))
    return False


def is_project_module(name: str) -> bool:
    """Return whether an imported module is the project's."""
    return is_project_file(getattr(sys.modules.get(name), "__file__", None))


def relative(path: str) -> str:
    """Return the path from the project's root, with `/`."""
    real = real_path(path)
    for root in _roots:
        if real.startswith(root):
            return real[len(root) :].replace(os.sep, "/")
    return path


def record_imports() -> None:
    """Record from now on which files of the project each of its files imports."""
    original = builtins.__import__

    @functools.wraps(original)
    def recording(
        name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
    ) -> Any:
        found = original(name, globals, locals, fromlist, level)
        file = (globals or {}).get("__file__")
        if is_project_file(file):
            package = "." * level + name if level else name
            absolute = importlib.util.resolve_name(package, globals.get("__package__") or "")
            for module in (absolute, *("%s.%s" % (absolute, member) for member in fromlist or ())):
                if is_project_module(module):
                    _imports.setdefault(str(file), set()).add(str(sys.modules[module].__file__))
        return found

    builtins.__import__ = recording


def reached(path: str) -> Set[str]:
    """Return a file, and those that its imports have run, packages included."""
    found: Set[str] = set()
    waiting = [path]
    while waiting:
        file = waiting.pop()
        if file not in found:
            found.add(file)
            waiting += _imports.get(file, ())
            package = os.path.join(os.path.dirname(file), "__init__.py")
            while os.path.exists(package):
                waiting.append(package)
                package = os.path.join(os.path.dirname(os.path.dirname(package)), "__init__.py")
    return found
