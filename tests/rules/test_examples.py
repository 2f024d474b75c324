"""The examples of every rule: wrong ones are found and fixed as written, right ones are ignored."""

from __future__ import annotations

from itertools import chain

import pytest
from more_examples import right_examples, wrong_examples

from remat_migrate.engine.rule_examples import right_example_fails, wrong_example_fails
from remat_migrate.engine.rules import load_rules
from remat_migrate.rule import Example, Rule

RULES = load_rules()
WRONG = [(rule, example) for rule in RULES for example in wrong_examples(rule)]
RIGHT = [(rule, example) for rule in RULES for example in right_examples(rule)]


def name_of(value: Rule | Example) -> str:
    """Return the pytest id of a case."""
    if isinstance(value, Rule):
        return value.code
    return value.before.strip().splitlines()[-1][:60] if value.before.strip() else "empty"


@pytest.mark.parametrize(("rule", "example"), WRONG, ids=name_of)
def test_a_wrong_example_is_found_and_fixed_as_written(rule: Rule, example: Example) -> None:
    assert not wrong_example_fails(rule, example)


@pytest.mark.parametrize(("rule", "example"), RIGHT, ids=name_of)
def test_a_right_example_has_no_finding(rule: Rule, example: Example) -> None:
    assert not right_example_fails(rule, example)


def test_every_rule_has_examples() -> None:
    for rule, example in chain(WRONG, RIGHT):
        assert example.before.strip(), rule.code
    assert {rule.code for rule, _ in WRONG} == {rule.code for rule in RULES}
    assert {rule.code for rule, _ in RIGHT} == {rule.code for rule in RULES}
