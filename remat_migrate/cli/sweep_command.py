"""The command `sweep`: many repositories, checked side by side."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..errors import UsageError
from .exit_codes import CLEAN, FINDINGS, VERIFICATION_FAILED
from .options import output_control, selection_options
from .progress_bar import progress_bar

if TYPE_CHECKING:
    from ..settings import Options
    from ..sweep.job import Plan
    from ..sweep.record import Brief
    from ..sweep.totals import Totals

_MOST_FAILURES = 20


def _size(ctx: click.Context, parameter: click.Parameter, value: str) -> int:
    """Parse a number of bytes."""
    from ..verify.options import parse_size

    return parse_size(int(value) if value.isdecimal() else value, parameter.opts[0])


@click.command()
@click.argument("sources", nargs=-1, required=True)
@click.option(
    "--out",
    required=True,
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for the results. A sweep into the same folder checks only what has changed.",
)
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    metavar="N",
    help="Number of repositories to check at a time.  [default: one per core]",
)
@click.option("--unsafe-fixes", is_flag=True, help="Include unsafe fixes in the patches.")
@click.option(
    "--verify",
    is_flag=True,
    help="Run the code before and after its fixes, in the environment that the settings of a"
    " repository name, and leave out fixes that change results.",
)
@click.option("--python", metavar="PATH", help="With --verify: the interpreter.")
@click.option(
    "--measure", is_flag=True, help="Measure the targets that the settings of a repository name."
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=600.0,
    metavar="SECONDS",
    help="Time for the checkout of a repository, and for each step after it.  [default: 600]",
)
@click.option(
    "--memory",
    callback=_size,
    default="8GiB",
    metavar="BYTES",
    help="Memory that a repository may use.  [default: 8GiB]",
)
@click.option(
    "--max-size",
    callback=_size,
    default="4GiB",
    metavar="BYTES",
    help="Size of a repository, and of the files of a revision.  [default: 4GiB]",
)
@click.option("--no-cache", is_flag=True, help="Also check what has not changed.")
@click.option("--exit-zero", is_flag=True, help="Exit with 0 even if there are findings.")
@selection_options
@output_control
def sweep_command(
    sources: tuple[str, ...],
    out: Path,
    workers: int | None,
    options: Options,
    unsafe_fixes: bool,
    verify: bool,
    python: str | None,
    measure: bool,
    timeout: float,
    memory: int,
    max_size: int,
    no_cache: bool,
    exit_zero: bool,
) -> int:
    """Check many repositories.

    SOURCES are folders, addresses of git repositories with an optional @REVISION, and files that
    list them, one per line. A folder is checked as it is, and git repositories are checked out.
    Requires `pip install 'remat-migrate[sweep]'`.

    A repository that cannot be checked gets a record with the reason. If the sweep is stopped, the
    same command goes on where it was. Exits with 1 if findings or unchecked repositories remain,
    and with 3 if a verification failed.
    """
    from ..sweep.job import Plan, run_sweep
    from ..sweep.limited import Limits
    from ..sweep.sources import parse_sources
    from ..sweep.store import Store
    from ..sweep.totals import write_results

    if python and not verify:
        raise UsageError("--python requires --verify")
    if find_spec("pyarrow") is None:
        raise UsageError("pyarrow is required; run: pip install 'remat-migrate[sweep]'")
    wanted = parse_sources(sources)
    plan = Plan(
        Store(out.absolute()),
        options,
        Limits(timeout, memory, max_size),
        unsafe=unsafe_fixes,
        verify=(("--python", python) if python else ()) if verify else None,
        measure=measure,
        again=no_cache,
    )
    done: list[Brief] = []
    with progress_bar("Sweeping") as bar:
        bar("", 0, len(wanted))

        def decided(brief: Brief) -> None:
            done.append(brief)
            bar(str(brief.source), len(done), len(wanted))

        run_sweep(wanted, plan, workers or os.cpu_count() or 1, decided)
    totals = write_results(wanted, plan.store)
    for line in _summary(totals, sum(brief.kept for brief in done), plan):
        print(line)
    if VERIFICATION_FAILED in totals.exit_codes:
        return VERIFICATION_FAILED
    remain = totals.failed or FINDINGS in totals.exit_codes
    return FINDINGS if remain and not exit_zero else CLEAN


def _summary(totals: Totals, kept: int, plan: Plan) -> Iterator[str]:
    """Yield what was found, and where the results are."""
    from ..report.terminal.display import pluralize, printable
    from ..sweep.sources import Source
    from ..sweep.totals import PAGE

    checked = totals.statuses["checked"]
    unchanged = f" ({kept:,} of them unchanged since the last sweep)" if kept else ""
    yield f"Checked {checked:,} of {pluralize(totals.statuses.total(), 'source')}{unchanged}."
    for record in totals.failed[:_MOST_FAILURES]:
        source = Source(record["source"], record["revision"])
        yield printable(f"{record['status']}: {source}: {record['reason']}")
    if len(totals.failed) > _MOST_FAILURES:
        yield f"... and {len(totals.failed) - _MOST_FAILURES:,} more, see the page."
    severities = totals.findings
    yield (
        f"{pluralize(severities['error'], 'error')}, {pluralize(severities['warning'], 'warning')},"
        f" and {severities['note']:,} pieces of advice in {totals.with_findings:,} sources;"
        f" {totals.fixes['safe']:,} with a safe fix, {totals.fixes['unsafe']:,} with an unsafe one."
    )
    if found := totals.verdicts:
        counts = (f"{found[verdict]:,} {verdict}" for verdict in ("equal", "wrong"))
        yield f"Verified: {', '.join(counts)}, {found['not_exercised']:,} not exercised."
    yield f"{pluralize(totals.patches, 'patch', 'patches')}."
    yield f"Results: {plan.store.folder / PAGE}"
