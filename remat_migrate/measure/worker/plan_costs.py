"""Measure the stages of a chain for the planner: what each saves and costs, by checkpoint.

Equal stages are traced once. An array that several stages read is saved once: it counts for the
first stage that saves it without a checkpoint, or else for the first that reads it. The gradient of
an argument is live from the backward pass of the last stage that reads it until the end.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterator, List, Mapping, Sequence, Set, Tuple

import jax.numpy as jnp
import numpy as np

from .entry import Entry, shape_of
from .instruments.compiled import peak_bytes
from .instruments.flops import flops
from .instruments.liveness import size
from .instruments.roofline import work
from .interception import own_checkpoint
from .internals import internals
from .records import BODY, PLAIN, Chain, Choice, Link, Need, Work
from .stage_combinations import PlacedStage, combinations
from .stage_costs import Kind, Role, Saved, Segment, available_kinds, needs, saved
from .stages import Flat, evaluating
from .training.gradients import gradient

# Policies that need no names. The first keeps the most expensive operations, and recomputes the
# others, which are cheap but have large outputs.
_POLICIES = ("dots_with_no_batch_dims_saveable", "dots_saveable")


def chains(entry: Entry, flat: Flat) -> List[Chain]:
    """Return the chains of a program, the outermost first, with the costs of each stage.

    Raises:
        Exception: any error that JAX raises while it traces a stage.
    """
    known: Dict[Any, Any] = {}
    return [Chain(tuple(_Links(entry, flat, heavy, known).links())) for heavy in combinations(flat)]


def trace(entry: Entry, flat: Flat, runs: Mapping[Tuple[int, int], Kind]) -> Need:
    """Trace the gradient computation with checkpoints on some runs of equations."""
    jaxpr = entry.traced(_gradient(entry, flat, runs))
    return Need(entry.peak(jaxpr), flops(jaxpr))


def work_of(entry: Entry, flat: Flat, runs: Mapping[Tuple[int, int], Kind]) -> Work:
    """Return the work of the gradient computation with checkpoints on some runs of equations."""
    return work(entry.traced(_gradient(entry, flat, runs)))


def compiled_bytes(entry: Entry, flat: Flat, runs: Mapping[Tuple[int, int], Kind]) -> int:
    """Compile the gradient computation with checkpoints, and return its memory besides inputs."""
    return peak_bytes(entry, _gradient(entry, flat, runs))


def _gradient(entry: Entry, flat: Flat, runs: Mapping[Tuple[int, int], Kind]) -> Callable[..., Any]:
    wrapped, bodies = {}, {}
    loops = set(flat.scans())
    for (start, stop), kind in runs.items():
        if kind.kind == BODY:
            bodies.update({n: kind.options for n in loops if start <= n < stop})
        elif kind.kind != PLAIN:
            wrapped[start, stop] = kind.options
    return gradient(entry, flat, wrapped, bodies)


class _Links:
    """The stages of a chain, with a light stage wherever nothing is worth a checkpoint."""

    def __init__(
        self, entry: Entry, flat: Flat, heavy: Sequence[PlacedStage], known: Dict[Any, Any]
    ) -> None:
        """Find the values that pass between stages; `known` caches traces across chains."""
        self._flat = flat
        self._stages = list(_without_gaps(flat, heavy))
        self._loops = set(flat.scans())
        self._segments = [flat.segment(stage.start, stage.stop) for stage in self._stages]
        self._maker: Dict[Any, int] = {}
        self._readers: Dict[Any, List[int]] = {}
        for number, segment in enumerate(self._segments):
            self._maker.update(dict.fromkeys(segment.outvars, number))
            for variable in segment.invars:
                self._readers.setdefault(variable, []).append(number)
        self._active = _active(flat)
        self._known = known
        self._signatures: Dict[int, Any] = {}

    def links(self) -> List[Link]:
        kept = [
            {kind: self._saved(number, kind) for kind in self._kinds(stage)}
            for number, stage in enumerate(self._stages)
        ]
        owners = self._owners([by_kind[Kind()] for by_kind in kept])
        shared = self._shared_bytes(kept, owners)
        gradients = self._gradient_bytes()
        return [
            self._link(number, kept[number], owners, shared[number], gradients[number])
            for number in range(len(self._stages))
        ]

    def _link(
        self,
        number: int,
        kept: Mapping[Kind, Saved],
        owners: Mapping[Any, int],
        shared: int,
        gradients: int,
    ) -> Link:
        stage, segment = self._stages[number], self._segments[number]
        own = tuple(place for place, v in enumerate(segment.invars) if owners.get(v, -1) == number)
        sizes = [size(variable.aval) for variable in segment.invars]
        bare = self._needs(number, Kind(), own)
        choices = []
        for kind, values in kept.items():
            need = self._needs(number, kind, own)
            inputs = sum(sizes[n] for n in own if values.inputs[n])
            others = values.others - (shared if kind == Kind() else 0)
            choices.append(
                Choice(*kind, inputs, others, need.peak_bytes + gradients, need.flops - bare.flops)
            )
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

    def _kinds(self, stage: PlacedStage) -> Tuple[Kind, ...]:
        return available_kinds(bool(self._loops_in(stage)), _POLICIES)

    def _loops_in(self, stage: PlacedStage) -> List[int]:
        return [loop for loop in self._loops if stage.start <= loop < stage.stop]

    # -- the stage that each value counts for

    def _owners(self, plain: List[Saved]) -> Dict[Any, int]:
        """Return for each value from a stage the stage that it counts for as an input."""
        found: Dict[Any, int] = {}
        for variable, readers in self._readers.items():
            if variable in self._maker:
                saving = (
                    number
                    for number in readers
                    if plain[number].inputs[self._segments[number].invars.index(variable)]
                )
                found[variable] = next(saving, readers[0])
        return found

    def _shared_bytes(self, kept: List[Dict[Kind, Saved]], owners: Mapping[Any, int]) -> List[int]:
        """Return for each stage the bytes of its outputs that both it and their reader save."""
        found = []
        for number, segment in enumerate(self._segments):
            total = 0
            for place, variable in enumerate(segment.outvars):
                reader = owners.get(variable)
                if reader is not None and kept[number][Kind()].outputs[place]:
                    where = self._segments[reader].invars.index(variable)
                    if kept[reader][Kind()].inputs[where]:
                        total += size(variable.aval)
            found.append(total)
        return found

    def _gradient_bytes(self) -> List[int]:
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

    def _saved(self, number: int, kind: Kind) -> Saved:
        key = "saved", self._signature(number), kind
        if key not in self._known:
            self._known[key] = saved(self._segment(number), kind)
        found: Saved = self._known[key]
        return found

    def _needs(self, number: int, kind: Kind, own: Tuple[int, ...]) -> Need:
        key = "needs", self._signature(number), kind, own
        if key not in self._known:
            self._known[key] = needs(self._segment(number), kind, own)
        found: Need = self._known[key]
        return found

    def _signature(self, number: int) -> Any:
        if number not in self._signatures:
            segment = self._segment(number)
            key = str(self._segments[number]), segment.inputs, segment.outputs
            self._signatures[number] = key
        return self._signatures[number]

    def _segment(self, number: int) -> Segment:
        stage, segment = self._stages[number], self._segments[number]

        def run(kind: Kind) -> Callable[..., Any]:
            if kind.kind == BODY:
                changed = self._flat.with_bodies(dict.fromkeys(self._loops_in(stage), kind.options))
                return evaluating(changed.segment(stage.start, stage.stop))
            function = evaluating(segment)
            return function if kind.kind == PLAIN else own_checkpoint(function, **kind.options)

        return Segment(
            run,
            tuple(shape_of(v.aval.shape, v.aval.dtype) for v in segment.invars),
            tuple(Role(v in self._maker, v in self._active) for v in segment.invars),
            tuple(Role(True, v in self._active) for v in segment.outvars),
        )


def _without_gaps(flat: Flat, heavy: Sequence[PlacedStage]) -> Iterator[PlacedStage]:
    """Yield heavy stages, and a light stage for all equations between two of them."""

    def light(stop: int) -> Iterator[PlacedStage]:
        if start < stop:
            yield PlacedStage(start, stop, "", "", 0, sum(flat.flops[start:stop]))

    start = 0
    for stage in heavy:
        yield from light(stage.start)
        yield stage
        start = stage.stop
    yield from light(len(flat.jaxpr.eqns))


def _active(flat: Flat) -> Set[Any]:
    """Return the variables between the differentiated arguments and the loss."""
    jaxpr = flat.jaxpr
    reached = set(filter(_is_inexact, (jaxpr.invars[place] for place in flat.arguments)))
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
