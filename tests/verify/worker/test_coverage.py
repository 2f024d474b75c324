"""Functions of the checkpoint family note whether what edited code applies them to is called."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest
from support import some_slow
from worker_package import FOLDER

from remat_migrate.verify.copies.sides import shim_table

MODULE = """
import functools
import equinox as eqx, flax.linen as nn, haiku as hk, jax, jax.numpy as jnp
from flax import nnx
def f(x): return jnp.sin(x)
class Block(nn.Module):
    @nn.compact
    def __call__(self, x): return nn.Dense(3)(x)
    def other(self, x): return x
A = jax.checkpoint(f)
B = functools.partial(jax.checkpoint, policy=None)(f)
@functools.partial(jax.checkpoint, static_argnums=())
def C(x): return x
D = nn.remat(Block)
def E(x): return hk.remat(f)(x)
F = nnx.remat(f)
G = eqx.filter_checkpoint(f)
@nnx.remat
def H(x): return x
@eqx.filter_checkpoint
def I(x): return x
class J(nn.Module):
    @nn.remat
    @nn.compact
    def __call__(self, x): return nn.Dense(3)(x)
K = nn.remat(Block, methods=["other"])
L = eqx.filter_checkpoint(eqx.nn.Linear(3, 3, key=jax.random.key(0)))
"""
PROGRAM = """
import json, sys
sys.path.insert(0, sys.argv[1])
import start
start.load_package()
from remat_migrate_worker import coverage, shim
coverage.install(sys.argv[2])
shim.install(sys.argv[3])
import m, haiku, jax, jax.numpy as jnp
called = {}
def run(name, call):
    coverage.begin()
    call(jnp.ones(3))
    called[name] = [number for number, _ in coverage.report()["called"]]
for name in "ABCFGHIL":
    run(name, jax.grad(lambda x: getattr(m, name)(x).sum()))
run("E", lambda x: haiku.transform(m.E).apply({}, None, x))
for name in "DJ":
    run(name, lambda x: getattr(m, name)().init(jax.random.key(0), x))
run("K", lambda x: m.K().apply({}, x, method="other"))
created = [number for number, _ in coverage.report()["created"]]
print(json.dumps([called, created]))
"""


@pytest.mark.parametrize("replaced", some_slow(["none", "all"], "all"))
def test_applications(tmp_path: Path, replaced: str) -> None:
    for library in ("flax", "haiku", "equinox"):
        pytest.importorskip(library)
    path = tmp_path / "m.py"
    path.write_text(MODULE)
    rows, names = [], []
    for node in ast.parse(MODULE).body:
        target = node.targets[0] if isinstance(node, ast.Assign) else node
        names.append(getattr(target, "id", getattr(target, "name", "")))
        assert node.end_lineno is not None
        at = (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
        rows.append([str(path), *at, first, node.end_lineno, False, True])
    arguments = (str(FOLDER), json.dumps(rows), shim_table(replaced))  # type: ignore[arg-type]
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    called, created = json.loads(ran.stdout)
    # Under the shim, an Equinox module is what a checkpoint of it returns.
    unknown = ["L"] if replaced == "all" else []
    expected = {name: [names.index(name)] for name in "ABCDEFGHIJKL" if name not in unknown}
    assert called == {**expected, **{name: [] for name in unknown}}
    assert sorted(set(created)) == sorted(names.index(name) for name in expected)
