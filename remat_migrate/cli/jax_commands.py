"""The commands that run the user's code under JAX: verify, measure and plan."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import UsageError
from .exit_codes import CLEAN, ERROR, FINDINGS, SIGNALLED, VERIFICATION_FAILED
from .options import (
    check_output,
    entry_options,
    measure_options,
    output_control,
    output_options,
    running_options,
    verify_options,
)
from .progress_bar import progress_bar

if TYPE_CHECKING:
    from ..measure.options import MeasureOptions
    from ..report.content import Weighed
    from ..settings import Settings
    from ..verify.options import VerifyOptions


@click.command()
@click.argument("paths", nargs=-1, metavar="[PATHS]...", type=click.Path(path_type=Path))
@click.option(
    "--base",
    metavar="REV|DIR",
    help="Git revision or folder with the old code.  [default: HEAD]",
)
@click.option(
    "--without-checkpoints",
    is_flag=True,
    help="Compare the code with itself without any checkpoint, in place of --base.",
)
@verify_options
@click.option("--strict", is_flag=True, help="Also fail if a function was not compared.")
@output_options(["full", "json"], "verdicts")
@output_control
def verify_command(
    paths: tuple[Path, ...],
    base: str | None,
    without_checkpoints: bool,
    output_format: str,
    output_file: Path | None,
    **how: Any,
) -> int:
    """Verify a migration by running old and new code.

    Compares the values and gradients of every function under PATHS that differs between --base and
    the working tree, and its callers; with --without-checkpoints, of every function that applies
    checkpoints, without them and with them.

    An interrupted run reports the verdicts until then.
    Exits with 3 if a function differs.
    """
    from ..discovery.discover import check_paths
    from ..discovery.roots import find_root
    from ..report.machine_readable.json import render_proof
    from ..report.output import write_result
    from ..report.terminal.verdicts import proof_lines, tally
    from ..settings import load_settings
    from ..verify.migration import prove_migration

    if without_checkpoints and base:
        raise UsageError("--without-checkpoints cannot be combined with --base")
    check_output(output_file)
    check_paths(paths)
    start = (paths or (Path.cwd(),))[0].resolve()
    settings = load_settings(find_root(paths or (start,)), start)
    options = chosen_verification(settings, **how)
    since = None if without_checkpoints else base or "HEAD"
    with progress_bar() as progress:
        proof = prove_migration(paths, since, options, progress)
    to = output_file or sys.stdout
    write_result(
        proof, output_format, to, render_proof, lambda *a: [*proof_lines(*a), tally(proof)]
    )
    if proof.interrupted:
        return SIGNALLED + proof.interrupted
    differs = proof.wrong or (proof.command and proof.command.wrong)
    return VERIFICATION_FAILED if differs or (options.strict and proof.unproved) else CLEAN


@click.command()
@click.argument("targets", nargs=-1, metavar="[TARGET]...")
@measure_options
@running_options
@output_options(["full", "json"], "measurement")
@output_control
def measure_command(
    targets: tuple[str, ...],
    output_format: str,
    output_file: Path | None,
    **how: Any,
) -> int:
    """Measure what each checkpoint saves and costs.

    TARGET is the loss function: module:function or path/to/file.py:function. By default it comes
    from the settings. The function is traced on the shapes of its arguments; nothing is computed.
    """
    from ..report.machine_readable.json import render_measurements
    from ..report.output import say, write_result
    from ..report.terminal.weights import measurement_lines

    check_output(output_file)
    names, options, base = _measurement(targets, how)
    if not names:
        raise UsageError("missing TARGET: module:function or path/to/file.py:function")
    weighed = _weighed(names, options, base)
    if weighed.found:
        to = output_file or sys.stdout
        write_result(weighed, output_format, to, render_measurements, measurement_lines)
    for reason in weighed.failed.values():
        say(f"error: {reason}")
    for one in weighed.found:
        if one.device is not None and not one.fits:
            plan = shlex.join(["remat-migrate", "plan", one.target, "--device", one.device.name])
            say(f"note: to find checkpoints with which {one.target} fits: {plan}")
    return ERROR if weighed.failed else CLEAN


@click.command()
@click.argument("target", required=False)
@click.option(
    "--budget",
    metavar="SHARE|BYTES",
    help="Peak memory allowed: 40% of the peak without checkpoints, or 8GiB.  [default: the memory"
    " of --device]",
)
@click.option(
    "--compile/--no-compile",
    default=None,
    help="Compile the best candidates and the obvious ones, and choose by compiled peak."
    "  [default: if that takes less than a minute]",
)
@click.option("--apply", "is_applied", is_flag=True, help="Write the plan into the source.")
@click.option("--strict", is_flag=True, help="Also fail if the budget is only met by the trace.")
@entry_options
@running_options
@output_options(["full", "json"], "plan")
@output_control
def plan_command(
    target: str | None,
    budget: str | None,
    is_applied: bool,
    strict: bool,
    output_format: str,
    output_file: Path | None,
    **how: Any,
) -> int:
    """Plan checkpoints within a memory budget.

    Finds the placement that recomputes least. TARGET is the loss function: module:function or
    path/to/file.py:function; by default it comes from the settings. The plan is traced, and the
    result is shown next to the prediction. The obvious placements, such as a checkpoint on every
    block, are always candidates.

    Exits with 1 if the budget cannot be met or the plan cannot be written, and with --strict if
    the budget is met by the trace, but no program was compiled.
    """
    from ..measure.devices import Budget, parse_budget, parse_device
    from ..measure.options import options_of_targets
    from ..measure.target import parse_target
    from ..plan.planning import plan
    from ..report.machine_readable.json import render_plan
    from ..report.output import say, write_result
    from ..report.terminal.plans import plan_lines
    from .plan_writing import Writing

    check_output(output_file)
    names, options, base = _measurement((target,) if target else (), how)
    if budget:
        limit = parse_budget(budget)
    elif options.device:
        device = parse_device(options.device)
        limit = Budget(device.name, device.memory, is_device=True)
    else:
        raise UsageError("missing --budget SHARE|BYTES, or --device NAME|BYTES")
    if len(names) != 1:
        raise UsageError("missing TARGET: one module:function or path/to/file.py:function")
    [options] = options_of_targets(options, names)
    function = parse_target(names[0], base)
    with progress_bar("Planning") as progress:
        progress(names[0], 0, 1)
        writing = Writing(function, options, base) if is_applied else None
        found = plan(
            function,
            options,
            base,
            limit,
            open_source=writing.open_source if writing else None,
        )
    write_result(found, output_format, output_file or sys.stdout, render_plan, plan_lines)
    is_proved = found.is_met and not (strict and found.best.compiled is None)
    if writing and is_proved:
        return writing.write(found)
    if writing:
        why = "is only met by the trace" if found.is_met else "cannot be met"
        say(f"No files changed: the budget {why}.")
    return CLEAN if is_proved else FINDINGS


def _measurement(
    targets: Sequence[str], how: dict[str, Any]
) -> tuple[Sequence[str], MeasureOptions, Path]:
    """Return the targets, how to measure them, and the folder that they are relative to.

    Args:
        targets: the targets on the command line; the settings name others.
        how: the values of the options, None where they are not given.
    """
    from ..discovery.roots import find_root
    from ..measure.options import chosen_options, configured_targets
    from ..measure.target import parse_target
    from ..settings import load_settings

    folder = Path.cwd()
    named = [parse_target(text, folder) for text in targets]
    start = named[0].path or folder if named else folder
    settings = load_settings(find_root([start]), start)
    running = {key: how.pop(key) for key in ("cases", "python", "platform")}
    options = chosen_options(settings, running, how)
    if targets:
        return targets, options, folder
    return configured_targets(settings), options, settings.base


def measure_configured(settings: Settings, *, policies: bool = False) -> Weighed | None:
    """Measure the targets that the settings name; None if there are none.

    Prints a note for each target that cannot be measured.

    Args:
        settings: the settings.
        policies: whether to measure alternative placements, for formats that draw them.

    Raises:
        SettingsError: a value has the wrong type.
    """
    from ..measure.options import configured_targets, measure_options
    from ..report.output import say

    targets = configured_targets(settings)
    if not targets:
        say("note: not measured: the settings name no target")
        return None
    options = replace(measure_options(settings), policies=policies)
    weighed = _weighed(targets, options, settings.base)
    for reason in weighed.failed.values():
        say(f"note: not measured: {reason}")
    return weighed


def _weighed(targets: Sequence[str], options: MeasureOptions, base: Path) -> Weighed:
    """Measure each target, whether or not others fail."""
    from ..errors import VerificationError
    from ..measure.options import options_of_targets
    from ..measure.session import measure
    from ..measure.target import parse_target
    from ..report.content import Weighed

    found, failed = [], {}
    with progress_bar("Measuring") as progress:
        for number, (target, how) in enumerate(
            zip(targets, options_of_targets(options, targets), strict=True)
        ):
            progress(target, number, len(targets))
            try:
                found.append(measure(parse_target(target, base), how, base))
            except (UsageError, VerificationError) as error:
                failed[target] = str(error)
    return Weighed(tuple(found), failed)


def chosen_verification(settings: Settings, **how: Any) -> VerifyOptions:
    """Return how to verify: the settings, overridden by the given options that are not None."""
    from ..verify.options import verify_options

    given = {name: value for name, value in how.items() if value is not None}
    return replace(verify_options(settings), **given)
