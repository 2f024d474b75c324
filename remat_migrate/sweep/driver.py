"""Distribute the sources of a sweep over workers."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

from .cluster import Cluster, is_lost
from .job import Plan, sweep_source, write_failure
from .record import Brief
from .sources import Source

Decided = Callable[[Brief], None]


def run_sweep(
    cluster: Cluster,
    sources: Sequence[Source],
    plan: Plan,
    decided: Decided,
    task: Callable[[Source, Plan], Brief] = sweep_source,
) -> None:
    """Check sources on the workers.

    Args:
        cluster: the workers.
        sources: the sources.
        plan: how to check each.
        decided: called with each source and its result once it is decided.
        task: checks a source; tests and benchmarks replace it.

    Raises:
        SchedulerLost: the scheduler is gone.
    """
    suspects: list[Source] = []

    def alone() -> Iterator[tuple[Source, Brief | None, Exception | None]]:
        for source in suspects:
            yield from cluster.results(task, [(source, (source, plan))])

    together = cluster.results(task, ((source, (source, plan)) for source in sources))
    for source, brief, error in itertools.chain(together, alone()):
        if is_lost(error) and source not in suspects:
            # Dask blames all tasks of a worker that dies: try each again with nothing beside it.
            suspects.append(source)
            continue
        if error is not None:
            brief = write_failure(source, plan, error)
        assert brief is not None
        decided(brief)
