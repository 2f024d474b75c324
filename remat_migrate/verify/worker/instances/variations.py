"""Other values of the flags, rates, and options in a configuration."""

from __future__ import annotations

import enum
from typing import Any, Dict, FrozenSet, List

from ..inputs import candidates
from . import sizes

_MOST = 6


def variations(settings: Any, names_read: FrozenSet[str]) -> List[Any]:
    """Return copies of settings with another value of something that is read.

    All rates change together, each flag and each option alone.
    """
    if not sizes.holds_settings(settings) or isinstance(settings, (list, tuple)):
        return []
    rates: Dict[str, Any] = {}
    found: List[Dict[str, Any]] = []
    for name, value in sizes.attributes(settings).items():
        if name not in names_read:
            continue
        if type(value) is bool:
            found.append({name: not value})
        elif type(value) is float and candidates.is_rate(name):
            rates[name] = candidates.rates(value)[-1].value
        elif isinstance(value, enum.Enum):
            found += [{name: member} for member in type(value) if member is not value][:1]
    changes = ([rates] if rates else []) + found
    return [sizes.replaced(settings, change) for change in changes[:_MOST]]


def difference(settings: Any, other: Any) -> str:
    """Return the fields in which settings differ from others: `use_glu=False`."""
    held, known = sizes.attributes(settings), sizes.attributes(other)
    names = [name for name in held if name not in known or held[name] is not known[name]]
    return " and ".join("{}={!r}".format(name, held[name]) for name in names)
