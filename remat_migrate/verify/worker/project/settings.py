"""Settings: configuration objects, dictionaries of options, and the fields of Flax modules."""

from __future__ import annotations

import argparse
import copy
import re
import types
from typing import Any, Collection, Dict, Iterator, List, Tuple

from ..frameworks import flax_modules
from ..lookup import attribute, has

_VOCABULARY = re.compile(r"(\w+_)?(vocab\w*|num_embeddings|n_tokens|num_tokens)")
_DEPTH = re.compile(
    r"(\w+_)?(n|num|number_of)_?(\w+_)?(layers?|blocks)|(\w+_)?(depth|layers|blocks_num)"
)
_HEADS = re.compile(r"(\w+_)?(n|num)?_?(\w+_)?heads?|(\w+_)?n_head(_kv)?")
_LENGTH = re.compile(
    r"(\w+_)?(max_?len\w*|seq_?len\w*|sequence_length|context(_\w+)?|max_\w*(pos|seq|len)\w*"
    r"|n_positions|n_ctx|block_size|\w*chunk_size|length|window(_size)?|max_target_length)"
)
_NOT_A_WIDTH = re.compile(
    r"(\w+_)?(batch|kernel|stride|bucket|buffer|mesh|shard|cache)_?(\w+_)?size"
)
_WIDTH = re.compile(
    r"(\w+_)?(size|width|dims?|dimension|features|hidden|channels|units|filters|embd|embed|inner"
    r"|ff|ffn|mlp|latent)|d_\w+|n_(embd|embed|inner|hidden|units|state)|(\w+_)?dim_\w+|dff|dmodel"
)
# Names of the width of activations, the best first.
_MAIN_WIDTHS = (
    *("hidden_size", "d_model", "n_embd", "embed_dim", "emb_dim"),
    *("model_dim", "hidden_dim", "width", "dim", "features"),
)
_HEAD_WIDTHS = ("head_dim", "head_size", "dim_head", "d_head")

# More layers than these become two.
_DEEP, _SHALLOW = 12, 2
_LARGE = 1024
_DEEPEST = 6


def is_settings_class(cls: Any) -> bool:
    """Return whether a class appears to hold settings rather than arrays or layers."""
    if not isinstance(cls, type) or (cls.__module__ or "") in ("builtins", "typing", "enum"):
        return False
    if flax_modules.is_module_class(cls) or any(b.__name__ == "Module" for b in cls.__mro__):
        return False
    texts = [str(a) for b in cls.__mro__ for a in getattr(b, "__annotations__", {}).values()]
    if any(re.search(r"Array|ndarray|Tensor|PyTree|Tracer", text) for text in texts):
        return False
    known = ("__dataclass_fields__", "__attrs_attrs__", "model_fields", "_fields")
    if any(hasattr(cls, attribute) for attribute in known):
        return True
    named = r"(Config(uration|Dict)?|Args|Arguments|H(yper)?[pP]aram(eter)?s|Options|Settings|Cfg)$"
    return any(re.search(named, base.__name__) for base in cls.__mro__)


def holds_settings(value: Any) -> bool:
    """Return whether a value holds settings by name."""
    if isinstance(value, type):
        return False
    if isinstance(value, dict):
        return bool(value) and all(type(key) is str for key in value)
    if type(value) in (types.SimpleNamespace, argparse.Namespace):
        return True
    return flax_modules.is_module(value) or is_settings_class(type(value))


def fields(settings: Any) -> Dict[str, Any]:
    """Return what settings hold by name: entries of a dictionary, attributes of an object."""
    if isinstance(settings, dict):
        return {key: value for key, value in dict.items(settings) if isinstance(key, str)}
    if flax_modules.is_module(settings):
        return dict(flax_modules.fields(settings))
    if has(settings, "convert_dict") and has(settings, "items"):  # ml_collections
        return dict(settings.items())
    found = {name: getattr(settings, name) for name in getattr(settings, "_fields", ())}
    found.update(attribute(settings, "__dict__", {}))
    for cls in type(settings).__mro__:
        for slot in getattr(cls, "__slots__", ()):
            if isinstance(slot, str) and has(settings, slot):
                found[slot] = getattr(settings, slot)
    return found


def replaced(settings: Any, new: Dict[str, Any]) -> Any:
    """Return a copy of settings with other values of some fields."""
    if flax_modules.is_module(settings):
        return settings.clone(**new)
    if hasattr(settings, "_replace"):
        return settings._replace(**new)
    if has(settings, "convert_dict"):
        made = copy.deepcopy(settings)
        with made.unlocked():
            for key, part in new.items():
                made[key] = part
        return made
    made = copy.copy(settings)
    if isinstance(settings, dict):
        made.update(new)
        return made
    for key, part in new.items():
        object.__setattr__(made, key, part)
    return made


# Sizes


def _kind(name: str) -> str:
    """Return which kind of size a name says, or ""."""
    name = name.lower().strip("_")
    patterns = (
        ("vocabulary", _VOCABULARY),
        ("heads", _HEADS),
        ("depth", _DEPTH),
        ("length", _LENGTH),
        ("", _NOT_A_WIDTH),
        ("width", _WIDTH),
    )
    return next((found for found, pattern in patterns if pattern.fullmatch(name)), "")


def _numbers(value: Any, name: str = "", depth: int = _DEEPEST) -> Iterator[Tuple[str, int]]:
    """Yield the integers in settings, with their names."""
    if type(value) is int:
        yield name, value
    elif depth and isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        for part in value:
            yield from _numbers(part, name, depth - 1)
    elif depth and holds_settings(value):
        for part_name, part in fields(value).items():
            yield from _numbers(part, part_name, depth - 1)


def shallow(settings: Any, depth: int = _DEEPEST) -> Any:
    """Return settings with few layers in place of many."""
    new = {}
    for name, value in fields(settings).items():
        if type(value) is int and value > _DEEP and _kind(name) == "depth":
            new[name] = _SHALLOW
        elif depth and holds_settings(value):
            inner = shallow(value, depth - 1)
            new.update({name: inner} if inner is not value else {})
    return replaced(settings, new) if new else settings


def is_large(settings: Dict[str, Any]) -> bool:
    """Return whether a module of these sizes is too large to compute with."""
    sized = ("width", "vocabulary", "length")
    return any(_kind(name) in sized and number > _LARGE for name, number in _numbers(settings))


def main_sizes(settings: Dict[str, Any], read: Collection[str]) -> Dict[str, int]:
    """Return the width of activations, the number and size of heads, and the vocabulary.

    Each is there if the names of the settings say so; the vocabulary if the code reads it.
    """
    found: Dict[str, int] = {}
    widths: List[Tuple[int, int]] = []
    for name, number in _numbers(settings):
        if name.lower() in _MAIN_WIDTHS:
            widths.append((_MAIN_WIDTHS.index(name.lower()), number))
        elif _kind(name) == "heads":
            found["heads"] = max(number, found.get("heads", 0))
        elif _kind(name) == "vocabulary" and name in read:
            found["vocabulary"] = number
        elif name in _HEAD_WIDTHS and number > 0:
            found["head_dim"] = number
    if widths:
        found["width"] = min(widths)[1]
        if found.get("heads") and found["width"] % found["heads"] == 0:
            found.setdefault("head_dim", found["width"] // found["heads"])
    return found
