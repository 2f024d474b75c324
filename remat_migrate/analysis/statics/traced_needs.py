"""Arguments of checkpointed functions that are traced although their values are needed.

The question is the same as for `concrete=`, but here nobody asked for concrete values, and code
that works must not be reported. So the need must be certain, and a call must pass something that
`jax.checkpoint` turns into a tracer: an argument left to its default stays a Python value.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from ..names.expected_failures import expects_failure
from ..names.module import Module
from ..names.scopes import parameters
from ..needs.need import CONDITIONS, TRUTH, Need, NeededResult, needed_results
from ..project import Project
from ..sites.calls import Call, uses_of
from ..sites.site import Site
from ..values.callees import Target
from ..values.declarations import default_kind
from ..values.values import Constant, Container, Parameter, Value
from .argument_kinds import argument_kind, origins_of
from .arguments import Argument, project_needs
from .required_arguments import closed_parameters
from .static_options import StaticSite, static_site
from .statics import lost_indices

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
