"""Search for inputs: an error means that an input was chosen wrongly, so try others.

Each change is judged by how far the function gets with it. One change is made at a time: first to
the inputs that the error names or whose shapes it mentions, then to others.
"""

from __future__ import annotations

import itertools
import re
from types import TracebackType
from typing import (
    Any,
    Callable,
    Dict,
    Iterator,
    List,
    NamedTuple,
    Optional,
    Sequence,
    Set,
    Tuple,
)

from . import candidates, networks, repairs, shapes
from .node import ARRAY, CONSTANT, DICT, KEY, Choice, Node
from .search import Budget, Call, Search

Move = List[Tuple[Node, Choice]]

# How many choices of a node, and how many changes in all, are tried for one error.
MOST_PER_NODE = 24
MOST_MOVES = 120
# How many passes may only find out more.
MOST_FRESH = 40

_SIZES = re.compile(r"\d+")


class Outcome(NamedTuple):
    """How a pass ended: with an error, at a place in the user's code."""

    error: BaseException
    nodes: List[Node]  # the inputs that it names
    wanted: networks.Wanted  # what the parameters of a network may be
    place: Tuple[Tuple[str, str, int], ...]  # file, function, and instruction, outermost first

    @property
    def mark(self) -> Tuple[object, ...]:
        """A key that is equal for the same error at the same place, whatever the sizes."""
        return self.place, self.reason

    @property
    def reason(self) -> Tuple[str, str]:
        """What is wrong, without sizes."""
        return type(self.error).__name__, _SIZES.sub("", str(self.error))

    @property
    def mismatch(self) -> Tuple[int, int]:
        """How far the shapes in its message are from matching."""
        return shapes.mismatch(str(self.error))


class _BudgetSpent(Exception):
    """No passes or no work left."""


def solve(
    search: Search,
    call: Call,
    budget: Budget,
    is_final: Callable[[BaseException], bool] = lambda error: False,
) -> Optional[str]:
    """Find inputs under which `call` can be traced; else return what is in the way.

    No inputs help against an error that `is_final`.
    """
    try:
        outcome = _settle(search, call, budget)
        visited: Set[Tuple[object, ...]] = set()
        while outcome is not None:
            if is_final(outcome.error):
                return repairs.describe(outcome.error)
            visited.add(outcome.mark)
            base = search.save()
            for move in list(_moves(search, outcome)):
                search.restore(base)
                for node, choice in move:
                    node.assign(choice)
                reached = _settle(search, call, budget)
                if reached is None or _is_better(reached, outcome, visited):
                    for node, choice in move:
                        node.offer(repairs.others_of(choice))
                    break
            else:
                search.restore(base)
                return repairs.describe(outcome.error)
            outcome = reached
    except _BudgetSpent:
        error = search.last_error
        return "no tries left" if error is None else repairs.describe(error)
    return None


def runs(search: Search, call: Call, budget: Budget) -> bool:
    """Return whether `call` can be traced on inputs like these."""
    try:
        return _settle(search, call, budget) is None
    except _BudgetSpent:
        return False


def _settle(search: Search, call: Call, budget: Budget) -> Optional[Outcome]:
    """Run passes until they find nothing new; None if the function runs, else the error."""
    fresh = 0
    while budget.spend():
        error = search.attempt(call)
        if search.fresh and fresh < MOST_FRESH:
            # The next pass gets what was found in this one, and may already run.
            fresh += 1
            continue
        if error is None:
            return None
        search.last_error = error
        if repairs.needs_value(error) and not search.named and not search.folding:
            # It depends on no input that JAX knows of: perhaps constants alone give it.
            search.folding = True
            continue
        return Outcome(error, search.named, search.wanted, _place(error, search.is_called))
    raise _BudgetSpent


def _place(error: BaseException, is_called: bool) -> Tuple[Tuple[str, str, int], ...]:
    """Return where in the user's code an error was raised, so that progress can be compared.

    The arguments are constructed before the unit is called.
    """
    place = [("", "", int(is_called))]
    trace: Optional[TracebackType] = error.__traceback__
    while trace is not None:
        module = trace.tb_frame.f_globals.get("__name__", "").partition(".")[0]
        if (step := networks.progress(trace.tb_frame)) is not None:
            place.append(_IN_NETWORK if step else _IN_INIT)
        elif module not in _NOT_OURS:
            code = trace.tb_frame.f_code
            place.append((code.co_filename, code.co_name, trace.tb_lasti))
        trace = trace.tb_next
    return tuple(place)


# In place of the frames of `apply`, and of `init` if that fails, too, which is less far.
_IN_NETWORK, _IN_INIT = ("", "network", 1), ("", "network", 0)

_NOT_OURS = {__name__.partition(".")[0], "jax", "jaxlib", "numpy", "scipy", "ml_dtypes"}
_NOT_OURS |= {"flax", "haiku", "equinox", "optax", "chex", "einops", "opt_einsum"}
_NOT_OURS |= {"functools", "contextlib", "dataclasses", "inspect", "typing", "enum", "copy"}
_NOT_OURS |= {"collections"}


def _is_better(outcome: Outcome, before: Outcome, visited: Set[Tuple[object, ...]]) -> bool:
    """Return whether a pass got further than another, or is nearer to it at the same place."""
    for here, there in zip(outcome.place, before.place):
        if here != there:
            return here[:2] != there[:2] or here[2] > there[2]
    if len(outcome.place) != len(before.place):
        return len(outcome.place) > len(before.place)
    if any(outcome.mismatch) and any(before.mismatch):
        return outcome.mismatch < before.mismatch
    # A network checks its parameters and its random keys one after the other.
    same_kind = outcome.reason[0] == before.reason[0] or outcome.place[-1] == _IN_NETWORK
    return same_kind and outcome.mark not in visited


def _moves(search: Search, outcome: Outcome) -> Iterator[Move]:
    """Yield changes that an error suggests, the likeliest first."""
    error, message = outcome.error, str(outcome.error)
    fixed = _pinned(search)
    # The project makes the arrays of trees.
    nodes = [node for node in search.in_use() if node not in fixed and not node.in_tree]
    for choices in outcome.wanted:
        yield from itertools.islice(_parameters(nodes, choices), MOST_PER_NODE)
    for factor, size in shapes.multiples(message):
        if move := _multiplied(nodes, factor, size):
            yield move
    named = [node for node in nodes if node in outcome.nodes]
    shown = shapes.shapes_in(message)
    meant = named or [node for node in nodes if _shape(node) in shown]
    if repairs.missing_entry(error):
        meant = [node for node in nodes if node.choice.kind in (DICT, KEY)] or meant
    others = [node for node in nodes if node not in meant]
    needs_value = repairs.needs_value(error)
    moves: List[Move] = []
    for group in (meant, others):
        # A number is likelier than an activation, and a guess than what the code tells.
        group.sort(
            key=lambda node: (
                needs_value and not candidates.is_number(node.name),
                not node.is_guess,
                -node.number,
            )
        )
        moves += _interleave(
            [(alike, _choices(search, alike[0], error)) for alike in _alike(group)]
        )
    yield from moves[:MOST_MOVES]


def _parameters(nodes: Sequence[Node], choices: Sequence[Choice]) -> Iterator[Move]:
    """Yield changes that make inputs the parameters of a network, in the order of the inputs."""
    able = [
        node
        for node in nodes
        if node.choice.kind in (ARRAY, DICT) or (node.is_tree and node.choice.value.made_by is None)
    ]
    for some in itertools.permutations(able, len(choices)):
        yield list(zip(some, choices))


def _choices(search: Search, node: Node, error: BaseException) -> List[Choice]:
    """Return everything to try for a node: first the objects that have what an array lacks."""
    found = repairs.choices(node, error, search.integers)
    name = repairs.missing_attribute(error)
    if name and node.choice.kind in (ARRAY, KEY):
        node.attributes.add(name)
        found = search.objects(node) + found
    return found[:MOST_PER_NODE]


def _shape(node: Node) -> Any:
    """Return the shape of an array."""
    return node.choice.value[0] if node.choice.kind in (ARRAY, CONSTANT) else None


def _pinned(search: Search) -> Set[Node]:
    """Return the nodes that a case is about, and their ancestors."""
    found: Set[Node] = set()
    for node in search.in_use():
        above: Optional[Node] = node if node.pinned else None
        while above is not None:
            found.add(above)
            above = above.parent
    return found


def _alike(nodes: Sequence[Node]) -> List[List[Node]]:
    """Return nodes with those that must be like them: the same parts of the elements of a list."""
    found: Dict[object, List[Node]] = {}
    for node in nodes:
        place = tuple(part for part in node.path if not part.isdigit())
        found.setdefault((place, node.choice.key()), []).append(node)
    return list(found.values())


def _interleave(groups: Sequence[Tuple[List[Node], List[Choice]]]) -> Iterator[Move]:
    """Yield the first choice of each group of nodes, then the second of each."""
    for rank in range(max([len(choices) for _, choices in groups] or [0])):
        for nodes, choices in groups:
            if rank < len(choices):
                yield [(node, choices[rank]) for node in nodes]


def _multiplied(nodes: Sequence[Node], factor: int, size: int) -> Move:
    """Make all axes of a size longer by a factor: the lengths of arrays that belong together."""
    return [
        (node, node.choice._replace(value=(shapes.replaced(shape, {size: size * factor}), dtype)))
        for node in nodes
        if node.choice.kind in (ARRAY, CONSTANT)
        for shape, dtype in [node.choice.value]
        if size in shape
    ]
