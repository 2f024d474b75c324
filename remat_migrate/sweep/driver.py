"""Distribute the sources of a sweep over the workers of a Dask cluster."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from .cluster import is_lost, results
from .job import Plan, sweep_source, write_failure
from .large import check_in_parts
from .record import Brief, Large
from .sources import Source

if TYPE_CHECKING:
    from distributed import Client

Decided = Callable[[Brief], None]


def run_sweep(
    client: Client,
    sources: Sequence[Source],
    plan: Plan,
    decided: Decided,
    task: Callable[[Source, Plan], Brief] = sweep_source,
) -> None:
    """Check sources on the workers; large ones at the end, each by all of them.

    Args:
        client: connects to the cluster.
        sources: the sources.
        plan: how to check each.
        decided: receives what became of each source, as it comes.
        task: checks a source; tests and benchmarks replace it.

    Raises:
        SchedulerLost: the scheduler is gone.
    """
    large: list[Large] = []
    suspects: list[Source] = []

    def alone() -> Iterator[tuple[Source, Brief | None, Exception | None]]:
        for source in suspects:
            yield from results(client, task, [(source, (source, plan))])

    together = results(client, task, ((source, (source, plan)) for source in sources))
    for source, brief, error in itertools.chain(together, alone()):
        if is_lost(error) and source not in suspects:
            # Dask blames all tasks of a worker that dies: try each again with nothing beside it.
            suspects.append(source)
            continue
        if error is not None:
            brief = write_failure(source, plan, error)
        assert brief is not None
        if brief.large is not None:
            large.append(brief.large)
        else:
            decided(brief)
    for one in sorted(large, key=lambda one: one.source):
        decided(check_in_parts(client, one, plan))
