"""The options of all commands that say how much to print, and in which colors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import click

from ..console import configure
from ..errors import UsageError

_FLAGS = ("-q", "--quiet", "-v", "--verbose", "-qv", "-vq")


def output_control(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--quiet` and `--verbose` to a command."""

    @click.option("--quiet", "-q", is_flag=True, help="Print findings and errors, nothing else.")
    @click.option("--verbose", "-v", is_flag=True, help="Print what the run does.")
    @wraps(command)
    def controlled(quiet: bool, verbose: bool, **more: Any) -> Any:
        if quiet and verbose:
            raise UsageError("--quiet cannot be combined with --verbose")
        configure(quiet=quiet, verbose=verbose)
        return command(**more)

    return controlled


def behind_command(args: Sequence[str], commands: Sequence[str]) -> list[str]:
    """Move these options behind a command that they precede: `-q report` becomes `report -q`."""
    at = 0
    while at < len(args) and args[at] in _FLAGS:
        at += 1
    if 0 < at < len(args) and args[at] in commands:
        return [args[at], *args[:at], *args[at + 1 :]]
    return list(args)
