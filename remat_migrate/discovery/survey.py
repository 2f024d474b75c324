"""What a run is about: paths and options to settings and files, without rules and model.

Their import takes longer than all of this.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..settings import Settings, Severity, load_settings, with_options
from .discover import Scans, Targets, check_paths, list_context, list_targets
from .roots import find_root


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line says about the analysis; empty and None leave it to the settings.

    With `force_exclude` what the settings exclude is passed by even where it is named.
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
    """What a run is about; files by absolute name, sorted as their paths are.

    Attributes:
        settings: the run's settings.
        python: the Python files to look at.
        texts: the files of other kinds to look at.
        context: Python files to read, those of `python` among them.
        barren: folders that were named and have no Python file.
        folders: those that were named, or the current one.
    """

    settings: Settings
    python: tuple[str, ...]
    texts: tuple[str, ...]
    context: tuple[str, ...]
    barren: tuple[Path, ...] = ()
    folders: tuple[Path, ...] = ()

    def as_paths(self) -> tuple[Targets, tuple[Path, ...]]:
        """The targets and the context."""
        context = {name: Path(name) for name in self.context}
        python = tuple(context.get(name) or Path(name) for name in self.python)
        return Targets(python, tuple(map(Path, self.texts)), self.barren), tuple(context.values())


def survey(paths: Sequence[Path], options: Options) -> Survey:
    """What a run over the files below `paths` is about, the current folder without any.

    Raises:
        UsageError: a path does not exist.
        SettingsError: the settings or the options are wrong.
    """
    paths = paths or [Path.cwd()]
    check_paths(paths)
    settings = chosen_settings(paths, options)
    scans = Scans()
    found = list_targets(paths, settings, force_exclude=options.force_exclude, scans=scans)
    context = list_context(settings.root, found.python, scans) if found.python else ()
    folders = tuple(Path(os.path.realpath(path)) for path in paths if path.is_dir())
    return Survey(settings, found.python, found.texts, context, found.barren, folders)


def chosen_settings(paths: Sequence[Path], options: Options) -> Settings:
    """The settings that hold for paths, and the command line instead.

    Raises:
        SettingsError: they are wrong.
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
