"""Showing what a run would use: `--show-settings` and `--show-files`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..discovery.survey import survey
from ..errors import UsageError
from ..report.output import write_lines
from ..settings import Options, Settings
from ..settings.shown import settings_lines
from .exit_codes import CLEAN


def inspect_run(
    paths: Sequence[Path], stdin_filename: Path | None, options: Options, *, files_only: bool
) -> int:
    """Print the files that would be checked, or the settings of the first one.

    Raises:
        UsageError: a path does not exist, or there are no files.
        SettingsError: the settings or the options are invalid.
    """
    if Path("-") in paths:
        paths = [stdin_filename] if stdin_filename else []
    about = survey(paths, options)
    files = sorted((*about.targets.python, *about.targets.texts))
    if files_only:
        write_lines(files, sys.stdout)
        return CLEAN
    if not files:
        raise UsageError("no files found under the given paths")
    first = Path(min(about.targets.python, default=files[0]))
    write_lines(_resolved(first, about.nearest.of(first)), sys.stdout)
    return CLEAN


def _resolved(file: Path, settings: Settings) -> Iterator[str]:
    yield f'Resolved settings for: "{file}"'
    if settings.config:
        yield f'Settings path: "{settings.config}"'
    yield ""
    yield from settings_lines(settings)
