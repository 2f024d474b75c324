"""What stands before and around a run: its files, what a killed run left, progress, proofs."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import UsageError
from .execution import verification
from .progress_bar import progress_bar

if TYPE_CHECKING:
    from ..discovery.survey import Options, Survey
    from ..engine.baseline import Choice
    from ..engine.run import Run
    from .check import Trial

# So many seconds nobody wants to be told anything.
PATIENCE = 1.0


def begin(
    paths: Sequence[Path],
    stdin_filename: Path | None,
    options: Options,
    known: Choice,
    about: Survey | None,
) -> Run:
    """The run that the command line asks for, with what it says about the paths."""
    from ..engine.run import prepare, prepare_stdin, prepare_survey
    from ..report.output import say, screen_of
    from ..report.terminal.display import pluralize
    from .check import with_baseline

    if Path("-") in paths:
        if len(paths) > 1:
            raise UsageError("- stands for one file on standard input: name no other path")
        if known.write:
            raise UsageError("--write-baseline takes in files, not a text on standard input")
        filename = stdin_filename or Path("stdin.py")
        text = sys.stdin.buffer.read()
        return with_baseline(prepare_stdin(text, filename, options), known)
    if stdin_filename is not None:
        raise UsageError("--stdin-filename needs the path -")
    run = prepare_survey(about) if about else prepare(paths, options)
    screen = screen_of(sys.stderr)
    for folder in run.targets.barren:
        others = len(run.targets.texts)
        more = f"; looked at {pluralize(others, 'other file')}" if others else ""
        say(f"no Python files under {screen.path(folder)}{more}")
    return with_baseline(run, known)


def put_back_before(paths: Sequence[Path]) -> None:
    """Put back what a run that was killed left half done, before the code is looked at."""
    from ..discovery.roots import find_root
    from ..engine.journal_entries import open_files

    root = find_root(paths or [Path.cwd()])
    if not open_files(root):
        return
    from ..engine.undo import clean_up_killed_run
    from ..report.output import say, screen_of
    from ..report.terminal.fixing import put_back

    for line in put_back(clean_up_killed_run(root), screen_of(sys.stderr)):
        say(line)


@contextmanager
def watched(run: Run, label: str) -> Iterator[Run]:
    """The run with a progress bar, which comes where it takes long."""
    from dataclasses import replace

    with progress_bar(label, after=PATIENCE) as progress:
        yield replace(run, progress=progress)


@contextmanager
def trial_of(run: Run, wanted: bool, *, strict: bool, **how: Any) -> Iterator[Trial | None]:
    """How fixes are proved, with a progress bar; None where that is not asked for."""
    if not wanted:
        if given := [name for name, value in how.items() if value is not None]:
            raise UsageError(
                f"--{given[0].replace('_', '-')} says how to verify: give --verify, too"
            )
        yield None
        return
    from dataclasses import replace

    from .check import Trial

    options = replace(verification(run.settings, **how), strict=strict)
    with progress_bar() as progress:
        yield Trial(options, progress)
