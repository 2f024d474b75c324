"""How much a run prints, and how: the options `--quiet` and `--verbose`, and colors."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class _Console:
    quiet: bool = False
    verbose: bool = False


_console = _Console()


def configure(*, quiet: bool = False, verbose: bool = False) -> None:
    """Set the options of this run.

    Args:
        quiet: print findings and errors, nothing else.
        verbose: also print what the run does.
    """
    global _console
    _console = _Console(quiet, verbose)


def is_quiet() -> bool:
    """Return whether only findings and errors are printed."""
    return _console.quiet


def wants_color(is_terminal: bool) -> bool:
    """Return whether to color what is written to a stream.

    NO_COLOR forbids it, FORCE_COLOR forces it (https://no-color.org, https://force-color.org).
    """
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return is_terminal and os.environ.get("TERM") != "dumb"


def debug(message: str) -> None:
    """Print what the run does, with `--verbose`."""
    if _console.verbose:
        print(f"debug: {message}", file=sys.stderr)
