"""Arguments that the project's own functions make: parameters from initialisers, settings."""

from __future__ import annotations

import contextlib
import enum
import inspect
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Tuple

import jax
import numpy as np

from ..frameworks.abstraction import has_abstract
from ..inputs import candidates, code_usage, type_hints
from ..inputs.node import (
    FIELDS,
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
from ..instances import sizes
from ..instances.constructions import Constructions, concrete, offered, signature
from ..instances.expressions import Unknown
from .initialisers import Initialiser, Initialisers

_MISSING = inspect.Parameter.empty
_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_MOST_INITIALISERS = 8


class _Static(NamedTuple):
    """A leaf that is not an array."""

    value: Any


class Producers:
    """What a project makes for the parameters of its functions.

    Args:
        constructions: the project.
        classes: its classes of settings.
    """

    def __init__(self, constructions: Constructions, classes: Iterable[type]) -> None:
        self.constructions = constructions
        self.classes = list(classes)
        self.initialisers = Initialisers(constructions)
        self._trees: Dict[Any, Optional[Tree]] = {}

    # Plans for the parameters of a unit

    def plan(self, unit: Any, name: str, plan: Optional[Plan], default: Any) -> Optional[Plan]:
        """Return a plan that prefers what the project makes for a parameter."""
        if default is not _MISSING and default is not None:
            return self._others(default) or plan
        kinds = {choice.kind for choice in plan.choices[:1]} if plan else set()
        if plan and INSTANCE in kinds:
            found = self.initialisers.returning(unit, plan.choices[0].value)
            return plan._replace(choices=[*_trees(found), *plan.choices])
        if kinds & {KEY} or (plan and plan.alternatives and default is _MISSING):
            return plan
        rest = list(plan.choices) if plan else [Choice("probe")]
        if default is not None:
            if candidates.is_settings(name):
                made = self._settings(unit, name)
            else:
                made = _trees(self.initialisers.of(unit, name))
                if not made and plan is None:
                    passed = self._passed(unit, name)
                    if passed is not None:
                        return passed
            if made:
                return Plan(made + rest, plan.alternatives if plan else [])
        return plan

    def _settings(self, unit: Any, name: str) -> List[Choice]:
        """Return what a caller passes, and the classes of settings with what is read."""
        read = code_usage.fields_read(unit, name)
        values: List[Any] = []
        with contextlib.suppress(Unknown):
            passed = self.initialisers.passed(unit, name)
            if isinstance(passed, dict) or sizes.holds_settings(passed):
                values += [passed] if read <= offered(passed) else []
        values += self.constructions.offering(read)
        small = {repr(one): one for one in (sizes.levels({name: v})[0][name] for v in values)}
        kinds = {type(one) for one in values}
        fitting = [cls for cls in self.classes if read and has(cls, read) and cls not in kinds]
        found = [Choice(FIELDS, one) for one in small.values()]
        return found + [Choice(INSTANCE, cls) for cls in fitting]

    def _others(self, default: Any) -> Optional[Plan]:
        """Plan settings that have a default: it, and the others of its class in the project."""
        if not sizes.holds_settings(default):
            return None
        others = [one for one in self.constructions.held(type(default)) if one != default]
        choices = [Choice(FIELDS, one) for one in (default, *others[:2])]
        return Plan(choices, choices)

    def _passed(self, unit: Any, name: str) -> Optional[Plan]:
        """Plan the Python value that a caller passes, and others like it."""
        try:
            passed = self.initialisers.passed(unit, name)
        except Unknown:
            return None
        plain = isinstance(passed, (str, int, float, tuple, list)) or sizes.holds_settings(passed)
        leaves = jax.tree_util.tree_leaves(passed)
        if not plain or any(isinstance(leaf, (jax.Array, np.ndarray)) for leaf in leaves):
            return None
        planned = plan_field(name, passed) or Plan([value(passed)])
        return Plan([*planned.choices, Choice("probe")], planned.alternatives)

    # Results of initialisers

    def refresh(self, search: Any) -> None:
        """Let the arrays of initialisers follow the settings of this pass."""
        for _, node in search.roots:
            while node.choice is not None and node.choice.kind == TREE:
                initialiser = node.choice.value.made_by
                if initialiser is None:
                    break
                tree = self._tree(search, node, initialiser)
                if tree is not None:
                    _become(search, node, node.choice.value, tree)
                    break
                following = node.queue.pop(0) if node.queue else Choice("probe")
                node.children = {}
                node.choice = None if following.kind == "probe" else following

    def _tree(self, search: Any, node: Node, initialiser: Initialiser) -> Optional[Tree]:
        try:
            arguments = self._arguments(search, node, initialiser.function)
        except (Unknown, LookupError):
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
        settings = [
            r for name, r in roots.items() if r.choice and r.choice.kind in (FIELDS, INSTANCE)
        ]
        held = [search.passed_value(root) for root in settings]
        for name, parameter in made.parameters.items():
            if parameter.kind in _VARIADIC:
                continue
            annotation = hints.get(name, parameter.annotation)
            plan = type_hints.plan_for(name, annotation, _MISSING)
            if plan is not None and plan.choices[0].kind == KEY:
                found[name] = jax.random.PRNGKey(17)
                continue
            root = roots.get(name)
            if root is not None and root.choice is None and candidates.is_number(name):
                search.assign(root, candidates.numbers(name)[0], candidates.numbers(name)[1:])
            if root is not None and root.choice is not None and root.choice.kind != TREE:
                found[name] = search.passed_value(root)
            elif isinstance(annotation, type) and any(type(one) is annotation for one in held):
                found[name] = next(one for one in held if type(one) is annotation)
            elif held and candidates.is_settings(name):
                found[name] = held[0]
            elif any(name in fields(one) for one in held):
                found[name] = next(fields(one)[name] for one in held if name in fields(one))
            elif root is not None and root.choice is not None:
                found[name] = _structs(root.choice.value)
            elif parameter.default is _MISSING:
                found[name] = self._alone(function, name, annotation)
        return found

    def _alone(self, function: Callable[..., Any], name: str, annotation: Any) -> Any:
        """Return an argument of an initialiser that its own callers or its name tell."""
        for one in self.constructions.instances(concrete(annotation)):
            return one
        if candidates.is_settings(name):
            for one in self.constructions.offering(code_usage.fields_read(function, name)):
                return one
        with contextlib.suppress(Unknown):
            return self.initialisers.passed(function, name)
        for cls in self.classes:
            for one in self.constructions.instances(cls)[:1]:
                if name in fields(one):
                    return fields(one)[name]
        plan = type_hints.plan_for(name, annotation, _MISSING)
        if plan is not None and plan.choices[0].kind == VALUE:
            return plan.choices[0].value
        if candidates.is_number(name):
            return candidates.numbers(name)[0].value
        raise Unknown


def _trees(found: List[Initialiser]) -> List[Choice]:
    return [Choice(TREE, Tree(None, (), one)) for one in found[:_MOST_INITIALISERS]]


def add_fields(search: Any, node: Node) -> None:
    """Add nodes for the fields of settings that are read and may have other values."""
    assert node.choice is not None
    if node.children:
        return
    settings = node.choice.value
    names = code_usage.with_properties(type(settings), search.names_read)
    said = type_hints.of_callable(type(settings))
    for name, held in fields(settings).items():
        plan = plan_field(name, held) if name in names else None
        if held is None and name in names and name in said:
            plan = type_hints.plan_for(name, said[name], None)
        if plan is not None:
            node.children[name] = search.new((*node.path, name), node, None, plan)


def plan_field(name: str, held: Any) -> Optional[Plan]:
    """Plan a field of settings: flags, rates, options, and counts that may switch something off."""
    if type(held) is bool:
        return Plan([value(held)], candidates.both(held))
    if type(held) is float:
        rates = candidates.rates_of(name, held)
        return Plan(rates[:1], rates)
    if isinstance(held, enum.Enum):
        members = [value(member) for member in type(held)]
        return Plan([value(held)], members)
    if type(held) is str:
        return Plan([value(held)], [value(held)])
    if counts := candidates.counts_of(held):
        return Plan(counts[:1], counts)
    return None


def with_fields(node: Node, get_value: Callable[[Node], Any]) -> Any:
    """Return settings with the values of the nodes for their fields."""
    assert node.choice is not None
    held = fields(node.choice.value)
    new = {name: get_value(child) for name, child in node.children.items()}
    new = {
        name: thing
        for name, thing in new.items()
        if type(thing) is not type(held[name]) or thing != held[name]
    }
    return sizes.replaced(node.choice.value, new) if new else node.choice.value


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
    if not node.order:
        search.decisions += 1
        node.order = search.decisions
    numbered = jax.tree_util.tree_unflatten(tree.structure, list(range(len(tree.leaves))))
    for path, number in jax.tree_util.tree_flatten_with_path(numbered)[0]:
        leaf = tree.leaves[number]
        child = search.new((*node.path, *map(type_hints.name_of_step, path)), node)
        if isinstance(leaf, _Static):
            child.choose([value(leaf.value)], node.order)
        else:
            key = leaf[1].startswith("key<")
            child.choose([Choice(KEY, ("typed", 0)) if key else array(*leaf)], node.order)
        node.children[str(number)] = child


def fields(settings: Any) -> Dict[str, Any]:
    """Return what settings hold by name: entries of a dictionary, attributes of an object."""
    if isinstance(settings, dict):
        return {key: value for key, value in dict.items(settings) if isinstance(key, str)}
    return sizes.attributes(settings)


def has(cls: type, attributes: Iterable[str]) -> bool:
    """Return whether instances of a class appear to have all these attributes."""
    known = set(dir(cls)) | set(getattr(cls, "__dataclass_fields__", ()))
    for owner in cls.__mro__:
        known |= set(getattr(owner, "__annotations__", ()))
    if not hasattr(cls, "__dataclass_fields__") and not hasattr(cls, "_fields"):
        made = signature(cls)
        known |= set(made.parameters) if made else set()
    return all(attribute in known for attribute in attributes)
