"""What `explain` and `rules` print."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ...rule import Rule
from ..pages.rule_page import fix_kind, rule_page
from .display import Screen


def explain(rule: Rule, screen: Screen) -> Iterator[str]:
    """Yield the lines of a rule's documentation page."""
    return unmarked(rule_page(rule), screen)


def unmarked(markdown: str, screen: Screen) -> Iterator[str]:
    """Yield the lines of a page with headings painted and code blocks indented."""
    fence = ""
    for line in markdown.splitlines():
        if fence:
            if line == fence:
                fence = ""
            else:
                yield f"    {line}".rstrip()
        elif line.startswith("```"):
            fence = re.match("`+", line)[0]  # type: ignore[index]
        elif line.startswith("#"):
            yield screen.paint(line.lstrip("# "), "bold", "cyan")
        else:
            yield line


def table(rules: Sequence[Rule], screen: Screen) -> Iterator[str]:
    """Yield a line for each rule: code, name, and the safety of its fixes."""
    name = max((len(rule.name) for rule in rules), default=0)
    kind = max((len(_kind(rule)) for rule in rules), default=0)
    for rule in rules:
        safety = screen.paint(f"{_kind(rule):<{kind}}", *_STYLES.get(_kind(rule)[:4], ()))
        code = screen.paint(rule.code, "bold")
        yield f"{code}  {rule.name:<{name}}  {safety}".rstrip()


_STYLES = {"safe": ("green",), "unsa": ("yellow", "bold")}


def _kind(rule: Rule) -> str:
    safety, comma, rest = fix_kind(rule).partition(",")
    return "no fix" if safety == "none" else f"{safety} fix{comma}{rest}"
