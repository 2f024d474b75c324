"""`plan --apply`: the rewritten source needs what was planned and gives the same; or none of it."""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from measuring import share, worker_for
from support import cli, read_files, write_files

jax = pytest.importorskip("jax")

from remat_migrate.measure.worker.instruments.liveness import peak  # noqa: E402
from remat_migrate.measure.worker.internals import internals  # noqa: E402
from remat_migrate.plan import applying  # noqa: E402
from remat_migrate.verify.session import Worker  # noqa: E402

MODEL = """\
import jax
import jax.numpy as jnp


def block(w, x):
    return x + jnp.tanh(jnp.sin(x @ w) * jnp.cos(x)) @ w


def chain(w, x):
    x = block(w[0], x)
    x = block(w[1], x)  # the second one
    x = block(
        w[2], x
    )
    x = x + block(w[3], x)
    return jnp.mean(x**2)


def looped(w, x):
    for each in w:
        x = block(each, x)
    x = block(w[0], x)
    return jnp.mean(x**2)


def scanned(w, x):
    x, _ = jax.lax.scan(lambda x, each: (block(each, x), None), x, jnp.stack(w))
    return jnp.mean(x**2)


remembering = jax.checkpoint(block)


def remembered(w, x):
    x = jax.checkpoint(block)(w[0], x)
    x = remembering(w[1], x)
    x = block(w[2], x)
    x = block(w[3], x)
    return jnp.mean(x**2)


def two(w, x):
    x = block(w[1], block(w[0], x))
    x = block(w[3], block(w[2], x))
    x = block(w[1], block(w[0], x))
    return jnp.mean(x**2)


def nested(w, x):
    x = block(w[0], jnp.sin(jnp.dot(x, w[0])))
    x = block(w[1], jnp.sin(jnp.dot(x, w[1])))
    x = block(w[2], jnp.sin(jnp.dot(x, w[2])))
    return jnp.mean(x**2)


def expressed(w, x):
    run = lambda x: (
        block(w[0],
            block(w[1],
                block(w[2], x)))
    )
    return jnp.mean(run(x) ** 2)


def lines(w, x):
    x = jnp.tanh(jnp.sin(x @ w[0]) * jnp.cos(x)) @ w[0]
    x = jnp.tanh(jnp.sin(x @ w[1]) * jnp.cos(x)) @ w[1]
    x = jnp.tanh(jnp.sin(x @ w[2]) * jnp.cos(x)) @ w[2]
    return jnp.mean(x**2)


def only_loop(w, x):
    for each in w:
        x = block(each, x)
    return jnp.mean(x**2)


def arguments():
    w = [jax.ShapeDtypeStruct((64, 64), jnp.float32)] * 4
    return w, jax.ShapeDtypeStruct((2048, 64), jnp.float32)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write_files(tmp_path, {"pyproject.toml": "", "model.py": MODEL})
    return tmp_path


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    folder = tmp_path_factory.mktemp("unchanged")
    write_files(folder, {"pyproject.toml": "", "model.py": MODEL})
    with worker_for(folder, tmp_path_factory.mktemp("worker")) as worker:
        yield worker


@pytest.fixture
def unchanged(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project that stays as it is, whose functions are all measured in one process."""
    share(worker, monkeypatch)
    return worker.side.copy


def words(function: str, budget: str) -> tuple[str, ...]:
    return ("plan", f"model:{function}", "--args", "model:arguments", "--budget", budget)


def load(project: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("model_to_run", project / "model.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def traced_peak(project: Path, function: str) -> int:
    """The peak of live bytes, traced in this process."""
    module = load(project)
    gradient = jax.value_and_grad(getattr(module, function))
    jaxpr = jax.make_jaxpr(gradient)(*module.arguments())
    return peak(internals().dead_code_removed(jaxpr))


def results(project: Path, function: str) -> list[Any]:
    """The value and the gradients."""
    module = load(project)
    made = np.random.default_rng(0)
    w = [made.normal(size=(64, 64)).astype(np.float32) / 8 for _ in range(4)]
    x = made.normal(size=(32, 64)).astype(np.float32)
    found = jax.value_and_grad(getattr(module, function), argnums=(0, 1))(w, x)
    return list(jax.tree_util.tree_leaves(found))


@pytest.mark.parametrize(
    ("function", "budget"),
    [
        ("chain", "50%"),
        pytest.param("chain", "70%", marks=pytest.mark.slow),
        ("looped", "50%"),
        ("only_loop", "60%"),
        ("scanned", "50%"),
        ("remembered", "50%"),
    ],
)
def test_applied_plan_matches_prediction(function, budget, project):
    values = results(project, function)
    ran = cli(project, *words(function, budget), "--apply", "--output-format", "json")
    assert ran.code == 0, ran.err
    plan = json.loads(ran.out)
    assert plan["met"]
    assert any(stage["decision"] != "plain" for stage in plan["stages"])
    assert "model.py: written as planned" in ran.err
    assert "the same program" in ran.err
    assert (project / "model.py").read_text().count("# the second one") == 1
    measured = traced_peak(project, function)
    assert measured == pytest.approx(plan["measured"]["peak_bytes"], rel=0.05)
    assert measured <= plan["budget_bytes"]
    [told] = re.findall(r"rewritten .*: ([+-][\d.]+)% memory", ran.err)
    assert abs(float(told)) <= 5
    for before, after in zip(values, results(project, function), strict=True):
        np.testing.assert_allclose(after, before, rtol=1e-5, atol=1e-6)
    assert cli(project, "undo").code == 0
    assert (project / "model.py").read_text() == MODEL


@pytest.mark.parametrize(
    ("function", "budget", "reason"),
    [
        ("two", "85%", "an argument of the call is computed on the same line"),
        ("nested", "60%", "an argument of the call is computed on the same line"),
        ("expressed", "60%", "the line runs the stage in an expression"),
        ("lines", "60%", "the line computes more than one call"),
        ("chain", "1kB", "the budget cannot be met"),
    ],
)
def test_writes_nothing_if_a_stage_cannot_be_rewritten(function, budget, reason, unchanged):
    files = read_files(unchanged)
    ran = cli(unchanged, *words(function, budget), "--apply")
    assert ran.code == 1
    assert reason in ran.err
    assert "No files changed" in ran.err
    assert read_files(unchanged) == files
    assert cli(unchanged, "undo").code == 2


def test_no_checkpoint_needed(unchanged):
    ran = cli(unchanged, *words("chain", "100%"), "--apply")
    assert (ran.code, ran.err) == (0, "No files changed: the source already follows the plan.\n")
    assert (unchanged / "model.py").read_text() == MODEL


def test_a_source_that_computes_something_else_is_restored(project, monkeypatch):
    def wrong(*arguments: Any) -> applying.AppliedPlan:
        [change] = apply_plan(*arguments).changes
        text = change.after.text.replace("jnp.sin(x @ w)", "jnp.cos(x @ w)")
        return applying.AppliedPlan((replace(change, after=change.after.replaced(text)),))

    apply_plan = applying.apply_plan
    monkeypatch.setattr(applying, "apply_plan", wrong)
    ran = cli(project, *words("chain", "50%"), "--apply")
    assert ran.code == 3
    assert "is not the same program" in ran.err
    assert "`mul float32[2048,64]`" in ran.err
    assert (project / "model.py").read_text() == MODEL
