"""Measure the cost of a single stage: its forward and backward pass, traced from shapes.

The trace resembles the stage's part of the whole gradient computation: the inputs of the stage
exist when its forward pass starts. A mark follows, then the cotangents of its outputs come into
existence, and the backward pass runs. Values that are live at the mark are those that the stage
keeps while other stages run.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

import jax
import jax.numpy as jnp
import numpy as np

from .entry import shape_of
from .instruments.flops import flops
from .instruments.liveness import LiveAtMark, peak
from .internals import internals
from .records import BODY, PLAIN, WRAPPED, Need

_BOUNDARY = "remat_migrate_boundary"


class Kind(NamedTuple):
    """A way to place a checkpoint on a stage.

    Attributes:
        kind: no checkpoint, one on the stage, or one on the body of its loop over layers.
        policy: name of the policy, or None.
    """

    kind: str = PLAIN
    policy: Optional[str] = None

    @property
    def options(self) -> Dict[str, Any]:
        """The options of the checkpoint."""
        if self.policy is None:
            return {}
        return {"policy": getattr(jax.checkpoint_policies, self.policy)}


class Role(NamedTuple):
    """The role of a value in a stage.

    Attributes:
        made: whether a stage computes it; otherwise it is an argument of the whole function.
        active: whether it is differentiated.
    """

    made: bool
    active: bool


class Segment(NamedTuple):
    """The equations of a stage.

    Attributes:
        run: returns a function that computes the outputs, with a checkpoint of the given kind.
        shapes: shapes of the inputs.
        inputs: role of each input.
        outputs: role of each output.
    """

    run: Callable[[Kind], Callable[..., Any]]
    shapes: Tuple[Any, ...]
    inputs: Tuple[Role, ...]
    outputs: Tuple[Role, ...]


class Saved(NamedTuple):
    """The values that the forward pass of a stage saves.

    Attributes:
        inputs: whether each input is saved.
        outputs: whether each output is saved.
        others: bytes of all saved values except inputs, including outputs.
    """

    inputs: Tuple[bool, ...]
    outputs: Tuple[bool, ...]
    others: int


def saved(segment: Segment, kind: Kind) -> Saved:
    """Return the values that are live between the passes."""
    traced = internals().opened(_traced(segment, kind, ()))
    live = LiveAtMark(internals().dead_code_removed(traced), _BOUNDARY)
    outputs = [live.is_named(_BOUNDARY + "_%d" % place) for place in range(len(segment.outputs))]
    # The first arguments of the program are those of the stage.
    inputs = [live.is_read(variable) for variable in traced.invars[: len(segment.inputs)]]
    return Saved(tuple(inputs), tuple(outputs), live.bytes)


def needs(segment: Segment, kind: Kind, own: Sequence[int]) -> Need:
    """Return the cost of both passes, including the inputs that count for this stage.

    Args:
        segment: the stage.
        kind: its checkpoint.
        own: indices of the inputs that count for this stage and not for another one.
    """
    jaxpr = internals().dead_code_removed(_traced(segment, kind, own))
    return Need(peak(jaxpr), flops(jaxpr))


def _traced(segment: Segment, kind: Kind, own: Sequence[int]) -> Any:
    """Trace both passes; the inputs in `own` are computed at the start of the forward pass."""
    active_inputs = [place for place, role in enumerate(segment.inputs) if role.active]
    active_outputs = [place for place, role in enumerate(segment.outputs) if role.active]
    run = segment.run(kind)

    def stage(values: Sequence[Any], chosen: Sequence[Any]) -> Tuple[List[Any], List[Any]]:
        whole = list(values)
        for place, value in zip(active_inputs, chosen):
            whole[place] = value
        outputs = run(*whole)
        return [outputs[place] for place in active_outputs], list(outputs)

    def program(arguments: Sequence[Any], weights: Sequence[Any]) -> Any:
        values = [_fresh(value) if place in own else value for place, value in enumerate(arguments)]
        chosen = [values[place] for place in active_inputs]
        _, pull, outputs = jax.vjp(lambda *some: stage(values, some), *chosen, has_aux=True)
        named = [
            internals().named(value, "%s_%d" % (_BOUNDARY, place))
            for place, value in enumerate(outputs)
        ]
        mark = internals().named(_read(named), _BOUNDARY)
        if not active_outputs:
            return mark
        # Cotangents that depend on the mark do not exist before it.
        return pull([weight * mark.astype(weight.dtype) for weight in weights])

    output_shapes: List[Any] = jax.eval_shape(run, *segment.shapes)
    weights = [
        shape_of(output_shapes[place].shape, output_shapes[place].dtype) for place in active_outputs
    ]
    return jax.make_jaxpr(program)(segment.shapes, weights)


def _fresh(value: Any) -> Any:
    """Compute an array of the same shape and dtype."""
    if jnp.issubdtype(value.dtype, np.inexact):
        return value * 2
    if value.dtype == np.bool_:
        return ~value
    return value + 1 if jnp.issubdtype(value.dtype, np.integer) else value


def _read(values: Sequence[Any]) -> Any:
    """Return a number that depends on all arrays, as the outputs exist when the next stage starts.

    Reads a single element of each, because an array is live as a whole.
    """
    total = jnp.float32(0)
    for value in values:
        is_number = jnp.issubdtype(value.dtype, np.number) or value.dtype == np.bool_
        if is_number and 0 not in value.shape:
            ones = [1] * len(value.shape)
            element = jax.lax.slice(value, [0] * len(value.shape), ones).reshape(())
            total = total + jnp.real(element).astype(jnp.float32)
    return total


def available_kinds(is_scan: bool, policies: Sequence[str]) -> Tuple[Kind, ...]:
    """Return all ways to place a checkpoint on a stage, starting with none."""
    kinds = [WRAPPED, BODY] if is_scan else [WRAPPED]
    chosen: List[Optional[str]] = [None, *policies]
    return (Kind(), *(Kind(kind, policy) for kind in kinds for policy in chosen))
