"""Distribute the sources of a sweep over the workers of a Dask cluster."""

from __future__ import annotations

import functools
import itertools
import json
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import RematMigrateError, UsageError
from ..verify.scratch import remove_folder, scratch_folder
from .checkout import Git
from .job import (
    WORK,
    Plan,
    outcome_of,
    run_report,
    sweep_source,
    with_branch,
    write_failure,
    write_outcome,
)
from .limited import SourceFailed, Status
from .linking import Linking
from .parts import (
    CHUNK_FILES,
    Split,
    count_files,
    find_candidates,
    find_imports,
    merged_patches,
    merged_reports,
    merged_sarif,
    name_files,
)
from .record import PATCH, REPORT, SARIF, Brief
from .sources import Source
from .store import Store

if TYPE_CHECKING:
    from distributed import Client

# Enough tasks for each thread of a worker that it never waits for the client, and so few that the
# scheduler knows hundreds of tasks, not hundreds of thousands.
_AHEAD = 3
_FEWEST = 16
_SECONDS_KNOWN = 5.0

Decided = Callable[[Brief], None]


class SweepStopped(RematMigrateError):
    """The scheduler is gone. What was finished is kept."""


@contextmanager
def connected(scheduler: str | None, workers: int | None) -> Iterator[Client]:
    """Yield a client of a running scheduler, or of a cluster on this machine.

    Raises:
        UsageError: Dask is not installed, or there is no scheduler at the address.
    """
    for module in ("distributed", "pyarrow"):
        if find_spec(module) is None:
            raise UsageError(f"sweeps require {module}; run: pip install 'remat-migrate[sweep]'")
    import dask
    from distributed import Client, LocalCluster

    # A lost connection is reported as `SweepStopped`, not with a traceback of Dask's.
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
    if scheduler is not None:
        try:
            client = Client(scheduler, timeout="10s", set_as_default=False)
        except (OSError, ValueError) as error:
            raise UsageError(f"--scheduler {scheduler}: {error}") from error
        with client:
            yield client
        return
    # A worker starts each source in processes of its own, which have limits of their own.
    settings = {"distributed.worker.daemon": False, "distributed.logging.distributed": "error"}
    with (
        dask.config.set(settings),
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            memory_limit=0,
            dashboard_address="127.0.0.1:0" if find_spec("bokeh") else None,
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


def dashboard_of(client: Client) -> str | None:
    """Return the address of the scheduler's dashboard, if it has one."""
    return client.dashboard_link or None if find_spec("bokeh") else None


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
        SweepStopped: the scheduler is gone.
    """
    large: list[Brief] = []
    suspects: list[Source] = []

    def alone() -> Iterator[tuple[Source, Brief | None, Exception | None]]:
        for source in suspects:
            yield from _results(client, task, [(source, (source, plan))])

    together = _results(client, task, ((source, (source, plan)) for source in sources))
    for source, brief, error in itertools.chain(together, alone()):
        if _is_lost(error) and source not in suspects:
            # Dask blames all tasks of a worker that dies: try each again with nothing beside it.
            suspects.append(source)
            continue
        if error is not None:
            brief = write_failure(source, plan, error)
        assert brief is not None
        if brief.large:
            large.append(brief)
        else:
            decided(brief)
    for brief in sorted(large, key=lambda one: one.source):
        decided(_in_parts(client, brief, plan))


def _results(
    client: Client, function: Callable[..., Any], calls: Iterable[tuple[Any, tuple[Any, ...]]]
) -> Iterator[tuple[Any, Any, Exception | None]]:
    """Call a function on the workers, some calls ahead; yield their names, results, and errors.

    Raises:
        SweepStopped: the scheduler is gone.
    """
    from distributed import as_completed

    names: dict[Any, Any] = {}
    waiting = iter(calls)

    def submit(count: int) -> list[Any]:
        futures = []
        for name, arguments in itertools.islice(waiting, count):
            future = client.submit(function, *arguments, pure=False)
            names[future.key] = name
            futures.append(future)
        return futures

    ahead = _Ahead(client)
    completed = as_completed(submit(ahead.most()), loop=client.loop, raise_errors=False)
    for future in completed:
        name = names.pop(future.key)
        try:
            yield name, future.result(), None
        except Exception as error:
            yield name, None, _explained(error, client)
        except CancelledError as error:
            raise _stopped(client) from error
        future.release()
        for more in submit(max(1, ahead.most() - len(names))):
            completed.add(more)


class _Ahead:
    """How many tasks the scheduler gets at a time; workers may join and leave."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._known, self._until = 0, 0.0

    def most(self) -> int:
        """Return the number of tasks that are waiting or running at most."""
        if time.monotonic() >= self._until:  # the scheduler describes every worker
            workers = self._client.scheduler_info(n_workers=-1)["workers"].values()
            self._known = sum(worker["nthreads"] for worker in workers)
            self._until = time.monotonic() + _SECONDS_KNOWN
        return max(_FEWEST, _AHEAD * self._known)


def _is_lost(error: Exception | None) -> bool:
    return isinstance(error, SourceFailed) and error.status is Status.LOST


def _explained(error: Exception, client: Client) -> Exception:
    """Return the reason for a task's failure.

    Raises:
        SweepStopped: the scheduler is gone.
    """
    from distributed import KilledWorker

    if isinstance(error, KilledWorker):
        return SourceFailed(
            Status.LOST, f"its worker died {error.allowed_failures + 1} times, each on another try"
        )
    if isinstance(error, CancelledError) or client.status != "running":
        raise _stopped(client) from error
    return error


def _stopped(client: Client) -> SweepStopped:
    return SweepStopped(
        f"the connection to the scheduler {client.scheduler.address if client.scheduler else ''} is"
        " lost; what was checked is kept: run the same command again to go on"
    )


# -- large sources


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a large source: its number, and what `--part` reads."""

    number: int
    description: str


def _in_parts(client: Client, brief: Brief, plan: Plan) -> Brief:
    """Check a large source in parts."""
    source, root = brief.source, Path(brief.root)
    split, folder = Split(brief.root, plan.options), f"{WORK}/{source.name}"
    try:
        parts = list(_parts(client, split, plan.part_files))
        call = functools.partial(_check_part, split=split, plan=plan, folder=folder)
        codes = list(_without_errors(_results(client, call, ((one, (one,)) for one in parts))))
        written = _merged(max(codes), len(parts), plan.store, folder)
        outcome = replace(outcome_of(source, brief.commit, root, written), notes=tuple(brief.notes))
        with scratch_folder() as scratch:
            outcome = with_branch(outcome, root, Git(scratch, plan.limits), plan)
        return write_outcome(outcome, brief, plan)
    except (RematMigrateError, OSError) as error:
        if isinstance(error, SweepStopped):
            raise
        return write_failure(source, plan, error)
    finally:
        if Path(plan.store.path(folder)).exists():
            remove_folder(Path(plan.store.path(folder)))


def _parts(client: Client, split: Split, size: int) -> Iterator[Part]:
    """Find the parts of a source, searching its files on all workers."""
    count = client.submit(count_files, split, pure=False).result()
    ranges = [(start, start + CHUNK_FILES) for start in range(0, count, CHUNK_FILES)]
    searches = ((one, (split, *one)) for one in ranges)
    found = _without_errors(_results(client, find_candidates, searches))
    linking = Linking(itertools.chain.from_iterable(found))
    while linking.searched:
        searched = sorted(linking.searched)
        rounds = ((one, (split, *one, searched)) for one in ranges)
        for imports in list(_without_errors(_results(client, find_imports, rounds))):
            linking.add_imports(imports)
        linking.advance()
    for number, files in enumerate(linking.parts(size)):
        names = client.submit(name_files, split, files, pure=False).result()
        yield Part(number, json.dumps({"files": names, "first": number == 0}))


def _without_errors(results: Iterable[tuple[Any, Any, Exception | None]]) -> Iterator[Any]:
    for _, result, error in results:
        if isinstance(error, RematMigrateError):
            raise error
        if error is not None:
            reason = f"{type(error).__name__}: {error}"
            raise SourceFailed(Status.FAILED, reason) from error
        yield result


def _check_part(part: Part, split: Split, plan: Plan, folder: str) -> int:
    """Check a part of a source, write the results to the store, and return the exit code."""
    with scratch_folder() as scratch:
        described = scratch / "part.json"
        described.write_text(part.description)
        run = functools.partial(run_report, Path(split.root), scratch)
        try:
            code, files = run(plan, "--part", str(described))
        except SourceFailed:
            if plan.verify is None:
                raise
            code, files = run(replace(plan, verify=None), "--part", str(described))
    for name, data in files.items():
        plan.store.write(f"{folder}/{part.number}/{name}", data)
    return code


def _merged(code: int, count: int, store: Store, folder: str) -> tuple[int, dict[str, bytes]]:
    """Put what was written for the parts of a source together."""

    def parts(name: str) -> Iterator[bytes]:
        return store.read_all(f"{folder}/{number}/{name}" for number in range(count))

    return code, {
        REPORT: json.dumps(merged_reports(list(map(json.loads, parts(REPORT))))).encode(),
        SARIF: json.dumps(merged_sarif(list(map(json.loads, parts(SARIF))))).encode(),
        PATCH: merged_patches(list(parts(PATCH))),
    }
