"""Turn a unit into a plain function of pytrees of arrays, whatever context its library needs.

A Flax module needs variables, a Haiku module must run inside a transform, and Equinox modules are
pytrees already. The `context` of a case is None where the unit is called directly, or the `library`
that initialises what it needs.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Tuple, Union

from ..environment import caches
from . import flax_units, haiku_units
from .abstraction import PureCall, runs

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
    args, kwargs = tuple(case["args"]), dict(case["kwargs"])
    pure = _pure_unit(unit, args, kwargs, case.get("context"))
    if pure is None or (not pure.wants_context and runs(unit, args, kwargs)):
        return [PureCall("", unit, args, kwargs)]
    try:
        return [pure.init_call, pure.apply_call(traced)]
    except Exception:  # evaluation raises it again and reports it
        return [pure.init_call]


def initialised(
    unit: Callable[..., Any], args: Any, kwargs: Dict[str, Any], context: Optional[Context]
) -> Any:
    """Return the result of a unit in a context where everything is initialised; may be traced."""
    caches.clear()
    pure = _pure_unit(unit, tuple(args), kwargs, context)
    return pure.initialised() if pure else unit(*args, **kwargs)


def _pure_unit(
    unit: Callable[..., Any],
    args: Tuple[Any, ...],
    kwargs: Dict[str, Any],
    context: Optional[Context],
) -> Union[flax_units.PureUnit, haiku_units.PureUnit, None]:
    """Return a unit as plain functions, None where it is called directly."""
    if context is None:
        return None
    library: Any = flax_units if context["library"] == "flax" else haiku_units
    found: Union[flax_units.PureUnit, haiku_units.PureUnit] = library.PureUnit(unit, args, kwargs)
    return found


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
