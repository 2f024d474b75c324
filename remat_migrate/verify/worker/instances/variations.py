"""Other values of the flags, rates, and types in a configuration."""

from __future__ import annotations

import enum
from typing import Any, Dict, Iterator, List, Sequence, Tuple

import jax.numpy as jnp

from ..inputs import candidates
from ..lookup import attribute
from . import sizes

_MOST = 10
_DEEPEST = 3

Path = Tuple[Any, ...]


def variations(settings: Any, names_read: Sequence[str]) -> List[Any]:
    """Return settings as they are used first, and copies with another value of what is read.

    All rates change together. Flags change alone, in the order in which they are read;
    what is left of them changes together. If a rate is zero, they also change with the rates. At
    first there is dropout; if there is none in the settings that are given, these come second.

    Args:
        settings: an object or a dictionary, perhaps with others inside.
        names_read: the attributes and keys that the code reads.
    """
    first = _with_dropout(settings, names_read)
    given = dict(fields(settings))
    rates: Dict[Path, Any] = {}
    found: List[Dict[Path, Any]] = []
    order = {name: number for number, name in enumerate(names_read)}
    read = [(path, value) for path, value in fields(first) if path[-1] in order]
    for path, value in sorted(read, key=lambda field: order[field[0][-1]]):
        name = path[-1]
        if type(value) is bool:
            found.append({path: not value})
        elif type(value) is float and (not value or candidates.is_rate(name)):
            if value == given[path]:
                rates[path] = candidates.rates(value)[-1].value
        elif isinstance(value, enum.Enum):
            found += [{path: member} for member in type(value) if member is not value][:1]
        elif candidates.is_dtype(name):
            found += [{path: other} for other in other_dtypes(value)]
    changes = ([rates] if rates else []) + found
    if len(changes) > _MOST:
        rest = {path: value for change in changes[_MOST - 1 :] for path, value in change.items()}
        changes[_MOST - 1 :] = [rest]
    elif any(not given[path] for path in rates):
        # What a rate of zero switches off may depend on the others.
        changes += [{**rates, **change} for change in found][: _MOST - len(changes)]
    others = [settings] if first is not settings else []
    return [first, *others, *(_changed(first, change) for change in changes)]


def _with_dropout(settings: Any, names_read: Sequence[str]) -> Any:
    """Return settings in which the rates of dropout that are read are not zero."""
    zero = {
        path: candidates.USUAL_DROPOUT
        for path, value in fields(settings)
        if path[-1] in names_read and candidates.is_no_dropout(path[-1], value)
    }
    return _changed(settings, zero) if zero else settings


def other_dtypes(value: Any) -> List[Any]:
    """Return another type to compute in: bfloat16 in place of float32, in the same form."""
    if value is jnp.float32:
        return [jnp.bfloat16]
    if isinstance(value, str) and value == "float32":
        return ["bfloat16"]
    return [jnp.dtype("bfloat16")] if isinstance(value, jnp.dtype) and value == "float32" else []


def difference(settings: Any, other: Any) -> str:
    """Return the fields in which settings differ from others: `use_glu=False`."""
    known = dict(fields(other))
    return " and ".join(
        "{}={}".format(".".join(map(str, path)), attribute(value, "__name__") or repr(value))
        for path, value in fields(settings)
        if path not in known or (value is not known[path] and value != known[path])
    )


def fields(settings: Any, above: Path = ()) -> Iterator[Tuple[Path, Any]]:
    """Yield what settings hold, and what those inside hold, with its path; nothing for others."""
    if isinstance(settings, dict):  # or one whose keys are attributes, too
        held = {name: value for name, value in settings.items() if type(name) is str}
    elif isinstance(settings, tuple):
        held = {name: getattr(settings, name) for name in getattr(settings, "_fields", ())}
    else:
        held = sizes.attributes(settings) if sizes.holds_settings(settings) else {}
    for name, value in held.items():
        if len(above) < _DEEPEST and (isinstance(value, dict) or sizes.holds_settings(value)):
            yield from fields(value, (*above, name))
        else:
            yield (*above, name), value


def _changed(settings: Any, change: Dict[Path, Any]) -> Any:
    """Return a copy of settings with other values at some paths."""
    inside: Dict[Any, Dict[Path, Any]] = {}
    for path, value in change.items():
        inside.setdefault(path[0], {})[path[1:]] = value
    new: Dict[Any, Any] = {}
    for name, parts in inside.items():
        held = settings.get(name) if isinstance(settings, dict) else getattr(settings, name)
        new[name] = parts[()] if () in parts else _changed(held, parts)
    if isinstance(settings, tuple):
        named: Any = settings
        return named._replace(**new)
    return sizes.replaced(settings, new)
