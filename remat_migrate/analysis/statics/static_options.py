"""`static_argnums` as written: its type, its indices, the parameters that they name, the calls that
do not pass these by position, and the arguments that are traced although their values are needed.

Whether a value is needed is the same question as for `concrete=`, but here nobody asked for
concrete values, and code that works must not be reported. So the need must be certain, and a call
must pass something that `jax.checkpoint` turns into a tracer: an argument left to its default stays
a Python value.

Indices may be off by one. `nn.remat` counts the module as 0, for a class, a method or a function
that takes it first. `partitioning.remat` does not. `jax.checkpoint` counts what it is called with.
An index that counts as another Api does names the argument next to the intended one.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from ...libraries.apis import DIFFERENTIATE
from ..names.expected_failures import expects_failure
from ..names.module import FunctionNode, Module, parameters
from ..needs.needs import CONDITIONS, TRUTH, Need, NeededResult, needed_results
from ..project import Project
from ..sites.calls import Call, uses_of
from ..sites.find_sites import sites_of, wrapped_by
from ..sites.site import Option, Site
from ..values.bind import positional_parameters
from ..values.declarations import default_kind
from ..values.evaluator import Target, listed_items, targets_of
from ..values.values import Constant, Container, Instance, Parameter, Value, Wrapped, layers
from .arguments import (
    Argument,
    BoundCalls,
    argument_kind,
    is_computed_with,
    origins_of,
    project_needs,
)
from .required_arguments import (
    bind_use,
    changing_decorator,
    closed_parameters,
    counted_position,
    lost_indices,
    place_of,
    wraps_field,
)

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


@dataclass(frozen=True, slots=True)
class Indices:
    """The value of `static_argnums`.

    Attributes:
        type: "int", "tuple", "list", "set", "range", "bool", "None", or the name of a
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


Evidence = Literal["python", "array", "declared"]


_STRING = "it is a string, which JAX cannot trace"


@dataclass(frozen=True, eq=False, slots=True)
class TracedNeed:
    """A traced parameter whose value is needed.

    Attributes:
        need: the place that needs the value.
        evidence: what is passed for it: "python": a Python value; "array"; "declared": no call is
            known, but the parameter has no default, and is declared to be a Python value or must be
            passed by callers elsewhere.
        call: a call that passes it.
        shown: the expression that it passes.
        sure: whether that is certainly a Python value.
        deliberate: whether a test expects the calls to fail.
    """

    need: Need
    evidence: Evidence
    call: Call | None = None
    shown: ast.expr | None = None
    sure: bool = False
    deliberate: bool = False


def _traced_site(project: Project, site: Site) -> StaticSite | None:
    """Return what a site wraps, with its static arguments, if it traces the others."""
    api = site.definition
    if not api.same_function or api.static_calls == "unknown" or "concrete" in site.arguments:
        return None
    static = static_site(project, site)
    if static is None or lost_indices(api, static.indices):
        return None  # RMT207 reports a wrong index first
    return static


def _needs(static: StaticSite) -> Iterator[Need]:
    """Yield the needs of a function, for all classes that may have inherited it."""
    for target in static.targets:
        yield from project_needs(static.project).of(target.function, target.owner)


def traced_needs(project: Project, site: Site) -> Iterator[TracedNeed]:
    """Yield the arguments that a site traces although their values are needed, each once."""
    static = _traced_site(project, site)
    if static is None or site.definition.static_option is None:
        return
    target, node = static.target, static.function
    named = {parameter.name for parameter in static.static}
    closed = closed_parameters(site, target)
    by_parameter: dict[str, list[Need]] = {}
    for need in _needs(static):
        if need.certain and need.argument(node) is None:
            by_parameter.setdefault(need.parameter, []).append(need)
    for parameter in parameters(node):
        name, argument = parameter.arg, Argument(project, target, parameter)
        if name in closed | named or argument.is_self:
            continue
        if argument.is_variadic or argument.has_attributes:
            continue
        needs = by_parameter.get(name)
        found = _evidence(static, argument, needs) if needs else _string(static, argument)
        if found is not None:
            yield found


def _evidence(static: StaticSite, argument: Argument, needs: list[Need]) -> TracedNeed | None:
    """Return the strongest evidence that a needed parameter is traced."""
    project, target = static.project, static.target
    shown: list[TracedNeed] = []
    for call, expr in static.passed(argument.name):
        evidence, sure = _passed(argument, call.module, expr)
        match evidence:
            case "array":
                need = next((n for n in needs if _holds_for_arrays(target, n)), None)
            case "tuple":
                need = next((n for n in needs if n.reason not in TRUTH), None)
            case _:
                need = needs[0]
        if evidence is not None and need is not None:
            shown_as: Evidence = "array" if evidence == "array" else "python"
            deliberate = expects_failure(call.module, call.node)
            sure = sure and call.own
            shown.append(TracedNeed(need, shown_as, call, expr, sure, deliberate))
    if shown:
        # Expected failures come last. An array comes first: it cannot become static.
        return min(shown, key=lambda f: (f.deliberate, f.evidence != "array", not f.sure))
    if static.calls or argument.default is not None:
        return None
    uses = uses_of(project, static.site)
    if argument.annotated_kind == "python" or not (uses.calls or uses.escapes):
        deliberate = expects_failure(static.site.module, static.site.reference)
        return TracedNeed(needs[0], "declared", deliberate=deliberate)
    return None


def _string(static: StaticSite, argument: Argument) -> TracedNeed | None:
    """Return a string that calls pass for a parameter that the result does not depend on.

    For example, an override ignores a parameter: JAX rejects the string all the same.
    """
    project = static.project
    for target in static.targets:
        results = project_needs(project).result(target.function, target.owner)
        if any(d.parameter == argument.name for d in results):
            return None
    for call, expr in static.passed(argument.name):
        origins = origins_of(project, call.module, expr) if call.own else ()
        passed = [project.values(*origin) for origin in origins]
        if passed and all(values and all(map(_is_string, values)) for values in passed):
            need = Need(argument.name, None, call.module, expr, _STRING)
            deliberate = expects_failure(call.module, call.node)
            return TracedNeed(need, "python", call, expr, True, deliberate)
    return None


def _is_string(value: Value) -> bool:
    return isinstance(value, Constant) and isinstance(value.value, str | bytes)


def _holds_for_arrays(target: Target, need: Need) -> bool:
    """Return whether a need holds if an array is passed, too: a comparison or a result decides.

    The truth of a name does not count, which may be a tree, nor do needs in other functions, which
    may accept many types.
    """
    node = need.node
    if not any(node is inner for inner in ast.walk(target.function.node)):
        return False
    return need.reason in CONDITIONS and isinstance(node, ast.Compare | ast.Call)


def _passed(
    argument: Argument, module: Module, expr: ast.expr
) -> tuple[Literal["python", "array", "tuple"] | None, bool]:
    """Return whether a call passes a Python value, an array, or a tuple of numbers and strings (an
    axis, a shape), and whether that is certain.
    """
    values = argument.project.values(module, expr)
    containers = [v.node for v in values if isinstance(v, Container)]
    if containers or Constant(None) in values:  # a tree of arguments, the truth of which is known
        is_known = all(isinstance(v, Container | Parameter) for v in values)
        is_literal = is_known and all(default_kind(node) == "python" for node in containers)
        return ("tuple", True) if is_literal else (None, False)
    if isinstance(expr, ast.UnaryOp) and isinstance(expr.op, ast.Not):
        return "python", True
    if values and all(isinstance(v, Constant) for v in values):
        return "python", True
    kind = argument_kind(argument.project, module, expr)
    if kind == "array":
        return "array", False
    declared = "python" in (argument.annotated_kind, default_kind(argument.default))
    return "python" if kind == "python" or declared else None, kind == "python" and declared


def traced_results(project: Project, site: Site) -> Iterator[tuple[NeededResult, bool]]:
    """Yield the results that a site traces although their values are needed.

    Arguments go into some of them: those that the site names as static, or that no call passes.

    Yields:
        The result, and whether what goes in may be traced.
    """
    static = _traced_site(project, site)
    if static is None:
        return
    closed = closed_parameters(site, static.target)
    for result in needed_results(_needs(static)):
        if any(need.passed for need in result.sources):
            continue  # to a function that may accept arrays as well
        if all(static.is_static(name) for name in result.parameters - closed):
            yield result, result.may_be_traced(closed)


_SHIFTS = {"method": 1, "method-without-self": -1}


@dataclass(frozen=True, eq=False, slots=True)
class SelfOffset:
    """Indices that are off by one.

    Attributes:
        static: the parameters that they name as written.
        wanted: the intended parameters, with the indices that name them.
        needs: the values that are needed but traced as written; empty if nothing fails.
        exact: whether all of `wanted` are needed at trace time, or flags.
    """

    static: StaticSite
    wanted: tuple[StaticParameter, ...]
    needs: tuple[TracedNeed, ...]
    exact: bool


def self_offset(project: Project, site: Site) -> SelfOffset | None:
    """Return the indices of a site if they certainly count `self` in the wrong way."""
    shift = _SHIFTS.get(site.definition.counting)
    option, static = site.arguments.get("static_argnums"), static_site(project, site)
    if shift is None or option is None or static is None or site.definition.modules != "linen":
        return None
    if read_indices(project, option).type not in site.definition.static_indices:
        return None
    wanted = _shifted(static, shift)
    if wanted is None:
        return None
    names = {p.name for p in wanted}
    needed = {
        n.parameter
        for n in project_needs(project).of(static.target.function, static.target.owner)
        if n.certain and not n.index
    }
    lost = {p.name: p.parameter for p in static.static if p.name not in names}
    if needed & lost.keys():
        return None
    needs = tuple(traced_needs(project, site))
    if any(n.evidence == "array" or n.need.parameter not in names for n in needs):
        return None
    flags = {
        p.name
        for p in wanted
        if Argument(project, static.target, p.parameter, static.bound).is_option
    }
    exact = names <= needed | flags
    if any(n.evidence == "python" for n in needs):
        return SelfOffset(static, wanted, needs, exact)
    is_static = names <= {p.name for p in static.static}
    if exact and not is_static and all(_is_array(project, static, p) for p in lost.values()):
        return SelfOffset(static, wanted, (), exact)
    return None


def _shifted(static: StaticSite, shift: int) -> tuple[StaticParameter, ...] | None:
    """Return the parameters that the indices name when shifted; None if one of them names none."""
    api, target = static.site.definition, static.target
    positional = positional_parameters(static.function)
    wanted: list[StaticParameter] = []
    for index in static.indices:
        position = counted_position(api, target, index + shift)
        if index < 0 or index + shift < 0 or position is None:
            return None
        if not 1 <= position < len(positional):
            return None
        wanted.append(StaticParameter(index + shift, position, positional[position]))
    return tuple(wanted) or None


def _is_array(project: Project, static: StaticSite, parameter: ast.arg) -> bool:
    """Return whether a parameter is the module itself, or an array."""
    argument = Argument(project, static.target, parameter, static.bound)
    if parameter is positional_parameters(static.function)[0] or argument.kind == "array":
        return True
    return argument.annotated_kind != "python" and is_computed_with(argument)
