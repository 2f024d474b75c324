"""Turn a unit into a plain function of pytrees of arrays, whatever context its library needs.

A Flax module needs variables, a Haiku module must run inside a transform, and Equinox modules are
pytrees already. The `context` of a case is None where the unit is called directly, or the `library`
that initialises what it needs.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional

from ..environment import caches
from . import flax_units, haiku_units
from .abstraction import PureCall

Context = Dict[str, Any]


def prepare(unit: Callable[..., Any], case: Dict[str, Any], traced: bool = False) -> List[PureCall]:
    """Return the plain functions that exercise a unit on a case, with their arguments.

    Where variables or parameters must be initialised, one "init" and one "apply"; if they cannot
    be, "init" alone, which raises the reason when it is called. Otherwise one without a label. When
    an array argument is a `jax.ShapeDtypeStruct`, so are the variables, and nothing is computed. If
    the functions are only to be `traced`, the variables are abstract where Python needs no values.
    `function(*args, **kwargs)` may be differentiated with respect to the array leaves of `args` and
    `kwargs`; the first of `args` holds variables or parameters and random keys, if any.
    """
    caches.clear()
    context = case.get("context")
    args, kwargs = tuple(case["args"]), dict(case["kwargs"])
    if context is None:
        return [PureCall("", unit, args, kwargs)]
    if context["library"] == "flax":
        return flax_units.prepare(unit, args, kwargs, traced)
    return haiku_units.prepare(unit, args, kwargs, traced)


def initialised(
    unit: Callable[..., Any], args: Any, kwargs: Dict[str, Any], context: Optional[Context]
) -> Any:
    """Return the result of a unit in a context where everything is initialised; may be traced."""
    caches.clear()
    if context is None:
        return unit(*args, **kwargs)
    if context["library"] == "flax":
        return flax_units.initialised(unit, tuple(args), kwargs)
    return haiku_units.initialised(unit, tuple(args), kwargs)


def capture(args: Any, kwargs: Dict[str, Any]) -> Optional[Context]:
    """Return the context in which a unit is called, without changing anything."""
    context = flax_units.capture(args, kwargs)
    return haiku_units.capture(args, kwargs) if context is None else context


def context_from_error(error: BaseException) -> Optional[Context]:
    """Return the context that an error of a unit called without one asks for, or None."""
    cause: Optional[BaseException] = error
    seen = set()
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        context = flax_units.wanted_by(cause) or haiku_units.wanted_by(cause)
        if context is not None:
            return context
        cause = cause.__cause__ or cause.__context__
    return None
