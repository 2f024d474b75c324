"""The rules' examples under JAX: wrong ones fail or are ignored, as documented; the others work."""

from __future__ import annotations

import sys

import pytest
from example_programs import Program, is_run, programs, run
from more_examples import wrong_examples

from remat_migrate.engine.rules import load_rules

PROGRAMS = list(programs())
# The claims of these rules are about how JAX handles values and options, not only about names.
EXECUTED = ("RMT2", "RMT4", "RMT5", "RMT6")


@pytest.fixture(scope="module")
def outcomes(jax_environment: dict[str, str]) -> tuple[str, dict[str, str]]:
    return run(sys.executable, PROGRAMS, jax_environment)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_example(program: Program, outcomes: tuple[str, dict[str, str]]) -> None:
    jax, ended = outcomes
    assert program.is_right(jax, ended[program.name]), (jax, ended[program.name], program)


@pytest.mark.parametrize(
    "rule", [r for r in load_rules() if r.code.startswith(EXECUTED)], ids=lambda rule: rule.code
)
def test_examples_cover_wrong_code(rule) -> None:
    assert all(is_run(e) for e in wrong_examples(rule)), (
        "say how each example is used, and what that shows"
    )
