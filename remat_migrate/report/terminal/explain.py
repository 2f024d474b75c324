"""What `explain` and `rules` print."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ...rule import Rule
from ..pages.rule_page import fix_kind, rule_page
from .display import Screen


def explain(rule: Rule, screen: Screen) -> Iterator[str]:
    """Yield the lines of a rule's documentation page for a terminal."""
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


def table(rules: Sequence[Rule]) -> Iterator[str]:
    """Yield a line for each rule: code, name, whether it fixes, and whether it is off."""
    width = max((len(rule.name) for rule in rules), default=0)
    for rule in rules:
        off = "" if rule.enabled else "off by default"
        yield f"{rule.code}  {rule.name:<{width}}  {fix_kind(rule):<9}  {off}".rstrip()
