"""The examples of every rule: wrong ones are found and fixed as written, right ones are ignored."""

from __future__ import annotations

from itertools import chain

import pytest
from more_examples import right_examples, wrong_examples
from support import findings, fixed

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


def before(example: Example) -> dict[str, str]:
    return {example.filename: example.before} | {path: old for path, old, _ in example.others}


def after(example: Example) -> dict[str, str]:
    if example.after is None:
        return before(example)
    return {example.filename: example.after} | {path: new for path, _, new in example.others}


def only(rule: Rule) -> tuple[str, ...]:
    # A suppression of another rule is unused only if that rule runs, too.
    return () if rule.code == "RMT001" else (rule.code,)


@pytest.mark.parametrize(("rule", "example"), WRONG, ids=name_of)
def test_a_wrong_example_is_found_and_fixed_as_written(rule: Rule, example: Example) -> None:
    codes = {finding.code for finding in findings(before(example), select=only(rule))}
    assert codes == {rule.code}
    once = fixed(before(example), select=only(rule), unsafe=True)
    assert once == after(example)
    if example.after is not None:
        assert findings(once, select=only(rule)) == []


@pytest.mark.parametrize(("rule", "example"), RIGHT, ids=name_of)
def test_a_right_example_has_no_finding(rule: Rule, example: Example) -> None:
    codes = {finding.code for finding in findings(before(example), select=only(rule))}
    assert rule.code not in codes


def test_every_rule_has_examples() -> None:
    for rule, example in chain(WRONG, RIGHT):
        assert example.before.strip(), rule.code
    assert {rule.code for rule, _ in WRONG} == {rule.code for rule in RULES}
    assert {rule.code for rule, _ in RIGHT} == {rule.code for rule in RULES}
