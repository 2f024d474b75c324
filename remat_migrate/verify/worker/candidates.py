"""What a name suggests, and which shapes go with what an array is combined with.

Sizes: a batch of 2, 4 positions, 8 features. Weights are square at first, so that most products of
activations and weights fit without a search.
"""

from __future__ import annotations

import re
from typing import Any, Iterable, List, Optional, Sequence, Tuple

from .node import CONSTANT, KEY, Choice, Plan, Shape, array, value

BATCH, LENGTH, WIDTH = 2, 4, 8

_X = [(2, 4, 8), (4, 8), (2, 8), (8,), (), (8, 8), (2, 4), (2, 8, 8, 3), (2, 4, 2, 8), (2,)]
_WEIGHT = [(8, 8), (8,), (2, 4, 8), (), (2, 8, 8), (8, 2, 8), (3, 3, 8, 8), (4, 8), (2, 8)]
_VECTOR = [(8,), (), (8, 8), (4, 8), (1, 8), (2, 8), (2, 4, 8)]
_HEADS = [(2, 4, 2, 8), (2, 4, 8), (2, 2, 4, 8), (4, 8), (8,)]
_IMAGE = [(2, 8, 8, 3), (8, 8, 3), (2, 3, 8, 8), (8, 8), (2, 8)]
_INDEX = [(2, 4), (2,), (4,), (), (8,), (2, 1)]
_LABEL = [(2,), (2, 4), (4,), (2, 8), ()]
_MASK = [(2, 4), (2, 4, 8), (4, 4), (2, 1, 4, 4), (2, 4, 4), (2, 4, 1), (4,), (8,), (1, 1, 4, 4)]
_LAST = [(4, 4), (2, 2, 4, 4), (16,), (1,), (2, 1), (2, 4, 1), (1, 4, 8), (3,), (2, 2)]

_FLAG = re.compile(
    r"(is|use|has|do|with|should|enable|apply|return|output|add|no|not|skip|keep|allow|include)_\w+"
    r"|\w+_(flag|enabled|checkpointing)"
    r"|train|training|deterministic|inference|testing|eval|evaluate|causal|verbose|debug|remat"
    r"|reverse|residual|bidirectional|decode|prefill|flag|flags|stochastic|normalize|normalise"
)
_KEY = re.compile(r"(\w+_)?(key|rng|prng|prngkey|prng_key|subkey|rng_key)(_\w+)?\d?")
_KEYS = re.compile(r"(\w+_)?(keys|rngs|subkeys)")
_HEAD_COUNT = re.compile(r"(\w+_)?n?heads?|num_(\w+_)?heads|n_head")
_SIZE = re.compile(
    r"(\w+_)?(size|width|dims?|features|hidden|channels|units|vocab|vocabulary|height|length|len)"
    r"|d_(model|ff|k|v|head|hidden)|(in|out)_(features|channels|size|dim)|embed(ding)?_dim"
)
_COUNT = re.compile(
    r"(num|n|number|max|min|total)_\w+|n|num|count|\w+_(count|steps|idx|index|step|num|id|depth)"
    r"|steps?|depth|levels?|order|bits|window|rows|cols|columns|stride|rank|degree|repeats?|times"
    r"|epochs?|iterations|iters|octaves?|classes|length|index|idx|i|j|groups|power|stop|end|tail"
)
_START = re.compile(r"start|offset_index|seed|begin|layer_(idx|index|id|num|number)")
_RATE = re.compile(
    r"(\w+_)?(rate|dropout|prob|probability|eps|epsilon|alpha|temperature|lr|momentum|decay"
    r"|factor|ratio|threshold|sharpness|tau|lam|coef|coefficient|strength|smoothing|percent|clip)"
)
_AXIS = re.compile(r"(\w+_)?(axis|dimension)")
_DTYPE = re.compile(r"(\w+_)?(dtype)")
_SHAPE = re.compile(r"(\w+_)?(shape)")
_CALLABLE = re.compile(
    r"(\w+_)?(act|activation|nonlinearity|fn|func|fun|function|callback|initializer)|f|apply"
)
_INDICES = re.compile(
    r"(\w+_)?(tokens?|ids|indices|positions|segments|input_ids|pos)|inputs_positions"
)
_LABELS = re.compile(r"(\w+_)?(labels?|targets?)")
_MASKS = re.compile(r"(\w+_)?(mask|masks|padding|valid|keep)")
_IMAGES = re.compile(r"(\w+_)?(images?|img|pixels)")
_WEIGHTS = re.compile(
    r"(\w+_)?(w|ws|kernel|weight|matrix|embedding|table|proj|projection|wi|wo|filter|lookup|u|a)\d*"
)
_VECTORS = re.compile(
    r"(\w+_)?(b|bs|bias|scale|gamma|beta|gain|offset|shift|g|variance|var|std)\d*"
)
_ATTENTION = re.compile(r"(q|k|v|query|key|value|queries|values)(_heads)?")
_POSITIVE = re.compile(r"(\w+_)?(scale|variance|var|std|sigma|gain|gamma|temperature|norm|rate)\d*")
_TEXT = re.compile(
    r"(\w+_)?(spec|subscripts|equation|pattern|mode|kind|method|reduction|variant|formula|einsum)"
)
_SEQUENCES = re.compile(r"layers|blocks|params|weights|xs|states|\w+_(layers|list|states)|caches?")
_SETTINGS = re.compile(r"(\w+_)?(cfg|config|hparams|hps|options|opts|settings|args|conf)")
_PARAMETERS = re.compile(r"(\w+_)?(params|weights|variables|theta|parameters|batch|data|example)")

PRNG = [Choice(KEY, ("raw", 0)), Choice(KEY, ("typed", 0))]


def matches(pattern: Any, name: str) -> bool:
    """Whether a whole name, in lower case and without underscores around it, fits."""
    return bool(pattern.fullmatch(name.lower().strip("_")))


def is_flag(name: str) -> bool:
    """A switch, going by its name."""
    return matches(_FLAG, name)


def is_settings(name: str) -> bool:
    """An object of settings, going by its name."""
    return matches(_SETTINGS, name)


def is_number(name: str) -> bool:
    """A Python number, going by its name: a size, a count, a rate."""
    return any(matches(pattern, name) for pattern in (_COUNT, _SIZE, _START, _RATE, _HEAD_COUNT))


def is_positive(name: str) -> bool:
    """An array whose entries are above zero, going by its name."""
    return matches(_POSITIVE, name)


def is_sequence(name: str) -> bool:
    """A list, going by its name."""
    return matches(_SEQUENCES, name)


def is_parameters(name: str) -> bool:
    """A tree of arrays, going by its name."""
    return matches(_PARAMETERS, name)


def integers(name: str) -> List[Choice]:
    """Values of a Python integer of a name."""
    if matches(_AXIS, name):
        first = [-1, 0, 1]
    elif matches(_HEAD_COUNT, name) or matches(_START, name):
        first = [0, 1] if matches(_START, name) else [2, 1]
    elif matches(_SIZE, name):
        first = [8, 4, 2]
    else:
        first = [2, 1, 3]
    return [value(number) for number in [*first, 1, 2, 0, 3, 4, 8, 16]]


def floats(name: str) -> List[Choice]:
    """Values of a Python float of a name."""
    if re.search("eps", name.lower()):
        return [value(1e-3), value(0.5)]
    return [value(number) for number in (0.5, 2.0, 0.1, 0.0, -0.5)]


def numbers(name: str) -> List[Choice]:
    """Values of a Python number of a name: integers first, unless it is a rate."""
    if matches(_RATE, name) or matches(_VECTORS, name):
        return floats(name) + integers(name)[:3]
    return integers(name) + floats(name)[:2]


def is_text(name: str) -> bool:
    """A string, going by its name."""
    return matches(_TEXT, name)


def strings(name: str) -> List[Choice]:
    """Values of a string of which nothing more is known than its name."""
    lower = name.lower()
    if re.search("act|nonlin|fn", lower):
        first = ["tanh", "relu", "gelu"]
    elif re.search("spec|subscripts|equation|einsum", lower):
        first = ["ij,jk->ik", "...j,jk->...k", "i,i->i"]
    elif re.search("pad", lower):
        first = ["SAME", "VALID", "constant"]
    elif re.search("dtype|type", lower):
        first = ["float32"]
    elif re.search("reduc|pool|mode|agg", lower):
        first = ["mean", "sum", "constant", "other"]
    else:
        first = ["other"]
    return [value(text) for text in [*first, "mean", "tanh", "float32", "constant"]]


def both(first: bool = True) -> List[Choice]:
    """The two switches."""
    return [value(first), value(not first)]


def shapes(name: str, inside: bool, siblings: Iterable[str] = ()) -> List[Choice]:
    """Arrays for a name, the likeliest first. `inside`: part of a container, so a parameter."""
    dtype, first = "float32", _WEIGHT if inside else _X
    if matches(_INDICES, name):
        dtype, first = "int32", _INDEX
    elif matches(_LABELS, name):
        dtype, first = "int32", _LABEL
    elif matches(_MASKS, name):
        dtype, first = "bool", _MASK
    elif matches(_IMAGES, name):
        first = _IMAGE
    elif matches(_ATTENTION, name) and not inside:
        first = _HEADS
    elif matches(_WEIGHTS, name):
        first = _WEIGHT
    elif matches(_VECTORS, name):
        first = _VECTOR
    elif not inside and is_number(name):
        first = [(), (8,), (2, 4, 8)]
    elif name.lower() == "logits":
        first = [(2, 8), (2, 4, 8), (8,)]
    every = first + [shape for shape in _X + _WEIGHT + _LAST if shape not in first]
    return [array(shape, dtype) for shape in every]


def plan_by_name(name: str, inside: bool, siblings: Iterable[str] = ()) -> Optional[Plan]:
    """What to hand out before it is known how it is used; None: wait and see."""
    among = {sibling.lower() for sibling in siblings}
    attention = name.lower() in ("key", "keys") and among & {"query", "value", "queries", "q", "v"}
    if matches(_KEY, name) and not attention and not inside:
        return Plan(PRNG + shapes(name, inside)[:4])
    if inside:
        return None
    if is_flag(name):
        return Plan(both() + shapes(name, inside)[:3], both())
    if matches(_AXIS, name):
        return Plan([*integers(name), value("axis")])
    if matches(_DTYPE, name):
        import jax.numpy as jnp

        return Plan([value(jnp.float32), value("float32"), value(jnp.bfloat16)])
    return None


def leftover(name: str, inside: bool) -> List[Choice]:
    """What to make of something that nothing was ever done with, or only tree functions."""
    if not inside and is_parameters(name):
        return [Choice("dict", ("w", "b")), *shapes(name, inside)]
    if not inside and is_settings(name):
        return [value({})]
    if matches(_CALLABLE, name):
        import jax.numpy as jnp

        return [value(jnp.tanh), *shapes(name, inside)]
    if matches(_KEYS, name):
        return [Choice(KEY, ("raw", 4)), Choice(KEY, ("typed", 4))]
    if matches(_SHAPE, name):
        return shape_tuples()
    if not inside and is_text(name):
        return strings(name) + shapes(name, inside)
    if not inside and is_number(name):
        return numbers(name) + shapes(name, inside)
    return shapes(name, inside)


def shape_tuples() -> List[Choice]:
    """Shapes as arguments."""
    return [value(shape) for shape in ((-1,), (2, 4, 8), (8, 8), (4, 8), (8,), (2, 8))]


def is_keys(name: str) -> bool:
    """Several random keys, going by the name."""
    return matches(_KEYS, name)


def is_callable(name: str) -> bool:
    """A function, going by the name."""
    return matches(_CALLABLE, name)


def broadcastable(left: Shape, right: Shape) -> bool:
    """Whether two shapes go together in an elementwise operation."""
    return all(a == b or 1 in (a, b) for a, b in zip(reversed(left), reversed(right)))


def beside(choices: Sequence[Choice], other: Shape) -> List[Choice]:
    """Arrays to be combined elementwise with one of shape `other`, the likeliest first."""
    fitting = [c for c in choices if broadcastable(c.value[0], other)]
    dtype = choices[0].value[1]
    # A vector of weights belongs to the last axis; an activation has the other's shape.
    mine = [array(other[start:], dtype) for start in range(len(other) + 1)]
    return _different(fitting[:2] + mine + fitting[2:] + list(choices))


def multiplied(choices: Sequence[Choice], other: Shape, reflected: bool) -> List[Choice]:
    """Arrays to be multiplied (`@`) with one of shape `other`; `reflected`: from the right."""
    if not other:
        return list(choices)
    size = other[-1] if reflected or len(other) == 1 else other[-2]
    fitted = []
    for choice in choices:
        shape, dtype = choice.value
        if shape:
            at = -2 if reflected and len(shape) > 1 else -1
            changed = list(shape)
            changed[at] = size
            fitted.append(array(changed, dtype))
    if reflected:
        # What stands on the right of `@` is a matrix, seldom a batch of them.
        fitted.sort(key=lambda choice: len(choice.value[0]) != 2)
    return _different(fitted + list(choices))


def at_least(choices: Sequence[Choice], rank: int) -> List[Choice]:
    """Those of at least `rank` axes first."""
    return sorted(choices, key=lambda choice: len(choice.value[0]) < rank)


_SHAPE_IN_TEXT = re.compile(r"[(\[]((?:\d+(?:, ?|,?(?=[)\]])))*)[)\]]")


def shapes_in(text: str) -> List[Shape]:
    """The shapes that a message speaks of."""
    found: List[Shape] = []
    for inner in _SHAPE_IN_TEXT.findall(text):
        shape = tuple(int(size) for size in re.findall(r"\d+", inner))
        if shape not in found and all(0 < size <= 64 for size in shape) and len(shape) < 7:
            found.append(shape)
    return found


def repairs(choice: Choice, message: str, constants: Sequence[Any]) -> List[Choice]:
    """Other shapes for an array, of the sizes that a message and its statement speak of."""
    shape, dtype = choice.value
    others = [other for other in shapes_in(message) if other != shape]
    found: List[Shape] = []
    sizes = [size for other in others for size in reversed(other)]
    sizes += [number for number in constants if type(number) is int and 1 < number <= 64]
    for at in reversed(range(len(shape))):
        found += [(*shape[:at], size, *shape[at + 1 :]) for size in sizes if size != shape[at]]
    for other in others:
        found += [other[start:] for start in range(len(other))]
    found += [(size,) for size in sizes]
    if "broadcast" in message:
        found.sort(key=lambda one: not all(broadcastable(one, other) for other in others))
    small = [one for one in found if _entries(one) <= 4096]
    return _different(Choice(choice.kind, (one, dtype)) for one in small)[:16]


def _entries(shape: Shape) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


def ranked(choices: Sequence[Choice], rank: int) -> List[Choice]:
    """The arrays among `choices` with so many axes."""
    return [c for c in choices if c.kind in ("array", CONSTANT) and len(c.value[0]) == rank]


def _different(choices: Iterable[Choice]) -> List[Choice]:
    seen, kept = set(), []
    for choice in choices:
        if choice.key() not in seen:
            seen.add(choice.key())
            kept.append(choice)
    return kept


def named_axes(text: str) -> Optional[Tuple[int, ...]]:
    """Sizes for a jaxtyping string ("batch dim", "*b 3 h"); None if it leaves the shape open."""
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
            except Exception:  # an expression of names that only the code knows
                return None
    return tuple(sizes)


def axis_size(name: str) -> int:
    """The size of a named axis, the same wherever the name stands."""
    lower = name.lower().strip("_")
    if re.fullmatch(r"b|bs|batch\w*|n|bsz", lower):
        return BATCH
    if re.fullmatch(r"s|t|l|q|k|seq\w*|time\w*|len\w*|\w*_len(gth)?|tokens?|positions?", lower):
        return LENGTH
    if re.fullmatch(r"h|n?heads?|num_heads|layers", lower):
        return 2
    return WIDTH


def around(number: float) -> List[Choice]:
    """The values that a comparison with `number` tells apart: above, below, equal."""
    if isinstance(number, int):
        below = [value(number - 1)] if number > 0 else []
        return [value(number + 1), value(number), *below]
    return [value(number + 0.5), value(number - 0.5), value(number)]


def looks_like_array(name: str) -> bool:
    """An array, going by its name."""
    patterns = (_INDICES, _LABELS, _MASKS, _IMAGES, _ATTENTION, _WEIGHTS, _VECTORS)
    return any(matches(pattern, name) for pattern in patterns) or len(name) == 1
