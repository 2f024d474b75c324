"""What `explain` and `rules` show: rules, in their own words and examples."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence

from ...rule import Example, Rule
from .display import Screen


def explain(rule: Rule, screen: Screen) -> Iterator[str]:
    """One rule: what it finds, why, since when, and what it makes of its examples."""
    yield screen.paint(f"{rule.code} {rule.name}", "bold")
    yield ""
    if rule.since:
        yield f"Since jax {rule.since}."
    yield f"Fix: {fix_kind(rule)}.{'' if rule.enabled else ' Off by default.'}"
    if rule.url:
        yield f"See {rule.url}"
    yield ""
    for line in (inspect.getdoc(rule) or "").splitlines():
        heading = line.startswith("#")
        yield screen.paint(line, "bold", "cyan") if heading else line
    for example in rule.wrong:
        yield from _example(example, screen)
    rights = [example for example in rule.right if _text(example).strip()]
    if rights:
        yield from ("", screen.paint("## Left alone", "bold", "cyan"))
        for right in rights:
            yield from ("", *_indented(_text(right)))


def table(rules: Sequence[Rule]) -> Iterator[str]:
    """All rules, one a line."""
    width = max((len(rule.name) for rule in rules), default=0)
    for rule in rules:
        off = "" if rule.enabled else "off by default"
        yield f"{rule.code}  {rule.name:<{width}}  {fix_kind(rule):<9}  {off}".rstrip()


def fix_kind(rule: Rule) -> str:
    """Whether a rule fixes what it finds, by its examples: always, sometimes or never."""
    fixed = [example.after is not None for example in rule.wrong]
    if not any(fixed):
        return "none"
    return "always" if all(fixed) else "sometimes"


def _example(example: Example, screen: Screen) -> Iterator[str]:
    yield ""
    yield screen.paint(f"## Wrong ({example.filename})", "bold", "cyan")
    yield from ("", *_indented(example.before))
    for path, before, _ in example.others:
        yield from ("", f"    # {path}", *_indented(before))
    if example.after is None:
        yield from ("", "Found, and left for you to mend.")
        return
    yield from ("", screen.paint("Fixed:", "bold"), "", *_indented(example.after))
    for path, _, after in example.others:
        yield from ("", f"    # {path}", *_indented(after))


def _indented(text: str) -> Iterator[str]:
    return (("    " + line).rstrip() for line in text.strip("\n").splitlines())


def _text(example: Example | str) -> str:
    return example if isinstance(example, str) else example.before
