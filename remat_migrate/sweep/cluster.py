"""Calls of functions on the workers of a Dask cluster."""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from .. import __version__
from ..errors import RematMigrateError, UsageError, VerificationError
from ..measure.workers import Workers
from .limited import SourceFailed, Status

if TYPE_CHECKING:
    from distributed import Client

# Enough tasks for each thread of a worker that it never waits for the client, and so few that the
# scheduler knows hundreds of tasks, not hundreds of thousands.
_AHEAD = 3
_FEWEST = 16
_SECONDS_KNOWN = 5.0
_SECONDS_FOR_WORKERS = 60.0

# The name of a call, and its arguments.
Call = tuple[Any, tuple[Any, ...]]


class SchedulerLost(RematMigrateError):
    """The connection to the scheduler is lost."""


def require(*modules: str) -> None:
    """Raise a UsageError that says how to install the modules that are missing."""
    for module in modules:
        if find_spec(module) is None:
            raise UsageError(f"{module} is required; run: pip install 'remat-migrate[sweep]'")


@contextmanager
def connected(scheduler: str | None, workers: int | None) -> Iterator[Client]:
    """Yield a client of a running scheduler, or of a cluster on this machine.

    Raises:
        UsageError: Dask is not installed, there is no scheduler at the address, or it has no
            workers.
    """
    if workers and scheduler:
        raise UsageError("--workers cannot be combined with --scheduler")
    require("distributed")
    import dask
    from distributed import Client, LocalCluster

    # A lost connection is reported as `SchedulerLost`, not with a traceback of Dask's.
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
    if scheduler is not None:
        try:
            client = Client(scheduler, timeout="10s", set_as_default=False)
        except (OSError, ValueError) as error:
            raise UsageError(f"--scheduler {scheduler}: {error}") from error
        with client:
            try:
                client.wait_for_workers(1, timeout=_SECONDS_FOR_WORKERS)
            except TimeoutError as error:
                raise UsageError(f"--scheduler {scheduler}: it has no workers") from error
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


def thread_count(client: Client) -> int:
    """Return how many calls run at the same time."""
    threads: Mapping[str, int] = client.nthreads()
    return max(1, sum(threads.values()))


def results(
    client: Client, function: Callable[..., Any], calls: Iterable[Call]
) -> Iterator[tuple[Any, Any, Exception | None]]:
    """Call a function on the workers, some calls ahead; yield their names, results, and errors.

    Raises:
        SchedulerLost: the scheduler is gone.
    """
    from distributed import as_completed

    names: dict[Any, Any] = {}
    waiting = iter(calls)

    def submit(count: int) -> list[Any]:
        futures = []
        for name, arguments in itertools.islice(waiting, count):
            future = client.submit(_call, __version__, function, *arguments, pure=False)
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


def _call(version: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function on a worker.

    Raises:
        SourceFailed: the worker has another version of the tool.
    """
    if version != __version__:
        reason = f"this worker has remat-migrate {__version__}, not {version}"
        raise SourceFailed(Status.FAILED, reason)
    return function(*arguments)


def call_all(client: Client, function: Callable[..., Any], calls: Iterable[Call]) -> dict[Any, Any]:
    """Call a function on the workers; return the results by the names of the calls.

    Raises:
        RematMigrateError: a call failed.
    """
    found = {}
    for name, result, error in results(client, function, calls):
        if isinstance(error, RematMigrateError):
            raise error
        if error is not None:
            reason = f"{type(error).__name__}: {error}"
            raise SourceFailed(Status.FAILED, reason) from error
        found[name] = result
    return found


@contextmanager
def variant_workers(scheduler: str | None, workers: int | None) -> Iterator[Workers | None]:
    """Yield workers for variants of a target; None if no cluster is asked for.

    Raises:
        UsageError: as `connected`.
    """
    if scheduler is None and workers is None:
        yield None
        return
    with connected(scheduler, workers) as client:

        def call(function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
            try:
                found = call_all(client, function, enumerate(arguments))
            except SourceFailed as error:
                raise VerificationError(str(error)) from error
            return [found[number] for number in range(len(arguments))]

        yield Workers(call, thread_count(client))


class _Ahead:
    """How many tasks the scheduler gets at a time; workers may join and leave."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._known, self._until = 0, 0.0

    def most(self) -> int:
        """Return the number of tasks that are waiting or running at most."""
        if time.monotonic() >= self._until:
            self._known = thread_count(self._client)
            self._until = time.monotonic() + _SECONDS_KNOWN
        return max(_FEWEST, _AHEAD * self._known)


def is_lost(error: Exception | None) -> bool:
    """Return whether the worker of a call died."""
    return isinstance(error, SourceFailed) and error.status is Status.LOST


def _explained(error: Exception, client: Client) -> Exception:
    """Return the reason for a task's failure.

    Raises:
        SchedulerLost: the scheduler is gone.
    """
    from distributed import KilledWorker

    if isinstance(error, KilledWorker):
        return SourceFailed(
            Status.LOST, f"its worker died {error.allowed_failures + 1} times, each on another try"
        )
    if isinstance(error, CancelledError) or client.status != "running":
        raise _stopped(client) from error
    return error


def _stopped(client: Client) -> SchedulerLost:
    address = client.scheduler.address if client.scheduler else ""
    return SchedulerLost(
        f"the connection to the scheduler {address} is lost: run the same command again;"
        " a sweep goes on where it was"
    )
