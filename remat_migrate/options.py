"""Options that several commands share, and the group that takes `check` as its default."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click


class DefaultGroup(click.Group):
    """A group whose first word may be left out where it is `check`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put `check` before arguments that name no command."""
        if not args or args[0] not in {"--help", "-h", "--version", *self.commands}:
            args = ["check", *args]
        # Not an option with a value: `--verify src/` would take the path for it.
        args = ["--verify-strict" if arg == "--verify=strict" else arg for arg in args]
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The options of `check`, too: they come without naming it."""
        check = self.commands["check"]
        rows = [row for p in check.get_params(ctx) if (row := p.get_help_record(ctx))]
        with formatter.section("Options of check"):
            formatter.write_dl([row for row in rows if "--help" not in row[0]])
        super().format_options(ctx, formatter)


def _codes(
    ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> tuple[str, ...]:
    """Codes, whether an option is repeated or they have commas between them."""
    return tuple(code for value in values for code in value.split(",") if code.strip())


_Command = Callable[..., Any]


def analysis_options(command: _Command) -> _Command:
    """The paths, and the options that say what is analysed and where the report goes."""
    for decorate in (
        click.option("--exit-zero", is_flag=True, help="Exit with 0 even if findings are left."),
        click.option(
            "--output-file",
            "-o",
            type=click.Path(dir_okay=False, path_type=Path),
            metavar="FILE",
            help="Write the report there instead of to standard output.",
        ),
        click.option("--no-cache", is_flag=True, help="Accepted; nothing is cached so far."),
        click.option(
            "--jobs",
            "-j",
            type=click.IntRange(min=0),
            metavar="N",
            help="Accepted; one process is used so far.",
        ),
        click.option(
            "--jax-version",
            metavar="VERSION",
            help="The JAX to migrate to; by default the newest known.",
        ),
        click.option(
            "--extend-select",
            multiple=True,
            callback=_codes,
            metavar="CODES",
            help="Run these rules besides; turns on those that are off by default.",
        ),
        click.option(
            "--ignore", multiple=True, callback=_codes, metavar="CODES", help="Leave these out."
        ),
        click.option(
            "--select",
            multiple=True,
            callback=_codes,
            metavar="CODES",
            help="Run these rules alone: codes or their beginnings, with commas between.",
        ),
        click.argument("paths", nargs=-1, metavar="[PATHS]...", type=click.Path(path_type=Path)),
    ):
        command = decorate(command)
    return command


def verify_options(command: _Command) -> _Command:
    """The options that say how code is run."""
    for decorate in (
        click.option(
            "--platform", metavar="NAME", help="What JAX runs on to verify; cpu by default."
        ),
        click.option(
            "--under", metavar="FLAG", help="A flag of JAX to run the new code under: jax_remat3."
        ),
        click.option(
            "--baseline-python",
            type=click.Path(path_type=Path),
            metavar="PATH",
            help="The interpreter of an old environment, in which the old code runs as it is.",
        ),
        click.option(
            "--python",
            type=click.Path(path_type=Path),
            metavar="PATH",
            help="The interpreter that has JAX and the project's packages.",
        ),
        click.option(
            "--cases",
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="A Python file of functions that return arguments for the units to compare.",
        ),
        click.option(
            "--command",
            metavar="CMD",
            help="A command that exercises the code, run before and after: its inputs are used.",
        ),
    ):
        command = decorate(command)
    return command
