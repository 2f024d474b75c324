"""The root of a project, and the folders in it that hold third-party or built files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

# Third-party code and caches, which are skipped even if they are committed.
FOREIGN = frozenset(
    {
        ".eggs",
        ".git",
        ".hg",
        ".ipynb_checkpoints",
        ".mypy_cache",
        ".nox",
        ".pytest_cache",
        ".remat_migrate",
        ".ruff_cache",
        ".svn",
        ".tox",
        ".venv",
        "__pycache__",
        "node_modules",
        "site-packages",
        "venv",
    }
)
# Build outputs, unless they are committed: JAX keeps its build scripts in `build/`.
BUILT = frozenset({"build", "dist"})
ROOT_MARKERS = ("pyproject.toml", "setup.py", "setup.cfg", ".git")


def find_root(paths: Sequence[Path]) -> Path:
    """Return the nearest folder above all of `paths` that has a project marker.

    Without one, returns the common folder of the paths. The home folder and the root of the file
    system are never projects.
    """
    folders = [path if path.is_dir() else path.parent for path in map(absolute, paths)]
    common = Path(os.path.commonpath(folders)) if folders else Path.cwd()
    for folder in (common, *common.parents):
        if is_too_wide(folder):
            break
        if is_project(folder):
            return folder
    return common


def is_project(folder: Path) -> bool:
    """Return whether a folder has a project marker, and may be a project."""
    return not is_too_wide(folder) and any((folder / m).exists() for m in ROOT_MARKERS)


def absolute(path: Path) -> Path:
    """Return the real path, with symbolic links resolved."""
    return Path(os.path.realpath(path))


def is_too_wide(folder: Path) -> bool:
    """Return whether a folder is the home folder or the root of the file system."""
    home = os.path.expanduser("~")  # unlike `Path.home()`, never an error
    return folder.parent == folder or folder == absolute(Path(home))


def repository(root: Path) -> Path:
    """Return the repository that a project belongs to, or else the project folder."""
    for folder in (root, *root.parents):
        if not is_too_wide(folder) and (folder / ".git").exists():
            return folder
    return root


def outermost_project(path: Path) -> Path | None:
    """Return the outermost folder above a real path that is a project or the working folder."""
    working = absolute(Path.cwd())
    outermost = None
    for folder in (path, *path.parents):
        if is_too_wide(folder):
            break
        if folder == working or any(os.path.lexists(folder / marker) for marker in ROOT_MARKERS):
            outermost = folder
    return outermost


def is_foreign(path: Path, root: Path) -> bool:
    """Return whether a file is in a folder that runs over the whole project skip."""
    root = repository(root)
    folders = path.relative_to(root).parent.parts if path.is_relative_to(root) else ()
    return not FOREIGN.isdisjoint(folders)


def foreign_part(path: Path, root: Path) -> str | None:
    """Return the part of a path that is not the project's own, such as `.git` or `venv`."""
    *folders, name = path.relative_to(root).parts
    for part in (*folders, name):
        if part.lower() in FOREIGN:  # Some file systems ignore case.
            return part
    above = root
    for part in folders:
        above /= part
        if os.path.lexists(above / "pyvenv.cfg"):
            return part
    return None
