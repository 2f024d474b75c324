"""Variants of a case that works: other numbers, bfloat16, sizes that are odd, one, or long."""

from __future__ import annotations

import itertools
import math
from typing import Any, Callable, Dict, Iterator, List, Mapping, Sequence, Set

import jax
import jax.numpy as jnp
import numpy as np

from ..lookup import attribute
from . import candidates, code_usage, shapes
from .combinations import Pins
from .node import ARRAY, CONSTANT, INSTANCE, LIST, VALUE, Choice, Node
from .search import Search, Snapshot

# The descriptions of such cases; `prove` recognises them.
RENUMBERED = "other values of "
ABOUT = "other sizes"
LOWER_PRECISION = "bfloat16 arrays"

# Arrays may be as long as this in all their axes.
_FEW = 32

# How many entries lists have that usually have two.
_COUNTS = (3, 1)

# How many numbers are changed one by one if they cannot all be changed together.
_MOST_ALONE = 3

# The "names" that decisions and arithmetic that one version lacks depend on, and the "constants" in
# them, see `units.edits`.
edited: Mapping[str, Sequence[Any]] = {}

# Combinations of the values of what edited decisions depend on, and all cases for these.
_MOST_ROWS = 16
_MOST_NEAR = 24

# With these, a decision depends on the sizes of arrays.
_OF_SHAPES = {"shape", "ndim", "size", "len"}

# How much longer an axis gets, and how many of the axes that were as long as others.
_UNTIED, _MOST_UNTIED = 5, 3

_Sizes = Dict[int, int]


def renumber(search: Search, base: Snapshot, runs: Callable[[], bool]) -> Iterator[str]:
    """Put a search into states with other Python numbers as arguments; yield what they are.

    A default that is used in place of an argument shows only then.
    """
    for other in (_other_number, _special):
        search.restore(base)
        numbers = [node for _, node in search.roots if _is_number(node)]
        for group in [numbers, *([node] for node in numbers[:_MOST_ALONE])]:
            search.restore(base)
            for found, node in enumerate(group):
                node.choice = Choice(VALUE, other(node.choice.value, found))
            if group and runs():
                yield RENUMBERED + " and ".join(node.name for node in group)
                if group is numbers:
                    break
    search.restore(base)


def _is_number(node: Node) -> bool:
    choice = node.choice
    return choice.kind == VALUE and type(choice.value) in (int, float)


def _other_number(value: Any, found: int) -> Any:
    """Return another number of similar size and the same sign, different for each argument."""
    if type(value) is int:
        return value + (1 if value >= 0 else -1) * (1 + found)
    return value * (0.75 - 0.0625 * (found % 8)) if value else 0.25 + 0.0625 * found


def _special(value: Any, found: int) -> Any:
    """Return a number that code may treat otherwise: one, or what is on the other side of 1.0."""
    if type(value) is int:
        return 1
    return 2.0 if value <= 1.0 else 0.5


def near(search: Search) -> List[Pins]:
    """Return values with which an edited decision may go another way, in all combinations."""
    names, constants = edited.get("names", ()), edited.get("constants", ())
    found = search.in_use()
    nodes = [*found, *(child for node in found for child in node.children.values())]
    nodes = [node for node in dict.fromkeys(nodes) if node.name in names]
    nodes.sort(key=lambda node: (_is_number(node), names.index(node.name)))
    numbers = {0, *(one for one in constants if type(one) in (int, float))}
    texts = [one for one in constants if type(one) is str]
    if not _OF_SHAPES.isdisjoint(names):
        shapes_in_use = [node.choice.value[0] for node in found if node.choice.kind == ARRAY]
        numbers.update(size for shape in shapes_in_use for size in (*shape, len(shape)))
    rows: List[Pins] = [()]
    for node in nodes:
        others = [] if _is_number(node) else list(node.alternatives)
        held = [one.value for one in (node.choice, *node.alternatives) if one.kind == VALUE]
        for kind in {type(one) for one in held}.intersection((int, float)):
            others += [Choice(VALUE, one) for one in _around(numbers, kind)]
        if str in map(type, held):  # the constants, and longer texts that start with them
            others += [Choice(VALUE, one) for text in texts for one in (text, text + "_2")]
        own = {choice.key(): (node.number, choice) for choice in others}
        own.pop(node.choice.key(), None)
        single = [(pin,) for pin in own.values()]
        # Of too many for all combinations, each alone, and with the other values of all flags.
        few = len(rows) * (1 + len(single)) <= _MOST_ROWS
        with_these = dict.fromkeys(rows if few else (rows[0], rows[-1]))
        rows += [row + pins for pins in single for row in with_these]
    return rows[1 : _MOST_NEAR + 1]


def _around(numbers: Set[Any], kind: type) -> List[Any]:
    """Return the numbers of a kind at, between, and beyond some numbers, and zero."""
    if kind is int:
        floors = [math.floor(number) for number in numbers if math.isfinite(number)]
        return sorted({number + step for number in floors for step in (-1, 0, 1)}, key=abs)
    ordered = sorted({0.0, *(float(number) for number in numbers)})
    between = [(low + high) / 2 for low, high in itertools.pairwise(ordered)]
    return [*ordered, *between, 2.0 * ordered[-1]]


def resize(
    search: Search, base: Snapshot, runs: Callable[[], bool], integers: Set[int]
) -> Iterator[str]:
    """Put a search into states with other sizes under which the unit runs; yield what they are.

    `integers` are those of the unit's code: a window or a chunk shows only in what is longer.
    """
    for mappings in _mappings(integers | _of_instances(search)):
        for mapping in mappings:
            for with_numbers in (False, True):
                search.restore(base)
                changed = _change(search, mapping, with_numbers)
                if changed and runs():
                    yield "{}: {}".format(ABOUT, " and ".join(changed))
                    break
            else:
                continue
            break
    search.restore(base)


def untie(search: Search, base: Snapshot, solves: Callable[[], bool]) -> Iterator[str]:
    """Put a search into states where an axis is not as long as others; yield what they are.

    These are the lengths of arrays: all axes but those of batches and of features.
    """
    left = _MOST_UNTIED
    for node in [node for node in search.in_use() if _is_free_array(node)]:
        shape, dtype = base[node.number][0].value
        for axis, size in enumerate(shape[:-1] or shape):
            search.restore(base)
            if not left or (not axis and size == candidates.BATCH):
                continue
            longer = (*shape[:axis], size + _UNTIED, *shape[axis + 1 :])
            node.choose([Choice(ARRAY, (longer, dtype))])
            node.pinned = True
            arrays = filter(_is_free_array, search.in_use())
            if not solves() or not any(size in one.choice.value[0] for one in arrays):
                continue
            left -= 1
            about = "{}: {} as {} in {}".format(ABOUT, size, size + _UNTIED, node.label)
            yield about
            for _, flag in search.roots:
                if type(flag.choice.value) is bool:
                    flag.choice = Choice(VALUE, not flag.choice.value)
                    if solves():
                        yield "{} with {}={}".format(about, flag.name, flag.choice.value)
    search.restore(base)


def _is_free_array(node: Node) -> bool:
    return node.choice.kind == ARRAY and not node.in_tree


def recount(search: Search, base: Snapshot, solves: Callable[[], bool]) -> Iterator[str]:
    """Put a search into states with one and three entries in all lists; yield what they are.

    Two layers do not tell the second from the last.
    """
    for count in _COUNTS:
        search.restore(base)
        lists = [n for n in search.in_use() if n.choice.kind == LIST]
        for node in lists:
            node.choice = Choice(LIST, count)
        if lists and solves():
            names = ", ".join(node.label for node in lists)
            yield "{}: {} of {}".format(ABOUT, count, names)
    search.restore(base)


def in_lower_precision(case: Dict[str, Any]) -> Iterator[Dict[str, Any]]:
    """Yield a case with bfloat16 in place of float32: what is cast to float32 shows there only.

    If it has several arguments with such arrays, also yield one where the first of them has.
    """

    def lowered(leaf: Any) -> Any:
        held = isinstance(leaf, (jax.Array, np.ndarray)) and leaf.dtype == np.float32
        return jnp.asarray(leaf, jnp.bfloat16) if held else leaf

    args, kwargs = jax.tree_util.tree_map(lowered, (case["args"], case["kwargs"]))
    yield dict(case, args=args, kwargs=kwargs)
    changed = [n for n, one in enumerate(case["args"]) if _dtypes(one) != _dtypes(args[n])]
    for first in changed[:1] if len(changed) > 1 else ():
        mixed = (*case["args"][:first], args[first], *case["args"][first + 1 :])
        yield dict(case, args=mixed)


def _dtypes(tree: Any) -> List[str]:
    return [str(attribute(leaf, "dtype")) for leaf in jax.tree_util.tree_leaves(tree)]


def _mappings(integers: Set[int]) -> List[List[_Sizes]]:
    """Return sizes for the usual ones: sets for a case each, the first that runs is taken."""
    longest = max(integers, default=0)
    length = max(candidates.LENGTH + 3, (longest + 1) // 2 * 2 + 5)  # odd
    width = max(candidates.WIDTH + 4, (longest // 4 + 2) * 4)  # for two and for four heads
    # The first axis may be the one that is cut into windows.
    few = max((number for number in integers if number <= _FEW), default=0)
    batch = max(candidates.LENGTH + 5, (few + 1) // 2 * 2 + 7)
    longer = {candidates.BATCH: batch, candidates.LENGTH: length, candidates.WIDTH: width}
    some = [
        longer,
        {candidates.BATCH: batch, candidates.LENGTH: length},
        {candidates.BATCH: length},
        {candidates.LENGTH: length},
        {candidates.WIDTH: width},
        {candidates.LENGTH: 2 * candidates.WIDTH},
    ]
    return [some, [{candidates.BATCH: 1}, {candidates.LENGTH: 1}]]


def _of_instances(search: Search) -> Set[int]:
    """Return the integers in the objects that are passed, and in the defaults of their classes."""
    nodes = search.in_use()
    found = [node.choice.value for node in nodes if node.choice.kind == VALUE]
    for node in nodes:
        if node.choice.kind == INSTANCE:
            for cls in attribute(node.choice.value, "__mro__", ()):
                found += vars(cls).values()
    return code_usage.integers_among(found)


def _change(search: Search, sizes: _Sizes, with_numbers: bool) -> List[str]:
    """Change the sizes of all arrays, and perhaps numbers that are sizes; describe the changes."""
    changed: Dict[str, None] = {}
    numbers = False
    for node in search.in_use():
        if node.in_tree:
            continue  # networks make their own parameters
        if node.choice.kind in (ARRAY, CONSTANT):
            shape, dtype = node.choice.value
            node.choice = Choice(node.choice.kind, (shapes.replaced(shape, sizes), dtype))
            changed.update(("{} as {}".format(n, sizes[n]), None) for n in shape if n in sizes)
        elif with_numbers and _is_size(node, sizes):
            numbers = True
            node.choice = Choice(VALUE, sizes[node.choice.value])
    return sorted(changed) if numbers or not with_numbers else []


def _is_size(node: Node, sizes: _Sizes) -> bool:
    held: Any = node.choice.value if node.choice.kind == VALUE else None
    return type(held) is int and held in sizes and candidates.is_number(node.name)
