"""What shells complete besides commands, options and files: formats and rule codes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..report.outputs import FORMATS

if TYPE_CHECKING:
    from click import Context, Parameter
    from click.shell_completion import CompletionItem


def formats(ctx: Context, parameter: Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the name of an output format."""
    return _items((name, "") for name in FORMATS if name.startswith(incomplete))


def rule_codes(ctx: Context, parameter: Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the last of comma-separated rule codes, or a name."""
    from ..engine.rules import load_rules

    before, comma, last = incomplete.rpartition(",")
    rules = [rule for rule in load_rules() if rule.code.startswith(last.upper())]
    return _items((f"{before}{comma}{rule.code}", rule.name) for rule in rules)


def _items(found: Iterable[tuple[str, str]]) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    return [CompletionItem(value, help=about or None) for value, about in found]
