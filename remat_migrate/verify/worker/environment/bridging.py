"""Look up what replaces a removed name."""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
from typing import Any, Dict, Optional, Tuple

from .. import shim
from . import ledger, projects, renamed
from .ledger import Reason

_ABSENT = object()

LIBRARIES = frozenset(name.partition(".")[0] for name in renamed.ROWS)


def may_ask(names: Optional[Dict[str, Any]]) -> bool:
    """Return whether this code may ask for removed names: JAX and the worker do not."""
    top = str((names or {}).get("__name__", "")).partition(".")[0]
    own = __name__.partition(".")[0]
    return top not in ("jax", "jaxlib", "numpy", "importlib", own)


def is_checkpoint(name: str) -> bool:
    """Return whether a name is that of a checkpoint function, which migrations are about."""
    top = name.partition(".")[0]
    return top in LIBRARIES and name.rpartition(".")[2] in renamed.CHECKPOINTS


def bridge(name: str, file: str) -> Optional[Any]:
    """Return what replaces a missing name, and record that a file asked for it."""
    found = bridged(name)
    if found is None:
        return None
    new, value = found
    ledger.note(file, Reason(name, "-> %s" % new, "bridged"))
    return value


def bridge_member(name: str) -> Optional[Any]:
    """Return what replaces a member of a stand-in, if anything does.

    Raises:
        AttributeError: it is a checkpoint function that does not exist.
    """
    if name.partition(".")[0] not in LIBRARIES:
        return None
    found = bridge(name, "")
    if found is None and is_checkpoint(name):
        raise AttributeError("%s does not exist" % name)
    return found


def bridged(name: str) -> Optional[Tuple[str, Any]]:
    """Return the name and the value of what replaces a missing name; None if nothing does."""
    old = shim.replacement(name)
    if old is not None:
        return name, old
    for new in renamed.replacements(name):
        value = _look_up(new)
        if value is not _ABSENT:
            return new.replace("{}.", "a stand-in with the same meaning, "), value
        if new in renamed.ROWS and new != name:  # replaced again since
            return bridged(new)
    return None


def _look_up(name: str) -> Any:
    """Return the value of a dotted name."""
    if name.startswith("{}."):
        replacements = importlib.import_module(__package__ + ".replacements")
        return getattr(replacements, name[3:])
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            value: Any = importlib.import_module(".".join(parts[:end]))
        except Exception:
            continue
        for part in parts[end:]:
            value = getattr(value, part, _ABSENT)
        return value
    return _ABSENT


def accept_keywords(name: str, module: Any) -> None:
    """Let the project pass parameters of a function by the names that they had."""
    attribute = name.rpartition(".")[2]
    function = getattr(module, attribute)
    accepted = inspect.signature(function).parameters
    rows = [r for r in renamed.KEYWORDS if r.function == name and r.old not in accepted]

    @functools.wraps(function)
    def renaming(*args: Any, **kwargs: Any) -> Any:
        file = sys._getframe(1).f_code.co_filename
        for row in rows:
            if row.old in kwargs and projects.is_project_file(file):
                old = "%s(%s=)" % (name, row.old)
                ledger.note(file, Reason(old, "-> %s=" % row.new, "bridged"))
                value = kwargs.pop(row.old)
                if accepted[row.new].kind is inspect.Parameter.POSITIONAL_ONLY:
                    args = (value, *args)
                else:
                    kwargs[row.new] = value
        return function(*args, **kwargs)

    if rows:
        renaming.__module__ = module.__name__
        setattr(module, attribute, renaming)
