"""What the interpreters lack, as the workers report it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .evidence import Unit, UnitKey

Reason = Mapping[str, str]


@dataclass(slots=True)
class Environment:
    """The substitutes for what cannot be imported.

    Attributes:
        old: for each unit, the substitutes that its old code depends on, by name.
        new: the same for its new code.
    """

    old: dict[UnitKey, dict[str, Reason]] = field(default_factory=dict)
    new: dict[UnitKey, dict[str, Reason]] = field(default_factory=dict)

    def add(self, unit: Unit, reply: Mapping[str, Any], *, is_new: bool) -> None:
        """Record the substitutes in a worker's reply about a unit."""
        found = reply.get("environment", {}).get("reasons", ())
        side = self.new if is_new else self.old
        side.setdefault(unit.key, {}).update({reason["name"]: reason for reason in found})

    def substituted(self, unit: Unit) -> tuple[str, ...]:
        """Return the substitutes that a unit depends on: `torch (not installed)`."""
        found = {**self.old.get(unit.key, {}), **self.new.get(unit.key, {})}
        return tuple(_text(found[name]) for name in sorted(found))

    def fails_only_after(self, unit: Unit) -> str:
        """Describe a statement that fails on import in the new code only; empty if none does."""
        old, new = self.old.get(unit.key, {}), self.new.get(unit.key, {})
        for name, reason in new.items():
            if reason["kind"] == "failed" and name not in old:
                return f"importing it: {_text(reason)}"
        return ""


def needed(touched: Iterable[Reason]) -> str:
    """Return why a unit cannot run that computes with stand-ins; empty if it does not."""
    reasons = ", ".join(map(_text, touched))
    return f"it needs {reasons}" if reasons else ""


def _text(reason: Reason) -> str:
    return f"{reason['name']} {reason['text']}"
