"""Calls of functions by workers: threads of this process, or the workers of a Dask cluster.

On this machine there is no scheduler, which would run the code of anyone who connects to it.
"""

from __future__ import annotations

import itertools
import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from multiprocessing.pool import ThreadPool
from typing import TYPE_CHECKING, Any

from .. import __version__
from ..errors import RematMigrateError, UsageError
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
Result = tuple[Any, Any, Exception | None]


class SchedulerLost(RematMigrateError):
    """The connection to the scheduler is lost."""


def require(*modules: str) -> None:
    """Raise a UsageError that says how to install the modules that are missing."""
    for module in modules:
        if find_spec(module) is None:
            raise UsageError(f"{module} is required; run: pip install 'remat-migrate[sweep]'")


@dataclass(frozen=True, slots=True)
class Cluster:
    """Workers that call functions.

    Attributes:
        results: calls a function, and yields the names of the calls, their results, and errors.
        count: returns how many calls run at the same time.
    """

    results: Callable[[Callable[..., Any], Iterable[Call]], Iterator[Result]]
    count: Callable[[], int]


@contextmanager
def connected(scheduler: str | None, workers: int | None) -> Iterator[Cluster]:
    """Yield the workers of a running scheduler, or threads.

    Raises:
        UsageError: Dask is not installed, there is no scheduler at the address, or it has no
            workers.
    """
    if workers and scheduler:
        raise UsageError("--workers cannot be combined with --scheduler")
    if scheduler is None:
        count = workers or len(os.sched_getaffinity(0))
        yield Cluster(partial(_called_here, count), lambda: count)
        return
    require("distributed")
    from distributed import Client

    # A lost connection is reported as `SchedulerLost`, not with a traceback of Dask's.
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
    try:
        client = Client(scheduler, timeout="10s", set_as_default=False)
    except (OSError, ValueError) as error:
        raise UsageError(f"--scheduler {scheduler}: {error}") from error
    with client:
        try:
            client.wait_for_workers(1, timeout=_SECONDS_FOR_WORKERS)
        except TimeoutError as error:
            raise UsageError(f"--scheduler {scheduler}: it has no workers") from error
        yield Cluster(partial(_called_there, client), lambda: _thread_count(client))


def _called_here(
    count: int, function: Callable[..., Any], calls: Iterable[Call]
) -> Iterator[Result]:
    """Call a function in threads, which suffice: a source runs in processes of its own."""

    def call(one: Call) -> Result:
        name, arguments = one
        try:
            return name, function(*arguments), None
        except Exception as error:
            return name, None, error

    with ThreadPool(count) as pool:
        yield from pool.imap_unordered(call, calls)


def _thread_count(client: Client) -> int:
    threads: Mapping[str, int] = client.nthreads()
    return max(1, sum(threads.values()))


def _called_there(
    client: Client, function: Callable[..., Any], calls: Iterable[Call]
) -> Iterator[Result]:
    """Call a function on the workers of a scheduler, some calls ahead.

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


class _Ahead:
    """How many tasks the scheduler gets at a time; workers may join and leave."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._known, self._until = 0, 0.0

    def most(self) -> int:
        """Return the number of tasks that are waiting or running at most."""
        if time.monotonic() >= self._until:
            self._known = _thread_count(self._client)
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
