"""Other values of the flags, rates, and options in a configuration."""

from __future__ import annotations

import enum
from typing import Any, Dict, List, Sequence

from ..inputs import candidates
from . import sizes

_MOST = 6


def variations(settings: Any, names_read: Sequence[str]) -> List[Any]:
    """Return copies of settings with another value of something that is read.

    All rates change together. Flags and options change alone, in the order in which they are
    read; what is left of them changes together.
    """
    if not sizes.holds_settings(settings) or isinstance(settings, (list, tuple)):
        return []
    rates: Dict[str, Any] = {}
    found: List[Dict[str, Any]] = []
    held = sizes.attributes(settings)
    for name in names_read:
        value = held.get(name)
        if type(value) is bool:
            found.append({name: not value})
        elif type(value) is float and candidates.is_rate(name):
            rates[name] = candidates.rates(value)[-1].value
        elif isinstance(value, enum.Enum):
            found += [{name: member} for member in type(value) if member is not value][:1]
    changes = ([rates] if rates else []) + found
    if len(changes) > _MOST:
        rest = {name: value for change in changes[_MOST - 1 :] for name, value in change.items()}
        changes[_MOST - 1 :] = [rest]
    return [sizes.replaced(settings, change) for change in changes]


def difference(settings: Any, other: Any) -> str:
    """Return the fields in which settings differ from others: `use_glu=False`."""
    held, known = sizes.attributes(settings), sizes.attributes(other)
    names = [name for name in held if name not in known or held[name] is not known[name]]
    return " and ".join("{}={!r}".format(name, held[name]) for name in names)
