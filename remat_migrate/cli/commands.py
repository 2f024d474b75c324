"""The command line: options and wiring. What costs time is imported inside the commands."""

from __future__ import annotations

import atexit
import gc
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from .. import __version__
from ..errors import RematMigrateError, UsageError
from ..report.outputs import destinations, needs_rules, shows_placements
from .execution import (
    check_output,
    configured_measurements,
    measure_command,
    plan_command,
    server_command,
    verify_command,
)
from .options import DefaultGroup, analysis_options, verify_options
from .run_setup import begin, put_back_before, trial_of, watched

if TYPE_CHECKING:
    from ..engine.baseline import Choice
    from ..report.content import Report
    from ..report.outputs import Output
    from ..settings import Severity

CLEAN, FINDINGS, FAULT = 0, 1, 2
_INTERRUPTED, _NO_READER = 130, 141

_EXIT_CODES = """\
Exit codes: 0 nothing left that fails the run; 1 errors or warnings are left (see --fail-on), or
with --diff something would change; 2 wrong usage or a fault of the tool; 3 a verification
failed."""


@click.group(
    cls=DefaultGroup,
    context_settings={"help_option_names": ["--help", "-h"], "max_content_width": 100},
    epilog=_EXIT_CODES,
)
@click.version_option(__version__, message="remat-migrate %(version)s")
def cli() -> None:
    """Find and mend what the migrations of jax.checkpoint / jax.remat broke.

    `remat-migrate PATHS` is `remat-migrate check PATHS`: it reports; with --fix it mends. A path
    that has the name of a command is written ./check.
    """


@cli.command()
@analysis_options
@click.option("--fix", is_flag=True, help="Apply the safe fixes.")
@click.option(
    "--unsafe-fixes",
    is_flag=True,
    help="With --fix, also apply fixes that may change memory, time or names.",
)
@click.option("--diff", is_flag=True, help="Show what --fix would change, and write nothing.")
@click.option(
    "--verify",
    is_flag=True,
    help="With --fix or --diff: run the code before and after under JAX, and take back each fix"
    " that changes its results; --verify=strict takes back what nothing exercised, too.",
)
@click.option("--verify-strict", is_flag=True, hidden=True)
@verify_options
@click.option("--statistics", is_flag=True, help="Show the number of findings by rule.")
@click.option(
    "--force-exclude",
    is_flag=True,
    help="Pass by what the settings exclude even where it is named, as commit hooks do.",
)
@click.option(
    "--stdin-filename",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Which file the text on standard input is, where the path is -.",
)
def check(
    paths: tuple[Path, ...],
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    extend_select: tuple[str, ...],
    jax_version: str | None,
    jobs: int | None,
    no_cache: bool,
    outputs: tuple[Output, ...],
    output_file: Path | None,
    exit_zero: bool,
    fail_on: Severity | None,
    fix: bool,
    unsafe_fixes: bool,
    diff: bool,
    statistics: bool,
    force_exclude: bool,
    stdin_filename: Path | None,
    verify: bool,
    verify_strict: bool,
    known: Choice,
    **how: Any,
) -> int:
    """Report findings in the files below PATHS; with --fix mend what can be mended.

    Without PATHS the current folder is meant; `-` is one file on standard input.
    """
    from ..cache.kept import Kept, kept_run
    from ..discovery.survey import Options
    from ..engine.quick_look import cannot_matter

    written = destinations(outputs, output_file)
    check_output(*(output.file for output in written))
    if (verify or verify_strict) and not (fix or diff):
        raise UsageError("--verify proves fixes: give --fix or --diff, too")
    if (verify or verify_strict) and Path("-") in paths:
        raise UsageError("--verify runs the project's files, not a text on standard input")
    chosen = select or ignore or extend_select or jax_version or stdin_filename
    known.check()
    if diff and known.write:
        raise UsageError("--diff writes nothing: leave --write-baseline out")
    if fix and not diff and Path("-") not in paths:
        put_back_before(paths)
    asks_more = chosen or needs_rules(written)
    if not asks_more and cannot_matter(paths, lambda settings: known.concerns(paths, settings)):
        from ..report.output import write_report

        nothing = _nothing_found(paths, fixing=fix)
        if diff:
            print("Nothing to fix.", file=sys.stderr)
        for output in () if diff else written:
            write_report(nothing, output.format, output.file or sys.stdout, count_only=statistics)
        return CLEAN

    options = Options(
        select, extend_select, ignore, jax_version, jobs, force_exclude, fail_on=fail_on
    )
    kept = Kept()
    if not (no_cache or fix or diff or stdin_filename):
        given = click.get_current_context().params
        kept = kept_run("check", given, paths, options, known, written)
    if kept.outcome is not None:
        return kept.outcome.replay()

    from ..engine.check import check_run
    from .check import (
        Result,
        apply_fixes,
        content_of,
        exit_code,
        keep_known,
        show_difference,
        write_reports,
    )

    with kept.listening():
        run = begin(paths, stdin_filename, options, known, kept.about)
    with (
        watched(run, "Fixing" if fix or diff else "Checking") as run,
        trial_of(run, verify or verify_strict, strict=verify_strict, **how) as trial,
    ):
        if diff:
            return show_difference(run, unsafe=unsafe_fixes, trial=trial, exit_zero=exit_zero)
        result = (
            apply_fixes(run, unsafe=unsafe_fixes, trial=trial) if fix else Result(check_run(run))
        )
    if known.write:
        run, result = keep_known(run, result, known.write)
    with kept.listening():
        # With --fix what is on standard output is the text that came by standard input, mended.
        to = sys.stderr if fix and run.overlay else sys.stdout
        content = content_of(run, result, unsafe=unsafe_fixes)
        write_reports(content, written, to, kept, count_only=statistics)
        code = exit_code(run, result, exit_zero=exit_zero)
    kept.keep(code, result.analysis)
    return code


@cli.command()
@analysis_options
@click.option(
    "--verify",
    is_flag=True,
    help="Run the code as it is and with its fixes, and list the verdicts; nothing is written.",
)
@click.option(
    "--no-measure",
    is_flag=True,
    help="Leave out what the settings say to measure: run no code of the project's.",
)
@verify_options
def report(
    paths: tuple[Path, ...],
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    extend_select: tuple[str, ...],
    jax_version: str | None,
    jobs: int | None,
    no_cache: bool,
    outputs: tuple[Output, ...],
    output_file: Path | None,
    exit_zero: bool,
    fail_on: Severity | None,
    verify: bool,
    no_measure: bool,
    known: Choice,
    **how: Any,
) -> int:
    """List every checkpoint in the files below PATHS, with the risk it runs.

    Where the settings name a target to measure, also with what it saves and costs.
    """
    from dataclasses import replace

    from ..cache.kept import Kept, kept_run
    from ..discovery.survey import Options

    written = destinations(outputs, output_file)
    check_output(*(output.file for output in written))
    known.check()
    options = Options(select, extend_select, ignore, jax_version, jobs, fail_on=fail_on)
    kept = Kept()
    if not (no_cache or verify):
        given = click.get_current_context().params
        kept = kept_run("report", given, paths, options, known, written, measures=not no_measure)
    if kept.outcome is not None:
        return kept.outcome.replay()

    from ..analysis import sites_of
    from ..engine.check import check_run
    from ..report.content import site_rows
    from .check import (
        Result,
        content_of,
        exit_code,
        keep_known,
        report_trial,
        warn_of_waste,
        write_reports,
    )

    with kept.listening():
        run = begin(paths, None, options, known, kept.about)
    with watched(run, "Checking") as run, trial_of(run, verify, strict=False, **how) as trial:
        result = report_trial(run, trial) if trial else Result(check_run(run))
    if known.write:
        run, result = keep_known(run, result, known.write)
    weighed = None
    if not no_measure:
        policies = shows_placements(written)
        weighed = configured_measurements(run.settings, policies=policies)
    weights = weighed.sites if weighed else ()
    result = warn_of_waste(result, weights)
    with kept.listening():
        rows = site_rows(sites_of(result.analysis.project), result.analysis.findings, weights)
        content = replace(content_of(run, result), sites=rows, weighed=weighed)
        write_reports(content, written, sys.stdout, kept)
        code = exit_code(run, result, exit_zero=exit_zero)
    kept.keep(code, result.analysis)
    return code


cli.add_command(verify_command, "verify")
cli.add_command(measure_command, "measure")
cli.add_command(plan_command, "plan")
cli.add_command(server_command, "server")


@cli.command()
@click.argument("code")
def explain(code: str) -> int:
    """Explain the rule CODE: what it finds, why, and what it makes of its examples."""
    from ..engine.rules import load_rules
    from ..report.output import screen_of
    from ..report.terminal.explain import explain as explained
    from ..settings import did_you_mean

    rules = {rule.code: rule for rule in load_rules()}
    by_name = {rule.name: rule for rule in rules.values()}
    rule = rules.get(code.upper()) or by_name.get(code.lower())
    if rule is None:
        raise UsageError(
            f"no rule has the code {code}{did_you_mean(code.upper(), rules)}"
            " (all of them: remat-migrate rules)"
        )
    sys.stdout.writelines(line + "\n" for line in explained(rule, screen_of(sys.stdout)))
    return CLEAN


@cli.command()
@click.option(
    "--write",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Write a page in Markdown for each rule, and their table, into a folder.",
)
def rules(folder: Path | None) -> int:
    """List the rules: code, name, whether there is a fix."""
    from ..engine.rules import load_rules
    from ..report.terminal.explain import table

    if folder is not None:
        from ..report.pages.rule_page import write_pages

        write_pages(load_rules(), folder)
        return CLEAN
    sys.stdout.writelines(line + "\n" for line in table(load_rules()))
    return CLEAN


@cli.command()
@click.argument("path", default=".", type=click.Path(path_type=Path, exists=True))
@click.option("--force", is_flag=True, help="Restore files that were edited since, too.")
def undo(path: Path, force: bool) -> int:
    """Take back what the last --fix wrote in the project that PATH belongs to.

    Without PATH it is the current folder's. Files that were edited since are left alone.
    """
    from ..discovery.roots import find_root
    from ..engine.undo import undo as play_back
    from ..report.output import say, screen_of
    from ..report.terminal.fixing import undone

    result = play_back(find_root([path]), force=force)
    sys.stdout.writelines(line + "\n" for line in undone(result, screen_of(sys.stdout)))
    screen = screen_of(sys.stderr)
    for left, reason in sorted(result.skipped.items()):
        say(f"error: {screen.path(left)} {reason}")
    return FAULT if result.skipped else CLEAN


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit; what a user can mend is said without a traceback."""
    if arguments is None:
        # What a run makes lives until its end: to look for what can go took a tenth of its time.
        gc.disable()
    for stream in (sys.stdout, sys.stderr):
        # A name that the terminal's encoding lacks must not end a run.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = cli.main(arguments, prog_name="remat-migrate", standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as error:
        error.show()
        code = FAULT
    except (click.Abort, KeyboardInterrupt):
        code = _INTERRUPTED
    except RematMigrateError as error:
        from ..report.output import say

        say(f"error: {error}")
        code = FAULT
    except BrokenPipeError:
        sys.stdout = None  # or the interpreter would complain when it flushes it
        code = _NO_READER
    except SystemExit as stopped:
        # click's own end for a reader that has what it wanted, as in `remat-migrate | head`: 1,
        # which is to say here that findings are left.
        code = _NO_READER if stopped.code == 1 else stopped.code
    except Exception:
        from ..report.output import say

        traceback.print_exc()
        say("error: this is a defect of remat-migrate; please report it with the lines above")
        code = FAULT
    if arguments is None:
        _leave(code)
    sys.exit(code)


def _leave(code: object) -> None:
    """End the process at once: to take a large run's trees apart took a seventh of its time."""
    if not isinstance(code, int) or "coverage" in sys.modules:
        return  # the interpreter's own end says what else it is
    atexit._run_exitfuncs()
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except OSError:
        return  # the interpreter's own end says so
    os._exit(code)


def _nothing_found(paths: Sequence[Path], *, fixing: bool) -> Report:
    from ..report.content import Report

    files = len({path.resolve() for path in paths})
    return Report((), files, fixed={} if fixing else None)
