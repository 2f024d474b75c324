"""What an edited checkpoint returns is compared even where its callers do not use it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from support import cli, write_files

UNITS = """

import jax
import jax.numpy as jnp


def layer(x, train):
    return jnp.sin(x) * 2 if train else jnp.cos(x)


def dropped(x):
    return x * STEP(x).shape[0]


def nothing(x):
    STEP(x)


def in_a_scan(x):
    def body(carry, _):
        STEP(carry)
        return carry + 1, None

    return jax.lax.scan(body, x, None, length=3)[0]


def under_vmap(x):
    return jax.vmap(lambda row: (STEP(row), row + 1)[1])(jnp.stack([x, x]))


def under_grad(x):
    return jax.grad(lambda x: (STEP(x), (x * x).sum())[1])(x)


def under_jit(x):
    return jax.jit(lambda x: (STEP(x), x + 1)[1])(x)
"""
OLD = "jax.checkpoint(layer, concrete=True)(X, True)"
NAMES = ["dropped", "nothing", "in_a_scan", "under_vmap", "under_grad", "under_jit"]


def units(step: str) -> str:
    return re.sub(r"STEP\((\w+)\)", lambda call: step.replace("X", call[1]), UNITS)


def verdicts(folder: Path, steps: list[str]) -> dict[str, dict[str, Any]]:
    """Return the verdicts on the units with each step, by the index of the step and their name."""
    for state in ("old", "new"):
        texts = {
            f"m{number}_test.py": units(OLD if state == "old" else step)
            for number, step in enumerate(steps)
        }
        write_files(folder / state, {"pyproject.toml": "", **texts})
    ran = cli(folder / "new", "verify", "--base", "../old", "--output-format", "json")
    return {v["unit"].replace("_test", "", 1): v for v in json.loads(ran.out)["verdicts"]}


def test_right_and_wrong_steps(tmp_path: Path) -> None:
    right = ["jax.checkpoint(lambda x: layer(x, True))(X)", "layer(X, True)"]
    wrong = [
        "jax.checkpoint(layer, static_argnums=(1,))(X, False)",
        "jax.checkpoint(lambda x: x)(X)",
    ]
    found = verdicts(tmp_path, right + wrong)
    outcomes = {name: verdict["verdict"] for name, verdict in found.items()}
    right = {outcome for name, outcome in outcomes.items() if name[:2] in ("m0", "m1")}
    assert not {"differs", "fails-after"} & right
    assert {outcomes[f"m0.{name}"] for name in NAMES} <= {"equal", "close"}
    # Without the checkpoint, nothing tells what a function computes that returns nothing.
    assert outcomes.pop("m1.nothing") == "not-exercised"
    assert {outcomes[f"m1.{name}"] for name in NAMES if name != "nothing"} <= {"equal", "close"}
    of_wrong = {name: outcome for name, outcome in outcomes.items() if name[:2] in ("m2", "m3")}
    assert "equal" not in of_wrong.values()
    for number in (2, 3):
        assert {outcomes[f"m{number}.{name}"] for name in NAMES} == {"differs"}
    detail = "the checkpoint of layer at line 21 returns other values"
    assert found["m2.in_a_scan"]["detail"].startswith(detail)
