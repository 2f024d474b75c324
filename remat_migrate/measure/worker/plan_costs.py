"""What a planner must know of a chain: what each stage keeps, needs and costs with and without a
checkpoint. Stages that are equal are traced once.

An array that several stages read is kept once: it counts for the first stage that keeps it without
a checkpoint, or for the first that reads it. The gradient of an argument is there from the backward
pass of the last stage that reads it until the end.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Set, Tuple

import jax
import jax.numpy as jnp
import numpy as np

from .entry import NONE, Entry, Unfit, shape_of
from .instruments.flops import flops
from .instruments.liveness import peak, size
from .interception import own_checkpoint
from .internals import internals
from .stage_costs import BODY, PLAIN, Keeps, Kind, Needs, Role, Segment, keeps, needs, selectable
from .stages import Chain, Flat, Stage, evaluating

# The policies that need no names. With the first the dearest operations are kept, and the rest,
# which is cheap and large, is computed again.
_POLICIES = ("dots_with_no_batch_dims_saveable", "dots_saveable")


class Choice(NamedTuple):
    """One thing that can be done with a stage.

    Attributes:
        kind: which.
        policy: the policy of its checkpoint.
        inputs: bytes that it keeps of what other stages made, those that are counted here.
        others: bytes that it keeps besides.
        peak: the most bytes that are live while it runs, gradients of later stages included.
        flops: operations more than without a checkpoint.
    """

    kind: str
    policy: Optional[str]
    inputs: int
    others: int
    peak: int
    flops: int


class Link(NamedTuple):
    """A stage as a link of a chain.

    Attributes:
        start: its first operation.
        stop: the first one after it.
        line: the line of source, 0 where several or none belong to it.
        heavy: whether it is worth a checkpoint of its own.
        inputs: what other stages made that it keeps under a checkpoint: by which, and bytes.
        cotangent: bytes of the cotangents that its backward pass is given.
        flops: operations of its forward pass.
        choices: what can be done with it, nothing first.
    """

    start: int
    stop: int
    line: int
    heavy: bool
    inputs: Tuple[Tuple[int, int], ...]
    cotangent: int
    flops: int
    choices: Tuple[Choice, ...]


class Traced(NamedTuple):
    """A gradient computation.

    Attributes:
        peak_bytes: the peak of live bytes besides arguments.
        flops: its operations.
    """

    peak_bytes: int
    flops: int


def chains(flat: Flat) -> List[Chain]:
    """The chains of a function, the outermost first; of those with the same stages that one alone.

    A function whose only heavy stage is a loop over layers is one as well.
    """
    found: Dict[Any, Chain] = {}
    loops = set(flat.scans())
    for chain in sorted(flat.chains(least=1), key=lambda chain: _depth(flat, chain)):
        runs = tuple((stage.start, stage.stop) for stage in chain.heavy)
        if len(runs) > 1 or any(start <= loop < stop for start, stop in runs for loop in loops):
            found.setdefault(runs, chain)
    return list(found.values())


def _depth(flat: Flat, chain: Chain) -> Tuple[int, str, str]:
    """How many calls lie around a function; a name for those that are equal in that."""
    functions = [frame[:2] for frame in reversed(flat.frames[chain.heavy[0].start])]
    return functions.index((chain.path, chain.function)), chain.path, chain.function


def links(entry: Entry, flat: Flat, chain: Chain) -> List[Link]:
    """The stages of a chain with what they keep, need and cost.

    Raises:
        Exception: whatever tracing a stage raises.
    """
    return _Links(entry, flat, chain).links()


def trace(entry: Entry, flat: Flat, runs: Mapping[Tuple[int, int], Kind]) -> Traced:
    """The gradient computation with checkpoints on some runs of operations."""
    wrapped, bodies = {}, {}
    loops = set(flat.scans())
    for (start, stop), kind in runs.items():
        if kind.kind == BODY:
            bodies.update({n: kind.options for n in loops if start <= n < stop})
        elif kind.kind != PLAIN:
            wrapped[start, stop] = kind.options
    program = entry.gradient_of(flat.with_bodies(bodies).staged(wrapped))
    traced = jax.make_jaxpr(program)(*entry.shapes)
    jaxpr = internals().dead_code_removed(traced) if entry.how.jit else internals().opened(traced)
    return Traced(peak(jaxpr), flops(jaxpr))


def check(entry: Entry) -> None:
    """Insist that there is something to plan.

    Raises:
        Unfit: the function takes gradients itself.
    """
    if entry.how.by == NONE:
        raise Unfit("it takes gradients itself (--grad none): name the loss to plan checkpoints")


class _Links:
    """The stages of one chain; `self._stages` has light ones that follow each other as one."""

    def __init__(self, entry: Entry, flat: Flat, chain: Chain) -> None:
        self._flat = flat
        self._heavy = {stage.start for stage in chain.heavy}
        self._stages = list(_joined(chain, self._heavy))
        self._loops = set(flat.scans())
        self._segments = [flat.segment(stage.start, stage.stop) for stage in self._stages]
        self._maker: Dict[Any, int] = {}
        for number, segment in enumerate(self._segments):
            self._maker.update(dict.fromkeys(segment.outvars, number))
        self._readers: Dict[Any, List[int]] = {}
        for number, segment in enumerate(self._segments):
            for variable in segment.invars:
                self._readers.setdefault(variable, []).append(number)
        self._active = _active(flat, entry)
        self._known: Dict[Any, Any] = {}

    def links(self) -> List[Link]:
        kept = [
            {kind: self._keeps(number, kind) for kind in self._kinds(number)}
            for number in range(len(self._stages))
        ]
        owners = self._owners([by_kind[Kind()] for by_kind in kept])
        held = self._held_on_both_sides(kept, owners)
        above = self._above()
        return [
            self._link(number, kept[number], owners, held[number], above[number])
            for number in range(len(self._stages))
        ]

    def _link(
        self,
        number: int,
        kept: Mapping[Kind, Keeps],
        owners: Mapping[Any, int],
        held: int,
        above: int,
    ) -> Link:
        stage, segment = self._stages[number], self._segments[number]
        own = tuple(place for place, v in enumerate(segment.invars) if owners.get(v, -1) == number)
        bare = self._needs(number, Kind(), own)
        choices = []
        for kind, keeping in kept.items():
            need = self._needs(number, kind, own)
            inputs = sum(size(segment.invars[n].aval) for n in own if keeping.inputs[n])
            others = keeping.others - (held if kind == Kind() else 0)
            choices.append(
                Choice(*kind, inputs, others, need.peak + above, need.flops - bare.flops)
            )
        makers = tuple((self._maker[segment.invars[n]], size(segment.invars[n].aval)) for n in own)
        cotangent = sum(size(v.aval) for v in segment.outvars if v in self._active)
        heavy = stage.start in self._heavy
        return Link(
            stage.start, stage.stop, stage.line, heavy, makers, cotangent, stage.flops,
            tuple(choices),
        )  # fmt: skip

    def _kinds(self, number: int) -> Tuple[Kind, ...]:
        stage = self._stages[number]
        scan = any(stage.start <= loop < stage.stop for loop in self._loops)
        return selectable(scan, _POLICIES)

    # -- which stage counts what

    def _owners(self, plain: List[Keeps]) -> Dict[Any, int]:
        """For what a stage makes the one that counts it among its inputs."""
        found: Dict[Any, int] = {}
        for variable, readers in self._readers.items():
            if variable in self._maker:
                keeping = (
                    number
                    for number in readers
                    if plain[number].inputs[self._segments[number].invars.index(variable)]
                )
                found[variable] = next(keeping, readers[0])
        return found

    def _held_on_both_sides(
        self, kept: List[Dict[Kind, Keeps]], owners: Mapping[Any, int]
    ) -> List[int]:
        """For each stage the bytes of its outputs that it keeps as well as the one after it."""
        held = []
        for number, segment in enumerate(self._segments):
            total = 0
            for place, variable in enumerate(segment.outvars):
                reader = owners.get(variable)
                if reader is not None and kept[number][Kind()].outputs[place]:
                    where = self._segments[reader].invars.index(variable)
                    if kept[reader][Kind()].inputs[where]:
                        total += size(variable.aval)
            held.append(total)
        return held

    def _above(self) -> List[int]:
        """Bytes that are there while each stage runs backward: gradients of arguments, of which
        later stages have made all, and cotangents that are on their way to an earlier one."""
        found = [0] * len(self._stages)
        for variable, readers in self._readers.items():
            if variable in self._active:
                first = self._maker.get(variable, -1)
                for number in range(first + 1, readers[-1]):
                    found[number] += size(variable.aval)
        return found

    # -- traces, of equal stages once

    def _keeps(self, number: int, kind: Kind) -> Keeps:
        key = "keeps", self._signature(number), kind
        if key not in self._known:
            self._known[key] = keeps(self._segment(number), kind)
        keeping: Keeps = self._known[key]
        return keeping

    def _needs(self, number: int, kind: Kind, own: Tuple[int, ...]) -> Needs:
        key = "needs", self._signature(number), kind, own
        if key not in self._known:
            self._known[key] = needs(self._segment(number), kind, own)
        needed: Needs = self._known[key]
        return needed

    def _signature(self, number: int) -> Any:
        if ("signature", number) not in self._known:
            segment = self._segment(number)
            key = str(self._segments[number]), segment.inputs, segment.outputs
            self._known["signature", number] = key
        return self._known["signature", number]

    def _segment(self, number: int) -> Segment:
        stage, segment = self._stages[number], self._segments[number]

        def run(kind: Kind) -> Callable[..., Any]:
            if kind.kind == BODY:
                inside = [n for n in self._loops if stage.start <= n < stage.stop]
                changed = self._flat.with_bodies(dict.fromkeys(inside, kind.options))
                return evaluating(changed.segment(stage.start, stage.stop))
            function = evaluating(segment)
            return function if kind.kind == PLAIN else own_checkpoint(function, **kind.options)

        return Segment(
            run,
            tuple(shape_of(v.aval.shape, v.aval.dtype) for v in segment.invars),
            tuple(Role(v in self._maker, v in self._active) for v in segment.invars),
            tuple(Role(True, v in self._active) for v in segment.outvars),
        )


def _joined(chain: Chain, heavy: Set[int]) -> Iterator[Stage]:
    """The stages of a chain; light ones that follow each other become one."""
    light: List[Stage] = []
    for stage in (*chain.stages, None):
        if stage is not None and stage.start not in heavy:
            light.append(stage)
            continue
        if light:
            lines = {one.line for one in light}
            line = lines.pop() if len(lines) == 1 else 0
            yield Stage(light[0].start, light[-1].stop, line, sum(one.flops for one in light))
            light = []
        if stage is not None:
            yield stage


def _active(flat: Flat, entry: Entry) -> Set[Any]:
    """The variables that the gradient goes through: from what is differentiated to the loss."""
    jaxpr = flat.jaxpr
    reached = {jaxpr.invars[place] for place in entry.differentiated_leaves()}
    for equation in jaxpr.eqns:
        if any(not internals().is_literal(atom) and atom in reached for atom in equation.invars):
            reached.update(filter(_is_inexact, equation.outvars))
    needed = {atom for atom in jaxpr.outvars[:1] if not internals().is_literal(atom)}
    for equation in reversed(jaxpr.eqns):
        if any(variable in needed for variable in equation.outvars):
            needed.update(a for a in equation.invars if not internals().is_literal(a))
    return reached & needed


def _is_inexact(variable: Any) -> bool:
    dtype = getattr(variable.aval, "dtype", None)
    return dtype is not None and bool(jnp.issubdtype(dtype, np.inexact))
