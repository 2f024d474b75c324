"""Shrink the sizes in a configuration, all of them in proportion.

Widths are divided by one number, so that head_dim * heads stays the width and a factor of four
stays four. Numbers of heads are kept. Depths become two, vocabularies about a hundred, and
sequences a few dozen long. Equal sizes stay equal.
"""

from __future__ import annotations

import argparse
import copy
import re
import types
from typing import Any, Callable, Dict, Iterator, List, Set, Tuple

from ..frameworks import flax_modules
from ..lookup import attribute, has
from . import expressions

_VOCABULARY = re.compile(r"(\w+_)?(vocab\w*|num_embeddings|n_tokens|num_tokens)")
_DEPTH = re.compile(
    r"(\w+_)?(n|num|number_of)_?(\w+_)?(layers?|blocks)|(\w+_)?(depth|layers|blocks_num)"
)
_HEADS = re.compile(r"(\w+_)?(n|num)?_?(\w+_)?heads?|(\w+_)?n_head(_kv)?|num_(\w+_)?groups|groups")
_LENGTH = re.compile(
    r"(\w+_)?(max_?len\w*|seq_?len\w*|sequence_length|context(_\w+)?|max_\w*(pos|seq|len)\w*"
    r"|n_positions|n_ctx|block_size|\w*chunk_size|length|window(_size)?|max_target_length)"
)
_IMAGE = re.compile(r"(\w+_)?(image|img|input|crop)_?(size|res\w*)|resolution|(\w+_)?patch_?size")
_WIDTH = re.compile(
    r"(\w+_)?(size|width|dims?|dimension|features|hidden|channels|units|filters|embd|embed|inner"
    r"|ff|ffn|mlp|latent)|d_\w+|n_(embd|embed|inner|hidden|units|state)|(\w+_)?dim_\w+|dff|dmodel"
)
_NOT_A_WIDTH = re.compile(
    r"(\w+_)?(batch|kernel|stride|bucket|buffer|mesh|shard|cache)_?(\w+_)?size"
)
_TOKEN = re.compile(r"\w+_(token_id|token|id|idx)")

# Preferred names of the width of activations, the best first.
MAIN_WIDTH = re.compile(
    r"(hidden_size|d_model|n_embd|embed_dim|emb_dim|model_dim|hidden_dim|width|dim|features)"
)

_SMALLEST_HEAD, _SMALLEST_WIDTH = 4, 8
_DEPTH_USED, _VOCABULARY_USED, _LENGTH_USED = 2, 96, 32
_SMALL = 16
_LARGE = 1024

Number = Tuple[str, int]
Change = Callable[[str, int], int]


def kind(name: str) -> str:
    """Return which kind of size a name says, or ""."""
    name = name.lower().strip("_")
    patterns = (
        ("vocabulary", _VOCABULARY),
        ("heads", _HEADS),
        ("depth", _DEPTH),
        ("length", _LENGTH),
        ("image", _IMAGE),
        ("", _NOT_A_WIDTH),
        ("token", _TOKEN),
        ("width", _WIDTH),
    )
    return next((found for found, pattern in patterns if pattern.fullmatch(name)), "")


def numbers(value: Any, name: str = "", depth: int = 6) -> Iterator[Number]:
    """Yield the integers in settings, with their names."""
    if type(value) is int:
        yield name, value
    elif depth:
        for part_name, part in _parts(value, name):
            yield from numbers(part, part_name, depth - 1)


def changed(value: Any, change: Change, name: str = "", depth: int = 6) -> Any:
    """Return a copy of settings with other integers; what does not change is not copied."""
    if type(value) is int:
        return change(name, value)
    if not depth:
        return value
    new = {}
    for part_name, part in _parts(value, name, keys=True):
        other = changed(part, change, part_name[1] if part_name[1] else name, depth - 1)
        if other is not part and not (type(part) is int and other == part):
            new[part_name[0]] = other
    return replaced(value, new) if new else value


def levels(settings: Dict[str, Any]) -> List[Dict[str, Any]]:
    """Return smaller versions of keyword arguments, the smallest first, and the original."""
    found = list(numbers(settings))
    every = _change(found, ("vocabulary", "depth", "length", "width", "token", "image"))
    some = _change(found, ("vocabulary", "depth", "width", "token"))
    few = _change(found, ("vocabulary", "token", "length", "depth"))
    versions = [changed(settings, change) for change in (every, some, few)] + [settings]
    kept: List[Dict[str, Any]] = []
    for version in versions:
        if all(list(numbers(version)) != list(numbers(other)) for other in kept):
            kept.append(version)
    return kept


def is_large(settings: Dict[str, Any]) -> bool:
    """Return whether a module of these sizes is too large to compute with."""
    sized = ("width", "vocabulary", "length")
    return any(kind(name) in sized and number > _LARGE for name, number in numbers(settings))


def main_sizes(settings: Dict[str, Any]) -> Dict[str, int]:
    """Return the width of activations and the number and size of heads, where the names say so."""
    found: Dict[str, int] = {}
    ranked: List[Tuple[int, int]] = []
    for name, number in numbers(settings):
        match = MAIN_WIDTH.fullmatch(name.lower())
        if match:
            order = MAIN_WIDTH.pattern[1:-1].split("|").index(match.group(1))
            ranked.append((order, number))
        elif kind(name) == "heads" and "group" not in name:
            found["heads"] = max(number, found.get("heads", 0))
        elif name in ("head_dim", "head_size", "dim_head", "d_head") and number > 0:
            found["head_dim"] = number
    if ranked:
        found["width"] = min(ranked)[1]
        if found.get("heads") and found["width"] % found["heads"] == 0:
            found.setdefault("head_dim", found["width"] // found["heads"])
    return found


def _change(found: List[Number], kinds: Tuple[str, ...]) -> Change:
    """Return a function from the name and value of a size to its smaller value."""
    widths = {n for name, n in found if kind(name) == "width" and n >= _SMALL}
    of_heads = {n for name, n in found if n in widths and "head" in name.lower()}
    heads = {n for name, n in found if kind(name) == "heads" and n > 0}
    divisor = _divisor(widths, of_heads, heads)
    lengths = {n for name, n in found if kind(name) == "length" and n > _LENGTH_USED}
    shorter = 1
    while lengths and min(lengths) % (4 * shorter) == 0 and max(lengths) // shorter > _LENGTH_USED:
        if min(lengths) // (4 * shorter) < 2:
            break
        shorter *= 4
    vocabularies = sorted({n for name, n in found if kind(name) == "vocabulary" and n > 200})
    smaller = {n: _VOCABULARY_USED + 8 * i for i, n in enumerate(vocabularies)}
    patches = {n for name, n in found if kind(name) == "image" and "patch" in name.lower()}

    def change(name: str, number: int) -> int:
        said = kind(name)
        if said not in kinds:
            return number
        if said == "width" and number in widths:
            return number // divisor
        if said == "depth":
            return min(number, _DEPTH_USED)
        if said == "vocabulary":
            return smaller.get(number, number)
        if said == "length" and number > _LENGTH_USED:
            return number // shorter if number % shorter == 0 else number
        if said == "image" and len(patches) == 1 and "patch" not in name.lower():
            (patch,) = patches
            return 2 * patch if patch and number % patch == 0 and number > 2 * patch else number
        if said == "token" and smaller and number >= _VOCABULARY_USED:
            whole = next((n for n in vocabularies if number < n + _SMALL), vocabularies[-1])
            return max(0, smaller[whole] + min(number - whole, _SMALL))
        return number

    return change


def _divisor(widths: Set[int], of_heads: Set[int], heads: Set[int]) -> int:
    """Return by how much all widths can be divided, so that heads still divide them."""
    least = _SMALLEST_HEAD if heads or of_heads else _SMALLEST_WIDTH
    divided = [
        (width, count)
        for width in widths - of_heads
        for count in heads
        if width % count == 0 and width // count >= _SMALLEST_HEAD
    ]
    for divisor in range(min(widths or [1]) // least, 1, -1):
        even = all(
            width % (divisor * count * 2) == 0 or width // count % 2 for width, count in divided
        )
        each = all(
            width % (divisor * count) == 0 and width // divisor // count >= _SMALLEST_HEAD
            for width, count in divided
        )
        if even and each and not any(width % divisor for width in widths):
            return divisor
    return 1


# Structure of settings


def _parts(value: Any, name: str, keys: bool = False) -> Iterator[Tuple[Any, Any]]:
    """Yield the parts of settings by name; with `keys`, by pairs of a key and a name."""
    if isinstance(value, dict):
        pairs = [(key, str(key), part) for key, part in dict.items(value)]
    elif isinstance(value, (list, tuple)):
        names = getattr(value, "_fields", None)
        pairs = [(i, names[i] if names else name, part) for i, part in enumerate(value)]
    elif holds_settings(value):
        pairs = [(field, field, part) for field, part in attributes(value).items()]
    else:
        return
    for key, said, part in pairs:
        yield ((key, said), part) if keys else (said, part)


def holds_settings(value: Any) -> bool:
    """Return whether an object holds settings."""
    if isinstance(value, type):
        return False
    if type(value) in (types.SimpleNamespace, argparse.Namespace):
        return True
    return flax_modules.is_module(value) or expressions.is_settings(type(value))


def attributes(value: Any) -> Dict[str, Any]:
    """Return what an object of settings holds."""
    if flax_modules.is_module(value):
        return dict(flax_modules.fields(value))
    if has(value, "convert_dict") and has(value, "items"):  # ml_collections
        return dict(value.items())
    found = dict(attribute(value, "__dict__", {}))
    for cls in type(value).__mro__:
        for slot in getattr(cls, "__slots__", ()):
            if isinstance(slot, str) and has(value, slot):
                found[slot] = getattr(value, slot)
    return found


def replaced(value: Any, new: Dict[Any, Any]) -> Any:
    """Return a copy of settings, a container, or a module with other parts."""
    if isinstance(value, dict):
        return type(value)({**value, **new}) if type(value) is dict else _updated(value, new)
    if isinstance(value, (list, tuple)):
        parts = [new.get(i, part) for i, part in enumerate(value)]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if flax_modules.is_module(value):
        return value.clone(**new)
    if has(value, "convert_dict"):
        made = copy.deepcopy(value)
        with made.unlocked():
            for key, part in new.items():
                made[key] = part
        return made
    made = copy.copy(value)
    for key, part in new.items():
        object.__setattr__(made, key, part)
    return made


def _updated(value: Any, new: Dict[Any, Any]) -> Any:
    made = copy.copy(value)
    made.update(new)
    return made
