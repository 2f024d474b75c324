"""Shapes that match other shapes: in operators, in error messages, in named axes."""

from __future__ import annotations

import math
import re
from typing import Any, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple

from .candidates import BATCH, LENGTH, WIDTH, sizes
from .node import CONSTANT, Choice, Shape

# Entries of an array of which the message says that it is too short.
_MOST_MULTIPLIED = 1 << 23


def broadcastable(left: Shape, right: Shape) -> bool:
    """Return whether two shapes can be broadcast together."""
    return all(a == b or 1 in (a, b) for a, b in zip(reversed(left), reversed(right)))


# Not the digits of a dtype (float32) or of a name (input_3_).
_NUMBER = re.compile(r"(?<![\w.])\d+(?![\w.]*\w)")
_SHAPE_IN_TEXT = re.compile(r"[(\[]((?:\d+(?:, ?|,?(?=[)\]])))*)[)\]]")


def shapes_in(text: str) -> List[Shape]:
    """Return the shapes that a message mentions."""
    found: List[Shape] = []
    for inner in _SHAPE_IN_TEXT.findall(text):
        shape = tuple(int(size) for size in re.findall(r"\d+", inner))
        if shape not in found and all(0 < size <= 64 for size in shape) and len(shape) < 7:
            found.append(shape)
    return found


def repairs(choice: Choice, message: str, constants: Sequence[Any]) -> List[Choice]:
    """Return other shapes for an array, with the sizes that a message and its statement mention."""
    shape, dtype = choice.value
    others = [other for other in shapes_in(message) if other != shape]
    found: List[Shape] = []
    sizes = [size for other in others for size in reversed(other)]
    alone = [int(number) for number in _NUMBER.findall(message)]
    sizes += [n for n in [*alone, *constants] if type(n) is int and 1 < n <= 64]
    sizes = list(dict.fromkeys(sizes))
    if "equal division" in message:
        # Weights of projections that are split, such as those of queries, keys, and values.
        parts = [n for n in constants if type(n) is int and 1 < n <= 8]
        for at in reversed(range(len(shape))):
            found += [(*shape[:at], shape[at] * n, *shape[at + 1 :]) for n in parts]
    for at in reversed(range(len(shape))):
        found += [(*shape[:at], size, *shape[at + 1 :]) for size in sizes if size != shape[at]]
    # The size in the message is the sum of this one and others, as in a concatenation.
    pairs = [(a, b) for a in sizes[:3] for b in sizes[:3] if a != b]
    for at in reversed(range(len(shape))):
        moved = [shape[at] + a - b for a, b in pairs]
        found += [(*shape[:at], size, *shape[at + 1 :]) for size in moved if size > 0]
    for other in others:
        found += [other[start:] for start in range(len(other))]
    found += [(size,) for size in sizes]
    if "broadcast" in message and shape in shapes_in(message):
        # An array of too high a rank is likelier to have the shape of the other.
        found.sort(
            key=lambda one: (
                not all(broadcastable(one, other) for other in others),
                one not in others or len(one) > len(shape),
            )
        )
    if "reshape" in message:
        found.sort(key=lambda one: not any(_entries(one) == _entries(o) for o in others))
    if re.search(r"numbers? of dimensions|ndim|\brank", message):
        # The shape of the other one is likelier than any of the same rank.
        found.sort(key=lambda one: (one not in others, len(one) not in map(len, others)))
    inner = shape[1:]
    if others and inner and shape not in shapes_in(message):
        if any(tuple(size for size in other if size != 1) == inner for other in others):
            # The first axis is mapped over, and not in the message.
            mapped = repairs(Choice(choice.kind, (inner, dtype)), message, constants)
            found = [(shape[0], *one.value[0]) for one in mapped] + found
    # A size of one fits everything, and hides what happens to the axis.
    found.sort(key=lambda one: one.count(1) > shape.count(1))
    found = [*_with_leading_axes(shape, others), *found]
    small = [one for one in found if _entries(one) <= 4096]
    return _different(Choice(choice.kind, (one, dtype)) for one in small)[:16]


def multiples(message: str) -> Iterator[Tuple[int, int]]:
    """Yield what makes the usual lengths divide as a message wants: a factor and a length."""
    found = re.search(r"size (\d+)\) into shape .*axis sizes \((\d+)\) does not", message)
    if found:
        entries, product = map(int, found.groups())
        factor = product // math.gcd(entries, product)
        if factor * entries <= _MOST_MULTIPLIED:
            yield from ((factor, size) for size in (LENGTH, BATCH))


def replaced(shape: Shape, sizes: Mapping[int, int]) -> Shape:
    """Return a shape with other sizes in place of some."""
    return tuple(sizes.get(size, size) for size in shape)


def _with_leading_axes(shape: Shape, others: Sequence[Shape]) -> Iterator[Shape]:
    """Yield shapes with which an array that keeps its first axes has the rank of another.

    Of (2, 8) and (2, 4, 8, 8), the embeddings of (2, 4, 8) tokens: one of (2,).
    """
    for kept in (len(shape), len(shape) - 1):
        for mine in others if kept > 0 else ():
            added = len(mine) - kept
            for other in others if added > 0 and mine[:kept] == shape[:kept] else ():
                if added < len(other) < len(mine):
                    yield (*other[: len(other) - added], *shape[kept:])


def _entries(shape: Shape) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


def mismatch(text: str) -> Tuple[int, int]:
    """Return by how much the shapes in a message differ: in rank, and in how many axes."""
    found = [shape for shape in shapes_in(text) if shape]
    if len(found) < 2:
        return 0, 0
    ranks = [len(shape) for shape in found]
    axes = zip(*(reversed(shape) for shape in found))
    return max(ranks) - min(ranks), sum(len(set(axis) - {1}) > 1 for axis in axes)


def ranked(choices: Sequence[Choice], rank: int) -> List[Choice]:
    """Return the arrays among `choices` that have `rank` axes."""
    return [c for c in choices if c.kind in ("array", CONSTANT) and len(c.value[0]) == rank]


def _different(choices: Iterable[Choice]) -> List[Choice]:
    seen, kept = set(), []
    for choice in choices:
        if choice.key() not in seen:
            seen.add(choice.key())
            kept.append(choice)
    return kept


def named_axes(text: str) -> Optional[Tuple[int, ...]]:
    """Return sizes for a jaxtyping string ("batch dim", "*b 3 h"); None if it leaves them open."""
    sizes: List[int] = []
    for token in text.split():
        axis = token.lstrip("#?").partition("=")[2] or token.lstrip("#?")
        if axis == "...":
            return None
        if axis.startswith("*"):
            sizes += [BATCH] if axis != "*" else []
        elif axis.isdigit():
            sizes.append(int(axis))
        elif axis.isidentifier():
            sizes.append(axis_size(axis))
        else:
            known = {word: axis_size(word) for word in re.findall(r"[A-Za-z_]\w*", axis)}
            try:
                sizes.append(int(eval(axis, {"__builtins__": {}}, known)))
            except Exception:  # an expression of unknown names
                return None
    return tuple(sizes)


def axis_size(name: str) -> int:
    """Return the size of a named axis, which is the same everywhere."""
    lower = name.lower().strip("_")
    if re.fullmatch(r"b|bs|batch\w*|n|bsz", lower):
        return BATCH
    if re.fullmatch(r"s|t|l|q|k|seq\w*|time\w*|len\w*|\w*_len(gth)?|tokens?|positions?", lower):
        return LENGTH
    if re.fullmatch(r"h|n?heads?|num_heads|layers", lower):
        return sizes.get("heads", 2) if lower != "layers" else 2
    return sizes.get("width", WIDTH)
