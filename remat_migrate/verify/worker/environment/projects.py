"""Which files belong to the project under test."""

from __future__ import annotations

import functools
import os
import sys
from typing import Any, Callable, List

_LIBRARIES = frozenset(["site-packages", "dist-packages"])
_roots: List[str] = []

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


def place_of(source_info: Any) -> str:
    """Return the innermost line of the project in a JAX traceback, as `model.py:14`."""
    found = getattr(source_info, "traceback", None)
    for frame in found.frames if found is not None else ():
        if is_project_file(frame.file_name):
            return "%s:%d" % (relative(frame.file_name), frame.line_num)
    return ""


def relative(path: str) -> str:
    """Return the path from the project's root, with `/`."""
    real = real_path(path)
    for root in _roots:
        if real.startswith(root):
            return real[len(root) :].replace(os.sep, "/")
    return path
