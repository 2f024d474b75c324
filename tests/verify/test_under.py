"""`verify --under jax_remat3`: the same code with the flag off and on, without a base."""

from __future__ import annotations

import json
import shutil
import subprocess
import venv
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy
import pytest
from support import Ran, cli, read_files, write_files

from remat_migrate.analysis.policies.jax_remat3 import FLAG, FLAGS_SINCE

HERE = tuple(map(int, version("jax").split(".")[:3]))
FIXTURES = Path(__file__).parents[2] / "fixtures"

with_flag = pytest.mark.skipif(FLAGS_SINCE[FLAG] > HERE, reason="this jax has no jax_remat3")

MODEL = """\
from functools import partial

import jax
import jax.numpy as jnp


@jax.checkpoint
def block(x):
    return jnp.sin(x) * 2.0


def loss(x):
    return jnp.sum(block(x))


def counted(x):
    equations = jax.make_jaxpr(jax.checkpoint(jnp.sin))(x).eqns
    return x * sum(equation.primitive.name == "remat2" for equation in equations)


@partial(jax.checkpoint, static_argnames="double")
def named(x, *, double: bool):
    return 2.0 * x if double else x


@partial(jax.checkpoint, static_argnums=(1,))
def checked(x, n: int):
    if jax.config.jax_remat3:
        raise NotImplementedError("only for the implementation of today")
    return x * n


def unrelated(x):
    return x
"""


def verdicts(ran: Ran) -> dict[str, dict[str, Any]]:
    return {v["unit"].partition(".")[2]: v for v in json.loads(ran.out)["verdicts"]}


def under(folder: Path, *arguments: str) -> Ran:
    """`verify --under jax_remat3`; the project is as it was afterwards."""
    before = read_files(folder)
    ran = cli(folder, "verify", "--under", FLAG, "--output-format", "json", *arguments)
    assert read_files(folder) == before
    return ran


@with_flag
def test_the_same_code_twice(tmp_path: Path) -> None:
    write_files(tmp_path, {"src/model.py": MODEL})  # in no repository
    ran = under(tmp_path, "src/")
    found = verdicts(ran)
    assert ran.code == 3
    assert {unit: verdict["verdict"] for unit, verdict in found.items()} == {
        "block": "equal",
        "loss": "equal",  # it calls what applies one
        "counted": "differs",
        "named": "fails-before",
        "checked": "fails-after",
    }
    assert "is 0" in found["counted"]["detail"]
    assert "NotImplementedError: only for the implementation" in found["checked"]["detail"]
    # What works with the flag alone is told apart from what works with neither.
    assert found["named"]["detail"].endswith("it runs with jax_remat3")


@with_flag
def test_nothing_differs(tmp_path: Path) -> None:
    write_files(tmp_path, {"model.py": MODEL.partition("def counted")[0]})
    ran = under(tmp_path, "model.py")
    assert ran.code == 0
    assert {verdict["verdict"] for verdict in verdicts(ran).values()} == {"equal"}


def test_no_checkpoint_at_all(tmp_path: Path) -> None:
    write_files(tmp_path, {"model.py": "def double(x):\n    return 2 * x\n"})
    ran = under(tmp_path)
    assert (ran.code, verdicts(ran)) == (0, {})


def test_default_base_is_the_last_commit(tmp_path: Path) -> None:
    write_files(tmp_path, {"model.py": MODEL})
    ran = cli(tmp_path, "verify")
    assert ran.code == 2
    assert "--base HEAD" in ran.err


OLDER = """\
import jax

update = type(jax.config).update
jax.__version__ = "0.9.2"


def refusing(config, name, value):
    if name == "jax_remat3":
        raise AttributeError(f"Unrecognized config option: {name}")
    update(config, name, value)


type(jax.config).update = refusing
"""


def test_a_release_without_the_flag(tmp_path: Path) -> None:
    write_files(tmp_path / "project", {"model.py": MODEL})
    venv.create(tmp_path / "older", symlinks=True)
    [packages] = (tmp_path / "older").glob("lib/python*/site-packages")
    (packages / "older.py").write_text(OLDER)
    installed = Path(numpy.__file__).parents[1]
    (packages / "older.pth").write_text(f"{installed}\nimport older\n")
    ran = under(tmp_path / "project", "--python", str(tmp_path / "older" / "bin" / "python"))
    assert (ran.code, ran.out) == (2, "")
    assert f"jax 0.9.2 has no flag {FLAG}; it exists since jax 0.10.2" in ran.err


@pytest.mark.slow
@with_flag
def test_with_a_base(tmp_path: Path) -> None:
    old = MODEL.partition("def counted")[0]
    write_files(tmp_path, {"old/model.py": old, "new/model.py": old.replace("* 2.0", "* 3.0")})
    found = verdicts(under(tmp_path / "new", "--base", "../old"))
    assert {unit: verdict["verdict"] for unit, verdict in found.items()} == {
        "block": "differs",
        "loss": "differs",
    }


@pytest.mark.slow
@with_flag
def test_a_command_runs_both(tmp_path: Path) -> None:
    write_files(tmp_path, {"model.py": MODEL, "run.py": "import model\n\nmodel.loss(1.5)\n"})
    ran = under(tmp_path, "--command", "python run.py", "model.py")
    assert verdicts(ran)["loss"] | {"detail": ""} == verdicts(ran)["loss"] | {
        "verdict": "equal",
        "inputs": "recorded",
        "detail": "",
    }


@pytest.mark.slow
@with_flag
def test_after_a_fix(tmp_path: Path) -> None:
    """The old code runs under the shim without the flag, the fixed code with the flag."""
    text = MODEL.partition("def counted")[0].replace(
        "@jax.checkpoint\n", "@partial(jax.checkpoint, concrete=True)\n"
    )
    text += "\n\n@partial(jax.checkpoint, concrete=True, prevent_cse=(False,))\n"
    text += "def scaled(x, double: bool):\n    return 2 * x if double else x\n"
    write_files(tmp_path, {"model.py": text})
    ran = cli(tmp_path, "--fix", "--verify", "--under", FLAG, "--output-format", "json")
    found = verdicts(ran)
    assert found["block"]["verdict"] == "equal"
    if HERE >= (0, 11, 1):
        assert found["scaled"]["verdict"] == "fails-after"
        assert "NotImplementedError" in found["scaled"]["detail"]
        assert "concrete=True, prevent_cse" in (tmp_path / "model.py").read_text()
    else:
        assert found["scaled"]["verdict"] == "equal"


@pytest.mark.slow
@with_flag
@pytest.mark.parametrize("name", ["equinox_net", "flax_lm", "haiku_net"])
def test_models_of_libraries(tmp_path: Path, name: str) -> None:
    shutil.copytree(FIXTURES / "verified" / name, tmp_path / name)
    cli(tmp_path / name, "--fix", ".")
    found = verdicts(under(tmp_path / name))
    assert found
    assert "equal" in {v["verdict"] for v in found.values()}
    wrong = {unit for unit, v in found.items() if v["verdict"] in ("differs", "fails-after")}
    # Where the flag is new a checkpoint is no method: it does not get `self`.
    is_no_method = name == "equinox_net" and HERE < (0, 11, 1)
    assert wrong == ({"Regressor.__call__"} if is_no_method else set())


def test_repository_without_a_commit(tmp_path: Path) -> None:
    """A repository without a commit has no HEAD."""
    write_files(tmp_path, {"model.py": "x = 1\n"})
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    assert under(tmp_path).code == 0
