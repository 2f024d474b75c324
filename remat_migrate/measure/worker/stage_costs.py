"""Measure the cost of a single stage: its forward and backward pass, traced from shapes.

The trace resembles the stage's part of the whole gradient computation: the inputs of the stage
exist when its forward pass starts. A mark follows, then the cotangents of its outputs come into
existence, and the backward pass runs. Values that are live at the mark are those that the stage
keeps while other stages run.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .instruments.flops import flops
from .instruments.liveness import LiveAtMark, peak
from .internals import internals
from .records import BODY, PLAIN, WRAPPED, Need
from .schedules import schedules, sizes_of

_BOUNDARY = "remat_migrate_boundary"
# Policies that need no names, and keep the most expensive operations. The first recomputes more.
DOTS_POLICIES = ("dots_with_no_batch_dims_saveable", "dots_saveable")


class Kind(NamedTuple):
    """A way to place a checkpoint on a stage.

    Attributes:
        kind: no checkpoint, one on the stage, one on the body of its loop, or `segments`.
        policy: the policy as an attribute of `jax.checkpoint_policies`, called if it takes
            arguments: `dots_saveable`, `save_only_these_names("h")`; or None.
    """

    kind: str = PLAIN
    policy: str | None = None

    @property
    def is_on_loop(self) -> bool:
        """Whether it is on the body or on segments of a loop."""
        return self.kind == BODY or bool(sizes_of(self.kind))

    @property
    def options(self) -> dict[str, Any]:
        """The options of the checkpoint."""
        if self.policy is None:
            return {}
        return {"policy": _policy(self.policy)}


@functools.cache
def _policy(text: str) -> Callable[..., Any]:
    """Return a policy; the same object for the same text, as JAX caches by it."""
    tree = ast.parse(text, mode="eval").body
    if not isinstance(tree, ast.Call):
        return getattr(jax.checkpoint_policies, text)  # type: ignore[no-any-return]
    args = [ast.literal_eval(one) for one in tree.args]
    keywords = {str(one.arg): ast.literal_eval(one.value) for one in tree.keywords}
    made = getattr(jax.checkpoint_policies, ast.unparse(tree.func))
    return made(*args, **keywords)  # type: ignore[no-any-return]


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
        output_shapes: shapes of the outputs.
    """

    run: Callable[[Kind], Callable[..., Any]]
    shapes: tuple[Any, ...]
    inputs: tuple[Role, ...]
    outputs: tuple[Role, ...]
    output_shapes: tuple[Any, ...]


class Saved(NamedTuple):
    """The values that the forward pass of a stage saves.

    Attributes:
        inputs: whether each input is saved.
        outputs: whether each output is saved.
        others: bytes of all saved values except inputs, including outputs.
    """

    inputs: tuple[bool, ...]
    outputs: tuple[bool, ...]
    others: int


class Passes:
    """The forward and the backward pass of a stage with one kind of checkpoint.

    Attributes:
        saved: the values that are live between the passes.
    """

    def __init__(self, segment: Segment, kind: Kind) -> None:
        """Trace both passes."""
        traced = internals().opened(_traced(segment, kind))
        self._jaxpr = internals().dead_code_removed(traced)
        # The first arguments of the program are those of the stage.
        self._inputs = traced.invars[: len(segment.inputs)]
        live = LiveAtMark(self._jaxpr, _BOUNDARY)
        self.saved = Saved(
            tuple(map(live.is_read, self._inputs)),
            tuple(live.is_named(_BOUNDARY + "_%d" % n) for n in range(len(segment.outputs))),
            live.bytes,
        )
        self._flops = flops(self._jaxpr)
        self._needs: dict[tuple[int, ...], Need] = {}

    def needs(self, own: tuple[int, ...]) -> Need:
        """Return the cost, including the inputs that count for this stage.

        Args:
            own: indices of the inputs that count for this stage and not for another one.
        """
        if own not in self._needs:
            counted = {self._inputs[place] for place in own}
            self._needs[own] = Need(peak(self._jaxpr, counted=counted), self._flops)
        return self._needs[own]


def _traced(segment: Segment, kind: Kind) -> Any:
    active_inputs = [place for place, role in enumerate(segment.inputs) if role.active]
    active_outputs = [place for place, role in enumerate(segment.outputs) if role.active]
    run = segment.run(kind)

    def program(arguments: Sequence[Any], weights: Sequence[Any]) -> Any:
        def stage(*chosen: Any) -> tuple[list[Any], list[Any]]:
            whole = list(arguments)
            for place, value in zip(active_inputs, chosen):
                whole[place] = value
            outputs = run(*whole)
            return [outputs[place] for place in active_outputs], list(outputs)

        chosen = [arguments[place] for place in active_inputs]
        _, pull, outputs = jax.vjp(stage, *chosen, has_aux=True)
        named = [
            internals().named(value, "%s_%d" % (_BOUNDARY, place))
            for place, value in enumerate(outputs)
        ]
        mark = internals().named(_read(named), _BOUNDARY)
        if not active_outputs:
            return mark
        # Cotangents that depend on the mark do not exist before it.
        return pull([weight * mark.astype(weight.dtype) for weight in weights])

    weights = [segment.output_shapes[place] for place in active_outputs]
    return jax.make_jaxpr(program)(segment.shapes, weights)


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


def available_kinds(jaxpr: Any, steps: int, policies: Sequence[str]) -> tuple[Kind, ...]:
    """Return the ways to place a checkpoint on a stage that differ, starting with none.

    Args:
        jaxpr: the stage.
        steps: steps of its loop, 0 if it has none.
        policies: policies to try.
    """
    distinct: dict[Any, str | None] = {(): None}
    for policy in policies:
        saved = _saved(jaxpr, Kind(WRAPPED, policy).options["policy"])
        distinct.setdefault(tuple((id(one), str(how)) for one, how in saved), policy)
    if not steps:
        return (Kind(), *(Kind(WRAPPED, policy) for policy in distinct.values()))
    # A policy for the whole loop would save the products of all layers.
    bodies = (Kind(BODY, policy) for policy in distinct.values())
    return (Kind(), Kind(WRAPPED), *bodies, *map(Kind, schedules(steps)))


def can_differentiate(jaxpr: Any, policy: str) -> bool:
    """Return whether JAX can differentiate a checkpoint with a policy on any part of a program.

    JAX 0.10 raises TypeError for a policy that saves complex values.
    """
    saved = _saved(jaxpr, Kind(WRAPPED, policy).options["policy"])
    return not any(
        jnp.issubdtype(variable.aval.dtype, np.complexfloating)
        for equation, _ in saved
        for variable in equation.outvars
        if hasattr(variable.aval, "dtype")
    )


def _saved(jaxpr: Any, policy: Callable[..., Any]) -> Iterator[tuple[Any, Any]]:
    """Yield the equations that a policy does not recompute, and what it decides."""
    for equation in internals().opened(jaxpr).eqns:
        _, bodies, _ = internals().inner(equation)
        for body in bodies:
            yield from _saved(body, policy)
        avals = (atom.aval for atom in equation.invars)
        if not bodies and (decision := policy(equation.primitive, *avals, **equation.params)):
            yield equation, decision
