"""A unit is equal only if its edited code ran, and the checkpoints that it applies were called."""

from __future__ import annotations

import ast
import json
import os
from pathlib import Path
from typing import Any

import pytest
from support import cli, write_files
from worker_package import load_worker

from remat_migrate.verify.evidence import Executed, Outcome, Spot, Unit, Verdict
from remat_migrate.verify.executed import settled
from remat_migrate.verify.units.module_diff import diff_modules

coverage = load_worker("coverage")

UNITS = """
import os

import jax
import jax.numpy as jnp


def inner(x, train):
    return jnp.sin(x) * 2 if train else x


def called(x, train):
    y = jnp.tanh(x)
    if train:
        y = jax.checkpoint(inner, {option})(y, train)
    return y


def under_a_flag(x):
    if os.environ.get("NEVER_SET"):
        x = jax.checkpoint(inner, {option})(x, True)
    return x * 2


def never_called(x):
    step = jax.checkpoint(inner, {wrong})
    return x + 1 if step else x


def in_a_branch(x, step=None):
    return x if step is None else jax.checkpoint(inner, {option})(x, step)


def factory():
    class Layer:
        def __call__(self, x):
            return jax.checkpoint(inner, {option})(x, True)

    return Layer


def used():
    return jax.checkpoint(inner, {option})


def user(x, train):
    return used()(x, train) + 1
"""
OLD = UNITS.format(option="concrete=True", wrong="concrete=True")
NEW = UNITS.format(option="static_argnums=(1,)", wrong="static_argnums=(0,)")


def verified(folder: Path, *arguments: str) -> dict[str, dict[str, Any]]:
    ran = cli(folder, "verify", "--base", "../old", "--output-format", "json", *arguments)
    return {v["unit"]: v for v in json.loads(ran.out)["verdicts"]}


def test_edited_code_must_run(tmp_path: Path) -> None:
    write_files(tmp_path / "old", {"pyproject.toml": "", "m.py": OLD})
    write_files(tmp_path / "new", {"pyproject.toml": "", "m.py": NEW})
    verdicts = verified(tmp_path / "new")
    outcomes = {name.removeprefix("m."): v["verdict"] for name, v in verdicts.items()}
    assert outcomes == {
        "called": "equal",
        "under_a_flag": "not-exercised",
        "never_called": "not-exercised",
        "in_a_branch": "equal",
        "factory": "not-exercised",
        "used": "equal",
        "user": "equal",
    }
    line = NEW[: NEW.index("x = jax.checkpoint")].count("\n") + 1
    assert verdicts["m.under_a_flag"]["detail"].startswith(f"line {line} did not run")
    assert "the checkpoint of inner at line" in verdicts["m.never_called"]["detail"]
    # The edited line runs with one value only.
    assert verdicts["m.called"]["detail"].startswith("train=True")
    assert verdicts["m.called"]["shapes"][0].startswith("x: float32[")


def test_what_only_the_command_runs_is_not_compared(tmp_path: Path) -> None:
    run = "import jax.numpy as jnp, m\nm.called(jnp.ones(3), True)\nm.under_a_flag(jnp.ones(3))\n"
    for side, module in (("old", OLD), ("new", NEW)):
        write_files(tmp_path / side, {"pyproject.toml": "", "run.py": run, "m.py": module})
    arguments = ("--command", "NEVER_SET=1 python run.py")
    verdicts = verified(tmp_path / "new", *arguments)
    verdict = verdicts["m.under_a_flag"]
    assert (verdict["verdict"], verdict["inputs"]) == ("not-exercised", "recorded")


SCRIPT = """
import ast, importlib.machinery, importlib.util, sys
import jax, jax.numpy as jnp

class Loader(importlib.machinery.SourceFileLoader):
    def source_to_code(self, data, path, *, _optimize=-1):
        return compile(ast.parse(importlib.util.decode_source(data)), path, "exec")

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "m":
            return importlib.util.spec_from_file_location(name, "m.py", loader=Loader(name, "m.py"))

sys.meta_path.insert(0, Finder())
import m

def layer(x, train):
    return jnp.sin(x) if train else x

def step(x):
    return jax.checkpoint(layer, {option})(x, True)

if __name__ == "__main__":
    assert __spec__ is None and sys.argv[1:] == ["given"] and sys.path[0]
    print(step(jnp.ones(3)), m.called(jnp.ones(3), True))
"""


def test_command_runs_a_script_and_loaders_of_its_own(tmp_path: Path) -> None:
    for side, option, module in (("old", "concrete=True", OLD), ("new", "static_argnums=1", NEW)):
        files = {"pyproject.toml": "", "run.py": SCRIPT.format(option=option), "m.py": module}
        write_files(tmp_path / side, files)
    arguments = ("--command", "python run.py given")
    verdicts = verified(tmp_path / "new", *arguments)
    assert [verdicts[name]["verdict"] for name in ("run.step", "m.called")] == ["equal"] * 2
    assert {verdicts[name]["inputs"] for name in ("run.step", "m.called")} == {"recorded"}


def test_edits() -> None:
    changed = {unit.qualname: unit for unit in diff_modules(EDITS, EDITED).changed}
    assert places(EDITED, changed["branches"].after) == [
        "y = checkpoint(f, static_argnums=(1,))(x) if x else x",
        "checkpoint(f, static_argnums=(1,))(x)",
    ]
    assert places(EDITS, changed["deferred"].before) == [
        "return map(lambda y: g(y, True), x)",
        "g(y, True)",
    ]
    assert places(EDITED, changed["reader"].after) == [
        "OPTIONS = {}",
        "return checkpoint(h, **OPTIONS)(x)",
    ]
    assert places(EDITED, changed["refuses"].after) == ["if x < 1:", "x < 1"]


EDITS = """
OPTIONS = {"concrete": True}

def branches(x, flag):
    if flag:
        y = 1
    else:
        y = checkpoint(f, concrete=True)(x) if x else x
    return y

def deferred(x):
    return map(lambda y: g(y, True), x)

def reader(x):
    a = 1
    return checkpoint(h, **OPTIONS)(x)

def refuses(x):
    if x < 0:
        raise ValueError("old")
"""
EDITED = (
    EDITS.replace("concrete=True", "static_argnums=(1,)")
    .replace("g(y, True)", "g(y, False)")
    .replace('{"concrete": True}', "{}")
    .replace("x < 0", "x < 1")
    .replace('"old"', '"new"')
)


def places(text: str, spots: tuple[Spot, ...]) -> list[str]:
    lines = text.splitlines()
    found = []
    for spot in spots:
        end = spot.end_column if spot.is_expression else None
        found.append(lines[spot.line - 1][spot.column : end])
    return found


def test_probes_change_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    text = '''\
"""Docstring."""
from __future__ import annotations
def f(x):
    """Doc."""
    if x:
        return [y or 2 for y in x]
    return (lambda z: z + 1)(0)
'''
    tree = ast.parse(text)
    spots = [
        coverage.Spot(0, (5, 4, 6, 34), 5, 5, False, False),
        coverage.Spot(1, (6, 21, 6, 22), 6, 6, True, False),
        coverage.Spot(2, (7, 22, 7, 27), 7, 7, True, False),
    ]
    ran: list[int] = []
    space: dict[str, Any] = {"__remat_migrate_ran__": ran.append}
    monkeypatch.setitem(coverage._spots, os.path.realpath("m.py"), spots)
    coverage.watch(tree, "m.py")
    exec(compile(tree, "m", "exec"), space)
    assert space["__doc__"] == "Docstring."
    assert space["f"].__doc__ == "Doc."
    assert space["f"]([3, 0]) == [3, 2]
    assert ran == [0, 1]
    assert space["f"]([]) == 1
    assert ran == [0, 1, 0, 2]


BLOCKS = """
import flax.linen as nn


class Block(nn.Module):
    width: int = 4

    @nn.compact
    def __call__(self, x, train: bool = False):
        y = nn.Dense(self.width)(x)
        return nn.relu(y) if train else y


RematBlock = nn.remat(Block, concrete=True)


def make_block(remat):
    return nn.remat(Block, concrete=True) if remat else Block


def orphan():
    return nn.remat(Block, concrete=True)
"""
NET = """
import blocks
import flax.linen as nn


class Net(nn.Module):
    @nn.compact
    def __call__(self, x, train: bool = False):
        return blocks.make_block(True)(4)(x, train)
"""


@pytest.mark.slow
def test_migration_is_proved_through_callers(tmp_path: Path) -> None:
    pytest.importorskip("flax")
    new = BLOCKS.replace("concrete=True", "static_argnums=(2,)")
    for folder, blocks in (("old", BLOCKS), ("new", new)):
        files = {"pyproject.toml": "", "blocks.py": blocks, "net.py": NET}
        write_files(tmp_path / folder, files)
    ran = cli(tmp_path / "new", "verify", "--base", "../old", "--output-format", "json")
    verdicts = {v["unit"]: v for v in json.loads(ran.out)["verdicts"]}
    assert {name: v["verdict"] for name, v in verdicts.items()} == {
        "blocks.RematBlock": "equal",
        "blocks.make_block": "equal",
        "blocks.orphan": "not-exercised",
        "net.Net.__call__": "equal",
    }
    assert verdicts["blocks.make_block"]["detail"] == "through net.Net.__call__"


@pytest.mark.parametrize("returns_nothing", [True, False])
def test_what_returns_nothing_proves_nothing_about_what_it_calls(returns_nothing: bool) -> None:
    edited = Spot(2, 4, 2, 20, 2, 2)
    block = Unit(Path("net.py"), "block", before=(edited,), after=(edited,))
    ran = Executed(frozenset([(block.path, edited)]))
    user = Verdict(
        Unit(Path("use.py"), "use"),
        Outcome.EQUAL,
        executed=(ran, ran),
        returns_nothing=returns_nothing,
    )
    found = settled([Verdict(block, Outcome.NOT_EXERCISED), user])[0]
    assert found.outcome is (Outcome.NOT_EXERCISED if returns_nothing else Outcome.EQUAL)
    assert found.through == (() if returns_nothing else ("use.py.use",))


def test_alias_is_proved_through_a_method_that_is_proved_through_others() -> None:
    alias = Spot(1, 0, 1, 20, 1, 1, at_import=True)
    layers, call = Spot(4, 4, 4, 20, 4, 4), Spot(7, 4, 7, 20, 7, 7)
    path = Path("net.py")
    units = [
        Unit(path, "remat", before=(alias,), after=(alias,)),
        Unit(path, "Net.setup", before=(alias, layers), after=(alias, layers)),
        Unit(path, "Net.__call__", before=(call,), after=(call,)),
    ]
    imported = Executed(frozenset([(path, alias)]))
    ran = Executed(frozenset((path, spot) for spot in (alias, layers, call)))
    verdicts = [
        Verdict(units[0], Outcome.NOT_EXERCISED),
        Verdict(units[1], Outcome.NOT_EXERCISED, executed=(imported, imported)),
        Verdict(units[2], Outcome.EQUAL, executed=(ran, ran)),
    ]
    assert [found.outcome for found in settled(verdicts)] == [Outcome.EQUAL] * 3


def test_checkpoints_of_the_search_for_inputs_do_not_count(tmp_path: Path) -> None:
    text = "def stack(layer, x, train: bool):\n    return jax.checkpoint(layer, {})(x, train)\n"
    text = f"import jax\n\n\n{text}"
    for state, option in (("old", "concrete=True"), ("new", "static_argnums=(1,)")):
        write_files(tmp_path / state, {"pyproject.toml": "", "m.py": text.format(option)})
    assert verified(tmp_path / "new")["m.stack"]["verdict"] == "equal"


@pytest.mark.parametrize(
    ("policy", "outcome"),
    [("jax.checkpoint_policies.nothing_saveable", "equal"), ("jnp.hypot", "fails-after")],
)
def test_edited_defaults_are_used(tmp_path: Path, policy: str, outcome: str) -> None:
    text = """
import jax, jax.numpy as jnp

def layer(x, policy={policy}, scale=1.0):
    return jax.checkpoint(lambda x: jnp.sin(jnp.cos(x * scale)), policy=policy)(x)
"""
    for side, value in (("old", "jax.checkpoint_policies.nothing_saveable()"), ("new", policy)):
        write_files(tmp_path / side, {"pyproject.toml": "", "net.py": text.format(policy=value)})
    ran = cli(tmp_path / "new", "verify", "--base", "../old", "--output-format", "json")
    assert [v["verdict"] for v in json.loads(ran.out)["verdicts"]] == [outcome]
