"""What `measure` and `plan` claim is true: how each figure was obtained, and what is met."""

from __future__ import annotations

import json
import re

import pytest
from measuring import printed, run
from support import cli, write_files

pytest.importorskip("jax")

MODEL = """\
import jax
import jax.numpy as jnp
from jax.experimental import io_callback


@jax.custom_vjp
def logged(x):
    return x


def forward(x):
    io_callback(print, None, x.mean())
    return x, None


logged.defvjp(forward, lambda _, g: (g,))


def failing_block(w, x):
    h = logged(jnp.tanh(x @ w))
    return x + jnp.sin(h) @ w


def failing(w, x):
    for each in w:
        x = failing_block(each, x)
    return jnp.mean(x**2)


def block(w, x, key):
    h = jax.nn.gelu(x @ w)
    return x + jnp.where(jax.random.bernoulli(key, 0.9, h.shape), h / 0.9, 0.0) @ w.T


def dropping(w, x):
    key = jax.random.PRNGKey(0)
    for n, each in enumerate(w):
        x = block(each, x, jax.random.fold_in(key, n))
    return jnp.mean(x**2)


def plain_block(w, x):
    return x + jnp.tanh(jnp.sin(x @ w) * jnp.cos(x)) @ w


def plain(w, x):
    for each in w:
        x = plain_block(each, x)
    return jnp.mean(x**2)


def args():
    w = [jax.ShapeDtypeStruct((64, 128), jnp.float32)] * 4
    return w, jax.ShapeDtypeStruct((1024, 64), jnp.float32)


def square():
    w, x = args()
    return [jax.ShapeDtypeStruct((64, 64), jnp.float32)] * 4, x
"""


SETTINGS = ""


def test_a_failed_trace_is_a_failure(project):
    words = ("model:failing", "--args", "model:square")
    text = cli(project, "measure", *words, "--policies").out
    assert "Placements that could not be measured:" in text
    assert "Effects not supported" in text
    assert "    whole function with nothing_saveable\n" in text
    words_of_json = (*words, "--policies", "--output-format", "json")
    found = json.loads(cli(project, "measure", *words_of_json).out)
    assert any(one["name"].endswith("dots_saveable") for one in found["failed"])
    assert cli(project, "plan", *words, "--budget", "50%").code == 2


def test_programs_that_draw_random_numbers_are_compiled(project):
    words = ("model:dropping", "--args", "model:args")
    plain = ("model:plain", "--args", "model:square")
    assert printed(project, "measure", *plain)["compiled_bytes"] is None
    assert run(project, "measure", "dropping", "--no-compile")["compiled_bytes"] is None
    found = run(project, "measure", "dropping")
    assert found["backend"] == "cpu"
    assert found["compiled_bytes"] > 0
    text = cli(project, "measure", *words).out
    assert "  traced peak  " in text
    assert " of temporary memory, for cpu\n" in text
    assert run(project, "plan", "dropping", "--budget", "60%")["met_by"] == "compiled"


def test_met_is_said_of_compiled_plans(project):
    words = ("plan", "model:dropping", "--args", "model:args", "--budget", "60%")
    for strict, code in (((), 0), (("--strict", "--apply"), 1)):
        ran = cli(project, *words, "--no-compile", *strict)
        assert "The budget is met by the trace: " in ran.out
        assert ran.code == code
    assert "No files changed: the budget is only met by the trace." in ran.err
    ran = cli(project, *words, "--compile", "--strict")
    assert "The budget is met: " in ran.out
    assert ", compiled for cpu.\n" in ran.out
    assert ran.code == 0


def test_a_compiled_plan_is_compiled_as_it_is_written(tmp_path):
    write_files(tmp_path, {"pyproject.toml": "", "model.py": MODEL})
    words = ("plan", "model:dropping", "--args", "model:args", "--budget", "60%", "--apply")
    ran = cli(tmp_path, *words)
    assert ran.code == 0, ran.err
    assert "model.py: written as planned" in ran.err
    assert re.search(r"planned    traced .*; compiled [\d.]+ MB\n", ran.err)
    assert re.search(r"rewritten  traced .*; compiled [\d.]+ MB: ", ran.err)
