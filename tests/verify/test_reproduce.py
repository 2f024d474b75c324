"""The command of a verdict reproduces it, and tracebacks show the user's code."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from support import cli, write_files

from remat_migrate.cli.reproduction import invocation

MODEL = """\
import jax
import jax.numpy as jnp


@jax.checkpoint
def block(x):
    return helper(jnp.sin(x)) * 2.0


def helper(x):
    return x + 1.0


@jax.checkpoint
def other(x):
    return jnp.cos(x)
"""


def verdicts(folder: Path, *arguments: str) -> dict[str, dict]:
    ran = cli(folder, *arguments, "--output-format", "json")
    assert ran.code in (0, 1, 3), ran.err
    return {verdict["unit"]: verdict for verdict in json.loads(ran.out)["verdicts"]}


def again(folder: Path, command: str) -> dict[str, dict]:
    """Run the command of a verdict, with JSON as the output."""
    first, _, command = command.rpartition(" && ")
    if first:
        assert cli(folder, *shlex.split(first)[1:]).code == 0
    program, *arguments = shlex.split(command)
    assert program == "remat-migrate"
    if "--diff" in arguments:  # its output is for people
        arguments[arguments.index("--diff")] = "report"
    return verdicts(folder, *arguments)


@pytest.mark.slow
def test_a_wrong_migration_is_reproduced_alone(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    for folder in (old, new):
        write_files(folder, {"pyproject.toml": "", "model.py": MODEL})
    text = MODEL.replace("x + 1.0", "missing + x").replace("jnp.cos", "jnp.sin")
    (new / "model.py").write_text(text)
    found = verdicts(new, "verify", "model.py", "--base", str(old))
    assert found["model.other"]["verdict"] == "differs"
    wrong = found["model.block"]
    assert wrong["verdict"] == "fails-after"
    assert wrong["reproduce"] == f"remat-migrate verify model.py --base {old} --unit model:block"
    assert again(new, wrong["reproduce"]) == {"model.block": wrong}
    # The user's frames with the user's paths, without those of JAX and of the worker.
    assert f'File "{new}/model.py", line 7, in block' in wrong["traceback"]
    assert "NameError: name 'missing' is not defined" in wrong["traceback"]
    assert "site-packages/jax" not in wrong["traceback"]
    assert "worker" not in wrong["traceback"]
    shown = cli(new, "verify", "--base", str(old), "--unit", "model.block").out
    assert f"    reproduce: remat-migrate verify --base {old} --unit model:block\n" in shown
    assert ", in helper\n" in shown
    assert "other" not in shown


@pytest.mark.slow
def test_a_unit_that_does_not_differ_is_an_error(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    for folder in (old, new):
        write_files(folder, {"pyproject.toml": "", "model.py": MODEL})
    (new / "model.py").write_text(MODEL.replace("2.0", "3.0"))
    ran = cli(new, "verify", "--base", str(old), "--unit", "model:helper")
    assert ran.code == 2
    assert "--unit model:helper: no such unit differs; those that do: model.block" in ran.err


@pytest.mark.slow
def test_a_fix_that_nothing_exercised_is_undone_and_tried_again(tmp_path: Path) -> None:
    model = """\
import sys

import jax


def block(x, is_training, config):
    if type(config).__name__ != "Config":
        sys.exit("no config")
    return x * config.scale if is_training else x


block = jax.checkpoint(block, concrete=True)
"""
    write_files(tmp_path, {"pyproject.toml": "", "model.py": model})
    found = verdicts(tmp_path, "--fix", "--verify")["model.block"]
    assert found["verdict"] == "not-exercised"
    assert (tmp_path / "model.py").read_text() != model
    assert found["reproduce"] == (
        "remat-migrate undo && remat-migrate --diff --verify --unit model:block"
    )
    repeated = again(tmp_path, found["reproduce"])
    assert repeated["model.block"]["verdict"] == "not-exercised"
    assert (tmp_path / "model.py").read_text() == model


def test_the_command_shows_what_it_would_write() -> None:
    assert invocation(["--fix", "--verify=strict", "src", "-o", "x.json"]) == (
        "remat-migrate --diff --verify=strict src"
    )
    assert invocation(["check", "--diff", "--verify", "--unit", "a:b", "--unit=c"]) == (
        "remat-migrate --diff --verify"
    )
    assert invocation(["verify", "a b.py", "--base=HEAD", "--output-format", "json"]) == (
        "remat-migrate verify 'a b.py' --base=HEAD"
    )
