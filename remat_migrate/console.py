"""How much a run prints, and how: the options `--quiet`, `--verbose`, and `--color`."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import Literal

When = Literal["auto", "always", "never"]


@dataclass(frozen=True, slots=True)
class _Console:
    quiet: bool = False
    verbose: bool = False
    color: When = "auto"


_console = _Console()


def configure(*, quiet: bool = False, verbose: bool = False, color: When | None = None) -> None:
    """Set the options of this run.

    Args:
        quiet: print findings and errors, nothing else.
        verbose: also print what the run does.
        color: when to use colors; None for what the environment says.
    """
    global _console
    _console = _Console(quiet, verbose, color or "auto")


def is_quiet() -> bool:
    """Return whether only findings and errors are printed."""
    return _console.quiet


def wants_color(is_terminal: bool) -> bool:
    """Return whether to color what is written to a stream.

    Without `--color`, NO_COLOR forbids it, FORCE_COLOR forces it (https://no-color.org,
    https://force-color.org).
    """
    if _console.color != "auto":
        return _console.color == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return is_terminal and os.environ.get("TERM") != "dumb"


def debug(message: str) -> None:
    """Print what the run does, with `--verbose`."""
    if _console.verbose:
        print(f"debug: {message}", file=sys.stderr)
