"""`static_argnums` as written: its type, its indices, and the parameters that they name."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ...libraries.apis import DIFFERENTIATE
from ..names.expected_failures import expects_failure
from ..names.module import Module
from ..names.scopes import FunctionNode
from ..needs.static_layers import listed_items
from ..project import Project
from ..sites.calls import Call, uses_of
from ..sites.find_sites import wrapped_by
from ..sites.site import Option, Site
from ..values.bind import Arguments, positional_parameters
from ..values.callees import Target, layers, targets_of
from ..values.values import Constant, Container, Instance, Value, Wrapped
from .opaque_targets import changing_decorator, wraps_field
from .positions import bind_use, counted_position
from .static_arguments import place_of

# Transformations that pass keyword arguments on to the function.
_PASSING_ON = frozenset(
    {
        "jax.jit",
        "jax.pmap",
        "jax.vmap",
        "jax.named_call",
        "flax.linen.scan",
        "flax.linen.vmap",
        "functools.lru_cache",
        "functools.cache",
        *(name for name in DIFFERENTIATE if name.startswith(("jax.", "haiku."))),
    }
)
_TRACING = frozenset(
    {"jax.jit", "jax.pmap", "jax.vmap", "flax.linen.jit", "flax.linen.scan", "flax.linen.vmap"}
)
_ARRAYS = ("numpy.array", "numpy.asarray", "numpy.arange", "jax.numpy.array", "jax.numpy.arange")


@dataclass(frozen=True, slots=True)
class Indices:
    """The value of `static_argnums`.

    Attributes:
        type: "int", "tuple", "list", "set", "range", "bool", "None", "array", or the name of a
            NumPy scalar type; empty if not known.
        values: the indices in order; None if they are not known.
        module: the module with the indices.
        node: their expression.
    """

    type: str
    values: tuple[int, ...] | None
    module: Module
    node: ast.expr


@dataclass(frozen=True, eq=False, slots=True)
class StaticParameter:
    """A parameter that `static_argnums` names.

    Attributes:
        index: as written.
        position: its index among the function's positional parameters, `self` counted.
        parameter: the parameter.
    """

    index: int
    position: int
    parameter: ast.arg

    @property
    def name(self) -> str:
        """The parameter's name."""
        return self.parameter.arg


@dataclass(frozen=True, eq=False, slots=True)
class StaticSite:
    """A site whose static arguments are known, and the calls of its result.

    `bound` are the calls that certainly run this function and whose arguments are known.
    """

    site: Site
    option: Option
    target: Target
    static: tuple[StaticParameter, ...]
    bound: tuple[tuple[Call, Arguments], ...]

    @property
    def function(self) -> FunctionNode:
        """The wrapped function."""
        return self.target.function.node


def read_indices(project: Project, option: Option) -> Indices:
    """Read an option `static_argnums`, through constants of modules."""
    module, node = option.module, option.value
    bindings = module.reaching(node) if isinstance(node, ast.Name) else ()
    assigned = [binding.value for binding in bindings]
    values = project.values(module, node)
    containers = [v for v in values if isinstance(v, Container) and isinstance(v.node, ast.expr)]
    if len(assigned) == 1 and isinstance(assigned[0], ast.Call):
        node = assigned[0]  # `tuple(indices)` is no list, whatever `indices` is
    elif len(values) == len(containers) == 1 and not isinstance(node, ast.Call):
        module, node = containers[0].module, containers[0].node
    return Indices(
        _type_of(project, module, node), read_index_values(project, module, node), module, node
    )


def read_index_values(project: Project, module: Module, node: ast.expr) -> tuple[int, ...] | None:
    """Return the indices that an expression gives; None if they are not known."""
    items = listed_items(project.evaluator, module, node)
    numbers = tuple(item for item in items or () if isinstance(item, int))
    is_none = isinstance(node, ast.Constant) and node.value is None
    return None if items is None or is_none or len(numbers) < len(items) else numbers


def _type_of(project: Project, module: Module, node: ast.expr, depth: int = 2) -> str:
    """Return the type of an option, as `Indices.type` has it."""
    match node:
        case ast.Tuple(elts=parts):
            types = [_type_of(project, module, part, depth - 1) for part in parts if depth]
            wrong = next((t for t in types if t not in ("int", "tuple", "")), None)
            return f"tuple of {wrong}" if wrong else "tuple"
        case ast.List() | ast.ListComp():
            return "list"
        case ast.Set() | ast.SetComp():
            return "set"
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int())):
            return "int"
    names = project.qualified(module, node.func) if isinstance(node, ast.Call) else frozenset()
    name = next(iter(names)) if len(names) == 1 else ""
    last = name.rpartition(".")[2]
    if name in ("builtins.list", "builtins.set", "builtins.tuple", "builtins.range"):
        return last
    match list(project.values(module, node)):
        case [Constant(value=value)]:
            return "None" if value is None else type(value).__name__
        case [Container(node=inner)] if inner is not node and depth:
            return _type_of(project, module, inner, depth - 1)
    if name in _ARRAYS:
        return "array"
    return name if name.startswith("numpy.") and last.startswith(("int", "uint")) else ""


def known_target(project: Project, site: Site) -> Target | None:
    """Return the only function that a site wraps, if its own parameters are those of the calls."""
    return next(iter(known_targets(project, site)), None)


def known_targets(project: Project, site: Site) -> list[Target]:
    """Return the same, once for each class that may have inherited the function, in order."""
    values = list(wrapped_by(project, site))
    if not values or wraps_field(project, site) or changing_decorator(values) is not None:
        return []
    found = [list(targets_of(project.evaluator, v)) for v in values]
    if not all(found) or len({t.function.node for targets in found for t in targets}) != 1:
        return []
    targets = sorted((t for targets in found for t in targets), key=place_of)
    return [] if targets[0].given or site.spread or "methods" in site.arguments else targets


def static_site(project: Project, site: Site) -> StaticSite | None:
    """Return what a known `static_argnums` makes static, and the calls of the site's result."""
    option = site.arguments.get("static_argnums")
    if site.application is None or option is None or site.definition.static_option is None:
        return None
    indices = read_indices(project, option).values
    target = known_target(project, site)
    if target is None or indices is None or "static_argnames" in site.arguments:
        return None
    positional = positional_parameters(target.function.node)
    static: list[StaticParameter] = []
    for index in indices:
        position = counted_position(site.definition, target, index)
        if position is not None and target.skip <= position < len(positional):
            static.append(StaticParameter(index, position, positional[position]))
    uses = uses_of(project, site)
    bound = tuple(
        (call, arguments)
        for call in uses.calls
        if call.own
        and passes_keywords_on(call.callee)
        and not (arguments := bind_use(site, target, call)).unclear
        and not arguments.wrong
    )
    return StaticSite(site, option, target, tuple(static), bound)


def sees_all_calls(project: Project, static: StaticSite) -> bool:
    """Return whether a site is called, and all its calls are visible and bound."""
    uses = uses_of(project, static.site)
    return len(static.bound) == len(uses.calls) > 0 and not uses.escapes


def passes_keywords_on(callee: Value | None) -> bool:
    """Return whether the transformations around a checkpoint pass keywords on as keywords.

    Equinox transformations and custom derivatives bind a call to the signature first.
    """
    return all(layer.how in _PASSING_ON for layer in transformations(callee))


def tracing_layer(callee: Value | None) -> Wrapped | None:
    """Return a transformation around a checkpoint that may not take one more positional argument.

    It may trace any argument, or count them (`in_axes`).
    """
    return next((layer for layer in transformations(callee) if layer.how in _TRACING), None)


def transformations(callee: Value | None) -> Iterator[Wrapped]:
    """Yield the transformations around a checkpoint or its class, outermost first."""
    for layer in layers(callee):
        if isinstance(layer, Wrapped):
            yield layer
        elif isinstance(layer, Instance):
            yield from transformations(layer.cls)


def deliberate(calls: Iterable[Call]) -> bool:
    """Return whether tests expect all of some calls to fail."""
    return all(expects_failure(call.module, call.node) for call in calls)
