"""Verdicts and proofs say what the environment lacks."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support import cli, write_files

MODEL = """\
import jax
import jax.numpy as jnp
import nobody_has_this
from jax.experimental.maps import Mesh


def scaled(x):
    return 2.0 * jnp.sin(x)


def lacking(x):
    return nobody_has_this.scale * jnp.sin(x)


@nobody_has_this.traced
def decorated(x):
    return 2.0 * jnp.cos(x)
"""


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    root = tmp_path_factory.mktemp("environment")
    migrated = MODEL.replace("jnp.sin(x)", "jnp.sin(1.0 * x)").replace("cos(x)", "cos(1.0 * x)")
    broken = "import jax\n\nTABLE = jax.numpy.zeros(3)\n\n\ndef rows():\n    return 3 * TABLE\n"
    sides = {"old": (MODEL, broken), "new": (migrated, broken.replace("(3)", '("three")'))}
    for side, (model, table) in sides.items():
        write_files(root / side, {"pyproject.toml": "", "model.py": model, "table.py": table})
    arguments = ("--base", "../old", "--output-format", "json", "--no-project-tests", ".")
    found: dict[str, Any] = json.loads(cli(root / "new", "verify", *arguments).out)
    return {v["unit"]: v for v in found["verdicts"]}


@pytest.mark.parametrize("unit", ["model.scaled", "model.decorated"])
def test_substitutes_are_named(ran: dict[str, Any], unit: str) -> None:
    assert ran[unit]["verdict"] == "close"
    assert ran[unit]["substituted"] == [
        "jax.experimental.maps.Mesh -> jax.sharding.Mesh",
        "nobody_has_this (not installed)",
    ]


def test_unit_that_needs_a_package(ran: dict[str, Any]) -> None:
    found = ran["model.lacking"]
    assert found["verdict"] == "not-exercised"
    assert found["detail"].startswith("it needs nobody_has_this (not installed)")


def test_statement_that_fails_in_the_new_code_only(ran: dict[str, Any]) -> None:
    """It does not end the module, but the migration is wrong."""
    assert ran["table.TABLE"]["verdict"] == "fails-after"
