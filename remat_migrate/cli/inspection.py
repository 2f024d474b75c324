"""Showing what a run would use: `--show-settings` and `--show-files`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..console import debug
from ..discovery.survey import survey
from ..engine.run import Run
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


def describe_run(run: Run) -> None:
    """Print, with `--verbose`, which settings, files and rules a run uses."""
    for settings in run.nearest.every:
        folder = settings.config.parent if settings.config else run.settings.root
        debug(f"settings for {folder}: {settings.config or 'the defaults'}")
    debug(f"project folder: {run.settings.root}")
    python, texts = len(run.targets.python), len(run.targets.texts)
    debug(f"checking {python} Python and {texts} other files; {len(run.context)} to look names up")
    debug(f"rules: {', '.join(rule.code for rule in run.enabled_rules)}")


def _resolved(file: Path, settings: Settings) -> Iterator[str]:
    yield f'Resolved settings for: "{file}"'
    if settings.config:
        yield f'Settings path: "{settings.config}"'
    yield ""
    yield from settings_lines(settings)
