"""How far a sweep scales: real workers on this machine, and thousands of simulated ones.

    python -m benchmarks.sweep_growth workers SOURCES...     # 1 and 2 workers over the same sources
    python -m benchmarks.sweep_growth simulated              # up to 1,000 workers, 100,000 sources

Simulated workers are real Dask workers, many to a process, each with one thread. Their tasks sleep
instead of checking a repository. The scheduler has a process of its own, whose CPU time divided by
the number of repositories tells how many repositories a second it can handle at most.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click
import dask
import psutil
from distributed import Worker

from remat_migrate.settings import Options
from remat_migrate.sweep.cluster import connected
from remat_migrate.sweep.driver import run_sweep
from remat_migrate.sweep.job import Plan
from remat_migrate.sweep.limited import Limits, Status
from remat_migrate.sweep.record import Brief
from remat_migrate.sweep.sources import Source, parse_sources

_PROCESSES = 4
# What watches the memory, the stacks, and the event loop of each worker would be most of the load.
_SETTINGS = {
    "distributed.admin.system-monitor.interval": "60s",
    "distributed.admin.tick.interval": "10s",
    "distributed.worker.profile.enabled": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.terminate": False,
}


@click.group()
def main() -> None:
    """Measure how far a sweep scales."""


@main.command()
@click.argument("sources", nargs=-1, required=True)
@click.option("--most", default=2, help="The largest number of workers.")
def workers(sources: Sequence[str], most: int) -> None:
    """Check SOURCES with 1, 2, ... workers."""
    found = parse_sources(sources)
    print("| workers | seconds | repositories a second |\n| --: | --: | --: |")
    for count in range(1, most + 1):
        with tempfile.TemporaryDirectory() as out, connected(None, count) as cluster:
            plan = Plan(out, Options(), Limits(600, 8 << 30, 4 << 30))
            started = time.perf_counter()
            run_sweep(cluster, found, plan, lambda brief: None)
            seconds = time.perf_counter() - started
        print(f"| {count} | {seconds:.1f} | {len(found) / seconds:.2f} |", flush=True)


@main.command()
@click.option("--seconds", default=2.0, help="How long each task sleeps.")
@click.option("--case", "cases", multiple=True, metavar="WORKERS,SOURCES")
def simulated(seconds: float, cases: Sequence[str]) -> None:
    """Sweep sources that take some seconds each with many workers."""
    wanted = cases or ("10,500", "100,5000", "300,20000", "1000,20000", "1000,100000")
    print(
        "| workers | repositories | seconds | repositories a second | of the possible |"
        " scheduler, CPU ms each | scheduler, MB | client, CPU ms each |\n"
        "| --: | --: | --: | --: | --: | --: | --: | --: |"
    )
    for case in wanted:
        count, total = map(int, case.split(","))
        print(_simulated(count, total, seconds), flush=True)


def _simulated(workers: int, total: int, seconds: float) -> str:
    def task(source: Source, plan: Plan) -> Brief:
        time.sleep(seconds)
        return Brief(source, Status.CHECKED)

    sources = [Source(f"https://example.com/{number}") for number in range(total)]
    plan = Plan("/nowhere", Options(), Limits(1, 1, 1))
    with _cluster(workers) as (address, scheduler), connected(address, None) as cluster:
        while cluster.count() < workers:
            time.sleep(0.1)
        own = psutil.Process()
        before, own_before = _cpu(scheduler), _cpu(own)
        started = time.perf_counter()
        done: list[Brief] = []
        run_sweep(cluster, sources, plan, done.append, task=task)
        wall = time.perf_counter() - started
        spent, own_spent = _cpu(scheduler) - before, _cpu(own) - own_before
        memory = scheduler.memory_info().rss / 1e6
    if len({brief.source for brief in done}) != total or len(done) != total:
        raise SystemExit("a source was lost, or swept twice")
    rate = total / wall
    return (
        f"| {workers:,} | {total:,} | {wall:.0f} | {rate:,.0f} | {rate * seconds / workers:.0%}"
        f" | {1000 * spent / total:.2f} | {memory:.0f} | {1000 * own_spent / total:.2f} |"
    )


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


@contextmanager
def _cluster(workers: int) -> Iterator[tuple[str, psutil.Process]]:
    """Yield the address of a scheduler with many workers, and its process."""
    command = (sys.executable, "-m", "distributed.cli.dask_scheduler", "--no-dashboard")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "scheduler.json")
        where = ("--port", "0", "--host", "127.0.0.1", "--scheduler-file", str(file))
        scheduler = subprocess.Popen((*command, *where), stderr=subprocess.DEVNULL)
        processes = [scheduler]
        try:
            while not file.exists() or not file.read_text():
                time.sleep(0.1)
            address = json.loads(file.read_text())["address"]
            each = [workers // _PROCESSES + (n < workers % _PROCESSES) for n in range(_PROCESSES)]
            start = (sys.executable, "-m", "benchmarks.sweep_growth", "hold", address)
            processes += [
                subprocess.Popen((*start, str(n)), stderr=subprocess.DEVNULL) for n in each if n
            ]
            yield address, psutil.Process(scheduler.pid)
        finally:
            for process in reversed(processes):
                process.kill()
                process.wait()


@main.command(hidden=True)
@click.argument("address")
@click.argument("count", type=int)
def hold(address: str, count: int) -> None:
    """Run some workers in this process until it is killed."""

    async def run() -> None:
        started = []
        with dask.config.set(_SETTINGS):
            for _ in range(count):
                settings = {"nthreads": 1, "memory_limit": 0, "dashboard": False}
                started.append(await Worker(address, validate=False, **settings))
        await asyncio.gather(*(worker.finished() for worker in started))

    asyncio.run(run())


if __name__ == "__main__":
    main()
