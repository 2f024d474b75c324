"""A unit in the form in which it is evaluated."""

from __future__ import annotations

from typing import Any, Callable, Dict, NamedTuple, Tuple


class PureCall(NamedTuple):
    """A plain function with its arguments, labelled "", "init", or "apply"."""

    label: str
    function: Callable[..., Any]
    args: Tuple[Any, ...]
    kwargs: Dict[str, Any]
