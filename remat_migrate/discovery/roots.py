"""Where a project is, and whose a folder is: the project's, somebody else's, or a build's."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

# Folders of other people's code and of caches: passed by even where they are committed.
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
# What a build writes. A file in such a folder that is committed is source: JAX keeps its build
# scripts in `build/`.
BUILT = frozenset({"build", "dist"})
ROOT_MARKERS = ("pyproject.toml", "setup.py", "setup.cfg", ".git")


def find_root(paths: Sequence[Path]) -> Path:
    """The project's folder: the nearest one above all of `paths` that has a project's marker.

    Without a marker it is the folder that the paths have in common. The home folder and the top of
    the file system are no projects, whatever lies in them.
    """
    folders = [path if path.is_dir() else path.parent for path in map(absolute, paths)]
    common = Path(os.path.commonpath(folders)) if folders else Path.cwd()
    for folder in (common, *common.parents):
        if is_too_wide(folder):
            break
        if any((folder / marker).exists() for marker in ROOT_MARKERS):
            return folder
    return common


def absolute(path: Path) -> Path:
    """A path as it is without symbolic links."""
    return Path(os.path.realpath(path))


def is_too_wide(folder: Path) -> bool:
    """Whether a folder is no project, whatever lies in it: the home folder, or the top."""
    return folder.parent == folder or folder == _home()


def _home() -> Path | None:
    try:
        return absolute(Path.home())
    except RuntimeError:
        return None


def repository(root: Path) -> Path:
    """The repository that a project belongs to; the project's own folder if to none."""
    for folder in (root, *root.parents):
        if not is_too_wide(folder) and (folder / ".git").exists():
            return folder
    return root


def is_foreign(path: Path, root: Path) -> bool:
    """Whether a file lies in a folder that a run over all of the project passes by."""
    root = repository(root)
    folders = path.relative_to(root).parent.parts if path.is_relative_to(root) else ()
    return not FOREIGN.isdisjoint(folders)


def foreign_part(path: Path, root: Path) -> str | None:
    """What of a path in a project is not the project's: a folder of git, an environment."""
    *folders, name = path.relative_to(root).parts
    for part in (*folders, name):
        if part.lower() in FOREIGN:  # some file systems know no capital letters
            return part
    above = root
    for part in folders:
        above /= part
        if os.path.lexists(above / "pyvenv.cfg"):
            return part
    return None
