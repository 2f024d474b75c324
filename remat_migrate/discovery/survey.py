"""Surveying a run: its settings and files, without importing rules or analysis."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..settings import NearestSettings, Options, Settings, load_settings
from .discover import Targets, check_paths, context_files, discover
from .listing import FolderCache
from .roots import find_root


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
    cache = FolderCache()
    found = discover(paths, nearest, force_exclude=options.force_exclude, cache=cache)
    named = list(map(os.path.realpath, paths))
    context = context_files(root, found, cache) if found.python else ()
    folders = tuple(Path(path) for path in named if os.path.isdir(path))
    return Survey(nearest.of_run(), nearest, found, context, folders)


def nearest_settings(paths: Sequence[Path], options: Options) -> NearestSettings:
    """Return the settings of the files of a run, those of the run being those of the first path.

    Raises:
        SettingsError: the settings or the options are invalid.
    """
    return NearestSettings(chosen_settings(paths, options), options)


def chosen_settings(paths: Sequence[Path], options: Options) -> Settings:
    """Return the settings for the first of `paths`, overridden by the options.

    Raises:
        SettingsError: the settings or the options are invalid.
    """
    start = Path(os.path.realpath(paths[0]))
    return load_settings(find_root(paths), start, options)
