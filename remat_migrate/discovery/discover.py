"""Finding the files of a run: the targets to check, and the context to read."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ..errors import UsageError
from ..settings import NearestSettings, Options, Settings, load_settings
from .file_kinds import is_checked_name, is_python
from .globs import matcher
from .listing import entries_of, list_names
from .roots import FOREIGN, absolute, find_root, is_foreign, is_project, is_too_wide, repository

# Of a folder outside any project, so many folders below it are read, the nearest first.
_MOST_FOLDERS = 200

_List = Callable[[str], list[str]]


def _listed(folder: str) -> list[str]:
    return list_names(folder, is_checked_name)


@dataclass(frozen=True, slots=True)
class Targets:
    """The files to check, as sorted real paths.

    Attributes:
        python: Python files.
        texts: files of other kinds in which JAX flags are set.
        barren: the given folders that have no Python files.
    """

    python: tuple[Path, ...]
    texts: tuple[Path, ...]
    barren: tuple[Path, ...] = ()


def check_paths(paths: Sequence[Path]) -> None:
    """Check that each path is a file or a folder.

    Raises:
        UsageError: some are not; the message names them all.
    """
    problems = [problem for path in paths if (problem := _problem(path))]
    if problems:
        raise UsageError("\n".join(problems))


def _problem(path: Path) -> str:
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        hint = " (a broken symbolic link)" if path.is_symlink() else ""
        return f"{path}: no such file or folder{hint}"
    except (OSError, ValueError) as error:
        return f"{path}: {getattr(error, 'strerror', None) or error}"
    return "" if stat.S_ISDIR(mode) or stat.S_ISREG(mode) else f"{path}: not a file or folder"


def discover(
    paths: Sequence[Path],
    nearest: NearestSettings,
    *,
    force_exclude: bool = False,
    list_of: _List = _listed,
) -> Targets:
    """Find the files to check.

    Args:
        paths: files, which are always checked, and folders.
        nearest: the settings, which exclude files; those of the files are read.
        force_exclude: also exclude given files, as commit hooks need.
        list_of: lists the files below a folder.

    Raises:
        UsageError: a path does not exist.
        SettingsError: settings are invalid.
    """
    check_paths(paths)
    python: set[str] = set()
    texts: set[str] = set()
    barren: list[Path] = []
    for path in map(absolute, paths):
        if not path.is_dir():
            nearest.read([os.path.dirname(path)])
            if not (
                force_exclude
                and (is_excluded(nearest, path) or is_foreign(path, nearest.main.root))
            ):
                (python if is_python(path) else texts).add(str(path))
            continue
        found = list_of(str(path))
        nearest.read({os.path.dirname(file) for file in found})
        if any(settings.exclude for settings in nearest.every):
            found = [file for file in found if not is_excluded(nearest, Path(file), path)]
        modules = set(filter(is_python, found))
        python |= modules
        texts |= {*found} - modules
        if not modules:
            barren.append(path)
    return Targets(_in_path_order(python), _in_path_order(texts), tuple(barren))


def is_excluded(nearest: NearestSettings, path: Path, below: Path | None = None) -> bool:
    """Return whether the settings exclude a file.

    Args:
        nearest: the settings of each file.
        path: the file.
        below: the folder that was given; folders in it that have their own settings may be
            excluded by those around them.
    """
    if _excludes(nearest.of(path), path):
        return True
    for folder in path.parents if below else ():
        if folder == below:
            break
        around = nearest.around(folder)
        # A pattern for folders matches what is in them.
        if around is not None and _excludes(around, folder / "_"):
            return True
    return False


def _excludes(settings: Settings, path: Path) -> bool:
    globs = settings.exclude
    return globs is not None and matcher(globs.patterns, globs.base)(path)


def context_files(root: Path, targets: Targets, list_of: _List = _listed) -> tuple[Path, ...]:
    """Find all Python files of the repository, which may call functions in the targets.

    Includes excluded files, which are read but not changed. Outside any project, returns only the
    targets and the files next to and below them, in at most so many folders.
    """
    python = list(map(str, targets.python))
    if is_project(root):
        return _in_path_order({*python, *filter(is_python, list_of(str(repository(root))))})
    folders = [*dict.fromkeys(map(os.path.dirname, python))]
    near: set[str] = set(python)
    for folder in folders:
        for name, path, is_folder in entries_of(folder):
            if is_folder and len(folders) < _MOST_FOLDERS and not is_too_wide(root):
                if path not in folders and name not in FOREIGN and not name.startswith("."):
                    folders.append(path)
            elif not is_folder and is_checked_name(name) and is_python(path):
                near.add(path)
    return _in_path_order(near)


def _in_path_order(files: Iterable[str]) -> tuple[Path, ...]:
    """Sort files like paths, so that the files of a folder stay together."""
    ordered = sorted(files, key=lambda file: os.path.normcase(file).replace(os.sep, "\0"))
    return tuple(map(Path, ordered))


@dataclass(frozen=True, slots=True)
class Survey:
    """The settings and files of a run. Files are real paths, sorted.

    Attributes:
        settings: the settings of the run.
        nearest: the settings of each file.
        targets: the files to check.
        context: the Python files to read, including the Python targets.
        folders: the given folders, or the current one.
    """

    settings: Settings
    nearest: NearestSettings
    targets: Targets
    context: tuple[Path, ...]
    folders: tuple[Path, ...] = ()


def survey(paths: Sequence[Path], options: Options) -> Survey:
    """Survey a run over the files under `paths`, by default the current folder.

    Raises:
        UsageError: a path does not exist.
        SettingsError: the settings or the options are invalid.
    """
    paths = paths or [Path.cwd()]
    check_paths(paths)
    nearest = nearest_settings(paths, options)
    root = nearest.main.root
    folders = tuple(path for path in map(absolute, paths) if path.is_dir())
    list_of = cache(_listed)
    found = discover(paths, nearest, force_exclude=options.force_exclude, list_of=list_of)
    context = context_files(root, found, list_of) if found.python else ()
    return Survey(nearest.of_run(), nearest, found, context, folders)


def nearest_settings(paths: Sequence[Path], options: Options) -> NearestSettings:
    """Return the settings of the files of a run, those of the run being those of the first path.

    Raises:
        SettingsError: the settings or the options are invalid.
    """
    main = load_settings(find_root(paths), absolute(paths[0]), options)
    return NearestSettings(main, options)
