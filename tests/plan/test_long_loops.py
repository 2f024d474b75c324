"""Long loops in segments: `plan --apply` writes them, values and gradients stay, memory falls."""

from __future__ import annotations

import functools
import re
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from measuring import TRACED, run
from support import cli, write_files

jax = pytest.importorskip("jax")

MODEL = '''\
import jax
import jax.numpy as jnp
from jax import lax


class Cell:
    """A cell with a tuple as its carry."""

    def __call__(self, w, carry, x):
        h, c = carry
        h = jnp.tanh(h @ w + x)
        return (h, c + h), h.mean()


def with_xs(w, h, xs):
    def step(carry, x):
        return Cell()(w, carry, x)

    (h, c), ys = lax.scan(step, (h, jnp.zeros_like(h)), xs)
    return jnp.mean(h**2) + jnp.mean(jnp.sin(c)) + ys @ jnp.arange(1.0, 1 + len(ys))


def backward(w, h, xs):
    def step(carry, x):
        return Cell()(w, carry, x)

    (h, c), ys = lax.scan(step, (h, h), xs, reverse=True, unroll=2)
    return jnp.mean(h**2) + jnp.mean(jnp.sin(c)) + ys @ jnp.arange(1.0, 1 + len(ys))


def without_xs(w, h, xs):
    h, _ = lax.scan(lambda h, _: (jnp.tanh(h @ w), None), h, length=len(xs))
    return jnp.mean(h**2)


def checkpointed(w, h, xs):
    def step(h, x):
        return jnp.tanh(h @ w + x), None

    h, _ = lax.scan(jax.checkpoint(step, prevent_cse=False), h, xs)
    return jnp.mean(h**2)


def counted(w, h, xs):
    def step(i, h):
        return jnp.tanh(h @ w + xs[i])

    h = lax.fori_loop(body_fun=step, lower=0, upper=len(xs), init_val=h)
    return jnp.mean(h**2)


def batched(w, h, xs):
    def run(h):
        return lax.scan(lambda h, x: (jnp.tanh(h @ w + x), None), h, xs)[0]

    return jnp.mean(jax.vmap(run)(h) ** 2)


def args():
    shapes = (256, 256), (64, 256), (1024, 256)
    return tuple(jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes)
'''
# Less than a segment, and no whole number of segments of either level.
LENGTHS = (1, 12, 300)
slow = functools.partial(pytest.param, marks=pytest.mark.slow)


def _loaded(text: str) -> types.ModuleType:
    module = types.ModuleType("model")
    exec(compile(text, "model.py", "exec"), module.__dict__)
    return module


def _results(loss: Callable[..., Any], length: int) -> list[Any]:
    drawn = np.random.default_rng(0)
    w, h, xs = (drawn.normal(size=s).astype("float32") / 4 for s in ((8, 8), (3, 8), (length, 8)))
    found = jax.jit(jax.value_and_grad(loss, argnums=(0, 1, 2)))(w, h, xs)
    return list(jax.tree.leaves(found))


def _temporary_bytes(model: types.ModuleType, function: str) -> int:
    gradient = jax.jit(jax.value_and_grad(getattr(model, function)))
    return int(gradient.lower(*model.args()).compile().memory_analysis().temp_size_in_bytes)


@pytest.mark.parametrize(
    ("function", "budget", "written"),
    [
        ("with_xs", "10%", r"scan_in_segments\(step, .*, xs, sizes=\(32,\)\)"),
        slow("backward", "6%", r"reverse=True, unroll=2, sizes=\("),
        slow("without_xs", "10%", r"h, length=len\(xs\), sizes=\(32,\)\)"),
        slow("checkpointed", "3%", r"scan_in_segments\(jax.checkpoint\(step, .*\), h, xs, sizes="),
        slow("batched", "10%", r"scan_in_segments\(lambda h, x: .*, h, xs, sizes=\("),
        slow("counted", "10%", r"scan_in_segments\(\n +lambda loop, none: .*step\(\*loop\)"),
        ("counted", "4%", r"lambda loop, none: .*jax.checkpoint\(step, .*\)\(\*loop\)"),
    ],
)
def test_written(tmp_path: Path, function: str, budget: str, written: str) -> None:
    write_files(tmp_path, {"pyproject.toml": TRACED, "model.py": MODEL})
    words = ("--args", "model:args", "--budget", budget, "--apply")
    ran = cli(tmp_path, "plan", f"model:{function}", *words)
    assert ran.code == 0, ran.out + ran.err
    assert "the same program, but for checkpoints and segments of loops" in ran.err
    after = (tmp_path / "model.py").read_text()
    assert re.search(written, after), after
    assert after.count("def scan_in_segments") == 1
    old, new = _loaded(MODEL), _loaded(after)
    for length in LENGTHS:
        for before, now in zip(
            _results(getattr(old, function), length),
            _results(getattr(new, function), length),
            strict=True,
        ):
            # Gradients of the weights are summed in another order.
            near = {"rtol": 1e-5, "atol": 1e-5 * np.abs(before).max()}
            np.testing.assert_allclose(now, before, **near, err_msg=str(length))
    assert _temporary_bytes(new, function) < _temporary_bytes(old, function) / 5


def test_file_without_a_name_for_jax(tmp_path: Path) -> None:
    model = """\
from jax import lax, ShapeDtypeStruct
import jax.numpy as jnp


def loss(w, xs):
  def step(h, x):
    return jnp.tanh(h @ w + x), None

  return jnp.mean(lax.scan(f=step, init=xs[0], xs=xs)[0])


def args():
  return ShapeDtypeStruct((16, 16), "float32"), ShapeDtypeStruct((100, 16), "float32")
"""
    write_files(tmp_path, {"pyproject.toml": TRACED, "model.py": model})
    words = ("--args", "model:args", "--budget", "45%", "--apply")
    ran = cli(tmp_path, "plan", "model:loss", *words)
    assert ran.code == 0, ran.out + ran.err
    after = (tmp_path / "model.py").read_text()
    assert after.startswith("import jax\nfrom jax import lax, ShapeDtypeStruct\nimport jax.numpy")
    assert "\n  if length is None:\n    length = jax.tree.leaves(xs)" in after
    assert "scan_in_segments(f=" in after
    assert ", init=xs[0], xs=xs, sizes=(" in after


def test_loop_of_another_function_is_planned_on_its_own_line(tmp_path: Path) -> None:
    model = """\
import jax
import jax.numpy as jnp


def solve(c, u):
    def step(carry, _):
        before, now = carry
        after = 2 * now - before + c**2 * (jnp.roll(now, 1) - now)
        return (now, after), after

    _, solution = jax.lax.scan(step, (u, u), None, length=1000)
    return jnp.concatenate([u[None], solution])


def loss(c, u):
    solution = solve(c, u)
    return jnp.mean(solution[-1] ** 2)


def args():
    return tuple(2 * [jax.ShapeDtypeStruct((4096,), "float32")])
"""
    write_files(tmp_path, {"pyproject.toml": TRACED, "model.py": model})
    words = ("--args", "model:args", "--budget", "50%", "--compile")
    ran = cli(tmp_path, "plan", "model:loss", *words)
    # The outputs of all steps remain; a checkpoint on the whole loop takes more compiled memory.
    planned = next(line for line in ran.out.splitlines() if line.endswith("(planned)"))
    assert float(planned.split()[0]) < 36
    assert "every long loop in segments: line 11" in planned
    assert "line 16 (loop body" not in ran.out
    assert "line 16 (segments" not in ran.out


def test_measured_beside_a_checkpointed_body(tmp_path: Path) -> None:
    write_files(tmp_path, {"pyproject.toml": TRACED, "model.py": MODEL})
    found = run(tmp_path, "measure", "checkpointed")
    peaks = {one["name"].partition(" of the scan")[0]: one for one in found["alternatives"]}
    least = 65_536 * 1024  # the carries
    assert peaks["as it is"]["peak_bytes"] > least
    assert peaks["two levels: segments of 32 steps"]["peak_bytes"] < least / 5
    assert peaks["three levels: segments of 128 and 16 checkpointed steps"]["pareto"]


def test_groups_of_iterations_of_a_python_loop(tmp_path: Path) -> None:
    loop = "    h, _ = lax.scan(jax.checkpoint(step, prevent_cse=False), h, xs)\n"
    assert loop in MODEL
    model = MODEL.replace(loop, "    for x in xs:\n        h, _ = step(h, x)\n")
    model = model.replace("(1024, 256)", "(36, 256)")
    write_files(tmp_path, {"pyproject.toml": TRACED, "model.py": model})
    found, _ = run(tmp_path, "measure", "checkpointed")["alternatives"]
    assert found["name"].startswith("groups of 6 runs of model.py:")


def test_other_loops_are_refused_with_what_to_write(tmp_path: Path) -> None:
    model = MODEL.replace("lax.scan(step, (h, jnp.zeros_like(h)), xs)", "LOOP")
    model = model.replace("LOOP", "lax.scan(*(step, (h, jnp.zeros_like(h)), xs))")
    write_files(tmp_path, {"pyproject.toml": TRACED, "model.py": model})
    words = ("--args", "model:args", "--budget", "5%", "--apply")
    ran = cli(tmp_path, "plan", "model:with_xs", *words)
    assert ran.code == 1
    assert "`lax.scan` is no plain `jax.lax.scan`: write it as one" in ran.out
    assert (tmp_path / "model.py").read_text() == model
