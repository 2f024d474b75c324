"""Get the values of a traced call out of the running program by `jax.debug.callback`.

The callback must work wherever a unit may be called: under jit, vmap, grad, scan, cond, checkpoint,
and shard_map. Four of JAX's rules are replaced, for our callbacks only:

- vmap: JAX repeats the callback for each element, which makes programs huge. Ours takes the whole
  batch and splits it on the host.
- evaluation: JAX puts the values on a device again, which can wait for a thread that waits for the
  callback. Ours takes numpy arrays.
- transposition: older JAX releases reject it. Ours is left out.
- export: programs with callbacks cannot be exported. Ours are left out.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib
from typing import Any, Callable, List, NamedTuple, Optional, Sequence, Tuple

import jax
import numpy as np

from ..transfer import arrays
from .fingerprint import key_kind

_NONE = type(None)


class Value(NamedTuple):
    """What tracing knows of a staged value."""

    dtype: str
    weak: bool
    key: Optional[str]


@dataclasses.dataclass(frozen=True, eq=False)
class Sink:
    """Receives the values of one traced call each time the program runs it.

    Attributes:
        receive: called with numpy arrays; must not compute with JAX, nor keep the arrays.
        leaves_out: asked between the elements of a batch, with how many there are still: whether
            they are not wanted any more.
        failed: called with the error if `receive` raises.
    """

    receive: Callable[[List[Any]], None]
    leaves_out: Callable[[int], bool]
    failed: Callable[[Exception], None]

    def __call__(self, *values: Any) -> None:
        """Called by the program; an error in recording is not one of the program."""
        try:
            self.receive([np.asarray(value) for value in values])
        except Exception as error:
            self.failed(error)


def stage(tracers: Sequence[Any], make: Callable[[List[Value]], Sink]) -> None:
    """Have the values of tracers given to the sink that `make` makes, whenever the program runs.

    Raises whatever JAX raises where a callback cannot stand.
    """
    _replace_rules()
    known = []
    plain = []
    for tracer in tracers:
        key = key_kind(tracer)
        plain.append(tracer if key is None else arrays.key_data(tracer))
        weak = bool(getattr(tracer.aval, "weak_type", False))
        known.append(Value(str(tracer.dtype), weak, key))
    jax.debug.callback(make(known), *plain)


class _Batched:
    """One of our flat callbacks under vmap: called once for each element of the batch."""

    def __init__(self, inner: Callable[..., Any], axes: Sequence[Optional[int]], size: int) -> None:
        self.inner = inner
        self.axes = tuple(axes)
        self.size = size

    def __call__(self, *flat: Any) -> Tuple[()]:
        sink = _sink(self.inner)
        arrays = [np.asarray(value) for value in flat]
        for element in range(self.size):
            if sink is not None and sink.leaves_out(self.size - element):
                break
            self.inner(*[_element(x, axis, element) for x, axis in zip(arrays, self.axes)])
        return ()


def _element(array: Any, axis: Optional[int], element: int) -> Any:
    return array if axis is None else array[(slice(None),) * axis + (element,)]


def _sink(callback: Any) -> Optional[Sink]:
    """Return the sink that a flat callback leads to, if it is one of ours."""
    while isinstance(callback, _Batched):
        callback = callback.inner
    for cell in getattr(callback, "__closure__", None) or ():
        try:
            held = cell.cell_contents
        except ValueError:  # an empty cell
            continue
        if isinstance(held, Sink):
            return held
    return None


@functools.lru_cache(maxsize=None)
def _replace_rules() -> None:
    """Put our rules before JAX's, once. Where this JAX keeps them elsewhere, JAX's stay."""
    rules = (_replace_batching, _replace_transposition, _replace_evaluation, _replace_lowering)
    for replace in rules:
        with contextlib.suppress(ImportError, AttributeError, KeyError, TypeError):
            replace(_internal("debugging").debug_callback_p)


def _internal(name: str) -> Any:
    return importlib.import_module("jax._src." + name)


def _replace_batching(primitive: Any) -> None:
    batching = _internal("interpreters.batching")
    rules = batching.primitive_batchers
    if not isinstance(rules, dict):
        rules = batching.fancy_primitive_batchers  # these rules take the axis before the values
    theirs = rules[primitive]

    def batched(*args: Any, **params: Any) -> Any:
        values, dims = args[-2:]
        if _sink(params["callback"]) is None or any(type(d) not in (int, _NONE) for d in dims):
            return theirs(*args, **params)
        sizes = [x.shape[d] for x, d in zip(values, dims) if d is not None]
        if sizes:
            params["callback"] = _Batched(params["callback"], dims, sizes[0])
        return primitive.bind(*values, **params), ()

    rules[primitive] = batched


def _replace_transposition(primitive: Any) -> None:
    rules = _internal("interpreters.ad").primitive_transposes
    theirs = rules[primitive]

    def transposed(cotangents: Any, *args: Any, **params: Any) -> Any:
        if _sink(params["callback"]) is None:
            return theirs(cotangents, *args, **params)
        return [None for _ in args]

    rules[primitive] = transposed


def _replace_evaluation(primitive: Any) -> None:
    theirs = primitive.impl

    def evaluated(*args: Any, **params: Any) -> Any:
        if _sink(params["callback"]) is None:
            return theirs(*args, **params)
        params["callback"](*args)
        return ()

    primitive.def_impl(evaluated)


def _replace_lowering(primitive: Any) -> None:
    for rules in _internal("interpreters.mlir")._platform_specific_lowerings.values():
        if primitive in rules:
            entry = rules[primitive]
            if callable(entry):
                rules[primitive] = _lowering(entry)
            else:
                rules[primitive] = dataclasses.replace(entry, rule=_lowering(entry.rule))


def _lowering(theirs: Callable[..., Any]) -> Callable[..., Any]:
    def lowered(ctx: Any, *args: Any, **params: Any) -> Any:
        parameters = getattr(ctx.module_context, "lowering_parameters", None)
        if getattr(parameters, "for_export", False) and _sink(params["callback"]) is not None:
            return []
        return theirs(ctx, *args, **params)

    return lowered
