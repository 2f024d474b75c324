"""Shapes that match other shapes: in operators, in error messages, in named axes."""

from __future__ import annotations

import math
import re
from typing import Collection, Iterator, List, Mapping, Optional, Sequence, Tuple

from .candidates import BATCH, LENGTH, WIDTH, sizes
from .node import CONSTANT, Choice, Shape

# Entries of an array of which the message says that it is too short.
_MOST_MULTIPLIED = 1 << 23
# Sizes and shapes that are tried.
_LARGEST, _MOST = 64, 24


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


def repairs(choice: Choice, message: str, integers: Collection[int]) -> List[Choice]:
    """Return other shapes for an array, with the sizes that a message mentions.

    `integers` are those of the code, which say into how many parts it is split.
    """
    shape, dtype = choice.value
    others = [other for other in shapes_in(message) if other != shape]
    sizes = [size for other in others for size in reversed(other)]
    sizes += [n for n in map(int, _NUMBER.findall(message)) if 1 < n <= _LARGEST]
    sizes = list(dict.fromkeys(sizes))
    found: List[Shape] = []
    for at in reversed(range(len(shape))):
        new = list(sizes)
        if "equal division" in message:
            # Weights of projections that are split, such as those of queries, keys, and values.
            new = [shape[at] * n for n in sorted(integers) if 1 < n <= 8] + new
        # The size in the message is the sum of this one and others, as in a concatenation.
        new += [shape[at] + a - b for a in sizes[:3] for b in sizes[:3] if a != b]
        found += [(*shape[:at], size, *shape[at + 1 :]) for size in new if size > 0]
    for other in others:
        found += [other[start:] for start in range(len(other))]
    # A size of one fits everything, and hides what happens to the axis.
    found.sort(key=lambda one: one.count(1) > shape.count(1))
    different = [one for one in dict.fromkeys(found) if one != shape and math.prod(one) <= 4096]
    return [Choice(choice.kind, (one, dtype)) for one in different[:_MOST]]


def unpacked(message: str) -> int:
    """Return into how many parts a message says that something is unpacked; 0 for others."""
    found = re.search(r"not enough values.*expected (\d+)", message) or re.search(
        r"too many values to unpack \(expected (\d+)", message
    )
    return int(found.group(1)) if found else 0


def rank_wanted(message: str, rank: int) -> int:
    """Return the rank that a message wants in place of another; 0 where it tells none."""
    if parts := unpacked(message):
        return parts
    if "convolution" in message and "ndim" in message and rank != 4:
        return 4  # images and kernels; the next message is about their sizes
    ranks = re.search(r"(?:number of dimensions\D+|array is )(\d+)\D+(\d+)", message)
    if not ranks:
        return 0
    one, other = map(int, ranks.groups())
    return other if rank == one else one if rank == other else 0


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
