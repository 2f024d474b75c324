"""The old meaning of checkpoints, installed in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from worker_package import FOLDER, load_worker

from remat_migrate.verify.copies.sides import shim_table

shim = load_worker("shim")


def run(program: str, tmp_path: Path, replaced: Any = "all") -> Any:
    """What a program prints as JSON, with the shim installed before it runs."""
    start = f"""
import importlib.util, json, sys
sys.path.insert(0, {str(FOLDER)!r})
import start
start.load_package()
from remat_migrate_worker import shim
shim.install({shim_table(replaced)!r})
"""
    ran = subprocess.run(
        [sys.executable, "-c", start + program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def test_plain_returns_its_argument() -> None:
    checkpoint = shim.plain("fun")
    assert checkpoint(len) is len
    assert checkpoint(len, True, policy=None, concrete=True, no_such_option=3) is len
    assert checkpoint(fun=len) is len
    assert checkpoint(policy=None)(len) is len
    assert shim.plain("target")(target=len) is len


def test_all_names_of_all_libraries(tmp_path: Path) -> None:
    pytest.importorskip("flax")
    program = """
import jax
from jax import remat
import jax.ad_checkpoint
from jax.ad_checkpoint import checkpoint_name
import flax.linen as nn
import flax.linen.transforms
def f(x, flag): return x if flag else -x
class Net(nn.Module):
    @nn.compact
    def __call__(self, x): return nn.Dense(2)(x)
Wrapped = nn.remat(Net, concrete=True, static_argnums=(1,))
print(json.dumps([
    jax.checkpoint(f, concrete=True) is f,
    remat(f, True, True) is f,
    jax.remat(f, policy=jax.checkpoint_policies.dots_saveable) is f,
    jax.ad_checkpoint.checkpoint(f) is f,
    jax.ad_checkpoint.remat(f) is f,
    jax.checkpoint(f, concrete=True)(3, True) == 3,
    checkpoint_name(2.0, "name") == 2.0,
    nn.remat(f) is f,
    issubclass(Wrapped, Net) and Wrapped is not Net,
    nn.checkpoint(Net).__name__,
]))
"""
    *same, name = run(program, tmp_path)
    assert same == [True] * 9
    assert name == "CheckpointNet"


def test_haiku(tmp_path: Path) -> None:
    pytest.importorskip("haiku")
    program = """
import haiku as hk
same = []
def network():
    same.extend([hk.remat(len) is len, hk.remat(len, True, concrete=True) is len])
hk.transform(network).init(None)
try:
    hk.remat(len)
except ValueError as error:
    same.append(str(error))
print(json.dumps(same))
"""
    *same, error = run(program, tmp_path)
    assert same == [True, True]
    assert "outside of hk.transform" in error


def test_the_old_flag(tmp_path: Path) -> None:
    program = """
import jax
jax.config.update("jax_new_checkpoint", False)
jax.config.jax_new_checkpoint = False
before = jax.config.jax_enable_x64
jax.config.update("jax_enable_x64", True)
print(json.dumps([jax.config.jax_new_checkpoint, before, jax.config.jax_enable_x64]))
"""
    assert run(program, tmp_path) == [True, False, True]


def test_only_rejected_calls_keep_the_old_meaning(tmp_path: Path) -> None:
    """Of new code in which some applications are still the old ones."""
    program = """
import jax
def f(x, flag): return x
new, old = jax.checkpoint(f, static_argnums=(1,)), jax.checkpoint(f, concrete=True)
positional = jax.checkpoint(f, True)
jaxpr = str(jax.make_jaxpr(new, static_argnums=(1,))(1.0, True))
print(json.dumps([new is f, "remat" in jaxpr or "checkpoint" in jaxpr, old is f, positional is f]))
"""
    assert run(program, tmp_path, "refused") == [False, True, True, True]


def test_options_that_flax_passes_on_keep_their_new_meaning(tmp_path: Path) -> None:
    """`nn.remat` passes `concrete=False` to the function of Flax that it is made of."""
    pytest.importorskip("flax")
    program = """
import flax.linen as nn, jax, jax.numpy as jnp
class Net(nn.Module):
    @nn.compact
    def __call__(self, x): return nn.Dense(2)(x)
class Outer(nn.Module):
    @nn.compact
    def __call__(self, x): return nn.remat(Net)(name="net")(x)
variables = Outer().init(jax.random.PRNGKey(0), jnp.ones(3))
jaxpr = str(jax.make_jaxpr(Outer().apply)(variables, jnp.ones(3)))
print(json.dumps("remat" in jaxpr or "checkpoint" in jaxpr))
"""
    assert run(program, tmp_path, "refused") is True
