"""Surveying a run: its settings and files, without importing rules or analysis."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..settings import Settings, Severity, load_settings, with_options
from .discover import Targets, check_paths, list_context, list_targets
from .listing import FolderCache
from .roots import find_root


@dataclass(frozen=True, slots=True)
class Options:
    """The command-line options for the analysis; empty values and None defer to the settings.

    `force_exclude` excludes files even if they are given explicitly.
    """

    select: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    jax_version: str | None = None
    jobs: int | None = None
    force_exclude: bool = False
    fail_on: Severity | None = None

    @property
    def chooses_rules(self) -> bool:
        """Return whether the options decide which rules run, or what they report."""
        return bool(self.select or self.extend_select or self.ignore or self.jax_version)


@dataclass(frozen=True, slots=True)
class Survey:
    """The settings and files of a run. Files are absolute names, sorted like paths.

    Attributes:
        settings: the settings.
        python: the Python files to check.
        texts: the files of other kinds to check.
        context: the Python files to read, including `python`.
        barren: the given folders that have no Python files.
        folders: the given folders, or the current one.
    """

    settings: Settings
    python: tuple[str, ...]
    texts: tuple[str, ...]
    context: tuple[str, ...]
    barren: tuple[Path, ...] = ()
    folders: tuple[Path, ...] = ()

    def as_paths(self) -> tuple[Targets, tuple[Path, ...]]:
        """Return the targets and the context as paths."""
        context = {name: Path(name) for name in self.context}
        python = tuple(context.get(name) or Path(name) for name in self.python)
        return Targets(python, tuple(map(Path, self.texts)), self.barren), tuple(context.values())


def survey(paths: Sequence[Path], options: Options) -> Survey:
    """Survey a run over the files under `paths`, by default the current folder.

    Raises:
        UsageError: a path does not exist.
        SettingsError: the settings or the options are invalid.
    """
    paths = paths or [Path.cwd()]
    check_paths(paths)
    settings = chosen_settings(paths, options)
    cache = FolderCache()
    found = list_targets(paths, settings, force_exclude=options.force_exclude, cache=cache)
    context = list_context(settings.root, found.python, cache) if found.python else ()
    folders = tuple(Path(os.path.realpath(path)) for path in paths if path.is_dir())
    return Survey(settings, found.python, found.texts, context, found.barren, folders)


def chosen_settings(paths: Sequence[Path], options: Options) -> Settings:
    """Return the settings for the first of `paths`, overridden by the options.

    Raises:
        SettingsError: the settings or the options are invalid.
    """
    start = Path(os.path.realpath(paths[0]))
    return with_options(
        load_settings(find_root(paths), start),
        select=options.select,
        extend_select=options.extend_select,
        ignore=options.ignore,
        jax_version=options.jax_version,
        jobs=options.jobs,
        fail_on=options.fail_on,
    )
