"""The options of all commands that say how much to print, and in which colors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import click

from ..console import When, configure
from ..errors import UsageError

_FLAGS = ("-q", "--quiet", "-v", "--verbose", "-qv", "-vq")
_COLORS = ("auto", "always", "never")


def output_control(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--quiet`, `--verbose` and `--color` to a command."""

    @click.option("--quiet", "-q", is_flag=True, help="Print findings and errors, nothing else.")
    @click.option("--verbose", "-v", is_flag=True, help="Print what the run does.")
    @click.option(
        "--color",
        type=click.Choice(_COLORS),
        help="When to use colors.  [default: auto; env: NO_COLOR, FORCE_COLOR]",
    )
    @wraps(command)
    def controlled(quiet: bool, verbose: bool, color: When | None, **more: Any) -> Any:
        if quiet and verbose:
            raise UsageError("--quiet cannot be combined with --verbose")
        configure(quiet=quiet, verbose=verbose, color=color)
        return command(**more)

    return controlled


def behind_command(args: Sequence[str], commands: Sequence[str]) -> list[str]:
    """Move these options behind a command that they precede: `-q report` becomes `report -q`."""
    at = 0
    while at < len(args) and (args[at] in _FLAGS or args[at].startswith("--color")):
        at += 2 if args[at] == "--color" else 1
    if 0 < at < len(args) and args[at] in commands:
        return [args[at], *args[:at], *args[at + 1 :]]
    return list(args)
