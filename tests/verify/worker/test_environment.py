"""Modules of a project import although names, packages, and program runs are in the way."""

from __future__ import annotations

import functools
import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from support import write_files
from worker_package import FOLDER, load_worker

LIBRARY = '''\
"""The docstring."""
from __future__ import annotations

import importlib.util
from typing import Union

import jax
import jax.linear_util as lu
import jax.numpy as jnp
import nobody_has_this
import nobody_has_this.nn.functional as F
import numpy as np
from jax import api, linear_util
from jax.api import jit as old_jit
from jax.config import config
from jax.experimental.maps import Mesh, xmap
from jax.experimental.pjit import PartitionSpec, with_sharding_constraint
from jax.util import safe_map

from . import gone
from .other import THREE, broken

try:
    import nobody_has_this as guarded
except ImportError:
    guarded = None
try:
    from . import guards_itself
except ImportError:
    guards_itself = None

has_tree_map = hasattr(jax, "no_such_attribute")
logger = nobody_has_this.get_logger(__name__)
Tensor = Union[nobody_has_this.Tensor, np.ndarray]
TABLE = {nobody_has_this.float32: 1}
failing = {}["key"]
jax.interpreters.no_such_part.register(1)


@nobody_has_this.compile(mode="fast")
def decorated(x: Tensor, dtype=nobody_has_this.float32) -> nobody_has_this.Tensor:
    return 2 * x


@nobody_has_this.register
class Layer(nobody_has_this.nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    def __call__(self, x):
        return self.scale * x


class Trainer(F.Base[int], nobody_has_this.Generic):
    pass


def is_tensor(x):
    return isinstance(x, nobody_has_this.Tensor)


def renamed(x):
    return jnp.clip(jax.tree_util.tree_multimap(jnp.negative, x), -0.5, np.PINF)


def adds(x):
    return x + nobody_has_this.pi


def calls(x):
    return nobody_has_this.relu(x)


def converts(x):
    return jnp.asarray(nobody_has_this.table) * x


def branches(x):
    return x if nobody_has_this.is_available() else -x


def uses_failing(x):
    return x + failing


def late(x):
    import nobody_has_this.late

    return nobody_has_this.late.f(x)
'''
OTHER = """\
import sys

from absl import flags

FLAGS = flags.FLAGS
flags.DEFINE_integer("size", 3, "A size.")
THREE = FLAGS.size
broken = undefined
sys.exit(2)
"""
SCRIPT = """\
import argparse

from absl import flags

flags.DEFINE_integer("size", 5, "Another size.")
parser = argparse.ArgumentParser()
parser.add_argument("--rate", type=float, default=0.5)
parser.add_argument("--data", required=True)
args = parser.parse_args()


def step(x):
    return args.rate * x


def size():
    return flags.FLAGS.size


def train(x):
    raise SystemExit("it ran")


x = 8.0
for _ in range(3):
    x = step(x)
history = train(x)
train(x)
names = ""
for name in ("a", "b"):
    names = names.replace(name, "") + name
"""
DRIVER = """\
import importlib, json, sys
root, folder = sys.argv[1:]
sys.argv[1:] = []
sys.path.insert(0, folder)
import start
sys.path[0] = root
start.load_package()
worker = start.NAME + "."
importlib.import_module(worker + "environment.install").install(root)
load = importlib.import_module(worker + "load")
stand_ins = importlib.import_module(worker + "environment.stand_ins")
found = {}
library = load.load_module("package.library", root + "/package/library.py")
import jax, jax.numpy as jnp
def outcome(function, *args):
    stand_ins.begin()
    try:
        return str(function(*args))
    except Exception as error:
        assert type(error).__name__ != "MissingDependency" or stand_ins.state.touched
        return type(error).__name__ + ": " + str(error)
x = jnp.ones(2)
names = "decorated is_tensor renamed adds calls converts branches uses_failing late"
for name in names.split():
    found[name] = outcome(getattr(library, name), x)
found["layer"] = outcome(library.Layer(3), x)
found["values"] = [library.__doc__, library.guarded, library.guards_itself, library.THREE]
found["attribute"] = library.has_tree_map
found["spec"] = str(importlib.util.find_spec("nobody_has_this"))
found["line"] = library.late.__code__.co_firstlineno
found["mesh"] = library.Mesh is jax.sharding.Mesh
rows = stand_ins.summary()["reasons"]
found["reasons"] = {row["name"]: [row["kind"], row["text"]] for row in rows}
load.load_unit("script", root + "/script.py", "size")
script = sys.modules["script"]
found["size"] = script.size()
found["script"] = [script.step(2.0), script.x, script.names, repr(script.history)]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    root = tmp_path_factory.mktemp("project")
    files = {
        "package/__init__.py": "",
        "package/library.py": LIBRARY,
        "package/other.py": OTHER,
        "package/guards_itself.py": "import nobody_has_this\n",
        "script.py": SCRIPT,
    }
    write_files(root, files)
    ran = subprocess.run(
        [sys.executable, "-c", DRIVER, root, FOLDER], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    result: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return result


def test_guards_see_what_is_missing(found: dict[str, Any]) -> None:
    assert found["values"] == ["The docstring.", None, None, 3]
    assert not found["attribute"]
    assert found["spec"] == "None"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("decorated", "[2. 2.]"),
        ("is_tensor", "False"),
        ("renamed", "[-0.5 -0.5]"),
        ("layer", "[3. 3.]"),
    ],
)
def test_code_around_stand_ins_runs(found: dict[str, Any], name: str, shown: str) -> None:
    assert found[name] == shown


@pytest.mark.parametrize(
    ("name", "needs"),
    [
        ("adds", "nobody_has_this.pi: nobody_has_this (not installed)"),
        ("calls", "nobody_has_this.relu: nobody_has_this (not installed)"),
        ("converts", "nobody_has_this (not installed)"),
        ("branches", "nobody_has_this.is_available: nobody_has_this (not installed)"),
        ("uses_failing", "KeyError: 'key' at package/library.py:36"),
    ],
)
def test_values_of_stand_ins_are_errors(found: dict[str, Any], name: str, needs: str) -> None:
    assert found[name].startswith("MissingDependency: it needs ")
    assert needs in found[name]


@pytest.mark.parametrize(
    ("name", "kind", "text"),
    [
        ("jax.api.jit", "bridged", "-> jax.jit"),
        ("jax.config.config", "bridged", "-> jax.config"),
        ("jax.experimental.maps.Mesh", "bridged", "-> jax.sharding.Mesh"),
        ("jax.experimental.maps.xmap", "failed", "(not in jax "),
        ("numpy.PINF", "bridged", "-> numpy.inf"),
        ("nobody_has_this", "missing", "(not installed)"),
        ("package.gone", "failed", "(not in the project)"),
        ("package.other.broken", "failed", "(NameError: "),
    ],
)
def test_what_was_substituted(found: dict[str, Any], name: str, kind: str, text: str) -> None:
    row = found["reasons"][name]
    assert row[0] == kind
    assert row[1].startswith(text)


def test_real_objects_are_used(found: dict[str, Any]) -> None:
    assert found["mesh"]
    assert found["line"] == LIBRARY.splitlines().index("def late(x):") + 1


def test_script_is_not_run(found: dict[str, Any]) -> None:
    """The loop and the call of `train` are left out; its assignment fails and is a stand-in."""
    assert found["script"] == [1.0, 8.0, "ab", "<stand-in for script.history>"]


def test_flag_of_the_same_name(found: dict[str, Any]) -> None:
    assert found["size"] == 5


MEMO = """
import functools
import jax.numpy as jnp

@functools.lru_cache(maxsize=None)
def mask(n):
    return jnp.tril(jnp.ones((n, n)))

@functools.lru_cache
def scale(n):
    return jnp.arange(n) / n

def attend(x):
    return mask(len(x)) @ x * scale(len(x))
"""


def test_caches_are_empty_after_a_trace(package, monkeypatch):
    caches = load_worker("environment.caches")
    projects = load_worker("environment.projects")
    monkeypatch.setattr(functools, "lru_cache", functools.lru_cache)
    name = package(memo=MEMO)
    monkeypatch.setattr(projects, "_roots", [])
    projects.add(str(Path(importlib.import_module(name).__file__).parent))
    caches.install()
    memo = importlib.import_module(f"{name}.memo")
    traced = jax.jit(memo.attend)(jnp.ones(3))
    with pytest.raises(jax.errors.UnexpectedTracerError):
        memo.attend(jnp.ones(3))
    caches.clear()
    assert memo.attend(jnp.ones(3)).tolist() == traced.tolist()
