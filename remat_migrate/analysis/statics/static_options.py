"""`static_argnums` as written: its type, its indices, the parameters that they name, and the calls
that do not pass these by position.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from ...libraries.apis import DIFFERENTIATE
from ..names.expected_failures import expects_failure
from ..names.module import Module
from ..names.scopes import FunctionNode
from ..needs.static_layers import listed_items
from ..project import Project
from ..sites.calls import Call, uses_of
from ..sites.find_sites import sites_of, wrapped_by
from ..sites.site import Option, Site
from ..values.bind import positional_parameters
from ..values.callees import Target, targets_of
from ..values.values import Constant, Container, Instance, Value, Wrapped, layers
from .arguments import BoundCalls
from .static_arguments import changing_decorator, place_of, wraps_field
from .statics import bind_use, counted_position

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


@dataclass(frozen=True, eq=False)
class StaticSite:
    """A site that wraps a known function, and whose static arguments are known.

    Its calls are found on demand: that takes a search of the project.

    Attributes:
        project: the project.
        site: the site.
        targets: the function, once for each class that may have inherited it.
        indices: the indices as written.
        static: the parameters that they name.
    """

    project: Project
    site: Site
    targets: tuple[Target, ...]
    indices: tuple[int, ...]
    static: tuple[StaticParameter, ...]

    @property
    def target(self) -> Target:
        """The wrapped function, as it is called."""
        return self.targets[0]

    @property
    def function(self) -> FunctionNode:
        """The wrapped function."""
        return self.target.function.node

    @property
    def option(self) -> Option:
        """The option that names the static parameters."""
        return self.site.arguments["static_argnums"]

    @cached_property
    def calls(self) -> BoundCalls:
        """The calls whose arguments are known."""
        calls = uses_of(self.project, self.site).calls
        bound = ((call, bind_use(self.site, self.target, call)) for call in calls)
        return tuple((call, a) for call, a in bound if not (a.unclear or a.wrong))

    @property
    def bound(self) -> BoundCalls:
        """Those that certainly run this function, and pass keywords on as keywords."""
        return tuple(
            pair for pair in self.calls if pair[0].own and _passes_keywords_on(pair[0].callee)
        )

    @property
    def sees_all_calls(self) -> bool:
        """Whether the site is called, and all its calls are in `bound`."""
        uses = uses_of(self.project, self.site)
        return len(self.bound) == len(uses.calls) > 0 and not uses.escapes

    def passed(self, name: str) -> Iterator[tuple[Call, ast.expr]]:
        """Yield the calls that pass a parameter, and what they pass."""
        for call, arguments in self.calls:
            if name in arguments.by_name:
                yield call, arguments.by_name[name]

    def is_static(self, name: str) -> bool:
        """Return whether the site names a parameter as static."""
        return any(parameter.name == name for parameter in self.static)


@dataclass(frozen=True, eq=False, slots=True)
class Misplaced:
    """A call that passes a static argument by keyword, or leaves it out.

    Attributes:
        static: the site.
        call: the call.
        parameter: the static argument.
        how: "keyword" or "omitted".
        keyword: the keyword, if the call itself writes it.
        instead: the name of the parameter that becomes static in its place; empty if JAX raises.
    """

    static: StaticSite
    call: Call
    parameter: StaticParameter
    how: Literal["keyword", "omitted"]
    keyword: ast.keyword | None = None
    instead: str = ""

    @property
    def last(self) -> int:
        """The last position that the call must pass by position."""
        return max(p.position for p in self.static.static)


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
    items = listed_items(project.evaluator, module, node)
    numbers = tuple(item for item in items or () if isinstance(item, int))
    is_none = isinstance(node, ast.Constant) and node.value is None
    known = None if items is None or is_none or len(numbers) < len(items) else numbers
    return Indices(_type_of(project, module, node), known, module, node)


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


def known_targets(project: Project, site: Site) -> list[Target]:
    """Return the only function that a site wraps, if its own parameters are those of the calls,
    once for each class that may have inherited it, in order.
    """
    values = list(wrapped_by(project, site))
    if not values or wraps_field(project, site) or changing_decorator(values) is not None:
        return []
    found = [list(targets_of(project.evaluator, v)) for v in values]
    if not all(found) or len({t.function.node for targets in found for t in targets}) != 1:
        return []
    targets = sorted((t for targets in found for t in targets), key=place_of)
    return [] if targets[0].given or site.spread or "methods" in site.arguments else targets


def static_site(project: Project, site: Site) -> StaticSite | None:
    """Return what a site wraps, with the static parameters; None if either is not known."""
    option = site.arguments.get("static_argnums")
    if site.application is None or "static_argnames" in site.arguments:
        return None
    indices = () if option is None else read_indices(project, option).values
    targets = known_targets(project, site) if indices is not None else ()
    if not targets or indices is None:
        return None
    positional = positional_parameters(targets[0].function.node)
    static: list[StaticParameter] = []
    for index in indices:
        position = counted_position(site.definition, targets[0], index)
        if position is not None and targets[0].skip <= position < len(positional):
            static.append(StaticParameter(index, position, positional[position]))
    return StaticSite(project, site, tuple(targets), indices, tuple(static))


def misplaced_calls(project: Project) -> Sequence[Misplaced]:
    """Return the calls of a project that misplace a static argument, each once."""
    return project.once(_misplaced_calls)


def _misplaced_calls(project: Project) -> Sequence[Misplaced]:
    by_call: dict[ast.Call, Misplaced] = {}
    for site in sites_of(project):
        for one in misplaced(project, site):
            by_call.setdefault(one.call.node, one)
    return [*by_call.values()]


def misplaced(project: Project, site: Site) -> Iterator[Misplaced]:
    """Yield the calls of a site's function that misplace a static argument."""
    rule = site.definition.static_calls
    if "static_argnums" not in site.arguments or rule in ("bound", "unknown"):
        return
    static = static_site(project, site)
    if static is None or not static.static:
        return
    positional = positional_parameters(static.function)
    for call, arguments in static.bound:
        wrong = [
            p
            for p in static.static
            if p.name not in arguments.by_position and p.position >= arguments.skip
        ]
        keywords = [p for p in wrong if p.name in arguments.by_name]
        if not (keywords if rule == "keywords-ignored" else wrong):
            continue
        first = (keywords or wrong)[0]
        written = next((k for k in call.node.keywords if k.arg == first.name), None)
        instead = ""
        if first.index < 0:  # it counts from the last argument that is passed by position
            omitted = len(positional) - arguments.skip - len(call.arguments[0])
            place = first.position - omitted
            if static.target.skip <= place < len(positional):
                instead = positional[place].arg
        how: Literal["keyword", "omitted"] = "keyword" if keywords else "omitted"
        yield Misplaced(static, call, first, how, written, instead)


def _passes_keywords_on(callee: Value | None) -> bool:
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
