"""What a stage alone keeps, needs and costs: its forward and its backward pass from shapes.

A stage is traced as it stands in the whole gradient: what it is given exists when its forward pass
begins, then comes a mark, then the cotangents of what it gives exist, and its backward pass runs.
What is live at the mark is what it keeps while other stages run.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

import jax
import jax.numpy as jnp
import numpy as np

from .entry import shape_of
from .instruments.flops import flops
from .instruments.liveness import Live, peak
from .internals import internals

PLAIN, WRAPPED, BODY = "plain", "wrapped", "body"

_BOUNDARY = "remat_migrate_boundary"


class Kind(NamedTuple):
    """What can be done with a stage.

    Attributes:
        kind: nothing, a checkpoint on all of it, or on the body of its loop over layers.
        policy: the policy by its name, None without one.
    """

    kind: str = PLAIN
    policy: Optional[str] = None

    @property
    def options(self) -> Dict[str, Any]:
        """The options of its checkpoint."""
        if self.policy is None:
            return {}
        return {"policy": getattr(jax.checkpoint_policies, self.policy)}


class Role(NamedTuple):
    """What a value is to a stage.

    Attributes:
        made: whether another stage made it; else it is an argument of the whole function.
        active: whether the gradient goes through it.
    """

    made: bool
    active: bool


class Segment(NamedTuple):
    """The operations of a stage.

    Attributes:
        run: computes its outputs, with a checkpoint of the given kind.
        shapes: of what it reads.
        inputs: the role of each of them.
        outputs: the role of each value that it gives.
    """

    run: Callable[[Kind], Callable[..., Any]]
    shapes: Tuple[Any, ...]
    inputs: Tuple[Role, ...]
    outputs: Tuple[Role, ...]


class Keeps(NamedTuple):
    """What the forward pass of a stage keeps.

    Attributes:
        inputs: for each input whether it is kept.
        outputs: for each output whether it is kept.
        others: the bytes of all besides inputs; outputs are among them.
    """

    inputs: Tuple[bool, ...]
    outputs: Tuple[bool, ...]
    others: int


class Needs(NamedTuple):
    """What a stage needs while it runs.

    Attributes:
        peak: the most bytes that are live at once, with inputs that are its own.
        flops: its operations, forward and backward.
    """

    peak: int
    flops: int


def keeps(segment: Segment, kind: Kind) -> Keeps:
    """What is live between the passes, inputs not counted."""
    traced = internals().opened(_traced(segment, kind, ()))
    jaxpr = internals().dead_code_removed(traced)
    live = Live(jaxpr, _BOUNDARY)
    outputs = [live.is_named(_BOUNDARY + "_%d" % place) for place in range(len(segment.outputs))]
    # The arguments of the stage come first among those of the program.
    inputs = [live.is_read(variable) for variable in traced.invars[: len(segment.inputs)]]
    return Keeps(tuple(inputs), tuple(outputs), live.bytes)


def needs(segment: Segment, kind: Kind, own: Sequence[int]) -> Needs:
    """What both passes need.

    Args:
        segment: the stage.
        kind: its checkpoint.
        own: the inputs that are counted while this stage uses them, and by no other one.
    """
    jaxpr = internals().dead_code_removed(_traced(segment, kind, own))
    return Needs(peak(jaxpr), flops(jaxpr))


def _traced(segment: Segment, kind: Kind, own: Sequence[int]) -> Any:
    """Both passes; inputs in `own` are made where the forward pass begins."""
    active = [place for place, role in enumerate(segment.inputs) if role.active]
    through = [place for place, role in enumerate(segment.outputs) if role.active]
    run = segment.run(kind)

    def stage(values: Sequence[Any], chosen: Sequence[Any]) -> Tuple[List[Any], List[Any]]:
        whole = list(values)
        for place, value in zip(active, chosen):
            whole[place] = value
        outputs = run(*whole)
        return [outputs[place] for place in through], list(outputs)

    def program(given: Sequence[Any], weights: Sequence[Any]) -> Any:
        values = [_fresh(value) if place in own else value for place, value in enumerate(given)]
        chosen = [values[place] for place in active]
        _, pull, outputs = jax.vjp(lambda *some: stage(values, some), *chosen, has_aux=True)
        named = [
            internals().named(value, "%s_%d" % (_BOUNDARY, place))
            for place, value in enumerate(outputs)
        ]
        mark = internals().named(_read(named), _BOUNDARY)
        if not through:
            return mark  # nothing of it is differentiated
        return pull([_dependent(weight, mark) for weight in weights])

    weights = [
        shape_of(shape.shape, shape.dtype)
        for place, shape in enumerate(_output_shapes(segment, run))
        if segment.outputs[place].active
    ]
    return jax.make_jaxpr(program)(segment.shapes, weights)


def _output_shapes(segment: Segment, run: Callable[..., Any]) -> List[Any]:
    shapes: List[Any] = jax.eval_shape(run, *segment.shapes)
    return shapes


def _fresh(value: Any) -> Any:
    """An array of the same shape that is made here."""
    if jnp.issubdtype(value.dtype, np.inexact):
        return value * 2
    if value.dtype == np.bool_:
        return ~value
    return value + 1 if jnp.issubdtype(value.dtype, np.integer) else value


def _read(values: Sequence[Any]) -> Any:
    """A number that needs some arrays: what a stage gives is there when the next one runs.

    An entry of each is enough: an array is live as a whole.
    """
    total = jnp.float32(0)
    for value in values:
        is_number = jnp.issubdtype(value.dtype, np.number) or value.dtype == np.bool_
        if is_number and 0 not in value.shape:
            ones = [1] * len(value.shape)
            entry = jax.lax.slice(value, [0] * len(value.shape), ones).reshape(())
            total = total + jnp.real(entry).astype(jnp.float32)
    return total


def _dependent(weight: Any, mark: Any) -> Any:
    """A cotangent that exists after the mark and not before."""
    return weight * mark.astype(weight.dtype)


def selectable(scan: bool, policies: Sequence[str]) -> Tuple[Kind, ...]:
    """All that can be done with a stage."""
    kinds = [WRAPPED, BODY] if scan else [WRAPPED]
    chosen: List[Optional[str]] = [None, *policies]
    return (Kind(), *(Kind(kind, policy) for kind in kinds for policy in chosen))
