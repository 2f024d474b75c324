"""Parameters of networks, for units that call `net.apply(params, ...)`.

What a network gets as its parameters has the structure that its own `init` makes. An error inside
`apply` tells which network and which inputs: `init` is traced with the other arguments of the call.
"""

from __future__ import annotations

from types import FrameType, TracebackType
from typing import Any, Callable, List, Mapping, NamedTuple, Optional, Tuple

import jax

from ..frameworks import flax_units
from ..frameworks.abstraction import split
from .node import TREE, Choice, Tree


class _Call(NamedTuple):
    """A call of `apply`: the variables that it got, and `init` with its other arguments."""

    given: Any
    init: Callable[..., Any]
    args: Any
    kwargs: Any


# What inputs may be, in order; those of one list belong together.
Wanted = List[List[Choice]]


def learn(error: BaseException) -> Tuple[BaseException, Wanted]:
    """Return the error that a pass is about, and what the inputs of its innermost network may be.

    The error is that of `init` if it fails, too: then other arguments of the network are wrong.
    """
    call: Optional[_Call] = None
    above: List[TracebackType] = []
    callers: List[TracebackType] = []
    trace = error.__traceback__
    while trace is not None:
        found = _call(trace.tb_frame)
        if found is not None:
            call, callers = found, list(above)
        above.append(trace)
        trace = trace.tb_next
    if call is None:
        return error, []
    try:
        made = _traced(call)
    except Exception as failure:  # the network's code, on inputs that it may never get
        end = failure.__traceback__
        for at in reversed(callers):
            end = TracebackType(end, at.tb_frame, at.tb_lasti, at.tb_lineno)
        return failure.with_traceback(end), []
    parts = [made]
    if isinstance(call.given, Mapping) and any(name in made for name in call.given):
        parts = [made[name] for name in call.given if name in made]
    elif isinstance(made, tuple):
        parts = [part for part in made if part]
    return error, [[_choice(part) for part in parts]]


def progress(frame: FrameType) -> Optional[int]:
    """Return 0 if a frame belongs to a network's `init`, 1 if to its `apply`; None for others.

    So an error is further if only `apply` raises it.
    """
    if frame.f_globals.get("__name__") == __name__:
        return 0
    return None if _call(frame) is None else 1


def _call(frame: FrameType) -> Optional[_Call]:
    module, name, held = frame.f_globals.get("__name__"), frame.f_code.co_name, frame.f_locals
    if module == "flax.linen.module" and name == "apply" and "variables" in held:
        method = held.get("method")

        def init(*args: Any, **kwargs: Any) -> Any:
            return flax_units.init_variables(held["self"], method, args, kwargs)

        return _Call(held["variables"], init, held["args"], held["kwargs"])
    if module == "haiku._src.transform" and name == "apply_fn" and "state" in held:

        def start(*args: Any, **kwargs: Any) -> Any:
            import haiku

            transformed = haiku.transform_with_state(held["f"])
            return transformed.init(jax.random.PRNGKey(0), *args, **kwargs)

        return _Call(None, start, held["args"], held["kwargs"])
    return None


def _traced(call: _Call) -> Any:
    """Return what `init` makes, abstractly: the tracers of the call may be out of date."""
    tracers, join = split((call.args, call.kwargs), lambda leaf: isinstance(leaf, jax.core.Tracer))

    def init(arrays: List[Any]) -> Any:
        args, kwargs = join(arrays)
        return call.init(*args, **kwargs)

    make: Any = jax.ShapeDtypeStruct
    return jax.eval_shape(init, [make(tracer.shape, tracer.dtype) for tracer in tracers])


def _choice(made: Any) -> Choice:
    leaves, structure = jax.tree_util.tree_flatten(made)
    return Choice(TREE, Tree(structure, tuple((leaf.shape, str(leaf.dtype)) for leaf in leaves)))
