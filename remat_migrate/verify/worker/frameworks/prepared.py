"""What a unit becomes before it is evaluated."""

from __future__ import annotations

from typing import Any, Callable, Dict, NamedTuple, Tuple


class Prepared(NamedTuple):
    """A plain function with its arguments. The label is "", or "init" or "apply" of the two."""

    label: str
    function: Callable[..., Any]
    args: Tuple[Any, ...]
    kwargs: Dict[str, Any]
