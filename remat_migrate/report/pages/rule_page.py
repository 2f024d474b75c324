"""The documentation page of a rule in Markdown, for the site, `explain`, SARIF and editors."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

from ...rule import Example, Fails, Rule

_LANGUAGES = {".py": "python", ".sh": "sh", ".yaml": "yaml", ".yml": "yaml", ".toml": "toml"}


def rule_page(rule: Rule) -> str:
    """Return the page of a rule: its summary and all its examples."""
    return "\n".join((rule_summary(rule), *_examples(rule))) + "\n"


def rule_summary(rule: Rule) -> str:
    """Return what a rule finds, why it matters and how it is fixed, without examples."""
    facts = [f"Fix: {fix_kind(rule)}."]
    if rule.since:
        facts.insert(0, f"Since jax {rule.since}.")
    if rule.url:
        facts.append(f"See <{rule.url}>.")
    documentation = (inspect.getdoc(rule) or "").strip()
    return "\n".join((f"# {rule.code} {rule.name}", "", " ".join(facts), "", documentation))


def section(rule: Rule, title: str) -> str:
    """Return the first paragraph of a section of a rule's documentation as one line, or ""."""
    documentation = inspect.getdoc(rule) or ""
    found = re.search(rf"^## {re.escape(title)}\n+(.*?)(?=\n\n|\Z)", documentation, re.M | re.S)
    return " ".join(found[1].split()) if found else ""


def fix_kind(rule: Rule) -> str:
    """Return the safety of a rule's fixes, and whether it always has one."""
    available = fix_availability(rule)
    if available == "none":
        return available
    return rule.fix_safety if available == "always" else f"{rule.fix_safety}, sometimes"


def fix_availability(rule: Rule) -> str:
    """Return whether a rule fixes what it finds, judging by its examples."""
    fixed = [example.after is not None for example in rule.wrong]
    if not any(fixed):
        return "none"
    return "always" if all(fixed) else "sometimes"


def _examples(rule: Rule) -> Iterator[str]:
    yield from ("", "## Examples")
    for example in rule.wrong:
        yield from _wrong(example)
    rights = [right for right in rule.right_examples if right.before.strip()]
    if rights:
        yield from ("", "Not reported:")
    for right in rights:
        yield from _file(right.filename, right.before)


def _wrong(example: Example) -> Iterator[str]:
    yield from ("", "Reported:")
    yield from _file(example.filename, example.before)
    if example.use and example.fails is not None:
        yield from ("", f"Used like this, it {_failure(example.fails)}:")
        yield from _block(example.use, ".py")
    if example.after is None:
        yield from ("", "No automatic fix.")
    else:
        yield from ("", "Fixed:")
        yield from _file(example.filename, example.after)


def _failure(fails: Fails) -> str:
    kind = fails.error.partition(":")[0]
    return f"fails with `{kind}`" if kind.isidentifier() else "fails"


def _file(name: str, text: str) -> Iterator[str]:
    if name != "example.py":
        yield from ("", f"`{name}`")
    yield from _block(text, name[name.rfind(".") :] if "." in name else "")


def _block(text: str, suffix: str) -> Iterator[str]:
    fence = "```"
    while fence in text:
        fence += "`"
    yield from ("", f"{fence}{_LANGUAGES.get(suffix, 'text')}", text.strip("\n"), fence)
