"""`report --measure` with a configured target: sites have their measurements."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support import Ran, cli, write_files

pytest.importorskip("jax")

MODEL = """\
import jax
import jax.numpy as jnp


def wrapped(function):
    return jax.checkpoint(function)


def wide(w, x):
    return jnp.sin(jnp.sin(x @ w))


def narrow(w, x):
    return jnp.tanh(x @ w)


unused = jax.checkpoint(narrow)


def loss(w, x):
    for _ in range(4):
        x = jax.checkpoint(
            wide,
            policy=None,
        )(w, x)
    return wrapped(narrow)(w, wrapped(wide)(w, x)).sum()


def args():
    print("output of the measured code")
    shape = jax.ShapeDtypeStruct((8, 8), jnp.float32)
    return shape, shape
"""
WHOLE = """\
import jax
import jax.numpy as jnp


@jax.checkpoint
def loss(ws, x):
    for w in ws:
        x = x + jnp.exp(-jnp.square(jnp.sin(jnp.tanh(jnp.sin(x @ w) @ w) @ w))) @ w
    return jnp.mean(x**2)


def arguments():
    shape = jax.ShapeDtypeStruct
    return [shape((128, 128), "float32")] * 6, shape((512, 128), "float32")


step = jax.value_and_grad(loss)
"""
TABLE = "[tool.remat-migrate.measure]\n"


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("measured")
    settings = TABLE + 'target = ["model:loss", "model:los"]\nargs = "model:args"\n'
    write_files(folder, {"pyproject.toml": settings, "model.py": MODEL})
    return folder


@pytest.fixture(scope="module")
def as_json(project) -> Ran:
    return cli(project, "report", "--measure", "--output-format", "json")


def test_sites_have_measurements(as_json):
    document = json.loads(as_json.out)
    assert as_json.code == 0
    measured = {site["line"]: site["measured"] for site in document["sites"]}
    assert {line: [one["function"] for one in found] for line, found in measured.items()} == {
        6: ["wide", "narrow"],
        17: [],
        22: ["wide"],
    }
    [applied] = measured[22]
    assert applied["applications"] == 4
    assert applied["recomputed_flops"] > 4 * 2 * 8 * 8 * 8
    assert applied["verdict"] in ("saves", "costs-more-than-it-saves")


def test_failing_target_is_a_note(as_json):
    summary = json.loads(as_json.out)["summary"]
    reason = "model:los: module model defines no `los`; did you mean loss?"
    assert summary["measured"] == {
        "targets": ["model:loss"],
        "failed": [{"target": "model:los", "reason": reason}],
    }
    assert as_json.err == f"note: not measured: {reason}\n"


def test_table_columns(project):
    ran = cli(project, "report", "--measure")
    head, *rows = ran.out.splitlines()
    assert head.split()[-3:] == ["saves", "costs", "verdict"]
    [unmeasured] = [row for row in rows if " model.py:17 " in row]
    assert unmeasured.split()[-3:] == ["-", "-", "-"]
    several = [row for row in rows if " model.py:6 " in row]
    assert [row.split()[4] for row in several] == ["wide", "narrow"]
    assert "FLOP" in several[0]


def test_without_a_configured_target(tmp_path):
    write_files(tmp_path, {"pyproject.toml": TABLE + 'args = "model:args"\n', "model.py": MODEL})
    ran = cli(tmp_path, "report", "--measure", "--output-format", "json")
    assert ran.err == "note: not measured: the settings name no target\n"
    document = json.loads(ran.out)
    assert "measured" not in document["summary"]
    assert all("measured" not in site for site in document["sites"])


def test_report_is_written_without_measurements(tmp_path):
    settings = TABLE + 'target = "model:loss"\nargs = "model:nothing"\n'
    write_files(tmp_path, {"pyproject.toml": settings, "model.py": MODEL})
    ran = cli(tmp_path, "report", "--measure")
    assert ran.code == 0
    assert "3 sites in 1 file" in ran.out
    assert "verdict" not in ran.out
    assert ran.err.startswith(
        "note: not measured: model:nothing: module model defines no `nothing`"
    )


def test_wasteful_checkpoint_is_a_warning(tmp_path):
    settings = TABLE + 'target = "model:loss"\nargs = "model:arguments"\n'
    write_files(tmp_path, {"pyproject.toml": settings, "model.py": WHOLE})
    assert cli(tmp_path).code == 0
    for arguments, severity, risk, code in (
        (("--measure",), "warning", "medium", 1),
        ((), "note", "low", 0),
    ):
        ran = cli(tmp_path, "report", "--output-format", "json", *arguments)
        document = json.loads(ran.out)
        [finding] = [one for one in document["findings"] if one["code"] == "RMT301"]
        [site] = [one for one in document["sites"] if "RMT301" in one["codes"]]
        assert (finding["severity"], site["risk"], ran.code) == (severity, risk, code)
