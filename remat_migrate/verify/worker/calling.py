"""A case in the form in which migrated code calls: a static argument must stand by position."""

from __future__ import annotations

import inspect
from typing import Any, Dict


def by_position(function: Any, case: Dict[str, Any]) -> Dict[str, Any]:
    """The same call with defaults written out, by position as far as a position can be had."""
    try:
        bound = inspect.signature(function).bind(*case["args"], **case["kwargs"])
    except (TypeError, ValueError):
        return case  # what is wrong with the call, calling says
    bound.apply_defaults()
    return dict(case, args=bound.args, kwargs=bound.kwargs)
