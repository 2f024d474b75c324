"""The options that several commands share."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import wraps
from pathlib import Path
from typing import Any

import click

from ..console import configure
from ..discovery.named_outputs import resolve_named
from ..engine.baseline import BaselineChoice
from ..errors import UsageError
from ..report.outputs import FORMATS, Output, destinations
from ..settings import Options
from ..settings.settings import SEVERITIES

_Command = Callable[..., Any]
_Decorator = Callable[[_Command], _Command]
_FILE = click.Path(path_type=Path)


def _options(*decorators: _Decorator) -> _Decorator:
    """Combine decorators so that --help lists their options in the given order."""

    def decorate(command: _Command) -> _Command:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return decorate


def _split(
    ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> tuple[str, ...]:
    """Split comma-separated values."""
    return tuple(part.strip() for value in values for part in value.split(",") if part.strip())


def _outputs(
    ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> tuple[Output, ...]:
    """Parse `FORMAT` or `FORMAT=FILE` values."""
    outputs = []
    for value in values:
        name, _, file = value.partition("=")
        if name not in FORMATS:
            raise click.BadParameter(f"{name!r} is not one of {', '.join(FORMATS)}.")
        if not file and "=" in value:
            raise click.BadParameter(f"{value!r} names no file.")
        outputs.append(Output(name, Path(file) if file else None))
    return tuple(outputs)


def _config(
    ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> tuple[Path | None, tuple[str, ...]]:
    """Return the settings file among the values, and the overrides."""
    file: Path | None = None
    overrides = []
    for value in values:
        if "=" in value and not os.path.exists(value):
            overrides.append(value)
        elif file is not None:
            raise click.BadParameter("only one settings file can be given.")
        elif value.endswith(".toml"):
            file = Path(os.path.abspath(value))
        else:
            raise click.BadParameter(
                f"{value!r} is neither a .toml file nor a TOML pair KEY=VALUE, such as"
                " 'fail-on=\"note\"'."
            )
    return file, tuple(overrides)


def _numbers(
    ctx: click.Context, parameter: click.Parameter, value: str | None
) -> tuple[int, ...] | None:
    """Split comma-separated integers."""
    try:
        return None if value is None else tuple(map(int, value.split(",")))
    except ValueError:
        raise click.BadParameter(f"{value!r} is not a comma-separated list of integers.") from None


def _absolute(ctx: click.Context, parameter: click.Parameter, value: Path | None) -> Path | None:
    """Return a path that does not depend on the current folder; links stay."""
    return value and value.expanduser().absolute()


def _codes_option(name: str, help: str) -> _Decorator:
    return click.option(
        name,
        multiple=True,
        callback=_split,
        metavar="CODES",
        help=help,
    )


def _output_file(what: str) -> _Decorator:
    return click.option(
        "--output-file",
        "-o",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help=f"Write the {what} to FILE instead of stdout.",
    )


# What an analysis looks for, and where.
_selection = _options(
    _codes_option("--select", "Enable only these rules: comma-separated codes or prefixes."),
    _codes_option("--ignore", "Disable these rules."),
    _codes_option("--extend-select", "Also enable these rules."),
    click.option(
        "--jax-version",
        metavar="VERSION",
        help="The JAX version to migrate to.  [default: newest known]",
    ),
    click.option(
        "--exclude",
        multiple=True,
        callback=_split,
        metavar="PATTERNS",
        help="Skip these files and folders instead of those in the settings: gitignore patterns.",
    ),
    click.option(
        "--config",
        multiple=True,
        callback=_config,
        metavar="KEY=VALUE|FILE",
        help="Override a setting, or read the settings from FILE.",
    ),
    click.option(
        "--fail-on",
        type=click.Choice(SEVERITIES),
        help="The lowest severity that fails the run.  [default: warning]",
    ),
)

_analysis = _options(
    click.argument("paths", nargs=-1, metavar="[PATHS]...", type=_FILE),
    _selection,
    click.option(
        "--no-cache", is_flag=True, envvar="REMAT_MIGRATE_NO_CACHE", help="Disable the cache."
    ),
    click.option(
        "--output-format",
        "outputs",
        multiple=True,
        callback=_outputs,
        metavar="FORMAT[=FILE]",
        help=f"Output format: {', '.join(FORMATS)}. Repeat the option with files to write several"
        " reports.  [default: full]",
    ),
    _output_file("report"),
    click.option("--exit-zero", is_flag=True, help="Exit with 0 even if there are findings."),
    click.option(
        "--baseline", type=_FILE, metavar="FILE", help="Hide the findings that FILE lists."
    ),
    click.option(
        "--write-baseline",
        type=_FILE,
        metavar="FILE",
        help="Write all findings to FILE as known; keep entries of files that were not checked.",
    ),
)


fix_choice = _options(
    _codes_option("--fixable", "Fix the findings of these rules only."),
    _codes_option("--unfixable", "Do not fix the findings of these rules."),
)


def analysis_options(command: _Command) -> _Command:
    """Add the paths and the options for analysing and reporting.

    The command receives them as `paths`, `options`, `outputs`, `baseline`, `no_cache` and
    `exit_zero`.
    """

    @wraps(command)
    def bundled(
        outputs: tuple[Output, ...],
        output_file: Path | None,
        baseline: Path | None,
        write_baseline: Path | None,
        **more: Any,
    ) -> Any:
        placed = destinations(outputs, output_file)
        check_output(*(output.file for output in placed))
        choice = BaselineChoice(baseline, write_baseline)
        choice.check()
        return command(outputs=placed, baseline=choice, **more)

    return _analysis(_with_options(bundled))


def selection_options(command: _Command) -> _Command:
    """Add the options for what to look for; the command receives them as `options`."""
    return _selection(_with_options(command))


def _with_options(command: _Command) -> _Command:
    @wraps(command)
    def bundled(config: tuple[Path | None, tuple[str, ...]], **given: Any) -> Any:
        file, overrides = config
        own = {
            field.name: given.pop(field.name) for field in fields(Options) if field.name in given
        }
        return command(options=Options(config=file, overrides=overrides, **own), **given)

    return bundled


def output_control(command: _Command) -> _Command:
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


def check_output(*files: Path | None) -> None:
    """Check, before anything is done, that reports can be written.

    Raises:
        UsageError: a file's folder does not exist, or a link in a project leads to it.
    """
    for file in filter(None, files):
        try:
            os.stat(file.parent)
            resolve_named(file)
        except OSError as error:
            raise UsageError(f"--output-file: {file}: {error.strerror or error}") from error


def output_options(formats: Sequence[str], what: str) -> _Decorator:
    """Add the options for the format and the file of `what` a command writes."""
    return _options(
        _output_file(what),
        click.option(
            "--output-format",
            type=click.Choice(formats),
            default="full",
            show_default=True,
            help="Output format.",
        ),
    )


def _cases(what: str) -> _Decorator:
    return click.option(
        "--cases",
        type=_FILE,
        callback=_absolute,
        metavar="FILE",
        help=f"Python file of functions that return {what}.",
    )


_python = click.option(
    "--python",
    type=_FILE,
    callback=_absolute,
    metavar="PATH",
    help="Interpreter with JAX and the project's packages.",
)
_platform = click.option(
    "--platform", metavar="NAME", help="Platform that JAX runs on.  [default: cpu]"
)

# How fixes are verified; more is in the settings.
proof_options = _options(
    click.option(
        "--command",
        metavar="CMD",
        help="Command that exercises the code; it runs before and after, and provides inputs.",
    ),
    _cases("arguments for the units to compare"),
    _python,
)

# How old and new code are run and compared.
verify_options = _options(
    proof_options,
    click.option(
        "--project-tests/--no-project-tests",
        default=None,
        help="Run the project's tests for inputs where none can be generated.  [default: run]",
    ),
    _platform,
)

# Where code runs, for commands that compare nothing.
running_options = _options(_cases("arguments"), _python, _platform)

# How a function is called and differentiated.
entry_options = _options(
    click.option(
        "--args",
        multiple=True,
        callback=lambda ctx, parameter, values: values or None,
        metavar="FUNCTION",
        help="module:function or file.py:function that returns the arguments: arrays or"
        " jax.ShapeDtypeStruct. For several targets, repeat it in their order.",
    ),
    click.option(
        "--grad",
        type=click.Choice(["value_and_grad", "grad", "none"]),
        help="How to differentiate the function; none if it computes gradients itself."
        "  [default: value_and_grad for a loss, none for a training step]",
    ),
    click.option(
        "--argnums",
        callback=_numbers,
        metavar="N,N",
        help="Arguments to differentiate with respect to.  [default: 0]",
    ),
    click.option(
        "--has-aux/--no-has-aux", default=None, help="The function returns (loss, auxiliary data)."
    ),
    click.option("--x64/--no-x64", default=None, help="Enable 64-bit types."),
    click.option(
        "--device",
        metavar="NAME|BYTES",
        help="Device to fit on: its memory, such as 80GB, or a name such as H100 or TPU-v5e.",
    ),
    click.option(
        "--devices",
        type=click.IntRange(min=1),
        metavar="N",
        help="Virtual CPU devices for meshes.  [default: 1]",
    ),
)

# What to measure and show.
measure_options = _options(
    entry_options,
    click.option(
        "--compile/--no-compile",
        default=None,
        help="Also compile, to report the memory that the program allocates.",
    ),
    click.option(
        "--policies",
        is_flag=True,
        help="Also measure every policy of JAX, compiled, and checkpoints around stages.",
    ),
    click.option(
        "--residuals", is_flag=True, help="List the residuals of the forward pass and their sizes."
    ),
    click.option(
        "--fwd-bwd",
        "jaxprs",
        is_flag=True,
        help="Show the forward and the backward pass side by side.",
    ),
)
