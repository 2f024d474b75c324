"""`--watch`: checking again whenever files change."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from ..discovery.file_kinds import is_checked_name
from ..discovery.roots import FOREIGN
from ..errors import RematMigrateError, UsageError
from ..report.output import say
from .exit_codes import CLEAN

_CLEAR = "\x1b[H\x1b[2J\x1b[3J"


def check_again(paths: Sequence[Path], check: Callable[[], int]) -> int:
    """Check, and again whenever a file under the paths changes, until interrupted.

    Raises:
        UsageError: watchfiles is not installed, or a path does not exist.
    """
    try:
        from watchfiles import watch
    except ImportError as error:
        raise UsageError(
            "--watch requires watchfiles; run: pip install 'remat-migrate[watch]'"
        ) from error
    from ..discovery.discover import check_paths

    check_paths(paths)
    gc.enable()  # A single run ends before it would pay off.
    gc.freeze()
    watched = [path.resolve() for path in paths or [Path.cwd()]]
    folders = {path if path.is_dir() else path.parent for path in watched}
    _check_once(check)
    for _ in watch(*folders, watch_filter=_matters, raise_interrupt=False):
        _check_once(check)
    return CLEAN


def _check_once(check: Callable[[], int]) -> None:
    if sys.stdout.isatty():
        print(_CLEAR, end="", flush=True)
    try:
        check()
    except RematMigrateError as error:  # Such as settings that are being edited.
        say(f"error: {error}")
    print("Watching for changes; press Ctrl-C to stop.", file=sys.stderr, flush=True)


def _matters(change: object, path: str) -> bool:
    """Return whether a changed file may change the findings."""
    file = Path(path)
    return FOREIGN.isdisjoint(file.parts) and is_checked_name(file.name)
