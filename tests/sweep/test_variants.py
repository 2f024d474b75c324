"""Variants of a target on workers: the same measurements and plans as without them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from support import cli, write_files

from remat_migrate.errors import VerificationError
from remat_migrate.measure.options import MeasureOptions
from remat_migrate.measure.session import measure, measuring
from remat_migrate.measure.target import parse_target
from remat_migrate.measure.worker.records import Need
from remat_migrate.measure.workers import Workers
from remat_migrate.plan.budget import parse_budget
from remat_migrate.plan.planner import Gradient, Helpers
from remat_migrate.plan.planning import planned
from remat_migrate.sweep.cluster import variant_workers

pytest.importorskip("jax")

MODEL = """\
import jax
import jax.numpy as jnp


def block(w, x):
    return x + jnp.tanh(jnp.sin(x @ w) * jnp.cos(x)) @ w


def loss(w, x):
    for each in w:
        x = jax.checkpoint(block)(each, x)
    return jnp.mean(x**2)


def args(batch=1024):
    w = [jax.ShapeDtypeStruct((32, 32), jnp.float32)] * 6
    return w, jax.ShapeDtypeStruct((batch, 32), jnp.float32)
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    folder = tmp_path_factory.mktemp("project")
    write_files(folder, {"pyproject.toml": "", "model.py": MODEL})
    return folder


@pytest.fixture(scope="module")
def workers():
    with variant_workers(None, 2) as found:
        assert found.count == 2
        yield found


class Counted:
    """Workers that remember how many calls they got."""

    def __init__(self, workers):
        self.calls = 0
        self.workers = Workers(self._call, workers.count)
        self._workers = workers

    def _call(self, function, arguments):
        self.calls += len(arguments)
        return self._workers.call(function, arguments)


def test_policies(project, workers):
    target = parse_target("model.py:loss", project)
    options = MeasureOptions(args="model.py:args", policies=True)
    counted = Counted(workers)
    found = measure(target, options, project, counted.workers)
    assert counted.calls == 2
    assert len(found.alternatives) > 10
    assert found == measure(target, options, project)


def test_plan(project, workers):
    """Sessions that start at once always pay. The batch is that which the session has by then."""
    target = parse_target("model.py:loss", project)
    options = MeasureOptions(args="model.py:args", compile=True)
    budget, counted = parse_budget("40%"), Counted(workers)
    with measuring(target, options, project) as session:
        alone = planned(session.again("batch", size=512), options, budget, pareto=True)
        ready = replace(session.again("batch", size=512), seconds=0.0)
        found = planned(ready, options, budget, pareto=True, workers=counted.workers)
    assert counted.calls > 0
    assert found == alone
    assert len(found.candidates) > 1


def test_helpers_that_do_not_pay():
    def asked(request, runs):
        time.sleep(0.02)
        return {"need": (8, 9, 0), "bytes": 7}

    def never(request, placements):
        raise AssertionError(placements)

    asked_ahead = []

    def helping(request, placements):
        asked_ahead.append((request, tuple(placements)))
        return [asked(request, runs) for runs in placements]

    runs = [((n, n + 1, "wrapped", None),) for n in range(6)]
    for helpers in (Helpers(never, 8, 60.0), Helpers(never, 1, 0.0), None):
        gradient = Gradient(Need(1, 2, 0), asked, helpers=helpers)
        gradient.traced(runs[0])
        gradient.trace_ahead(runs)
        gradient.compiled(())
        gradient.compile_ahead(runs)
        assert gradient.tried == 1
    gradient = Gradient(Need(1, 2, 0), asked, helpers=Helpers(helping, 3, 0.0))
    gradient.trace_ahead(runs)
    assert not asked_ahead, "how long a trace takes is not known"
    gradient.traced(runs[0])
    gradient.trace_ahead((*runs, runs[3], ()))
    gradient.compiled(())
    gradient.compile_ahead(runs)
    assert asked_ahead == [("trace", tuple(runs[1:])), ("compile_runs", tuple(runs))]
    assert (gradient.tried, gradient.compiled(runs[5])) == (6, 7)


def test_variant_that_fails(project, workers):
    target = parse_target("model.py:loss", project)
    options = MeasureOptions(args="model.py:args")
    with measuring(target, options, project) as session:
        requests = [("batch", {"size": 64}), ("batch", {"size": "many"})]
        with pytest.raises(VerificationError, match=r"model\.py:loss"):
            session.ask_on(workers, requests)


@pytest.mark.slow
def test_worker_that_dies(workers):
    def die(number):
        os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(VerificationError, match="its worker died"):
        workers.call(die, [(1,)])


def test_command(project):
    target = ("model.py:loss", "--args", "model.py:args")
    words = ("plan", *target, "--budget=60%", "--compile", "--output-format=json")
    command = (sys.executable, "-P", "-m", "remat_migrate", *words)
    runs = [
        subprocess.run((*command, *more), cwd=project, capture_output=True, text=True)
        for more in ((), ("--workers=1",))
    ]
    assert runs[0].returncode == runs[1].returncode, runs[1].stderr
    assert json.loads(runs[0].stdout) == json.loads(runs[1].stdout)


def test_bad_input(project):
    target = ("model.py:loss", "--args", "model.py:args")
    ran = cli(project, "measure", *target, "--workers=2")
    assert (ran.code, ran.err) == (2, "error: --scheduler and --workers require --policies\n")
    both = ("--scheduler=tcp://127.0.0.1:1", "--workers=2")
    ran = cli(project, "plan", *target, "--budget=40%", *both)
    assert (ran.code, ran.err) == (2, "error: --workers cannot be combined with --scheduler\n")
    ran = cli(project, "plan", *target, "--budget=40%", "--scheduler=nowhere:x")
    assert ran.code == 2
    assert ran.err.startswith("error: --scheduler nowhere:x: ")
