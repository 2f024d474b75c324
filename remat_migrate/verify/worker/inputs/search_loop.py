"""Search for inputs: an error means that an input was chosen wrongly, so try others.

Each change is judged by how far the function gets with it. Changes to single inputs that an error
is about are tried first, in order of likelihood, then pairs of changes.
"""

from __future__ import annotations

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

from . import blame, candidates, repairs, shapes
from .blame import Blame
from .node import ARRAY, CONSTANT, KEY, LIKE, LIST, Choice, Node
from .search import Budget, Call, Search

Move = List[Tuple[Node, Choice]]

# How many choices of a node, and how many changes in all, are tried for one error.
MOST_PER_NODE = 24
MOST_MOVES = 80
# How many choices are tried of nodes that the error does not seem to be about.
MOST_OF_OTHERS = 3
# How many first and second changes are tried in pairs.
MOST_FIRST = 10
MOST_SECOND = 24
# How many passes may only find out more.
MOST_FRESH = 40


class Outcome(NamedTuple):
    """The outcome of a pass: an error, the inputs it is about, and whether under `jit`."""

    blamed: Blame
    jit: bool

    @property
    def mark(self) -> Tuple[object, ...]:
        """A key that is equal for the same error at the same place."""
        names = frozenset(node.path for node in self.blamed.nodes)
        return self.jit, self.blamed.place, names, self.mismatch

    @property
    def mismatch(self) -> Tuple[int, int]:
        """How far the shapes in its message are from matching."""
        return shapes.mismatch(str(self.blamed.error))


class _BudgetSpent(Exception):
    """No passes or no work left."""


def solve(
    search: Search,
    call: Call,
    budget: Budget,
    known: bool = False,
    is_final: Callable[[BaseException], bool] = lambda error: False,
) -> Optional[str]:
    """Find inputs under which `call` can be traced, also under `jit`; else what is in the way.

    `known` says that most inputs are known, so that they are likely to do. No inputs help against
    an error that `is_final`.
    """
    try:
        outcome = _settle(search, call, budget, known)
        visited: Set[Tuple[object, ...]] = set()
        while outcome is not None:
            if is_final(outcome.blamed.error):
                return repairs.describe(outcome.blamed.error)
            visited.add(outcome.mark)
            improvement = _Improvement(search, call, budget, outcome, visited)
            if not improvement.improve():
                return repairs.describe(outcome.blamed.error)
            outcome = improvement.reached
            budget.extend()
    except _BudgetSpent:
        error = search.last_error
        return "no tries left" if error is None else repairs.describe(error)
    return None


def runs(search: Search, call: Call, budget: Budget) -> bool:
    """Return whether `call` can be traced on inputs like these."""
    try:
        return _settle(search, call, budget, True) is None
    except _BudgetSpent:
        return False


def _settle(search: Search, call: Call, budget: Budget, known: bool = False) -> Optional[Outcome]:
    """Run passes until they find nothing new; None if the function runs, else the error.

    If the inputs are `known`, the first pass is the last one as a rule.
    """
    if known and not search.folding and budget.spend() and search.attempt(call, True) is None:
        if not search.fresh:
            return None
    jit = False
    fresh = 0
    while budget.spend():
        error = search.attempt(call, jit)
        if error is None:
            if not search.fresh and (jit or search.folding):
                return None
            jit = not search.fresh
            continue
        search.last_error = error
        if search.fresh and fresh < MOST_FRESH:
            # The next pass gets what was found in this one, and may already run.
            fresh += 1
            jit = False
            continue
        blamed = search.blamed or blame.find_blame(error, search)
        if repairs.needs_value(error) and not search.folding:
            if not blamed.depend or _folding_helps(search, call, budget):
                search.folding = True
                continue
        return Outcome(blamed, jit)
    raise _BudgetSpent


def _folding_helps(search: Search, call: Call, budget: Budget) -> bool:
    """Return whether no value is needed where constants are computed; tried once in a search."""
    if search.tried_folding or not budget.spend():
        return False
    search.tried_folding = search.folding = True
    error = search.attempt(call, False)
    search.folding = False
    return error is None or not repairs.needs_value(error)


def _got_further(outcome: Outcome, other: Outcome) -> Optional[bool]:
    """Return whether a pass got further than another; None if they ended at the same place."""
    if outcome.jit != other.jit:
        return outcome.jit
    for here, there in zip(outcome.blamed.place, other.blamed.place):
        if here[:2] != there[:2]:
            return True
        if here[2] != there[2]:
            return here[2] > there[2]
    depth, before = len(outcome.blamed.place), len(other.blamed.place)
    return None if depth == before else depth > before


class _Improvement:
    """One error, and the changes that it suggests."""

    def __init__(
        self,
        search: Search,
        call: Call,
        budget: Budget,
        start: Outcome,
        visited: Set[Tuple[object, ...]],
    ) -> None:
        self.search = search
        self.call = call
        self.budget = budget
        self.start = start
        self.visited = visited
        self.reached: Optional[Outcome] = None

    def improve(self) -> bool:
        """Change the inputs so that the function gets further; False: put back, nothing helps."""
        base = self.search.save()
        moves = list(_moves(self.search, self.start, MOST_MOVES))
        message = str(self.start.blamed.error)
        promising: List[Move] = []
        others: List[Move] = []
        for move in moves:
            outcome = self._try(base, move)
            if self._accept(outcome):
                return True
            if outcome is not None and self._is_typed(base, move, outcome):
                return True
            # The message changed: part of the problem may be solved.
            changed = outcome is not None and str(outcome.blamed.error) != message
            (promising if changed else others).append(move)
        for first in (promising + others)[:MOST_FIRST]:
            outcome = self._try(base, first)
            if self._accept(outcome):
                return True
            assert outcome is not None
            middle = self.search.save()
            for second in _moves(self.search, outcome, MOST_SECOND):
                if self._accept(self._try(middle, second)):
                    return True
        self.search.restore(base)
        return False

    def _try(self, base: Dict[int, Any], move: Move) -> Optional[Outcome]:
        self.search.restore(base)
        for node, choice in move:
            node.assign(choice)
        return _settle(self.search, self.call, self.budget)

    def _is_typed(self, base: Dict[int, Any], move: Move, outcome: Outcome) -> bool:
        """Return whether an array has got its dtype: what is wrong now is something else."""
        (node, choice), *others = move
        before = base[node.number][0]
        arrays = (ARRAY, CONSTANT)
        if others or before.kind not in arrays or choice.kind not in arrays:
            return False
        (shape, dtype), (new_shape, new_dtype) = before.value, choice.value
        mark = (node.number, new_dtype)
        if shape != new_shape or dtype == new_dtype or mark in self.visited:
            return False
        if repairs.types(choice, str(outcome.blamed.error)):
            return False
        self.visited.add(mark)
        self.reached = outcome
        return True

    def _accept(self, outcome: Optional[Outcome]) -> bool:
        if outcome is not None:
            further = _got_further(outcome, self.start)
            if further is False or outcome.mark in self.visited:
                return False
            message = str(outcome.blamed.error)
            # The next element of a list may need entries like the one before.
            same = message == str(self.start.blamed.error) and not repairs.wants_entries(message)
            alike = same or set(outcome.blamed.nodes) == set(self.start.blamed.nodes)
            apart = any(outcome.mismatch) and any(self.start.mismatch)
            closer = apart and outcome.mismatch < self.start.mismatch
            if further is None and (alike or apart) and not closer:
                return False
        self.reached = outcome
        return True


def _moves(search: Search, outcome: Outcome, most: int) -> Iterator[Move]:
    """Changes that an error suggests, the likeliest first."""
    blamed = outcome.blamed
    count = 0
    if repairs.STRUCTURE.search(str(blamed.error)):
        matching = _same_structure([node for node in blamed.nodes if not node.pinned])
        if matching:
            count += 1
            yield matching
    fixed = _pinned(search)
    for factor, size in shapes.multiples(str(blamed.error)):
        if move := _multiplied(set(search.in_use()) - fixed, factor, size):
            count += 1
            yield move
    nodes = [node for node in blamed.nodes if node not in fixed and not _is_given(node)]
    if repairs.needs_value(blamed.error):
        # A number is likelier than an activation.
        nodes.sort(key=lambda node: (not candidates.is_number(node.name), -node.number))
    groups = [nodes]
    if shapes.shapes_in(str(blamed.error)):
        groups = [
            [node for node in nodes if _is_mentioned(node, blamed)],
            [node for node in nodes if not _is_mentioned(node, blamed)],
        ]
    about = fixed | set(blamed.nodes)
    rest = [node for node in search.in_use() if node.queue and node not in about]
    rest.sort(key=lambda node: (node.parent is not None or not _is_variadic(node), -node.number))
    for group in groups:
        lists = [_choices(search, node, blamed)[:MOST_PER_NODE] for node in group]
        for move in _interleave(group, lists):
            if count < most:
                count += 1
                yield move
    for move in _interleave(rest, [node.queue[:MOST_OF_OTHERS] for node in rest]):
        if count < most:
            count += 1
            yield move


def _choices(search: Search, node: Node, blamed: Blame) -> List[Choice]:
    """Return everything to try for a node: first the objects that have what an array lacks."""
    found = repairs.choices(node, blamed)
    name = repairs.missing_attribute(blamed.error)
    if name and node.choice.kind in (ARRAY, KEY):
        node.attributes.add(name)
        found = search.objects(node) + found
    return found


def _is_mentioned(node: Node, blamed: Blame) -> bool:
    """Return whether a message tells the shape of an array."""
    choice = node.choice
    if choice.kind not in (ARRAY, CONSTANT):
        return False
    return choice.value[0] in shapes.shapes_in(str(blamed.error))


def _is_given(node: Node) -> bool:
    """Return whether the project or a network makes an array, as a part of something."""
    tree = node.parent.choice.value if node.parent and node.in_tree else None
    return tree is not None and (tree.made_by is not None or tree.of_network)


def _pinned(search: Search) -> Set[Node]:
    """Return the nodes that a case is about, and their ancestors."""
    found: Set[Node] = set()
    for node in search.in_use():
        above: Optional[Node] = node if node.pinned else None
        while above is not None:
            found.add(above)
            above = above.parent
    return found


def _is_variadic(node: Node) -> bool:
    """Return whether a node stands for `*arguments`."""
    return node.choice.kind == LIST and not node.is_guess


def _interleave(nodes: Sequence[Node], lists: Sequence[Sequence[Choice]]) -> Iterator[Move]:
    """Yield the first choice of each node, then the second of each."""
    for rank in range(max([len(choices) for choices in lists] or [0])):
        for node, choices in zip(nodes, lists):
            if rank < len(choices):
                yield [(node, choices[rank])]


def _same_structure(nodes: Sequence[Node]) -> Move:
    """Give guessed nodes the structure of the first of the trees that must match."""
    trees = [n for n in nodes if not candidates.is_number(n.name) and n.choice.kind != LIKE]
    trees.sort(key=lambda node: (_is_likely(node), node.number))
    # A part of a tree cannot be like the whole.
    apart = [n for n in trees[1:] if _is_likely(n) and n.path[0] != trees[0].path[0]]
    return [(node, Choice(LIKE, trees[0].number)) for node in apart]


def _multiplied(nodes: Set[Node], factor: int, size: int) -> Move:
    """Make all axes of a size longer by a factor: the lengths of arrays that belong together."""
    return [
        (node, node.choice._replace(value=(shapes.replaced(shape, {size: size * factor}), dtype)))
        for node in nodes
        if node.choice.kind in (ARRAY, CONSTANT) and not _is_given(node)
        for shape, dtype in [node.choice.value]
        if size in shape
    ]


def _is_likely(node: Node) -> bool:
    """Return whether a node is a mere guess, which may be a tree like another."""
    return node.is_guess and not node.is_tree
