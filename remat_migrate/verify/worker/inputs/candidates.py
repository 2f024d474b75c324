"""Candidate values for a parameter, by its name.

Sizes are a batch of 2, 4 positions, and 8 features. Weights are square at first, so that most
products of activations and weights fit without a search.
"""

from __future__ import annotations

import re
import zlib
from typing import Any, Dict, Iterable, List, Optional

from .node import DICT, KEY, Choice, Node, Plan, Shape, array, value

BATCH, LENGTH, WIDTH = 2, 4, 8

# The entries of a dictionary of which nothing is known.
MADE_UP = ("w", "b")

# Where the project's own rate of dropout is zero.
_USUAL_DROPOUT = 0.25

# A string that no code knows, for the branch of all others.
OTHER = "other"

# The sizes of the module that is being run, if they are known: "width", "heads", "head_dim", and
# "vocabulary" if it reads that.
sizes: Dict[str, int] = {}

_X = [(2, 4, 8), (4, 8), (2, 8), (8,), (), (8, 8), (2, 4), (2, 8, 8, 3), (2, 4, 2, 8), (2,)]
_WEIGHT = [(8, 8), (8,), (2, 4, 8), (), (2, 8, 8), (8, 2, 8), (3, 3, 8, 8), (4, 8), (2, 8)]
_VECTOR = [(8,), (), (8, 8), (4, 8), (1, 8), (2, 8), (2, 4, 8)]
_HEADS = [(2, 4, 2, 8), (2, 4, 8), (2, 2, 4, 8), (4, 8), (8,)]
_IMAGE = [(2, 8, 8, 3), (8, 8, 3), (2, 3, 8, 8), (8, 8), (2, 8)]
_INDEX = [(2, 4), (2,), (4,), (), (8,), (2, 1)]
_LABEL = [(2,), (2, 4), (4,), (2, 8), ()]
_MASK = [(2, 4), (2, 4, 8), (4, 4), (2, 1, 4, 4), (2, 4, 4), (2, 4, 1), (4,), (8,), (1, 1, 4, 4)]
_TIME = [(), (2,), (2, 4), (2, 1), (4,)]
_LAST = [
    (4, 4),
    (2, 2, 4, 4),
    (2, 2, 8, 8, 3),
    (16,),
    (1,),
    (2, 1),
    (2, 4, 1),
    (1, 4, 8),
    (3,),
    (2, 2),
]

_FLAG = re.compile(
    r"(is|use|has|do|with|should|enable|apply|return|skip|allow|include)_\w+"
    r"|\w+_(flag|enabled|checkpointing)"
    r"|train|training|deterministic|inference|testing|eval|evaluate|causal|verbose|debug|remat"
    r"|reverse|bidirectional|decode|prefill|flag|flags|stochastic|normalize|normalise"
)
_CHECKPOINTS = re.compile(r"remat|checkpointing|use_checkpoint|grad(ient)?_checkpoint")
_KEY = re.compile(r"(\w+_)?(key|rng|prng|prngkey|prng_key|subkey|rng_key)(_\w+)?\d?")
KEYS = re.compile(r"(\w+_)?(keys|rngs|subkeys)")
_HEAD_COUNT = re.compile(r"(\w+_)?n?heads?|num_(\w+_)?heads|n_head")
_SIZE = re.compile(
    r"(\w+_)?(size|width|dims?|features|hidden|channels|units|vocab|vocabulary|height|length|len)"
    r"|d_(model|ff|k|v|head|hidden)|(in|out)_(features|channels|size|dim)|embed(ding)?_dim"
)
_COUNT = re.compile(
    r"(num|n|number|max|min|total)_\w+|n|num|count|\w+_(count|steps|idx|index|step|num|id|depth)"
    r"|steps?|depth|levels|order|bits|window|rows|cols|columns|stride|rank|degree|repeats?|times"
    r"|epochs?|iterations|iters|octaves?|classes|length|index|idx|i|j|groups|power|stop|end|tail"
)
_START = re.compile(r"start|offset_index|seed|begin|layer_(idx|index|id|num|number)")
_RATE = re.compile(
    r"(\w+_)?(rate|drop|dropout|drop_path|prob|probability|pdrop|eps|epsilon|alpha|temperature|lr|momentum|decay"
    r"|factor|ratio|threshold|sharpness|tau|lam|coef|coefficient|strength|smoothing|percent|clip)"
)
_AXIS = re.compile(r"(\w+_)?(axis|dimension)")
DTYPE = re.compile(r"(\w+_)?(dtype)")
_SHAPE = re.compile(r"(\w+_)?(shape)")
CALLABLE = re.compile(
    r"(\w+_)?(act|activation|nonlinearity|fn|func|fun|function|callback|initializer)|f|apply"
)
_INDICES = re.compile(
    r"(\w+_)?(tokens?|ids|indices|index|positions|segments|input_ids|pos|senders?|receivers?)"
    r"|inputs_positions|edge_index|segment_ids"
)
_SEQUENCE = re.compile(r"(\w+_)?(inputs?|targets?|src|tgt|x)")
_LABELS = re.compile(r"(\w+_)?(labels?|targets?)")
_LENGTHS = re.compile(r"(\w+_)?(lengths|sizes|counts|lens)")
_ACTIVATIONS = re.compile(
    r"(\w+_)?(inputs?|x|h|y|z|xs|hidden(_states)?|states?|activations?|embed(ded|dings?)|logits"
    r"|encoded|outputs?|features|carry|residual|signal|values|data)\d*"
)
_TIMES = re.compile(r"t|(\w+_)?(time|timestep)s?")
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
TEXT = re.compile(
    r"(\w+_)?(spec|subscripts|equation|pattern|mode|kind|method|reduction|variant|formula|einsum)"
)
SEQUENCES = re.compile(r"layers|blocks|params|weights|xs|states|\w+_(layers|list|states)|caches?")
_SETTINGS = re.compile(r"(\w+_)?(cfg|config|hparams|hps?|options|opts|settings|args|conf)")
_PARAMETERS = re.compile(r"(\w+_)?(params|weights|variables|theta|parameters|batch|data|example)")

PRNG = [Choice(KEY, ("raw", 0)), Choice(KEY, ("typed", 0))]


def matches(pattern: Any, name: str) -> bool:
    """Return whether a pattern matches a whole name, without case and outer underscores."""
    return bool(pattern.fullmatch(name.lower().strip("_")))


def is_settings(name: str) -> bool:
    """Return whether a name suggests an object of settings."""
    return matches(_SETTINGS, name)


def is_weight(node: Node) -> bool:
    """Return whether an array is likely to be a parameter of a network, not an activation."""
    if node.in_tree:
        return True
    return len(node.name) > 1 and (matches(_WEIGHTS, node.name) or matches(_VECTORS, node.name))


def counts_of(default: Any) -> List[Choice]:
    """Return zero or one, and two; nothing for others.

    They are often special cases: no layers to skip, a stride, groups, the experts of a token.
    """
    is_special = type(default) is int and default in (0, 1)
    return [value(default), value(2)] if is_special else []


def rates_of(name: str, default: float) -> List[Choice]:
    """Return a float and another to try; no dropout comes last, as it does nothing."""
    if 0 < default < 1e-2:  # an epsilon shows only when it is not small
        return [value(default), value(min(1000 * default, 0.05))]
    found = [value(default), value(default * 0.625 if default else _USUAL_DROPOUT)]
    is_dropout = is_rate(name) and "drop" in name.lower()
    return found[::-1] if is_dropout and not default else found


def is_number(name: str) -> bool:
    """Return whether a name suggests a Python number: a size, a count, a rate."""
    return any(matches(pattern, name) for pattern in (_COUNT, _SIZE, _START, _RATE, _HEAD_COUNT))


def is_rate(name: str) -> bool:
    """Return whether a name suggests a rate, a probability, a small number, or a factor."""
    return matches(_RATE, name) or matches(_VECTORS, name)


def is_positive(name: str) -> bool:
    """Return whether a name suggests an array with positive entries."""
    return matches(_POSITIVE, name)


def integers(name: str) -> List[Choice]:
    """Return candidates for a Python integer of a name."""
    if matches(_AXIS, name):
        first = [-1, 0, 1]
    elif matches(_HEAD_COUNT, name) or matches(_START, name):
        first = [0, 1] if matches(_START, name) else [2, 1]
    elif matches(_SIZE, name):
        first = [8, 4, 2]
    else:
        first = [2, 8, 1, 3]
    return [value(number) for number in [*first, 1, 2, 0, 3, 4, 8, 16]]


def floats(name: str) -> List[Choice]:
    """Return candidates for a Python float of a name."""
    if re.search("eps", name.lower()):
        return [value(1e-3), value(0.5)]
    # Two of them differ, so that one in place of the other shows.
    own = round(0.4 + 0.2 * zlib.crc32(name.encode()) / 2**32, 3)
    return [value(number) for number in (own, 0.5, 2.0, 0.1, 0.0, -0.5)]


def numbers(name: str) -> List[Choice]:
    """Return candidates for a Python number of a name: integers first, unless it is a rate."""
    if is_rate(name):
        return floats(name) + integers(name)[:3]
    return integers(name) + floats(name)[:2]


def strings(name: str) -> List[Choice]:
    """Return candidates for a string of a name."""
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
        first = [OTHER]
    return [value(text) for text in [*first, "mean", "tanh", "float32", "constant"]]


def both(first: bool = True) -> List[Choice]:
    """Return both values of a flag."""
    return [value(first), value(not first)]


def flag(name: str, default: bool) -> Plan:
    """Return a flag with its default, and the other value; checkpoints are on at first.

    Then other flags vary with them, which is what they are edited for.
    """
    first = default or switches_checkpoints(name)
    return Plan([value(first)], both(first))


def switches_checkpoints(name: str) -> bool:
    """Return whether a name suggests a setting that puts checkpoints in place."""
    return bool(_CHECKPOINTS.search(name.lower()))


def shapes(name: str, inside: bool) -> List[Choice]:
    """Return arrays for a name, likeliest first. `inside`: it is part of a container of weights."""
    dtype, first = "float32", _WEIGHT if inside else _X
    if matches(_SEQUENCE, name) and not inside and "vocabulary" in sizes:
        tokens = [array(shape, "int32") for shape in _INDEX]
        return tokens + [array(_with_sizes(shape)) for shape in _X]
    if matches(_INDICES, name):
        dtype, first = "int32", _INDEX
    elif matches(_LABELS, name) or matches(_LENGTHS, name):
        dtype, first = "int32", _LABEL
    elif matches(_MASKS, name):
        dtype, first = "bool", _MASK
    elif matches(_TIMES, name) and not inside:
        first = _TIME
    elif matches(_IMAGES, name):
        first = _IMAGE
    elif matches(_ATTENTION, name) and not inside:
        first = _HEADS
    elif matches(_WEIGHTS, name):
        first = _WEIGHT
    elif matches(_VECTORS, name):
        first = _VECTOR
    elif is_number(name):
        first = [(), (8,), (2, 4, 8)]
        if inside and matches(_COUNT, name):
            dtype = "int32"
    elif name.lower() == "logits":
        first = [(2, 8), (2, 4, 8), (8,)]
    every = first + [shape for shape in _X + _WEIGHT + _LAST if shape not in first]
    sized = every if first is _IMAGE else [_with_sizes(shape) for shape in every]
    return [array(shape, dtype) for shape in sized]


def _with_sizes(shape: Shape) -> Shape:
    """Return a shape with the sizes of the module in place of the usual ones."""
    if shape[2:] == (2, WIDTH) and "head_dim" in sizes:
        return (*shape[:2], sizes.get("heads", 2), sizes["head_dim"])
    return tuple(sizes.get("width", size) if size == WIDTH else size for size in shape)


def plan_by_name(name: str, inside: bool, siblings: Iterable[str] = ()) -> Optional[Plan]:
    """Return what to pass before any use is known; None to wait for its uses."""
    among = {sibling.lower() for sibling in siblings}
    attention = name.lower() in ("key", "keys") and among & {"query", "value", "queries", "q", "v"}
    if matches(_KEY, name) and not attention and not inside:
        return Plan(PRNG + shapes(name, inside)[:4])
    if inside:
        return None
    is_flag = matches(_FLAG, name) and not is_number(name) and not matches(CALLABLE, name)
    if is_flag:
        return Plan(both() + shapes(name, inside)[:3], both())
    if matches(_AXIS, name):
        return Plan([*integers(name), value("axis")])
    if matches(DTYPE, name):
        import jax.numpy as jnp

        return Plan([value(jnp.float32), value("float32"), value(jnp.bfloat16)])
    return None


def is_setting(node: Node) -> bool:
    """Return whether a node is part of an object or dict of settings, which holds no arrays."""
    parent = node.parent
    if parent is None or parent.choice.kind != DICT:
        return False
    return is_settings(parent.name)


def by_name(node: Node) -> List[Choice]:
    """Return candidates for a node by its name."""
    name, inside = node.name, node.inside
    if is_setting(node):
        return (strings(name) if matches(TEXT, name) else numbers(name)) + shapes(name, inside)
    if not inside and matches(_PARAMETERS, name):
        return [Choice(DICT, MADE_UP), *shapes(name, inside)]
    if not inside and is_settings(name):
        return [value({})]
    if matches(CALLABLE, name):
        import jax.numpy as jnp

        return [value(jnp.tanh), *shapes(name, inside)]
    if matches(KEYS, name):
        return [Choice(KEY, ("raw", 4)), Choice(KEY, ("typed", 4))]
    if matches(_SHAPE, name):
        return [value(shape) for shape in ((-1,), (2, 4, 8), (8, 8), (4, 8), (8,), (2, 8))]
    if not inside and matches(TEXT, name):
        return strings(name) + shapes(name, inside)
    if not inside and is_number(name):
        return numbers(name) + shapes(name, inside)
    return shapes(name, inside)


def around(number: float) -> List[Choice]:
    """Return the values that a comparison with `number` distinguishes: above, equal, below."""
    if isinstance(number, int):
        below = [value(number - 1)] if number > 0 else []
        return [value(number + 1), value(number), *below]
    return [value(number + 0.5), value(number - 0.5), value(number)]


def looks_like_array(name: str) -> bool:
    """Return whether a name suggests an array."""
    patterns = (_INDICES, _LABELS, _LENGTHS, _MASKS, _IMAGES, _ATTENTION, _WEIGHTS, _VECTORS)
    if matches(_ACTIVATIONS, name):
        return True
    return any(matches(pattern, name) for pattern in patterns) or len(name) == 1
