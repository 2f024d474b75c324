"""Guess what an input is by how the code uses its name, and by the name."""

from __future__ import annotations

from typing import Any, Callable, List, Tuple

import jax
import jax.numpy as jnp

from ..frameworks import flax_modules
from . import candidates, stand_in
from .node import DICT, LIST, Choice, Node, Plan, value
from .uses import Use

_ARRAY_ATTRIBUTES = {name for name in dir(jax.Array) if not name.startswith("_")}
_ARRAY_ATTRIBUTES |= {"shape", "dtype", "ndim", "size", "T", "at"}
_DICT_ATTRIBUTES = {"items", "keys", "values", "get", "pop", "update", "setdefault"}
_COUNTS = (2, 3, 1, 4)


def plan(node: Node, use: Use, objects: Callable[[Node], List[Choice]]) -> Plan:
    """Return what an input may be, likeliest first, and which values are worth a case.

    `objects` returns the project's classes with the attributes of a node.
    """
    texts = texts_of(use)
    if texts:
        return Plan(texts[:-1] + candidates.strings(node.name), texts)
    if use.called is not None:
        return Plan(functions(node, *use.called))
    if structured := _structured(node, use, objects):
        return Plan(structured)
    if use.attributes & _ARRAY_ATTRIBUTES:
        return Plan(candidates.shapes(node.name, node.inside) + candidates.by_name(node))
    if use.is_iterated:
        return Plan(sequences(node))
    return _number(node, use) or Plan(candidates.by_name(node))


def texts_of(use: Use) -> List[Choice]:
    """Return the strings that a name is compared with, and one that is none of them."""
    texts = dict.fromkeys(one for one in use.compared if type(one) is str)
    return [value(text) for text in [*texts, candidates.OTHER]] if texts else []


def _structured(node: Node, use: Use, objects: Callable[[Node], List[Choice]]) -> List[Choice]:
    """Return dictionaries and objects, if what is read of a name says so."""
    own = use.attributes - _ARRAY_ATTRIBUTES - _DICT_ATTRIBUTES
    settings = candidates.is_settings(node.name)
    if own or (settings and use.attributes - _DICT_ATTRIBUTES):
        node.attributes |= use.attributes - _DICT_ATTRIBUTES
        return objects(node)
    if use.keys or use.asked or use.attributes & _DICT_ATTRIBUTES:
        return [Choice(DICT)]
    return []


def _number(node: Node, use: Use) -> Any:
    """Return a plan of a flag or a number whose value code asks for; None for others."""
    both = candidates.both()
    numbers = [one for one in use.compared if type(one) in (int, float)]
    if any(type(one) is bool for one in use.compared):
        return Plan(both, both)
    if numbers:
        near = candidates.around(numbers[0])
        named = len(node.name) > 1 and candidates.looks_like_array(node.name)
        arrays = candidates.shapes(node.name, node.inside)
        return Plan(arrays + near) if named else Plan(near + arrays, near)
    is_setting = candidates.is_setting(node)
    if not use.is_tested or (candidates.looks_like_array(node.name) and not is_setting):
        return None
    if candidates.is_number(node.name) and (is_setting or not node.inside):
        some = candidates.numbers(node.name)
        return Plan(some + both, [some[0], value(0)])
    return Plan(both + candidates.numbers(node.name), both)


def functions(node: Node, positional: int = 0, names: Tuple[str, ...] = ()) -> List[Choice]:
    """Return candidates for a function that is called with so many arguments."""
    found = [value(stand_in.Function(positional, names)), value(jnp.tanh)]
    linen = flax_modules.linen()
    owner = node.parent.choice if node.parent is not None else None
    if owner is not None and flax_modules.is_module_class(owner.value):
        # A field that makes layers, as in `self.conv(64, (3, 3))` and `self.norm()(x)`.
        if not positional:
            return [value(linen.LayerNorm), *found]
        kernel = positional > 1 or "kernel_size" in names
        layers = [value(linen.Conv if kernel else linen.Dense)]
        is_function = candidates.matches(candidates.CALLABLE, node.name)
        return found + layers if is_function else layers + found
    if positional + len(names) == 1 and not node.path[-1].isdigit():  # no element of a list
        found = found[::-1]
    return found + ([value(linen.Dense)] if linen is not None else [])


def sequences(node: Node) -> List[Choice]:
    """Return candidates for something whose elements are read: lists, or arrays."""
    lists = [Choice(LIST, count) for count in _COUNTS]
    arrays = candidates.shapes(node.name, node.inside)
    arrays.sort(key=lambda choice: not choice.value[0])
    is_list = node.inside or candidates.matches(candidates.SEQUENCES, node.name)
    if candidates.looks_like_array(node.name) and not is_list:
        return arrays + lists
    return [*lists, Choice(DICT), *arrays]


def other_texts(node: Node) -> List[Choice]:
    """Return the strings that code knows in place of this one."""
    known = [choice for choice in node.alternatives if type(choice.value) is str]
    return [choice for choice in known if choice.value not in (node.choice.value, candidates.OTHER)]


def others_of(node: Node, use: Use) -> List[Choice]:
    """Return other strings that are worth a case in place of a known one."""
    return texts_of(use) if type(node.choice.value) is str else []
