"""Find the stages of a function by the source lines of its operations.

A function that runs `x = block(p, x)` in a loop, or calls one part after the other, is a chain. The
body of each user function that most operations come from is cut where the line changes, and a line
in a loop by the smallest exact period of its operations. Evaluating the jaxpr in pieces puts any
run of stages under a checkpoint, with the same effect as editing the source.

A model may run an encoder, a decoder and a head, each a function with stages of its own, and each
stage may run a function with smaller stages. Every function that is a chain starts a combination.
It is completed by the lines of other functions that run elsewhere, those at a similar depth first.
"""

from __future__ import annotations

import copy
import functools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import (
    Any,
    NamedTuple,
)

import jax

from .differentiation import TracedLoss
from .entry import shape_of
from .inlining import Frames, inlined
from .instruments.flops import flops_of_equation
from .interception import not_intercepting, own_checkpoint
from .internals import internals
from .kinds import Kind
from .named_values import NamedValues
from .records import BODY
from .schedules import sizes_of
from .segments import scan_in_segments

# Stages with a smaller share of the operations of the largest stage are light.
HEAVY = 0.02
# Share of all operations that must come from a function for its lines to be stages.
_SHARE = 0.03
# Share of the operations of the largest combination that others must cover.
_COVERED = 0.6
_ADDRESS = re.compile(r"0x[0-9a-f]+")
# Shorter periods are not iterations of a loop over layers.
_SHORTEST_PERIOD = 2


class Stage(NamedTuple):
    """Equations `start` to `stop`, and the line of a function that runs them; a light one has none.

    The heavy stages of one function are a chain.
    """

    start: int
    stop: int
    path: str
    function: str
    line: int
    flops: int

    @property
    def is_heavy(self) -> bool:
        """Whether it is worth a checkpoint of its own."""
        return bool(self.line)


class Flat:
    """The jaxpr of a loss without checkpoints, with calls of jitted functions inlined.

    Attributes:
        jaxpr: open jaxpr, whose first arguments are the constants.
        constants: values of the constants.
        arguments: indices of the other arguments that it is differentiated by.
        outputs: number of outputs that are differentiated; auxiliary data follows them.
        values: the values that are named, by name.
    """

    def __init__(self, loss: TracedLoss) -> None:
        """Inline the calls of jitted functions in a traced loss, and name values."""
        closed, self.arguments, self.outputs = loss
        jaxpr, self.constants, self._frames_of = inlined(closed)
        named = NamedValues(self._frames_of)
        self.jaxpr = jaxpr.replace(eqns=named.added(jaxpr.eqns))
        self.values = named.found
        # The last equation that reads each variable.
        self._last: dict[Any, int] = {}
        for number, equation in enumerate(self.jaxpr.eqns):
            self._last.update(dict.fromkeys(_variables(equation.invars), number))
        self._last.update(dict.fromkeys(_variables(self.jaxpr.outvars), len(self.jaxpr.eqns)))
        # With the segment, which keeps its `id`.
        self._signatures: dict[int, tuple[Any, str]] = {}
        self._functions: dict[str, Callable[..., Any]] = {}
        self._runners: dict[Any, Callable[..., Any]] = {}
        # Scans with checkpoints on their bodies or segments.
        self._loops: dict[Any, Any] = {}
        self._cuts: tuple[int, ...] = ()

    @functools.cached_property
    def frames(self) -> list[Frames]:
        """The user frames (path, function, line) of each equation, the innermost first."""
        return [self._frames_of(equation) for equation in self.jaxpr.eqns]

    @functools.cached_property
    def flops(self) -> list[int]:
        """The operations of each equation."""
        known: dict[int, int] = {}
        return [flops_of_equation(equation, known) for equation in self.jaxpr.eqns]

    @property
    def key(self) -> Any:
        """The same for the same function on the same shapes, traced again."""
        shapes = tuple(str(variable.aval) for variable in self.jaxpr.invars)
        return shapes, tuple(equation.primitive.name for equation in self.jaxpr.eqns)

    def chains(self) -> Iterator[tuple[Stage, ...]]:
        """Yield the heavy stages of each function that is a chain, in order."""
        total = sum(self.flops)
        shares: dict[tuple[str, str], int] = {}
        for frames, cost in zip(self.frames, self.flops):
            for key in {(path, function) for path, function, _ in frames}:
                shares[key] = shares.get(key, 0) + cost
        for function, cost in shares.items():
            if cost >= _SHARE * total:
                # Stages without a line come from other functions.
                own = [stage for stage in self._cut(function) if stage.line]
                largest = max((stage.flops for stage in own), default=0)
                if heavy := tuple(stage for stage in own if stage.flops > HEAVY * largest):
                    yield heavy

    def _cut(self, function: tuple[str, str]) -> Iterator[Stage]:
        """Cut the body of a function where the line changes."""
        lines, callees = [], []
        for frames in self.frames:
            # The outermost call, if the function is recursive.
            own = (n for n in reversed(range(len(frames))) if frames[n][:2] == function)
            place = next(own, None)
            lines.append(0 if place is None else frames[place][2])
            callees.append(frames[place - 1] if place else None)
        start = 0
        for stop in range(1, len(lines) + 1):
            if stop == len(lines) or lines[stop] != lines[start]:
                at = *function, lines[start]
                yield from self._iterations(start, at, callees[start:stop])
                start = stop

    def _iterations(
        self, start: int, place: tuple[str, str, int], callees: Sequence[Any]
    ) -> Iterator[Stage]:
        """Cut the equations of a line into iterations of a loop, given which line each calls."""
        line, stop = place[2], start + len(callees)
        signatures = [self._signature(number) for number in range(start, stop)] if line else []
        # Layers of different sizes have the same primitives on the same lines.
        step = _period(signatures) or _period([one[:2] for one in signatures])
        places = range(0, len(callees), step) if step else _restarts(callees) if line else (0,)
        for first, last in zip(places, (*places[1:], len(callees))):
            flops = sum(self.flops[start + first : start + last])
            yield Stage(start + first, start + last, *place, flops)

    def _signature(self, number: int) -> tuple[Any, ...]:
        equation = self.jaxpr.eqns[number]
        shapes = tuple(getattr(v.aval, "shape", None) for v in equation.outvars)
        return equation.primitive.name, self.frames[number], shapes

    def staged(self, kinds: Mapping[tuple[int, int], Kind]) -> Callable[..., Any]:
        """Return the function with checkpoints on some runs of equations.

        Args:
            kinds: kind of the checkpoint, by start and stop of the run.
        """
        scans = list(self.scans())
        on_loops = [(run, kind) for run, kind in kinds.items() if kind.is_on_loop]
        flat = self.with_loops({n: k for run, k in on_loops for n in scans if n in range(*run)})
        runs: list[tuple[int, int, Mapping[str, Any] | None]] = []
        position = 0
        for (start, stop), kind in sorted(kinds.items()):
            if not kind.is_on_loop:
                runs += ((first, last, None) for first, last in self._pieces(position, start))
                runs.append((start, stop, kind.options))
                position = stop
        runs += ((first, last, None) for first, last in self._pieces(position, None))
        segments = [(flat.segment(start, stop), options) for start, stop, options in runs]

        def function(*flat: Any) -> Any:
            values = dict(zip(self.jaxpr.invars, (*self.constants, *flat)))
            for segment, options in segments:
                outputs = self.runner(segment, options)(
                    *(values[variable] for variable in segment.invars)
                )
                values.update(zip(segment.outvars, outputs))
            return [
                result.val if internals().is_literal(result) else values[result]
                for result in self.jaxpr.outvars
            ]

        return function

    def cut(self, stages: Sequence[tuple[int, int]]) -> None:
        """Evaluate equations outside checkpoints by stage, so that equal stages are traced once."""
        self._cuts = tuple(sorted({end for stage in stages for end in stage}))

    def _pieces(self, start: int, stop: int | None) -> Iterator[tuple[int, int]]:
        stop = len(self.jaxpr.eqns) if stop is None else stop
        ends = [start, *(cut for cut in self._cuts if start < cut < stop), stop]
        return ((first, last) for first, last in zip(ends, ends[1:]) if first < last)

    def scans(self) -> Iterator[int]:
        """Yield the indices of the equations that are loops over layers."""
        least = HEAVY * sum(self.flops)
        for number, equation in enumerate(self.jaxpr.eqns):
            if equation.primitive.name == "scan" and self.flops[number] > least:
                if internals().inner(equation)[2] > 1:
                    yield number

    def with_loops(self, chosen: Mapping[int, Kind]) -> Flat:
        """Return a copy with checkpoints on the bodies or segments of some scans.

        Args:
            chosen: kind of the checkpoints, by the index of the scan.
        """
        equations = list(self.jaxpr.eqns)
        for number, kind in chosen.items():
            if (number, kind) not in self._loops:
                self._loops[number, kind] = _checkpointed_loop(equations[number], kind)
            equations[number] = self._loops[number, kind]
        changed = copy.copy(self)
        changed.jaxpr = self.jaxpr.replace(eqns=equations)
        return changed

    def signature(self, segment: Any) -> str:
        """Return a text that equal segments share, whatever addresses their functions have."""
        if id(segment) not in self._signatures:
            self._signatures[id(segment)] = segment, _ADDRESS.sub("", str(segment))
        return self._signatures[id(segment)][1]

    def function(self, segment: Any) -> Callable[..., Any]:
        """Return a function that evaluates a segment; equal ones share it, and are traced once."""
        return self._functions.setdefault(self.signature(segment), evaluating(segment))

    def runner(self, segment: Any, options: Mapping[str, Any] | None) -> Callable[..., Any]:
        """Return a function that evaluates a segment, under a checkpoint if options are given."""
        function = self.function(segment)
        key = id(function), None if options is None else _key(options)
        if key not in self._runners:
            made = jax.jit(function) if options is None else own_checkpoint(function, **options)
            self._runners[key] = made
        return self._runners[key]

    def segment(self, start: int, stop: int) -> Any:
        """Return a run of equations as a jaxpr, whose outputs are the values used afterwards."""
        equations = self.jaxpr.eqns[start:stop]
        made = [variable for equation in equations for variable in equation.outvars]
        read = [atom for equation in equations for atom in equation.invars]
        inputs = dict.fromkeys(_variables(read))
        for variable in made:
            inputs.pop(variable, None)
        outputs = [variable for variable in made if self._last.get(variable, -1) >= stop]
        return internals().segment(self.jaxpr, list(inputs), outputs, equations)


def _key(options: Mapping[str, Any]) -> tuple[tuple[str, int], ...]:
    return tuple((name, id(value)) for name, value in options.items())


def _variables(atoms: Sequence[Any]) -> Iterator[Any]:
    return (atom for atom in atoms if not internals().is_literal(atom))


def _checkpointed_loop(equation: Any, kind: Kind) -> Any:
    """Return a scan with checkpoints on its body or on segments, as a call."""
    params = equation.params
    body, (first, carried) = params["jaxpr"], internals().scan_operands(params)
    last = first + carried
    sizes = sizes_of(kind.kind)

    def run(*inputs: Any) -> Any:
        def step(carry: Sequence[Any], x: Sequence[Any]) -> tuple[list[Any], list[Any]]:
            values = (*inputs[:first], *carry, *x)
            outputs = internals().evaluate(internals().opened(body), body.consts, values)
            return outputs[:carried], outputs[carried:]

        if kind.kind == BODY or 1 in sizes:
            # In a loop, it needs no barriers.
            step = own_checkpoint(step, prevent_cse=False, **kind.options)
        carry, ys = scan_in_segments(  # type: ignore[no-untyped-call]
            step,
            list(inputs[first:last]),
            list(inputs[last:]),
            params["length"],
            params["reverse"],
            params["unroll"],
            sizes=tuple(size for size in sizes if size > 1),
        )
        return [*carry, *ys]

    with not_intercepting():
        traced = jax.make_jaxpr(jax.jit(run))(*shapes_of(equation.invars))
    [call] = internals().opened(traced).eqns
    return equation.replace(primitive=call.primitive, params=call.params, effects=call.effects)


def shapes_of(variables: Sequence[Any]) -> list[Any]:
    """Return the abstract values of variables."""
    return [shape_of(variable.aval.shape, variable.aval.dtype) for variable in variables]


def evaluating(segment: Any) -> Callable[..., Any]:
    """Return a function that evaluates an open jaxpr."""

    def run(*inputs: Any) -> Any:
        return internals().evaluate(segment, (), inputs)

    return run


def _period(signatures: Sequence[Any]) -> int:
    """Return the smallest period of a run of equations that divides its length, or 0."""
    numbers: dict[Any, int] = {}
    text = "".join(chr(numbers.setdefault(one, len(numbers))) for one in signatures)
    period = (text + text).find(text, 1)
    return period if _SHORTEST_PERIOD <= period < len(text) else 0


def _restarts(callees: Sequence[Any]) -> Sequence[int]:
    """Return where a line starts over, given the line of a function that each equation calls.

    The iterations of a loop may differ, as the blocks of a convolutional network do where the
    resolution changes. They start on the same line of the function, and end on the same line.
    """
    first, last = callees[0], callees[-1]
    places = [
        n for n, one in enumerate(callees) if one == first and (not n or callees[n - 1] != first)
    ]
    ends = (callees[place - 1] for place in places[1:])
    return places if first != last and all(end == last for end in ends) else (0,)


def combinations(flat: Flat) -> list[tuple[Stage, ...]]:
    """Return the heavy stages of each combination, in order; the outermost combination first."""
    by_depth = sorted((_depth(flat, chain), chain) for chain in flat.chains())
    loops = list(flat.scans())

    def has_loop(stages: Sequence[Stage]) -> bool:
        return any(one.start <= number < one.stop for one in stages for number in loops)

    found: dict[tuple[tuple[int, int], ...], tuple[Stage, ...]] = {}
    for (depth, *_), first in by_depth:
        if len(first) == 1 and not has_loop(first):
            continue
        near = sorted(by_depth, key=lambda other: abs(other[0][0] - depth))
        stages = _combined(first, [chain for _, chain in near])
        runs = tuple((stage.start, stage.stop) for stage in stages)
        # The innermost function that runs a loop over layers shows its body.
        if runs not in found or has_loop(stages):
            found[runs] = stages
    covered = [sum(stage.flops for stage in stages) for stages in found.values()]
    least = _COVERED * max(covered, default=0)
    return [stages for stages, flops in zip(found.values(), covered) if flops >= least]


def _combined(first: Sequence[Stage], others: Sequence[Sequence[Stage]]) -> tuple[Stage, ...]:
    """Return the stages of a chain, and all lines of others that do not overlap with them."""
    least = HEAVY * max(stage.flops for stage in first)
    chosen: list[Stage] = []
    for chain in (first, *others):
        for line in sorted({stage.line for stage in chain}):
            own = [stage for stage in chain if stage.line == line and stage.flops > least]
            if not any(_overlap(one, other) for one in own for other in chosen):
                chosen += own
    return tuple(sorted(chosen))


def _overlap(one: Stage, other: Stage) -> bool:
    return one.start < other.stop and other.start < one.stop


def _depth(flat: Flat, chain: Sequence[Stage]) -> tuple[int, str, str]:
    """Return the call depth of a chain's function, with its name to break ties."""
    functions = [frame[:2] for frame in reversed(flat.frames[chain[0].start])]
    return functions.index(chain[0][2:4]), *chain[0][2:4]
