"""The commands that run code of the user's, and what `--verify` shares with them."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import UsageError
from .options import entry_options, measure_options, output_options, running_options, verify_options
from .progress_bar import progress_bar

if TYPE_CHECKING:
    from ..measure.options import MeasureOptions
    from ..measure.target import Target
    from ..plan.plan import Plan
    from ..report.content import Weighed
    from ..settings import Settings
    from ..verify.options import VerifyOptions

_RIGHT, _UNMET, _FAULT = 0, 1, 2


@click.command()
@click.argument("paths", nargs=-1, metavar="[PATHS]...", type=click.Path(path_type=Path))
@click.option(
    "--base",
    metavar="REV|DIR",
    help="What to compare with: a git revision, or a folder with an older state. By default HEAD;"
    " with --under the code as it is.",
)
@verify_options
@output_options(["full", "json"], "Verdicts as text or as JSON.", "verdicts")
def verify_command(
    paths: tuple[Path, ...],
    base: str | None,
    output_format: str,
    output_file: Path | None,
    **how: Any,
) -> int:
    """Prove a migration that was made by hand: run what differs from a base before and after.

    Compares, under JAX, the values and gradients of every function below PATHS that differs between
    --base and the working tree. With --under FLAG, of every function that applies a checkpoint, and
    of those that call it: without --base the same code runs with the flag off and on. Exits with 3
    if one is not the same.
    """
    from ..discovery.discover import check_paths
    from ..discovery.roots import find_root
    from ..report.output import write_proof
    from ..settings import load_settings
    from ..verify.migration import prove_migration
    from .check import WRONG

    check_output(output_file)
    check_paths(paths)
    start = (paths or (Path.cwd(),))[0].resolve()
    settings = load_settings(find_root(paths or (start,)), start)
    with progress_bar() as progress:
        options = verification(settings, **how)
        if base is None and not options.under:
            base = "HEAD"
        proof = prove_migration(paths, base, options, progress)
    write_proof(proof, output_format, output_file or sys.stdout)
    return WRONG if proof.wrong or (proof.command and proof.command.wrong) else _RIGHT


@click.command()
@click.argument("targets", nargs=-1, metavar="[TARGET]...")
@measure_options
@running_options
@output_options(
    ["full", "json", "html"],
    "As text, as JSON, or as a page with a picture of the alternatives.",
    "measurement",
)
def measure_command(
    targets: tuple[str, ...],
    output_format: str,
    output_file: Path | None,
    cases: Path | None,
    python: Path | None,
    platform: str | None,
    **how: Any,
) -> int:
    """Show what each checkpoint of a function that is differentiated saves and costs.

    A TARGET is module:function or path/to/file.py:function, the loss that is differentiated.
    Without one it is what the settings name. Nothing is computed: the function is traced on the
    shapes of its arguments.
    """
    from ..discovery.roots import find_root
    from ..measure.options import chosen_options, configured_targets
    from ..measure.target import parse_target
    from ..report.output import say, write_measurements
    from ..settings import load_settings

    check_output(output_file)
    folder = Path.cwd()
    named = [parse_target(text, folder) for text in targets]
    start = named[0].path or folder if named else folder
    settings = load_settings(find_root([start]), start)
    base = folder if targets else settings.base
    targets = targets or configured_targets(settings)
    if not targets:
        raise UsageError("name a function to measure: module:function or path/to/file.py:function")
    running = {"cases": cases, "python": python, "platform": platform}
    options = chosen_options(settings, running, how)
    weighed = _weighed(targets, options, base)
    if weighed.found:
        to = output_file or sys.stdout
        write_measurements(weighed.found, output_format, to, weighed.failed)
    for reason in weighed.failed.values():
        say(f"error: {reason}")
    return _FAULT if weighed.failed else _RIGHT


@click.command()
@click.argument("target", required=False)
@click.option(
    "--budget",
    required=True,
    metavar="SHARE|BYTES",
    help="The most memory: 40% of the peak without checkpoints, or 8GiB.",
)
@click.option("--pareto", is_flag=True, help="Show placements for other budgets, too.")
@click.option(
    "--apply",
    "is_applied",
    is_flag=True,
    help="Write the plan into the source; undo takes it back.",
)
@entry_options
@running_options
@output_options(["full", "json"], "As text or as JSON.", "plan")
def plan_command(
    target: str | None,
    budget: str,
    pareto: bool,
    is_applied: bool,
    output_format: str,
    output_file: Path | None,
    cases: Path | None,
    python: Path | None,
    platform: str | None,
    **how: Any,
) -> int:
    """Find the cheapest placement of checkpoints within a memory budget.

    TARGET is module:function or path/to/file.py:function, the loss that is differentiated, and by
    default what the settings name. The plan is traced, and what that shows is printed beside what
    was promised. Exits with 1 if the budget cannot be met, or the plan cannot be written.
    """
    from ..discovery.roots import find_root
    from ..measure.options import chosen_options, configured_targets
    from ..measure.target import parse_target
    from ..plan.budget import parse_budget
    from ..plan.planning import plan
    from ..report.output import write_plan
    from ..settings import load_settings

    check_output(output_file)
    folder = Path.cwd()
    limit = parse_budget(budget)
    start = (parse_target(target, folder).path or folder) if target else folder
    settings = load_settings(find_root([start]), start)
    base = folder if target else settings.base
    if not target:
        configured = configured_targets(settings)
        if len(configured) != 1:
            raise UsageError(
                "name one function to plan: module:function or path/to/file.py:function"
            )
        [target] = configured
    options = chosen_options(
        settings, {"cases": cases, "python": python, "platform": platform}, how
    )
    function = parse_target(target, base)
    with progress_bar("Planning") as progress:
        progress(target, 0, 1)
        found = plan(function, options, base, limit, pareto=pareto, as_calls=is_applied)
    write_plan(found, output_format, output_file or sys.stdout)
    if not is_applied:
        return _RIGHT if found.is_met else _UNMET
    return _write_into_source(found, function, options, base)


@click.command()
@click.option(
    "--stdio", is_flag=True, help="Talk on standard input and output, as it does without this, too."
)
def server_command(stdio: bool) -> int:
    """Serve an editor: findings while you type, fixes and explanations, by the LSP.

    Needs `pip install 'remat-migrate[lsp]'`. It is the editor that starts this command.
    """
    try:
        import pygls.lsp.server  # noqa: F401
    except ImportError as error:
        raise UsageError(
            "the language server needs pygls 2: pip install 'remat-migrate[lsp]'"
        ) from error
    from ..lsp.server import serve

    return serve()


def _write_into_source(found: Plan, target: Target, options: MeasureOptions, base: Path) -> int:
    """Rewrite the source as a plan says, measure it, and say what that shows."""
    from ..analysis import Project
    from ..analysis.loading import load_project
    from ..discovery.survey import Options
    from ..engine.journal import write_changes
    from ..engine.run import prepare
    from ..measure.session import measuring
    from ..plan.applying import apply_plan
    from ..report.output import say, screen_of
    from ..report.terminal.plans import rewritten_lines, unwritable_lines, written_lines
    from ..text import SourceFile

    if not found.is_met:
        say("nothing was written: the budget cannot be met")
        return _UNMET
    run = prepare([target.root], Options())

    def opened(texts: Mapping[Path, SourceFile]) -> Project:
        return load_project(run.settings, run.targets.python, (), run.context, overlay=texts)

    new = apply_plan(found, opened, target, options.argnums)
    if new.obstacles:
        for line in unwritable_lines(new.obstacles, screen_of(sys.stderr)):
            say(line)
        return _UNMET
    if not new.changes:
        say("nothing was written: the source is as planned")
        return _RIGHT
    write_changes(new.changes, run.settings.root)
    for line in written_lines(new.changes, screen_of(sys.stderr)):
        say(line)
    with measuring(target, options, base) as session:
        for line in rewritten_lines(found, session.measurement.cost):
            say(line)
    return _RIGHT if session.measurement.cost.peak_bytes <= found.budget_bytes else _UNMET


def configured_measurements(settings: Settings, *, policies: bool = False) -> Weighed | None:
    """What the checkpoints of the targets that the settings name save and cost; None without any.

    With `policies` also what other placements would, of which formats with pictures show the best.
    One that cannot be measured is said on standard error, and the others are.

    Raises:
        SettingsError: a value of the wrong type.
    """
    from dataclasses import replace

    from ..measure.options import configured_targets, measure_options
    from ..report.output import say

    targets = configured_targets(settings)
    if not targets:
        return None
    options = replace(measure_options(settings), policies=policies)
    weighed = _weighed(targets, options, settings.base)
    for reason in weighed.failed.values():
        say(f"note: not measured: {reason}")
    return weighed


def _weighed(targets: Sequence[str], options: MeasureOptions, base: Path) -> Weighed:
    """Each target measured; one that cannot be is not in the way of the others."""
    from ..errors import VerificationError
    from ..measure.session import measure
    from ..measure.target import parse_target
    from ..report.content import Weighed

    found, failed = [], {}
    with progress_bar("Measuring") as progress:
        for number, target in enumerate(targets):
            progress(target, number, len(targets))
            try:
                found.append(measure(parse_target(target, base), options, base))
            except (UsageError, VerificationError) as error:
                failed[target] = str(error)
        progress("", len(targets), len(targets))
    return Weighed(tuple(found), failed)


def verification(
    settings: Settings,
    *,
    command: str | None,
    cases: Path | None,
    python: Path | None,
    baseline_python: Path | None,
    under: str | None,
    platform: str | None,
) -> VerifyOptions:
    """What the settings say about verification, and the command line instead."""
    from dataclasses import replace

    from ..verify.options import verify_options

    given = {
        "command": command,
        "cases": cases and cases.absolute(),
        "python": python and python.expanduser().absolute(),
        "baseline_python": baseline_python and baseline_python.expanduser().absolute(),
        "under": under,
        "platform": platform,
    }
    chosen = {name: value for name, value in given.items() if value is not None}
    return replace(verify_options(settings), **chosen)  # type: ignore[arg-type]


def check_output(*files: Path | None) -> None:
    """Complain about a report's file before anything is done, not after files were changed."""
    for file in files:
        if file is not None and not file.absolute().parent.is_dir():
            raise UsageError(f"--output-file: there is no folder {file.parent}")
        if file is not None and file.is_dir():
            raise UsageError(f"--output-file: {file} is a folder")
