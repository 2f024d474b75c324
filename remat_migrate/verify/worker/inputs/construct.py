"""Build values from nodes: instances, random arrays, plain containers."""

from __future__ import annotations

import inspect
import zlib
from typing import Any, Callable, Dict, List, Optional, Tuple

import jax
import jax.numpy as jnp
import numpy as np

from ..frameworks import haiku_units, nnx_modules
from ..lookup import VARIADIC, signature
from ..project import constructors, produced
from ..transfer.arrays import made_numbers
from . import candidates, stand_in, type_hints
from .node import (
    ABSENT,
    ARRAY,
    CONSTANT,
    FIELDS,
    INSTANCE,
    KEY,
    LIST,
    TREE,
    TUPLE,
    VALUE,
    Choice,
    Node,
    Plan,
    value,
)

# Fields that Flax adds to each module.
_NOT_MADE = ("parent", "name")

# Variants of numbers that are not of ordinary size, with their descriptions.
POSITIVE, LARGE, MIXED, SMALL = 1, 3, 4, 5
MAGNITUDES = {
    POSITIVE: "positive values",
    LARGE: "large values",
    MIXED: "values of all magnitudes",
    SMALL: "small values",
}

GetValue = Callable[[Node], Any]
Roots = List[Tuple[inspect.Parameter, Node]]


def add_parameters(search: Any, node: Node) -> None:
    """Add nodes for the arguments of a constructor that are required, flags, or found."""
    cls = node.choice.value
    made = signature(cls)
    if made is None or node.children:
        return
    found = constructors.arguments_of(cls)
    known = type_hints.of_callable(cls)
    empty = inspect.Parameter.empty
    siblings = tuple(made.parameters)
    for name, parameter in made.parameters.items():
        if parameter.kind in VARIADIC or (name in _NOT_MADE and parameter.default is not empty):
            continue
        annotation = known.get(name, parameter.annotation)
        plan: Optional[Plan]
        if name in found:
            known_value = found[name]
            plan = type_hints.plan_of_value(name, known_value) or Plan([value(known_value)])
            node.children[name] = search.new((*node.path, name), node, annotation, plan)
            continue
        plan = type_hints.plan_for(name, annotation, parameter.default, siblings)
        if name == "rngs" and nnx_modules.is_module_class(cls):
            plan = Plan([Choice(INSTANCE, nnx_modules.nnx().Rngs)])
        if parameter.default is not empty and type(parameter.default) is not str:
            if name not in search.names_read:
                continue
            if type(parameter.default) is not bool:
                plan = type_hints.plan_of_value(name, parameter.default)
                if plan is None:
                    continue
        node.children[name] = search.new((*node.path, name), node, annotation, plan)


def instance(node: Node, get_value: GetValue) -> Any:
    """Return an instance, made by its constructor."""
    cls = node.choice.value
    library = nnx_modules.nnx()
    if library is not None and cls is library.Rngs:
        return library.Rngs(0)
    kwargs = {name: get_value(child) for name, child in node.children.items()}
    return haiku_units.Deferred(cls, kwargs) if haiku_units.is_deferred(cls) else cls(**kwargs)


def arguments(pairs: Roots, get_value: GetValue) -> Tuple[Tuple[Any, ...], Dict[str, Any]]:
    """Return positional and keyword arguments for parameters and their nodes."""
    args: List[Any] = []
    kwargs: Dict[str, Any] = {}
    for parameter, node in pairs:
        if parameter.kind is parameter.VAR_POSITIONAL:
            args += get_value(node)
        elif parameter.kind is parameter.VAR_KEYWORD:
            kwargs.update(get_value(node))
        elif parameter.kind is parameter.KEYWORD_ONLY:
            kwargs[parameter.name] = get_value(node)
        else:
            args.append(get_value(node))
    return tuple(args), kwargs


def built(node: Node, get_value: GetValue) -> Any:
    """Return the value of a node that is no array, of the values of its parts."""
    choice = node.choice
    if choice.kind == VALUE:
        return choice.value
    if choice.kind == INSTANCE:
        return instance(node, get_value)
    if choice.kind == FIELDS:
        return produced.with_fields(node, get_value)
    if choice.kind in (LIST, TUPLE, TREE):
        parts = [get_value(node.children[str(at)]) for at in range(node.count())]
        if choice.kind == TREE:
            return jax.tree_util.tree_unflatten(choice.value.structure, parts)
        parts = [stand_in.numbered(part, at) for at, part in enumerate(parts)]
        return parts if choice.kind == LIST else tuple(parts)
    children = {name: node.children[name] for name in choice.value}
    entries = {n: get_value(child) for n, child in children.items() if child.choice.kind != ABSENT}
    return stand_in.Record(entries) if node.attributes else entries


def concrete(node: Node, variant: int) -> Any:
    """Return the value of a decided node; another `variant` has other numbers."""
    choice = node.choice
    if choice.kind == KEY:
        return key(choice)
    if choice.kind in (ARRAY, CONSTANT):
        made = random_array(node, choice, variant)
        return made if choice.kind == CONSTANT else jnp.asarray(made)
    return built(node, lambda part: concrete(part, variant))


def key(choice: Choice) -> Any:
    """Return a random key, or several."""
    kind, count = choice.value
    made = jax.random.key(17) if kind == "typed" else jax.random.PRNGKey(17)
    return jax.random.split(made, count) if count else made


def random_array(node: Node, choice: Choice, variant: int) -> np.ndarray:
    """Return random numbers that depend only on the path and the variant.

    Floats are in (-1, 1), or in (0.5, 1.5) if the name or the variant asks for positive numbers.
    Integers are below 4, the number of positions, or below 2, the smallest size, for POSITIVE. Of
    the other `MAGNITUDES`, LARGE has large floats, SMALL has small floats and masks that are all
    False, and MIXED has floats of all magnitudes and masks whose first row is False.
    """
    shape, dtype = choice.value
    random = np.random.default_rng(zlib.crc32("/".join(node.path).encode()) + 7919 * variant)
    kind = jnp.dtype(dtype)
    positive = candidates.is_positive(node.name) or variant == POSITIVE
    drawn = made_numbers(random, shape, kind, positive, most=2 if variant == POSITIVE else 4)
    if kind == np.bool_ and shape:
        rows = {MIXED: 1, SMALL: None}.get(variant, 0)
        drawn[:rows] = False
    if not jnp.issubdtype(kind, jnp.inexact):
        return drawn
    if len(shape) > 1 and node.in_tree:
        # Weights of a network, which may be deep: activations keep their size.
        drawn = drawn * (3.0 / max(1, int(np.prod(shape[:-1])))) ** 0.5
    if variant == LARGE:
        drawn = drawn * 30.0
    elif variant in (MIXED, SMALL) and not candidates.is_weight(node):
        drawn = drawn * (10.0 ** random.uniform(-3, 3, shape) if variant == MIXED else 1e-3)
    return np.asarray(drawn).astype(kind)
