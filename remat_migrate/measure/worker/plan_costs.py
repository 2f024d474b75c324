"""Measure the stages of a chain for the planner: what each saves and costs, by checkpoint.

Equal stages are traced once. An array that several stages read is saved once: it counts for the
first stage that saves it without a checkpoint, or else for the first that reads it. The gradient of
an argument is live from the backward pass of the last stage that reads it until the end.

The trace of a stage resembles its part of the whole gradient computation: its inputs exist when its
forward pass starts. A mark follows, then the cotangents of its outputs come into existence, and the
backward pass runs. Values that are live at the mark are those that the stage keeps while other
stages run.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .entry import Entry
from .gradients import checkpointed
from .instruments.flops import flops
from .instruments.liveness import Liveness, peak, size
from .instruments.residuals import cost_and_jaxpr
from .internals import internals
from .kinds import DOTS_POLICIES, Kind, available_kinds, can_differentiate
from .named_values import names_in
from .records import PLAIN, WRAPPED, Chain, Choice, Cost, Link
from .stages import Flat, Stage, combinations, evaluating, shapes_of

_BOUNDARY = "remat_migrate_boundary"


def chains(flat: Flat) -> list[Chain]:
    """Return the chains of a program, the outermost first, with the costs of each stage.

    Raises:
        Exception: any error that JAX raises while it traces a stage.
    """
    known: dict[Any, Any] = {}
    return [tuple(_Links(flat, stages, known).links()) for stages in cut(flat)]


def cut(flat: Flat) -> list[list[Stage]]:
    """Return the stages of each chain of a program, which is cut into those of the shortest."""
    found = [list(_without_gaps(flat, heavy)) for heavy in combinations(flat)]
    if found:
        flat.cut([(stage.start, stage.stop) for stage in min(found, key=len)])
    return found


def trace(entry: Entry, flat: Flat, runs: Mapping[tuple[int, int], Kind]) -> Cost:
    """Trace the gradient computation with checkpoints on some runs of equations."""
    return cost_and_jaxpr(entry, checkpointed(entry, flat, runs))[0]


def in_step(entry: Entry, flat: Flat, chain: Chain, bare: Cost) -> Chain:
    """Return a chain of a loss with costs that are those of the whole training step.

    The step has values of its own while it differentiates the loss, such as its arguments and the
    sums of gradients, and may differentiate the loss once for each part of a batch.

    Args:
        entry: the training step.
        flat: its loss.
        chain: the stages of the loss.
        bare: the cost of the step without checkpoints.
    """
    every = {
        (link.start, link.stop): choice
        for link in chain
        for choice in link.choices
        if link.heavy and (choice.kind, choice.policy) == (WRAPPED, None)
    }
    need = trace(entry, flat, dict.fromkeys(every, Kind(WRAPPED)))
    recomputed = sum(choice.flops for choice in every.values())
    times = (need.flops - bare.flops) / recomputed if recomputed else 1.0
    peak = held = 0
    for link in chain:
        plain = link.choices[0]
        peak = max(peak, held + plain.peak)
        held += plain.inputs + plain.others
    more = bare.peak_bytes - peak
    return tuple(
        link._replace(
            flops=round(link.flops * times),
            choices=tuple(
                one._replace(peak=max(one.peak + more, 0), flops=round(one.flops * times))
                for one in link.choices
            ),
        )
        for link in chain
    )


class _Links:
    """The stages of a chain, with a light stage wherever nothing is worth a checkpoint."""

    def __init__(self, flat: Flat, stages: Sequence[Stage], known: dict[Any, Any]) -> None:
        """Find the values that pass between stages; `known` caches traces across chains."""
        self._flat = flat
        # Of the whole program, as a group of stages has one policy.
        self._policies = [one for one in DOTS_POLICIES if can_differentiate(flat.jaxpr, one)]
        self._stages = stages
        self._loops = set(flat.scans())
        self._segments = [flat.segment(stage.start, stage.stop) for stage in self._stages]
        self._maker: dict[Any, int] = {}
        self._readers: dict[Any, list[int]] = {}
        for number, segment in enumerate(self._segments):
            self._maker.update(dict.fromkeys(segment.outvars, number))
            for variable in segment.invars:
                self._readers.setdefault(variable, []).append(number)
        self._active = _active(flat)
        self._known = known

    def links(self) -> list[Link]:
        kept = [
            {kind: self._passes(number, kind) for kind in self._kinds(number)}
            for number in range(len(self._stages))
        ]
        plain = [by_kind[Kind()] for by_kind in kept]
        owners = self._owners(plain)
        gradients = self._gradient_bytes()
        return [
            self._link(number, kept[number], owners, gradients[number])
            for number in range(len(self._stages))
        ]

    def _link(
        self,
        number: int,
        kept: Mapping[Kind, Passes],
        owners: Mapping[Any, int],
        gradients: int,
    ) -> Link:
        stage, segment = self._stages[number], self._segments[number]
        own = tuple(place for place, v in enumerate(segment.invars) if owners.get(v, -1) == number)
        sizes = [size(variable.aval) for variable in segment.invars]
        bare = kept[Kind()].needs(own)
        choices = []
        for kind, passes in kept.items():
            need = passes.needs(own)
            inputs = sum(sizes[n] for n in own if passes.inputs[n])
            choices.append(
                Choice(
                    *kind,
                    inputs,
                    passes.others,
                    need.peak_bytes + gradients,
                    need.flops - bare.flops,
                )
            )
        choices = [one for one in choices if one.policy is None or not _is_dominated(one, choices)]
        return Link(
            stage.start,
            stage.stop,
            stage.path,
            stage.function,
            stage.line,
            stage.is_heavy,
            tuple((self._maker[segment.invars[n]], sizes[n]) for n in own),
            sum(size(variable.aval) for variable in segment.outvars if variable in self._active),
            stage.flops,
            tuple(choices),
        )

    def _kinds(self, number: int) -> tuple[Kind, ...]:
        stage = self._stages[number]
        if not stage.is_heavy and number in (0, len(self._stages) - 1):
            return (Kind(),)  # in no group
        steps = self._steps_in(stage)
        key = "kinds", self._signature(number), steps
        if key not in self._known:
            segment = self._segments[number]
            policies = [*self._policies, *self._by_name(segment)]
            self._known[key] = available_kinds(segment, steps, policies)
        found: tuple[Kind, ...] = self._known[key]
        return found

    def _by_name(self, segment: Any) -> Iterator[str]:
        """Yield policies that save the values with the most FLOPs for their bytes, or all."""
        values = [
            self._flat.values[one] for one in names_in(segment.eqns) if one in self._flat.values
        ]
        values.sort(key=lambda one: -one.flops / one.bytes)
        for count in sorted({(len(values) + 1) // 2, len(values)} - {0}):
            names = ", ".join(f'"{one.name}"' for one in values[:count])
            yield f"save_only_these_names({names})"

    def _loops_in(self, stage: Stage) -> list[int]:
        return [loop for loop in self._loops if stage.start <= loop < stage.stop]

    def _steps_in(self, stage: Stage) -> int | None:
        """Return the steps of the longest loop on the line of a stage, None if it has no loop.

        If another function runs a loop, this is 0: the body is not on this line.
        """
        equations, own = self._flat.jaxpr.eqns, (stage.path, stage.function, stage.line)
        loops = self._loops_in(stage)
        if any(own != next(iter(self._flat.frames[number]), own) for number in loops):
            return 0
        return max((internals().inner(equations[number])[2] for number in loops), default=None)

    # -- the stage that each value counts for

    def _owners(self, plain: list[Passes]) -> dict[Any, int]:
        """Return for each value from a stage the stage that it counts for as an input."""
        found: dict[Any, int] = {}
        for variable, readers in self._readers.items():
            if variable in self._maker:
                saving = (
                    number
                    for number in readers
                    if plain[number].inputs[self._segments[number].invars.index(variable)]
                )
                found[variable] = next(saving, readers[0])
        return found

    def _gradient_bytes(self) -> list[int]:
        """Return the bytes of gradients and cotangents that are live while a stage runs backward.

        These are gradients of arguments that later stages have computed, and cotangents on their
        way to an earlier stage.
        """
        found = [0] * len(self._stages)
        for variable, readers in self._readers.items():
            if variable in self._active:
                first = self._maker.get(variable, -1)
                for number in range(first + 1, readers[-1]):
                    found[number] += size(variable.aval)
        return found

    # -- traces, cached for equal stages

    def _passes(self, number: int, kind: Kind) -> Passes:
        key = self._signature(number), kind
        if key not in self._known:
            run = self._run(number, kind)
            self._known[key] = Passes(run, self._segments[number], self._active)
        found: Passes = self._known[key]
        return found

    def _signature(self, number: int) -> Any:
        segment = self._segments[number]
        active = (v in self._active for v in (*segment.invars, *segment.outvars))
        return self._flat.signature(segment), tuple(active)

    def _run(self, number: int, kind: Kind) -> Callable[..., Any]:
        """Return a function that runs a stage with a checkpoint."""
        stage = self._stages[number]
        if kind.is_on_loop:
            changed = self._flat.with_loops(dict.fromkeys(self._loops_in(stage), kind))
            return evaluating(changed.segment(stage.start, stage.stop))
        options = None if kind.kind == PLAIN else kind.options
        return self._flat.runner(self._segments[number], options)


class Passes:
    """The forward and the backward pass of a stage with one kind of checkpoint.

    Attributes:
        inputs: whether each input is saved for the backward pass.
        others: bytes of all saved values except inputs, including outputs.
    """

    def __init__(self, run: Callable[..., Any], segment: Any, active: Collection[Any]) -> None:
        """Trace both passes.

        Args:
            run: computes the outputs of the stage, with its checkpoint.
            segment: the stage as a jaxpr.
            active: the variables that are differentiated.
        """
        traced = internals().opened(_traced(run, segment, active))
        self._jaxpr = internals().dead_code_removed(traced)
        # The first arguments of the program are those of the stage.
        self._inputs = traced.invars[: len(segment.invars)]
        values = Liveness(self._jaxpr)
        mark, read = values.named(_BOUNDARY)
        self.inputs = [values.is_used(one, mark) for one in self._inputs]
        self.others = values.live_after(mark) - values.size_of(read)
        self._flops = flops(self._jaxpr)
        self._needs: dict[tuple[int, ...], Cost] = {}

    def needs(self, own: tuple[int, ...]) -> Cost:
        """Return the cost, including the inputs that count for this stage.

        Args:
            own: indices of the inputs that count for this stage and not for another one.
        """
        if own not in self._needs:
            counted = {self._inputs[place] for place in own}
            self._needs[own] = Cost(peak(self._jaxpr, counted=counted), self._flops)
        return self._needs[own]


def _traced(run: Callable[..., Any], segment: Any, active: Collection[Any]) -> Any:
    active_inputs = [place for place, v in enumerate(segment.invars) if v in active]
    active_outputs = [place for place, v in enumerate(segment.outvars) if v in active]

    def program(arguments: Sequence[Any], weights: Sequence[Any]) -> Any:
        def stage(*chosen: Any) -> tuple[list[Any], list[Any]]:
            whole = list(arguments)
            for place, value in zip(active_inputs, chosen):
                whole[place] = value
            outputs = run(*whole)
            return [outputs[place] for place in active_outputs], list(outputs)

        chosen = [arguments[place] for place in active_inputs]
        _, pull, outputs = jax.vjp(stage, *chosen, has_aux=True)
        mark = internals().named(_read(outputs), _BOUNDARY)
        if not active_outputs:
            return mark
        # Cotangents that depend on the mark do not exist before it.
        return pull([weight * mark.astype(weight.dtype) for weight in weights])

    outputs = shapes_of(segment.outvars)
    weights = [outputs[place] for place in active_outputs]
    return jax.make_jaxpr(program)(tuple(shapes_of(segment.invars)), weights)


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


def _is_dominated(one: Choice, choices: Sequence[Choice]) -> bool:
    """Return whether an earlier choice of the same kind is at least as good in every respect."""

    def costs(choice: Choice) -> tuple[int, int, int]:
        return choice.inputs + choice.others, choice.peak, choice.flops

    return any(
        other.kind == one.kind and all(map(operator.le, costs(other), costs(one)))
        for other in choices[: choices.index(one)]
    )


def _without_gaps(flat: Flat, heavy: Sequence[Stage]) -> Iterator[Stage]:
    """Yield heavy stages, and a light stage for all equations between two of them."""

    def light(stop: int) -> Iterator[Stage]:
        if start < stop:
            yield Stage(start, stop, "", "", 0, sum(flat.flops[start:stop]))

    start = 0
    for stage in heavy:
        yield from light(stage.start)
        yield stage
        start = stage.stop
    yield from light(len(flat.jaxpr.eqns))


def _active(flat: Flat) -> set[Any]:
    """Return the variables between the differentiated arguments and the loss."""
    jaxpr = flat.jaxpr
    first = len(flat.constants)
    reached = set(filter(_is_inexact, (jaxpr.invars[first + place] for place in flat.arguments)))
    for equation in jaxpr.eqns:
        if any(not internals().is_literal(atom) and atom in reached for atom in equation.invars):
            reached.update(filter(_is_inexact, equation.outvars))
    needed = {atom for atom in jaxpr.outvars[: flat.outputs] if not internals().is_literal(atom)}
    for equation in reversed(jaxpr.eqns):
        if any(variable in needed for variable in equation.outvars):
            needed.update(a for a in equation.invars if not internals().is_literal(a))
    return reached & needed


def _is_inexact(variable: Any) -> bool:
    dtype = getattr(variable.aval, "dtype", None)
    return dtype is not None and bool(jnp.issubdtype(dtype, np.inexact))
