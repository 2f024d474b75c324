"""The stages of a function, found in the lines that its operations come from.

A function that does `x = block(p, x)` in a loop, or calls one part after the other, is a chain. For
each user function on the stack of most operations its body is cut where the line changes; a line
that a loop runs many times is cut by the smallest exact period. Any run of stages can be put under
a checkpoint by evaluating the jaxpr in pieces, which is what moving it in the source would do.
"""

from __future__ import annotations

import copy
from typing import (
    Any,
    Callable,
    Dict,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Set,
    Tuple,
)

import jax

from . import interception
from .entry import Entry, shape_of
from .instruments.flops import of_equation
from .interception import LEAVE_OUT, is_library, own_checkpoint
from .internals import internals

# Of the operations of the largest stage: less than this is glue between stages.
_HEAVY = 0.02
# Of the operations of a function: what must come from below a line of another one for it to be
# where the chain is.
_SHARE = 0.6
# A line whose operations repeat after fewer equations than this is no loop over layers.
_SHORTEST_PERIOD = 2


class Stage(NamedTuple):
    """A run of equations, `start` to `stop`, that come from a line."""

    start: int
    stop: int
    line: int
    flops: int


class Chain(NamedTuple):
    """The stages of a function.

    Attributes:
        path: the file.
        function: the function whose lines the stages are.
        stages: all of them in order, without gaps.
        heavy: those worth a checkpoint.
    """

    path: str
    function: str
    stages: Tuple[Stage, ...]
    heavy: Tuple[Stage, ...]

    @property
    def lines(self) -> Tuple[int, ...]:
        """The lines of the heavy stages."""
        return tuple(sorted({stage.line for stage in self.heavy}))


class Flat:
    """A function without checkpoints, its operations one after the other, and their lines.

    Attributes:
        jaxpr: open; calls of jitted functions are dissolved.
        constants: the values of its constants.
        frames: for each equation its lines as (path, function, line), the innermost first.
    """

    def __init__(self, entry: Entry) -> None:
        with interception.plan({}, default=LEAVE_OUT):
            closed = jax.make_jaxpr(entry.forward)(*entry.shapes)
            if any(map(internals().is_inlined_call, internals().opened(closed).eqns)):
                closed = jax.make_jaxpr(_dissolved(closed))(*entry.shapes)
        self.jaxpr = internals().opened(closed)
        self.constants = tuple(closed.consts)
        self.frames = [
            # A stage is a line that the user can edit.
            tuple(frame for frame in internals().places(equation) if not is_library(frame[0]))
            for equation in self.jaxpr.eqns
        ]
        self._runners: Dict[Any, Callable[..., Any]] = {}
        known: Dict[int, int] = {}
        self.flops = [of_equation(equation, known) for equation in self.jaxpr.eqns]

    def chains(self, least: int = 2) -> Iterator[Chain]:
        """The functions that are chains of at least two stages, or of so many."""
        total = sum(self.flops)
        shares: Dict[Tuple[str, str], int] = {}
        for frames, cost in zip(self.frames, self.flops):
            for key in {(path, function) for path, function, _ in frames}:
                shares[key] = shares.get(key, 0) + cost
        for (path, function), share in shares.items():
            if share >= _SHARE * total:
                stages = tuple(self._cut(path, function))
                # What comes from no line of the function is not its own.
                own = tuple(stage for stage in stages if stage.line)
                largest = max((stage.flops for stage in own), default=0)
                heavy = tuple(stage for stage in own if stage.flops > _HEAVY * largest)
                if len(heavy) >= least:
                    yield Chain(path, function, stages, heavy)

    def _cut(self, path: str, function: str) -> Iterator[Stage]:
        """The body of a function, cut where the line changes."""
        lines = [
            # The outermost call of a function that calls itself.
            next((n for p, f, n in reversed(frames) if (p, f) == (path, function)), 0)
            for frames in self.frames
        ]
        start = 0
        for stop in range(1, len(lines) + 1):
            if stop == len(lines) or lines[stop] != lines[start]:
                yield from self._periods(start, stop, lines[start])
                start = stop

    def _periods(self, start: int, stop: int, line: int) -> Iterator[Stage]:
        """A run of a line, cut where a loop has run it once more."""
        signatures = [self._signature(number) for number in range(start, stop)] if line else []
        # A loop over layers that differ in their sizes does the same things each time.
        step = _period(signatures) or _period([one[:2] for one in signatures]) or stop - start
        for first in range(start, stop, step):
            last = first + step
            yield Stage(first, last, line, sum(self.flops[first:last]))

    def _signature(self, number: int) -> Tuple[Any, ...]:
        equation = self.jaxpr.eqns[number]
        shapes = tuple(getattr(v.aval, "shape", None) for v in equation.outvars)
        return equation.primitive.name, self.frames[number], shapes

    def staged(self, wrapped: Mapping[Tuple[int, int], Mapping[str, Any]]) -> Callable[..., Any]:
        """The function with some runs of equations under checkpoints.

        Args:
            wrapped: from the start and stop of each run to the options of its checkpoint.
        """
        cuts = sorted(wrapped)
        runs: List[Tuple[int, int, Optional[Mapping[str, Any]]]] = []
        position = 0
        for start, stop in cuts:
            if position < start:
                runs.append((position, start, None))
            runs.append((start, stop, wrapped[start, stop]))
            position = stop
        if position < len(self.jaxpr.eqns):
            runs.append((position, len(self.jaxpr.eqns), None))
        segments = [(self.segment(start, stop), options) for start, stop, options in runs]

        def function(*flat: Any) -> Any:
            values = dict(zip(self.jaxpr.constvars, self.constants))
            values.update(zip(self.jaxpr.invars, flat))
            for segment, options in segments:
                outputs = self._runner(segment, options)(
                    *(values[variable] for variable in segment.invars)
                )
                values.update(zip(segment.outvars, outputs))
            return [
                result.val if internals().is_literal(result) else values[result]
                for result in self.jaxpr.outvars
            ]

        return function

    def scans(self) -> Iterator[int]:
        """The loops over layers at the top: their places among the equations."""
        least = _HEAVY * sum(self.flops)
        for number, equation in enumerate(self.jaxpr.eqns):
            if equation.primitive.name == "scan" and self.flops[number] > least:
                if internals().inner(equation)[2] > 1:
                    yield number

    def scanned(self, chosen: Sequence[int], options: Mapping[str, Any]) -> Callable[..., Any]:
        """The function with the bodies of some loops under checkpoints."""
        equations = list(self.jaxpr.eqns)
        for number in chosen:
            equations[number] = _with_body_checkpointed(equations[number], options)
        changed = internals().segment(
            self.jaxpr,
            [*self.jaxpr.constvars, *self.jaxpr.invars],
            self.jaxpr.outvars,
            equations,
        )

        def function(*flat: Any) -> Any:
            return internals().evaluate(changed, (), (*self.constants, *flat))

        return function

    def with_bodies(self, chosen: Mapping[int, Mapping[str, Any]]) -> Flat:
        """The same with the bodies of some loops under checkpoints.

        Args:
            chosen: from the place of each loop to the options of its checkpoint.
        """
        equations = list(self.jaxpr.eqns)
        for number, options in chosen.items():
            equations[number] = _with_body_checkpointed(equations[number], options)
        changed = copy.copy(self)
        changed.jaxpr = self.jaxpr.replace(eqns=equations)
        return changed

    def _runner(self, segment: Any, options: Optional[Mapping[str, Any]]) -> Callable[..., Any]:
        """What evaluates a segment, under a checkpoint if there are options for one."""
        if options is None:
            return evaluating(segment)
        # Blocks that are equal get the same function, which JAX traces once.
        key = str(segment), tuple(sorted((name, id(value)) for name, value in options.items()))
        if key not in self._runners:
            self._runners[key] = own_checkpoint(evaluating(segment), **options)
        return self._runners[key]

    def segment(self, start: int, stop: int) -> Any:
        """A run of equations as a jaxpr: of what it reads, what is used after it."""
        equations = self.jaxpr.eqns[start:stop]
        made = {variable for equation in equations for variable in equation.outvars}
        read = dict.fromkeys(
            atom
            for equation in equations
            for atom in equation.invars
            if not internals().is_literal(atom) and atom not in made
        )
        wanted = self._read_after(stop)
        given = [
            variable
            for equation in equations
            for variable in equation.outvars
            if variable in wanted
        ]
        return internals().segment(self.jaxpr, list(read), given, equations)

    def _read_after(self, stop: int) -> Set[Any]:
        return {
            atom
            for equation in self.jaxpr.eqns[stop:]
            for atom in equation.invars
            if not internals().is_literal(atom)
        } | {atom for atom in self.jaxpr.outvars if not internals().is_literal(atom)}


def _with_body_checkpointed(equation: Any, options: Mapping[str, Any]) -> Any:
    """A scan whose body is under a checkpoint; in a loop nothing can be merged across it."""
    body = equation.params["jaxpr"]
    shapes = [
        shape_of(variable.aval.shape, variable.aval.dtype)
        for variable in internals().opened(body).invars
    ]
    checkpointed = own_checkpoint(
        lambda *inputs: internals().evaluate(internals().opened(body), body.consts, inputs),
        prevent_cse=False,
        **options,
    )
    return equation.replace(
        params=dict(equation.params, jaxpr=jax.make_jaxpr(checkpointed)(*shapes))
    )


def evaluating(segment: Any) -> Callable[..., Any]:
    """What gives the outputs of an open jaxpr."""

    def run(*inputs: Any) -> Any:
        return internals().evaluate(segment, (), inputs)

    return run


def _dissolved(closed: Any) -> Callable[..., Any]:
    """The same computation, with the bodies of jitted functions in the place of their calls.

    What such a function computes comes from the line that calls it: JAX traces it once, and knows
    at most the first of its callers.
    """

    def run(jaxpr: Any, constants: Sequence[Any], inputs: Sequence[Any], source: Any) -> List[Any]:
        opened = internals().opened(jaxpr)
        values = dict(zip(opened.constvars, constants))
        values.update(zip(opened.invars, inputs))

        def read(atom: Any) -> Any:
            return atom.val if internals().is_literal(atom) else values[atom]

        for equation in opened.eqns:
            origin = equation.source_info if source is None else source
            if internals().is_inlined_call(equation):
                _, (inner,), _ = internals().inner(equation)
                given = [read(atom) for atom in equation.invars]
                outputs = run(inner, getattr(inner, "consts", ()), given, origin)
            else:
                outputs = _evaluated(opened, equation.replace(source_info=origin), values)
            values.update(zip(equation.outvars, outputs))
        return [read(atom) for atom in opened.outvars]

    def program(*flat: Any) -> Any:
        return run(closed, closed.consts, flat, None)

    return program


def _evaluated(jaxpr: Any, equation: Any, values: Mapping[Any, Any]) -> List[Any]:
    """What one equation of a jaxpr gives."""
    read = dict.fromkeys(a for a in equation.invars if not internals().is_literal(a))
    alone = internals().segment(jaxpr, list(read), equation.outvars, [equation])
    return internals().evaluate(alone, (), [values[variable] for variable in read])


def _period(signatures: Sequence[Any]) -> int:
    """The smallest number of equations after which a run repeats itself; 0 if it does not."""
    count = len(signatures)
    if count < 2 * _SHORTEST_PERIOD:
        return 0
    # The failure function of Knuth, Morris and Pratt: linear in the length.
    borders = [0] * count
    matched = 0
    for number in range(1, count):
        while matched and signatures[number] != signatures[matched]:
            matched = borders[matched - 1]
        if signatures[number] == signatures[matched]:
            matched += 1
        borders[number] = matched
    period = count - borders[-1]
    return period if _SHORTEST_PERIOD <= period < count and count % period == 0 else 0
