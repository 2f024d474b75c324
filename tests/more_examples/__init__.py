"""The examples of the rules: those on their pages, and special cases that only tests read."""

from __future__ import annotations

from remat_migrate.rule import Example, Rule

from . import modules, placement, policies, removed_options, static_arguments

_SERIES = (removed_options, static_arguments, placement, policies, modules)


def wrong_examples(rule: Rule) -> list[Example]:
    """Return code in which a rule finds something, and the fixed code."""
    special = [example for series in _SERIES for example in series.WRONG.get(rule.code, [])]
    return [*rule.wrong, *special]


def right_examples(rule: Rule) -> list[Example]:
    """Return code in which a rule finds nothing."""
    shown = [each if isinstance(each, Example) else Example(each) for each in rule.right]
    special = [example for series in _SERIES for example in series.RIGHT.get(rule.code, [])]
    return [*shown, *special]
