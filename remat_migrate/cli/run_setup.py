"""Setting up a run: its files and baseline, progress, verification."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..console import debug
from ..engine.baseline import BaselineChoice, read_baseline
from ..errors import UsageError
from .jax_commands import chosen_verification
from .progress_bar import progress_bar

if TYPE_CHECKING:
    from ..discovery.discover import Survey
    from ..engine.run import Run
    from ..settings import Options, Settings
    from ..verify.options import VerifyOptions

# Runs that take fewer seconds show no progress bar.
PATIENCE = 1.0


def set_up_run(
    paths: Sequence[Path],
    stdin_filename: Path | None,
    options: Options,
    baseline: BaselineChoice,
    about: Survey | None,
) -> Run:
    """Return the run that the command line asks for, and warn of folders without Python files.

    Raises:
        RematMigrateError: the command line, the settings, or the baseline is invalid.
    """
    from ..engine.run import prepare, prepare_stdin
    from ..report.output import say, screen_of
    from ..report.terminal.display import pluralize

    if Path("-") in paths:
        if len(paths) > 1:
            raise UsageError("`-` (stdin) cannot be combined with other paths")
        if baseline.write:
            raise UsageError("--write-baseline cannot be combined with `-` (stdin)")
        filename = stdin_filename or Path("stdin.py")
        run = prepare_stdin(sys.stdin.buffer.read(), filename, options)
    elif stdin_filename is not None:
        raise UsageError("--stdin-filename requires the path `-`")
    else:
        run = prepare(paths, options, about)
        screen = screen_of(sys.stderr)
        for folder in run.targets.barren:
            others = len(run.targets.texts)
            more = f"; checked {pluralize(others, 'other file')}" if others else ""
            say(f"warning: no Python files under {screen.path(folder)}{more}")
    file = baseline.used(run.settings)
    return replace(run, baseline=read_baseline(file)) if file else run


def describe_run(run: Run) -> None:
    """Print, with `--verbose`, which settings, files and rules a run uses."""
    for settings in run.nearest.every:
        folder = settings.config.parent if settings.config else run.settings.root
        debug(f"settings for {folder}: {settings.config or 'the defaults'}")
    debug(f"project folder: {run.settings.root}")
    python, texts = len(run.targets.python), len(run.targets.texts)
    debug(f"checking {python} Python and {texts} other files; {len(run.context)} to look names up")
    debug(f"rules: {', '.join(rule.code for rule in run.enabled_rules)}")


@contextmanager
def with_progress(run: Run, label: str) -> Iterator[Run]:
    """Yield the run with a progress bar, which appears if it takes long."""
    with progress_bar(label, after=PATIENCE) as progress:
        yield replace(run, progress=progress)


def verification(
    settings: Settings, wanted: bool, *, strict: bool = False, **how: Any
) -> VerifyOptions | None:
    """Return the options of the verification; None without --verify.

    Raises:
        UsageError: an option requires --verify, which is not given.
    """
    if wanted:
        return replace(chosen_verification(settings, **how), strict=strict)
    for name, value in how.items():
        if value is not None:
            raise UsageError(f"--{name.replace('_', '-')} requires --verify")
    return None
