"""The peak of live bytes while a jaxpr runs in the order of its equations.

Arguments are there throughout and not counted; outputs are, until the end. What only looks at an
array in another way (a reshape, a transpose) shares its bytes. A loop needs what its body needs at
its peak besides what it gives; a checkpoint that is computed again no more than what it gives, if
that is more than its peak; calls of jitted functions are dissolved. What a policy offloads to the
host's memory needs none of the device's.
Nothing is known here of what a compiler fuses, reorders or merges: the compiled program knows.
"""

from __future__ import annotations

import math
from typing import Any, Dict, Iterator, List, NamedTuple, Tuple

import numpy as np

from ..internals import internals
from .flops import flops, of_equation

_VIEWS = frozenset(
    [
        "broadcast_in_dim",
        "copy",
        "name",
        "optimization_barrier",
        "reduce_precision",
        "reshape",
        "squeeze",
        "stop_gradient",
        "transpose",
    ]
)


# Into how many shares of its operations the course of a program is cut.
_MOMENTS = 300
# A loop that runs no more often than this is shown turn by turn, a longer one as one piece.
_TURNS = 64
# A jaxpr by its `id`, and the places of its outputs that are not counted.
_Known = Dict[Tuple[int, Tuple[int, ...]], int]


def peak(jaxpr: Any) -> int:
    """The most bytes that are live at once besides the arguments.

    Args:
        jaxpr: open or closed, without dead code.
    """
    return _peak(jaxpr, (), {})


def temporary(jaxpr: Any) -> int:
    """The same besides the outputs as well, as XLA counts the temporary memory of a program.

    Gradients that a program gives have a place of their own from the beginning.
    """
    opened = internals().opened(jaxpr)
    return _peak(opened, tuple(range(len(opened.outvars))), {})


def course(jaxpr: Any) -> List[Tuple[int, int]]:
    """How many bytes are live while a jaxpr runs.

    Args:
        jaxpr: open or closed, without dead code.

    Returns:
        (operations before, bytes during) for each of at most `_MOMENTS` shares of the operations,
        its peak; at last what is live at the end.
    """
    opened = internals().opened(jaxpr)
    run = _Peak(opened, (), {})
    total = flops(opened)
    peaks: Dict[int, Tuple[int, int]] = {}
    for at, count in run.moments({}):
        share = at * _MOMENTS // total if total else 0
        first, most = peaks.get(share, (at, 0))
        peaks[share] = first, max(most, count)
    return [*(peaks[share] for share in sorted(peaks)), (total, run.left)]


def _peak(jaxpr: Any, uncounted: Tuple[int, ...], known: _Known) -> int:
    """The peak without these outputs; `known` holds those that have been looked at."""
    opened = internals().opened(jaxpr)
    key = id(opened), uncounted
    if key not in known:
        known[key] = _Peak(opened, uncounted, known).bytes
    return known[key]


def size(aval: Any) -> int:
    """The bytes of an array with this shape and dtype; 0 of what is no array."""
    shape, dtype = getattr(aval, "shape", None), getattr(aval, "dtype", None)
    if shape is None or dtype is None:
        return 0
    try:
        itemsize = np.dtype(dtype).itemsize
    except TypeError:
        # Keys of random numbers, and types that numpy does not have.
        itemsize = getattr(dtype, "itemsize", 4)
    return math.prod(map(int, shape)) * int(itemsize)


def _is_on_host(aval: Any) -> bool:
    """Whether an array has been offloaded, by a policy that does that; jax 0.7 and newer tell."""
    space = getattr(aval, "memory_space", None)
    return getattr(space, "name", None) == "Host"


class Live:
    """What is live in a jaxpr at an equation that names something.

    Attributes:
        bytes: of all that is used afterwards, arguments not counted.
    """

    def __init__(self, jaxpr: Any, mark: str) -> None:
        """Look for the name `mark`.

        Args:
            jaxpr: open, without dead code; the value that is named is itself not counted.
            mark: the name, which stands there once.
        """
        self._run = run = _Peak(jaxpr, (), {})
        self._names = run.named()
        self._at, marked = self._names[mark]
        self.bytes = sum(run.live_after(self._at).values()) - run.size_of(marked)

    def is_read(self, variable: Any) -> bool:
        """Whether an argument is used after the mark."""
        return self._run.last_use(variable) > self._at

    def is_named(self, name: str) -> bool:
        """Whether what another equation names is used after the mark."""
        if name not in self._names:
            return False  # dead code
        return self._run.last_use(self._names[name][1]) > self._at


class _Step(NamedTuple):
    """An equation with variables that are those of one call of it alone.

    Attributes:
        equation: the equation.
        read: what it reads, literals left out.
        made: what it gives, each with its bytes.
    """

    equation: Any
    read: Tuple[Any, ...]
    made: Tuple[Tuple[Any, int], ...]


class _Peak:
    def __init__(self, jaxpr: Any, uncounted: Tuple[int, ...], known: _Known) -> None:
        self._known = known
        # What a variable is another name or another view of.
        self._source: Dict[Any, Any] = {}
        names = {variable: variable for variable in (*jaxpr.constvars, *jaxpr.invars)}
        self._steps = list(self._flat(jaxpr, names))
        self._outputs = [names[atom] for atom in jaxpr.outvars if not _is_literal(atom)]
        chosen = (jaxpr.outvars[place] for place in uncounted)
        self._uncounted = {self._root(names[atom]) for atom in chosen if not _is_literal(atom)}
        self._freed = self._ends()
        self.bytes = self._run()

    def _flat(self, jaxpr: Any, names: Dict[Any, Any]) -> Iterator[_Step]:
        """The equations in their order, with calls dissolved as a compiler dissolves them.

        `names` gives what each variable of the jaxpr is called; those that it makes are added.
        """
        for equation in jaxpr.eqns:
            read = tuple(names[atom] for atom in equation.invars if not _is_literal(atom))
            if internals().is_inlined_call(equation):
                _, (body,), _ = internals().inner(equation)
                inner = internals().opened(body)
                given = (None if _is_literal(a) else names[a] for a in equation.invars)
                own: Dict[Any, Any] = {variable: object() for variable in inner.constvars}
                for variable, name in zip(inner.invars, given):
                    own[variable] = object() if name is None else name
                yield from self._flat(inner, own)
                for variable, atom in zip(equation.outvars, inner.outvars):
                    names[variable] = object() if _is_literal(atom) else own[atom]
                continue
            made = []
            for variable in equation.outvars:
                # An inner jaxpr may be called more than once: its variables are not enough.
                names[variable] = object()
                count = 0 if _is_on_host(variable.aval) else size(variable.aval)
                made.append((names[variable], count))
            if internals().name(equation) in _VIEWS:
                for variable, looked_at in zip(equation.outvars, equation.invars):
                    if not _is_literal(looked_at):
                        self._source[names[variable]] = names[looked_at]
            yield _Step(equation, read, tuple(made))

    def _root(self, name: Any) -> Any:
        while name in self._source:
            name = self._source[name]
        return name

    def _ends(self) -> Dict[int, List[Any]]:
        """What is given back after each step."""
        last: Dict[Any, int] = {}
        for number, step in enumerate(self._steps):
            for name in step.read:
                last[self._root(name)] = number
        for name in self._outputs:
            last[self._root(name)] = len(self._steps)
        self._used = last
        ends: Dict[int, List[Any]] = {}
        for name, number in last.items():
            ends.setdefault(number, []).append(name)
        return ends

    def _run(self) -> int:
        most = live = 0
        for step, before, made, after in self._passed():
            live = after
            how, inner, _ = internals().inner(step.equation)
            inside = max((self._inside(step, how, body) for body in inner), default=0)
            most = max(most, before + (made + inside if how == "loop" else max(made, inside)))
        self.left = live
        return max(most, live)

    def _passed(self) -> Iterator[Tuple[_Step, int, int, int]]:
        """Each step with the bytes that are live before it, that it makes, and live after it."""
        sizes: Dict[Any, int] = {}
        live = 0
        for number, step in enumerate(self._steps):
            before, made = live, 0
            for name, count in step.made:
                if name not in self._source and name in self._used:
                    sizes[name] = 0 if name in self._uncounted else count
                    made += sizes[name]
            live += made
            for name in self._freed.get(number, ()):
                # Arguments have no size here.
                live -= sizes.pop(name, 0)
            yield step, before, made, live

    def moments(self, counted: Dict[int, int]) -> Iterator[Tuple[int, int]]:
        """The operations done before a step and the bytes that are live in it, step by step.

        Steps in the bodies of calls and short loops are shown; `counted` is that of `flops`.
        """
        done = 0
        for step, before, made, _ in self._passed():
            how, inner, times = internals().inner(step.equation)
            held = before + (made if how == "loop" else 0)
            yield done, before + made
            if how in ("loop", "call") and len(inner) == 1 and times <= _TURNS:
                [body] = map(internals().opened, inner)
                run, turn = _Peak(body, (), self._known), flops(body, counted)
                moments = list(run.moments(counted))
                for number in range(times):
                    for at, count in moments:
                        yield done + number * turn + at, held + count
            elif inner:
                most = max(self._inside(step, how, body) for body in inner)
                # All the while: a line from its beginning to its end.
                work = of_equation(step.equation, counted)
                for part in range(_MOMENTS):
                    yield done + work * part // _MOMENTS, held + most
            done += of_equation(step.equation, counted)

    def named(self) -> Dict[str, Tuple[int, Any]]:
        """For each name the step that gives it, and what is named."""
        return {
            internals().label(step.equation): (number, self._root(step.made[0][0]))
            for number, step in enumerate(self._steps)
            if internals().name(step.equation) == "name"
        }

    def last_use(self, name: Any) -> int:
        """The last step that reads a value or a view of it, -1 if none does."""
        return self._used.get(self._root(name), -1)

    def size_of(self, name: Any) -> int:
        """The bytes of a value that a step makes; 0 for an argument."""
        return self._made().get(self._root(name), (0, 0))[1]

    def live_after(self, step: int) -> Dict[Any, int]:
        """What has been made up to a step and is used after it, with its bytes."""
        return {
            name: count
            for name, (made, count) in self._made().items()
            if made <= step < self._used.get(name, -1)
        }

    def _made(self) -> Dict[Any, Tuple[int, int]]:
        """The step that makes each value which is no view, with its bytes."""
        return {
            name: (number, count)
            for number, step in enumerate(self._steps)
            for name, count in step.made
            if name not in self._source
        }

    def _inside(self, step: _Step, how: str, body: Any) -> int:
        """The peak of a jaxpr in a step, where what is uncounted here is so as well."""
        outputs = internals().opened(body).outvars
        # The body of a loop gives one piece after the other.
        if how == "loop" or len(outputs) != len(step.made):
            return _peak(body, (), self._known)
        made = enumerate(step.made)
        uncounted = tuple(place for place, (name, _) in made if name in self._uncounted)
        return _peak(body, uncounted, self._known)


def _is_literal(atom: Any) -> bool:
    return internals().is_literal(atom)
