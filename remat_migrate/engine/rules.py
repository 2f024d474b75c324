"""The rules that installed packages provide, and which of them the settings enable."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from importlib.metadata import EntryPoint, entry_points

from ..errors import PluginError
from ..rule import Rule
from ..settings import Settings

RULES = "remat_migrate.rules"
# Always enabled unless ignored: an unread file must not pass for one without findings.
UNREADABLE = "RMT000"
# Cannot be suppressed: the comment is what it reports.
UNUSED = "RMT001"

_CODE = re.compile(r"[A-Z]+[0-9]{3}")


def load_rules() -> tuple[Rule, ...]:
    """Load every rule that an installed package provides, sorted by code.

    Raises:
        PluginError: a package's rules cannot be imported, are not rules, or share a code.
    """
    rules: dict[str, tuple[Rule, str]] = {}
    for offer in sorted(entry_points(group=RULES)):
        owner = f"package {offer.dist.name if offer.dist else '?'}"
        for rule in _rules_of(offer, owner):
            if rule.code in rules:
                raise PluginError(
                    f"two rules share the code {rule.code}: one from {rules[rule.code][1]},"
                    f" one from {owner}; uninstall one of them"
                )
            rules[rule.code] = rule, owner
    return tuple(rules[code][0] for code in sorted(rules))


def _rules_of(offer: EntryPoint, owner: str) -> Iterator[Rule]:
    try:
        offered = offer.load()
    except Exception as error:
        raise PluginError(
            f"cannot import the rules of {owner} ({offer.value}):"
            f" {type(error).__name__}: {error}; update or uninstall it"
        ) from error
    classes = [offered] if isinstance(offered, type) else getattr(offered, "RULES", None)
    if classes is None:
        raise PluginError(f"{owner}: {offer.value} is neither a rule nor a module with RULES")
    for rule in classes:
        is_rule = isinstance(rule, type) and issubclass(rule, Rule)
        code, name = getattr(rule, "code", None), getattr(rule, "name", None)
        if not (is_rule and isinstance(code, str) and _CODE.fullmatch(code) and name):
            raise PluginError(
                f"{owner}: {rule!r} in {offer.value} is not a subclass of remat_migrate.rule.Rule"
                f" with a name and a code of letters and three digits (found {code!r} and {name!r})"
            )
        yield rule()


def enabled_rules(rules: Sequence[Rule], settings: Settings) -> tuple[Rule, ...]:
    """Return the rules that the settings enable.

    The longest matching prefix wins; on a tie, `ignore` does.
    """
    selected = (*settings.select, *settings.extend_select)

    def is_enabled(rule: Rule) -> bool:
        chosen = _longest(rule.code, selected)
        if not settings.select or rule.code == UNREADABLE:
            chosen = max(chosen, 1)
        return chosen > _longest(rule.code, settings.ignore)

    return tuple(filter(is_enabled, rules))


def _longest(code: str, prefixes: Sequence[str]) -> int:
    return max((len(prefix) for prefix in prefixes if code.startswith(prefix)), default=0)
