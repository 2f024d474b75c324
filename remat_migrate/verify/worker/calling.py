"""Rewrite a case so that arguments are passed by position, as static arguments must be."""

from __future__ import annotations

import inspect
from typing import Any, Dict


def by_position(function: Any, case: Dict[str, Any]) -> Dict[str, Any]:
    """Return the same call with defaults written out and arguments by position where possible."""
    try:
        bound = inspect.signature(function).bind(*case["args"], **case["kwargs"])
    except (TypeError, ValueError):
        return case  # the call raises it again
    bound.apply_defaults()
    return dict(case, args=bound.args, kwargs=bound.kwargs)
