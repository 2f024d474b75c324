"""Arguments that the project's own functions make: parameters from initialisers, settings."""

from __future__ import annotations

import inspect
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Tuple

import jax
import numpy as np

from ..frameworks.abstraction import has_abstract
from ..inputs import candidates, code_usage, shapes, type_hints, uses
from ..inputs.node import (
    FIELDS,
    GUESS,
    INSTANCE,
    KEY,
    TREE,
    VALUE,
    Choice,
    Node,
    Plan,
    Tree,
    array,
    value,
)
from ..lookup import VARIADIC
from . import constructors, initialisers
from .constructors import MISSING
from .initialisers import Initialiser
from .settings import fields, replaced, shallow

_MOST_INITIALISERS = 8


class Unknown(Exception):
    """Nothing tells an argument of an initialiser."""


class _Static(NamedTuple):
    """A leaf that is not an array."""

    value: Any


class Producers:
    """What a project makes for the parameters of its functions.

    Args:
        classes: its classes of settings.
    """

    def __init__(self, classes: Iterable[type]) -> None:
        self.classes = list(classes)
        self._trees: Dict[Any, Optional[Tree]] = {}

    # Plans for the parameters of a unit

    def plan(self, unit: Any, name: str, plan: Optional[Plan], default: Any) -> Optional[Plan]:
        """Return a plan that prefers what the project makes for a parameter."""
        if default is not MISSING:
            return plan
        kinds = {choice.kind for choice in plan.choices[:1]} if plan else set()
        if plan and INSTANCE in kinds:
            found = initialisers.returning(unit, plan.choices[0].value)
            return plan._replace(choices=[*_trees(found), *plan.choices])
        if kinds & {KEY} or (plan and plan.alternatives):
            return plan
        made = _trees(initialisers.named(unit, name))
        rest = list(plan.choices) if plan else [Choice(GUESS)]
        return Plan(made + rest, plan.alternatives if plan else []) if made else plan

    # Results of initialisers

    def refresh(self, search: Any) -> None:
        """Let the arrays of initialisers follow the settings of this pass."""
        for _, node in search.roots:
            failed = []
            while node.is_tree and node.choice.value.made_by is not None:
                tree = self._tree(search, node, node.choice.value.made_by)
                if tree is not None:
                    _become(search, node, node.choice.value, tree)
                    break
                failed.append(node.choice)
                node.choose(node.queue or [Choice(GUESS)])
                node.children = {}
            # They may work once more is known of their arguments.
            node.queue = failed + node.queue

    def _tree(self, search: Any, node: Node, initialiser: Initialiser) -> Optional[Tree]:
        try:
            arguments = self._arguments(search, node, initialiser.function)
        except Unknown:
            return None
        key = (initialiser, repr(arguments))
        if key not in self._trees:
            self._trees[key] = _traced(initialiser, arguments)
        return self._trees[key]

    def _arguments(self, search: Any, node: Node, function: Callable[..., Any]) -> Dict[str, Any]:
        """Return arguments of an initialiser that agree with those of the unit.

        Raises:
            Unknown: nothing is known of one that is needed.
        """
        made = inspect.signature(function)
        hints = type_hints.of_callable(function)
        roots = {parameter.name: root for parameter, root in search.roots if root is not node}
        found: Dict[str, Any] = {}
        settings = [root for root in roots.values() if root.choice.kind in (FIELDS, INSTANCE)]
        held = [search.passed_value(root) for root in settings]
        for name, parameter in made.parameters.items():
            if parameter.kind in VARIADIC:
                continue
            annotation = hints.get(name, parameter.annotation)
            plan = type_hints.plan_for(name, annotation, MISSING)
            if plan is not None and plan.choices[0].kind == KEY:
                found[name] = jax.random.PRNGKey(17)
                continue
            root = roots.get(name)
            if root is not None and root.choice.kind != TREE:
                found[name] = search.passed_value(root)
            elif isinstance(annotation, type) and any(type(one) is annotation for one in held):
                found[name] = next(one for one in held if type(one) is annotation)
            elif held and candidates.is_settings(name):
                found[name] = held[0]
            elif any(name in fields(one) for one in held):
                found[name] = next(fields(one)[name] for one in held if name in fields(one))
            elif root is not None:
                found[name] = _structs(root.choice.value)
            elif parameter.default is MISSING:
                found[name] = self._alone(function, name, annotation)
        return found

    def _alone(self, function: Callable[..., Any], name: str, annotation: Any) -> Any:
        """Return an argument of an initialiser that its annotation or its name tells."""
        classes = [annotation]
        if candidates.is_settings(name):
            read = uses.of_parameter(function, name).fields
            classes += [cls for cls in self.classes if read and constructors.offers(cls, read)]
        for cls in classes:
            made = constructors.instance_of(cls) if isinstance(cls, type) else None
            if made is not None:
                return shallow(made)
        for made in filter(None, map(constructors.instance_of, self.classes)):
            if name in fields(made):
                return fields(made)[name]
        plan = type_hints.plan_for(name, annotation, MISSING)
        if plan is not None and plan.choices[0].kind == VALUE:
            return plan.choices[0].value
        if annotation not in (MISSING, int):
            raise Unknown
        return initialisers.sizes_near(function).get(name, shapes.axis_size(name))


def _trees(found: List[Initialiser]) -> List[Choice]:
    return [Choice(TREE, Tree(None, (), one)) for one in found[:_MOST_INITIALISERS]]


def add_fields(search: Any, node: Node) -> None:
    """Add nodes for the fields of settings that are read and may have other values."""
    if node.children:
        return
    settings = node.choice.value
    names = code_usage.with_properties(type(settings), search.names_read)
    said = type_hints.of_callable(type(settings))
    for name, held in fields(settings).items():
        plan = type_hints.plan_of_value(name, held) if name in names else None
        if held is None and name in names and name in said:
            plan = type_hints.plan_for(name, said[name], None)
        if plan is not None:
            node.children[name] = search.new((*node.path, name), node, None, plan)


def with_fields(node: Node, get_value: Callable[[Node], Any]) -> Any:
    """Return settings with the values of the nodes for their fields."""
    held = fields(node.choice.value)
    new = {name: get_value(child) for name, child in node.children.items()}
    new = {
        name: thing
        for name, thing in new.items()
        if thing is not held[name] and (type(thing) is not type(held[name]) or thing != held[name])
    }
    return replaced(node.choice.value, new) if new else node.choice.value


def _traced(initialiser: Initialiser, arguments: Dict[str, Any]) -> Optional[Tree]:
    """Return the structure of what an initialiser makes; None if it makes nothing of use."""
    found: List[Tuple[Any, List[Any]]] = []

    def make(arrays: Dict[str, Any]) -> List[Any]:
        part = initialiser.part(initialiser.function(**{**arguments, **arrays}))
        leaves, structure = jax.tree_util.tree_flatten(part)
        found.append((structure, leaves))
        return [leaf for leaf in leaves if _is_array(leaf)]

    arrays = {name: thing for name, thing in arguments.items() if has_abstract(thing)}
    try:
        jax.eval_shape(make, arrays)
    except Exception:  # the project's code, perhaps on arguments that it never has
        if arrays:
            return None
        try:
            make({})
        except Exception:  # likewise, on values
            return None
    structure, leaves = found[-1]
    if not any(_is_array(leaf) for leaf in leaves):
        return None
    kept = [
        (tuple(leaf.shape), str(leaf.dtype)) if _is_array(leaf) else _Static(leaf)
        for leaf in leaves
    ]
    return Tree(structure, tuple(kept))  # type: ignore[arg-type]


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, (jax.Array, np.ndarray, np.generic))


def _structs(tree: Tree) -> Any:
    make: Any = jax.ShapeDtypeStruct
    leaves = [
        leaf.value if isinstance(leaf, _Static) else make(leaf[0], np.dtype(leaf[1]))
        for leaf in tree.leaves
    ]
    return jax.tree_util.tree_unflatten(tree.structure, leaves)


def _become(search: Any, node: Node, before: Tree, tree: Tree) -> None:
    """Make a node a tree of arrays; its leaves keep their nodes while the tree is the same."""
    known = before.structure is not None and bool(node.children)
    if known and (before.structure, before.leaves) == (tree.structure, tree.leaves):
        return
    node.choice = Choice(TREE, tree._replace(made_by=before.made_by))
    node.children = {}
    add_leaves(search, node)


def add_leaves(search: Any, node: Node) -> None:
    """Add nodes for the leaves of a tree."""
    tree = node.choice.value
    if node.children:
        return
    numbered = jax.tree_util.tree_unflatten(tree.structure, list(range(len(tree.leaves))))
    for path, number in jax.tree_util.tree_flatten_with_path(numbered)[0]:
        leaf = tree.leaves[number]
        if isinstance(leaf, _Static):
            choice = value(leaf.value)
        else:
            key = leaf[1].startswith("key<")
            choice = Choice(KEY, ("typed", 0)) if key else array(*leaf)
        names = (*node.path, *map(type_hints.name_of_step, path))
        node.children[str(number)] = search.new(names, node, None, Plan([choice]))
