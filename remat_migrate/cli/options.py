"""Options that several commands share, and the group that takes `check` as its default."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any

import click

from ..engine.baseline import Choice
from ..report.outputs import FORMATS, Output
from ..settings import SEVERITIES


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
        _baselines,
        click.option("--exit-zero", is_flag=True, help="Exit with 0 even if findings are left."),
        click.option(
            "--fail-on",
            type=click.Choice(SEVERITIES),
            help="The least severity of findings that fail a run; by default warning, so that"
            " advice (note) does not.",
        ),
        _output_file("report"),
        click.option(
            "--output-format",
            "outputs",
            multiple=True,
            callback=_outputs,
            metavar="FORMAT[=FILE]",
            help=f"How the report is written: {', '.join(FORMATS)}; by default full. Several may be"
            " given, each but one with a file of its own.",
        ),
        click.option(
            "--no-cache",
            is_flag=True,
            envvar="REMAT_MIGRATE_NO_CACHE",
            help="Neither play back what an earlier run printed, nor keep what this one does.",
        ),
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


def _baselines(command: _Command) -> _Command:
    """The options about findings that are known, given to the command as one value."""

    @wraps(command)
    def chosen(
        baseline: Path | None, no_baseline: bool, write_baseline: Path | None, **more: Any
    ) -> Any:
        return command(known=Choice(baseline, no_baseline, write_baseline), **more)

    file = click.Path(path_type=Path)
    for decorate in (
        click.option(
            "--write-baseline",
            type=file,
            metavar="FILE",
            help="Write what is found there as known; what the run does not look at is kept.",
        ),
        click.option(
            "--no-baseline", is_flag=True, help="Report known findings, too, whatever is set."
        ),
        click.option(
            "--baseline",
            type=file,
            metavar="FILE",
            help="Report only findings that are not known by this file.",
        ),
    ):
        chosen = decorate(chosen)
    return chosen


def _outputs(
    ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> tuple[Output, ...]:
    """`FORMAT` or `FORMAT=FILE`, each."""
    outputs = []
    for value in values:
        name, _, file = value.partition("=")
        if name not in FORMATS:
            raise click.BadParameter(f"{name!r} is not one of {', '.join(FORMATS)}.")
        if not file and "=" in value:
            raise click.BadParameter(f"{value!r} names no file.")
        outputs.append(Output(name, Path(file) if file else None))
    return tuple(outputs)


def output_options(formats: Sequence[str], shown: str, what: str) -> Callable[[_Command], _Command]:
    """The options that say in which format something is written, and where it goes."""

    def decorate(command: _Command) -> _Command:
        chosen = click.option(
            "--output-format",
            type=click.Choice(formats),
            default="full",
            show_default=True,
            help=shown,
        )
        return chosen(_output_file(what)(command))

    return decorate


def _output_file(what: str) -> Callable[[_Command], _Command]:
    return click.option(
        "--output-file",
        "-o",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help=f"Write the {what} there instead of to standard output.",
    )


def _python() -> Callable[[_Command], _Command]:
    return click.option(
        "--python",
        type=click.Path(path_type=Path),
        metavar="PATH",
        help="The interpreter that has JAX and the project's packages.",
    )


def _cases(what: str) -> Callable[[_Command], _Command]:
    return click.option(
        "--cases",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help=f"A Python file of functions that return {what}.",
    )


def verify_options(command: _Command) -> _Command:
    """The options that say how code is run."""
    for decorate in (
        click.option(
            "--platform", metavar="NAME", help="What JAX runs on to verify; cpu by default."
        ),
        click.option(
            "--under",
            metavar="FLAG",
            help="A flag of JAX that is on for the new code, and off for the old: jax_remat3.",
        ),
        click.option(
            "--baseline-python",
            type=click.Path(path_type=Path),
            metavar="PATH",
            help="The interpreter of an old environment, in which the old code runs as it is.",
        ),
        _python(),
        _cases("arguments for the units to compare"),
        click.option(
            "--command",
            metavar="CMD",
            help="A command that exercises the code, run before and after: its inputs are used.",
        ),
    ):
        command = decorate(command)
    return command


def measure_options(command: _Command) -> _Command:
    """The options that say what is measured, and what of it is shown."""
    for decorate in (
        click.option(
            "--fwd-bwd",
            "jaxprs",
            is_flag=True,
            help="Show the forward and the backward computation side by side.",
        ),
        click.option(
            "--residuals", is_flag=True, help="List what the forward pass keeps, with its bytes."
        ),
        click.option(
            "--policies",
            is_flag=True,
            help="Measure other policies, and checkpoints on the stages instead.",
        ),
        click.option(
            "--compile/--no-compile",
            default=None,
            help="Compile, too, for the temporary memory that the program needs.",
        ),
    ):
        command = decorate(command)
    return entry_options(command)


def entry_options(command: _Command) -> _Command:
    """The options that say how a function is differentiated and what it is given."""
    for decorate in (
        click.option(
            "--remat3/--no-remat3", default=None, help="Measure under the flag jax_remat3."
        ),
        click.option("--x64/--no-x64", default=None, help="Let JAX compute in 64 bits."),
        click.option(
            "--jit/--no-jit",
            default=None,
            help="Whether the gradient computation is compiled as one; it is by default.",
        ),
        click.option(
            "--has-aux/--no-has-aux",
            default=None,
            help="The function returns a pair of the loss and anything else.",
        ),
        click.option(
            "--argnums",
            callback=_numbers,
            metavar="N,N",
            help="The arguments that are differentiated; by default the first.",
        ),
        click.option(
            "--grad",
            type=click.Choice(["value_and_grad", "grad", "none"]),
            help="How the function is differentiated; none if it takes gradients itself.",
        ),
        click.option(
            "--args",
            metavar="FUNCTION",
            help="module:function or file.py:function that returns the arguments, of arrays or"
            " of jax.ShapeDtypeStruct.",
        ),
    ):
        command = decorate(command)
    return command


def _numbers(
    ctx: click.Context, parameter: click.Parameter, value: str | None
) -> tuple[int, ...] | None:
    """Whole numbers with commas between them."""
    if value is None:
        return None
    try:
        return tuple(int(part) for part in value.split(","))
    except ValueError:
        raise click.BadParameter(f"{value!r} is not numbers with commas between") from None


def running_options(command: _Command) -> _Command:
    """The options that say where code runs, without a comparison."""
    for decorate in (
        click.option("--platform", metavar="NAME", help="What JAX runs on; cpu by default."),
        _python(),
        _cases("arguments"),
    ):
        command = decorate(command)
    return command
