"""What `explain` and `rules` print."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ...rule import Rule
from ..pages.rule_page import fix_kind, rule_page
from .display import Screen, aligned


def explain(rule: Rule, screen: Screen) -> Iterator[str]:
    """Yield a rule's documentation page with headings painted and code blocks indented."""
    fence = ""
    for line in rule_page(rule).splitlines():
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
    rows = [(rule.code, rule.name, _kind(rule)) for rule in rules]
    for code, name, kind in aligned(rows):
        painted = screen.paint(kind, *_STYLES.get(kind[:4], ()))
        yield f"{screen.paint(code, 'bold')}  {name}  {painted}".rstrip()


_STYLES = {"safe": ("green",), "unsa": ("yellow", "bold")}


def _kind(rule: Rule) -> str:
    safety, comma, rest = fix_kind(rule).partition(",")
    return "no fix" if safety == "none" else f"{safety} fix{comma}{rest}"
