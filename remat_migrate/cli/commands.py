"""The command line. Commands import what is slow to import inside their functions."""

from __future__ import annotations

import atexit
import errno
import gc
import os
import sys
import traceback
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from .. import __version__
from ..console import debug
from ..errors import RematMigrateError, UsageError
from ..report.outputs import needs_rules, shows_placements, write_file
from .default_group import DefaultGroup, GroupedCommand
from .exit_codes import BROKEN_PIPE, CLEAN, ERROR, FINDINGS, SIGNALLED
from .jax_commands import measure_command, measure_configured, plan_command, verify_command
from .options import analysis_options, fix_choice, output_control, proof_options
from .rule_commands import explain_command, rules_command
from .run_setup import describe_run, set_up_run, verification, with_progress
from .sweep_command import sweep_command

if TYPE_CHECKING:
    from ..engine.baseline import BaselineChoice
    from ..report.outputs import Output
    from ..settings import Options

# Failures of the system, or of a path that the user named, and none of this program.
_OF_THE_SYSTEM = (errno.ENAMETOOLONG, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO)
_SHOWN = 80

_EXIT_CODES = """\
Exit codes: 0 if no finding fails the run; 1 if one does (see --fail-on), or if --diff would change
a file; 2 for wrong usage or an internal error; 3 if verification failed."""


@click.group(
    cls=DefaultGroup,
    context_settings={"help_option_names": ["--help", "-h"], "max_content_width": 100},
    epilog=_EXIT_CODES,
)
@click.version_option(__version__, message="remat-migrate %(version)s")
def cli() -> None:
    """Find and fix outdated or unsound uses of jax.checkpoint / jax.remat.

    `remat-migrate PATHS` is short for `remat-migrate check PATHS`. If a path has the name of a
    command, write it as ./check.
    """


@cli.command(cls=GroupedCommand)
@analysis_options
@fix_choice
@click.option("--fix", is_flag=True, help="Apply safe fixes.")
@click.option(
    "--unsafe-fixes",
    is_flag=True,
    help="With --fix, also apply fixes that may change memory use, run time, or names.",
)
@click.option("--diff", is_flag=True, help="Show what --fix would change, without writing files.")
@click.option(
    "--verify",
    is_flag=True,
    help="With --fix or --diff, run the code before and after under JAX and revert fixes that"
    " change its results; --verify=strict also reverts fixes that nothing exercised.",
)
@click.option("--verify-strict", is_flag=True, hidden=True)
@proof_options
@click.option("--ignore-noqa", is_flag=True, help="Also report findings that comments suppress.")
@click.option(
    "--exit-non-zero-on-fix",
    is_flag=True,
    help="Exit with 1 if a fix was made, even if no findings are left.",
)
@click.option("--statistics", is_flag=True, help="Show the number of findings per rule.")
@click.option(
    "--force-exclude",
    is_flag=True,
    help="Apply exclusions even to paths on the command line, for commit hooks.",
)
@click.option(
    "--add-noqa", is_flag=True, help="Add a `# noqa` comment to each line with a finding."
)
@click.option(
    "--stdin-filename",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="File name to assume for code read from stdin (path `-`).",
)
@output_control
def check(
    paths: tuple[Path, ...],
    options: Options,
    outputs: tuple[Output, ...],
    baseline: BaselineChoice,
    no_cache: bool,
    exit_zero: bool,
    fix: bool,
    unsafe_fixes: bool,
    add_noqa: bool,
    diff: bool,
    statistics: bool,
    ignore_noqa: bool,
    exit_non_zero_on_fix: bool,
    fixable: tuple[str, ...],
    unfixable: tuple[str, ...],
    stdin_filename: Path | None,
    verify: bool,
    verify_strict: bool,
    **how: Any,
) -> int:
    """Check files and report findings; with --fix, fix them.

    PATHS are files and folders, by default the current folder; `-` reads from stdin.
    """
    from ..cache.run_cache import RunCache, run_cache
    from ..prefilter.single_files import cannot_matter

    verify = verify or verify_strict
    if add_noqa and (fix or diff or baseline.write or Path("-") in paths):
        raise UsageError(
            "--add-noqa cannot be combined with --fix, --diff, --write-baseline, or `-` (stdin)"
        )
    if unsafe_fixes and not (fix or diff):
        from ..report.output import say

        say("note: --unsafe-fixes changes no files without --fix or --diff")
    if verify and not (fix or diff):
        raise UsageError("--verify requires --fix or --diff")
    if verify and Path("-") in paths:
        raise UsageError("--verify cannot be combined with `-` (stdin)")
    if diff and baseline.write:
        raise UsageError("--diff cannot be combined with --write-baseline")
    needs_analysis = (
        add_noqa or ignore_noqa or options.chooses_rules or stdin_filename or needs_rules(outputs)
    )
    if not needs_analysis and cannot_matter(paths, lambda found: baseline.concerns(paths, found)):
        debug("no file mentions a checkpoint, a flag, or a suppression")
        _report_nothing(paths, () if diff else outputs, fixing=fix, count_only=statistics)
        if diff:
            print("Nothing to fix.", file=sys.stderr)
        return CLEAN

    cache = RunCache()
    if not (no_cache or fix or diff or stdin_filename or add_noqa):
        given = click.get_current_context().params
        cache = run_cache("check", given, paths, options, baseline, outputs)
    if cache.outcome is not None:
        debug("nothing has changed since an identical run: its output is repeated")
        return cache.outcome.replay()

    from ..engine.check import check_run
    from .check import FixOptions, apply_fixes, chosen_fixes, show_diff, suppress_findings
    from .results import Result, exit_code, record_baseline, report_of, write_reports

    with cache.recording():
        run = set_up_run(paths, stdin_filename, options, baseline, cache.about)
    run = replace(run, ignores_comments=ignore_noqa)
    describe_run(run)
    how_to_verify = verification(run.settings, verify, strict=verify_strict, **how)
    how_to_fix = FixOptions(unsafe_fixes, how_to_verify, *chosen_fixes(run, fixable, unfixable))
    with with_progress(run, "Fixing" if fix or diff else "Checking") as run:
        if diff:
            return show_diff(run, how_to_fix, exit_zero=exit_zero)
        if add_noqa:
            return suppress_findings(run)
        result = apply_fixes(run, how_to_fix) if fix else Result(check_run(run))
    if baseline.write:
        run, result = record_baseline(run, result, baseline.write)
    with cache.recording():
        # With --fix, stdout is for the fixed stdin.
        stream = sys.stderr if fix and run.overlay else sys.stdout
        found = report_of(run, result, unsafe=unsafe_fixes)
        write_reports(found, outputs, stream, cache, count_only=statistics)
        code = exit_code(run, result, exit_zero=exit_zero)
    if exit_non_zero_on_fix and result.fixed:
        code = code or FINDINGS
    cache.store(code, result.analysis)
    return code


def _report_nothing(
    paths: Sequence[Path], outputs: Iterable[Output], *, fixing: bool, count_only: bool
) -> None:
    """Write the report on files in which there is nothing to find."""
    from ..report.content import Report
    from ..report.output import write_report

    files = len({path.resolve() for path in paths})
    nothing = Report((), files, fixed={} if fixing else None)
    for output in outputs:
        write_report(nothing, output.format, output.file or sys.stdout, count_only=count_only)


@cli.command()
@analysis_options
@click.option(
    "--verify",
    is_flag=True,
    help="Run the code with and without its fixes and list the verdicts; write no files.",
)
@click.option(
    "--measure",
    is_flag=True,
    help="Also measure what each checkpoint saves and costs in the targets in the settings, which"
    " runs the project's code.",
)
# For `sweep`.
@click.option("--patch", type=click.Path(dir_okay=False, path_type=Path), hidden=True)
@click.option("--unsafe-fixes", is_flag=True, hidden=True)
@proof_options
@output_control
def report(
    paths: tuple[Path, ...],
    options: Options,
    outputs: tuple[Output, ...],
    baseline: BaselineChoice,
    no_cache: bool,
    exit_zero: bool,
    verify: bool,
    measure: bool,
    patch: Path | None,
    unsafe_fixes: bool,
    **how: Any,
) -> int:
    """List every checkpoint with its risk."""
    from ..cache.run_cache import RunCache, run_cache

    cache = RunCache()
    # Measuring runs the project's code, which may depend on anything.
    if not (no_cache or verify or measure or patch):
        given = click.get_current_context().params
        cache = run_cache("report", given, paths, options, baseline, outputs)
    if cache.outcome is not None:
        return cache.outcome.replay()

    from ..analysis import sites_of
    from ..engine.check import check_run
    from ..report.site_rows import site_rows
    from .check import FixOptions, fix_without_writing
    from .results import Result, exit_code, record_baseline, report_of, warn_of_waste, write_reports

    with cache.recording():
        run = set_up_run(paths, None, options, baseline, cache.about)
    how_to_verify = verification(run.settings, verify, **how)
    with with_progress(run, "Checking") as run:
        result = Result(check_run(run))
        if how_to_verify or patch:
            how_to_fix = FixOptions(unsafe_fixes, how_to_verify)
            result, diff = fix_without_writing(run, result.analysis, how_to_fix)
            if patch:
                write_file(patch, diff)
    if baseline.write:
        run, result = record_baseline(run, result, baseline.write)
    weighed = None
    if measure:
        weighed = measure_configured(run.settings, policies=shows_placements(outputs))
    weights = weighed.sites if weighed else ()
    result = warn_of_waste(result, weights)
    named = run.reported
    with cache.recording():
        sites = [s for s in sites_of(result.analysis.project) if s.module.source.path in named]
        found = report_of(run, result)
        rows = site_rows(sites, found.findings, weights)
        found = replace(found, sites=rows, weighed=weighed)
        write_reports(found, outputs, sys.stdout, cache)
        code = exit_code(run, result, exit_zero=exit_zero)
    cache.store(code, result.analysis)
    return code


cli.add_command(verify_command, "verify")
cli.add_command(measure_command, "measure")
cli.add_command(plan_command, "plan")
cli.add_command(sweep_command, "sweep")


@cli.command()
@click.option("--stdio", is_flag=True, help="Communicate over stdin and stdout (the default).")
@output_control
def server(stdio: bool) -> int:
    """Start the language server, as editors do.

    Requires `pip install 'remat-migrate[lsp]'`.
    """
    try:
        import pygls.lsp.server  # noqa: F401
    except ImportError as error:
        raise UsageError(
            "the language server requires pygls 2; run: pip install 'remat-migrate[lsp]'"
        ) from error
    from ..lsp.server import serve

    return serve()


cli.add_command(explain_command, "explain")
cli.add_command(rules_command, "rules")


@cli.command()
@click.argument("path", default=".", type=click.Path(path_type=Path, exists=True))
@click.option("--force", is_flag=True, help="Also restore files that were edited or deleted since.")
@output_control
def undo(path: Path, force: bool) -> int:
    """Undo the last --fix in a project.

    PATH is any path in the project, by default the current folder. Files that were edited since
    are left alone.
    """
    from ..discovery.roots import find_root
    from ..engine.undo import undo as undo_last
    from ..report.output import say, screen_of
    from ..report.terminal.fixing import undone

    result = undo_last(find_root([path]), force=force)
    sys.stdout.writelines(line + "\n" for line in undone(result, screen_of(sys.stdout)))
    screen = screen_of(sys.stderr)
    for skipped, reason in sorted(result.skipped.items()):
        say(f"error: {screen.path(skipped)} {reason}")
    return ERROR if result.skipped else CLEAN


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit, without a traceback for errors that the user can resolve."""
    if arguments is None:
        # Almost all objects live until the end; collecting garbage took a tenth of the run time.
        gc.disable()
    # A program may be started with closed streams. What is done and the exit code are the same.
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115 (for the whole run)
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        # The terminal's encoding may lack a character of a file name.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        try:
            os.getcwd()
        except OSError as error:
            raise UsageError(f"the current folder cannot be used: {error.strerror}") from error
        code = cli.main(arguments, prog_name="remat-migrate", standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as error:
        error.show()
        code = ERROR
    except (click.Abort, KeyboardInterrupt) as error:
        from ..verify.scratch import signal_of

        # click replaces interrupts by its own exception.
        code = SIGNALLED + signal_of(error.__cause__ or error)
    except RematMigrateError as error:
        from ..report.output import say

        say(f"error: {error}")
        code = ERROR
    except BrokenPipeError:
        sys.stdout = None  # The interpreter would fail to flush it.
        code = BROKEN_PIPE
    except SystemExit as stopped:
        # click exits with 1 on a broken pipe, but here 1 means findings.
        code = BROKEN_PIPE if stopped.code == 1 else stopped.code
    except Exception as error:
        from ..report.output import say

        if isinstance(error, OSError) and error.errno in _OF_THE_SYSTEM:
            say(f"error: {str(error.filename or '')[:_SHOWN]}: {error.strerror}")
        else:
            traceback.print_exc()
            say("error: this is a bug in remat-migrate, please report it with the traceback above")
        code = ERROR
    if arguments is None:
        _exit_at_once(code)
    sys.exit(code)


def _exit_at_once(code: object) -> None:
    """End the process without freeing its objects, which took a seventh of a large run's time."""
    if not isinstance(code, int) or "coverage" in sys.modules:
        return
    atexit._run_exitfuncs()
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except OSError:
        return  # The interpreter reports it on its regular exit.
    os._exit(code)
