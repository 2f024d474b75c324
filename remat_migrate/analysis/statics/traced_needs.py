"""Arguments of checkpointed functions that are traced although their values are needed.

The question is the same as for `concrete=`, but here nobody asked for concrete values, and code
that works must not be reported. So the need must be certain, and a call must pass something that
`jax.checkpoint` turns into a tracer: an argument left to its default stays a Python value.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from ..names.expected_failures import expects_failure
from ..names.module import Module
from ..names.scopes import parameters
from ..needs.need import CONDITIONS, TRUTH, Need
from ..project import Project
from ..sites.calls import Call, uses_of
from ..sites.site import Site
from ..values.bind import Arguments
from ..values.callees import Target
from ..values.declarations import default_kind
from ..values.values import Constant, Container, Parameter, Value
from .argument_kinds import kinds_of
from .arguments import Argument
from .needed_results import NeededResult, needed_results
from .positions import bind_use, counted_position, lost_indices, position_of
from .project_needs import project_needs
from .required_arguments import closed_parameters
from .static_options import known_targets, read_indices

Evidence = Literal["python", "array", "declared"]


_STRING = "it is a string, which JAX cannot trace"


@dataclass(frozen=True, eq=False, slots=True)
class TracedNeed:
    """A traced parameter whose value is needed.

    Attributes:
        target: the function.
        need: the place that needs the value.
        evidence: what is passed for it: "python": a Python value; "array"; "declared": no call is
            known, but the parameter has no default, and is declared to be a Python value or must be
            passed by callers elsewhere.
        call: a call that passes it.
        shown: the expression that it passes.
        sure: whether that is certainly a Python value.
        deliberate: whether a test expects the calls to fail.
    """

    target: Target
    need: Need
    evidence: Evidence
    call: Call | None = None
    shown: ast.expr | None = None
    sure: bool = False
    deliberate: bool = False


@dataclass(frozen=True, eq=False)
class Subject:
    """What a site wraps, as far as it is known.

    Its calls are found on demand: that takes a search of the project, and most functions do not
    need the value of any argument.

    Attributes:
        project: the project.
        site: the site.
        targets: the function, once for each class that may have inherited it.
        static: the positions of its static parameters.
    """

    project: Project
    site: Site
    targets: tuple[Target, ...]
    static: frozenset[int]

    @property
    def target(self) -> Target:
        """The function."""
        return self.targets[0]

    @property
    def needs(self) -> Iterator[Need]:
        """The needs of the function, for all classes that may have inherited it."""
        for target in self.targets:
            yield from project_needs(self.project).of(target.function, target.owner)

    @cached_property
    def bound(self) -> tuple[tuple[Call, Arguments], ...]:
        """The calls whose arguments are known."""
        calls = uses_of(self.project, self.site).calls
        pairs = ((call, bind_use(self.site, self.target, call)) for call in calls)
        return tuple((c, a) for c, a in pairs if not a.unclear and not a.wrong)

    def passed(self, name: str) -> Iterator[tuple[Call, ast.expr]]:
        """Yield the calls that pass a parameter, and what they pass."""
        for call, arguments in self.bound:
            if name in arguments.by_name:
                yield call, arguments.by_name[name]

    def is_static(self, name: str) -> bool:
        """Return whether the site names a parameter as static, or all calls leave it out."""
        if position_of(self.target, name) in self.static:
            return True
        uses = uses_of(self.project, self.site)
        is_known = not uses.escapes and 0 < len(self.bound) == len(uses.calls)
        return is_known and not any(self.passed(name))


def _subject_of(project: Project, site: Site) -> Subject | None:
    """Return what a site wraps, with its static arguments; None if that is not known."""
    api = site.definition
    if site.application is None or not api.same_function:
        return None
    if api.static_calls == "unknown" or {"concrete", "static_argnames"} & set(site.arguments):
        return None
    targets = known_targets(project, site)
    if not targets:
        return None
    option = site.arguments.get("static_argnums")
    indices = () if option is None else read_indices(project, option).values
    if indices is None or lost_indices(api, indices):
        return None  # RMT207 reports a wrong index first
    positions = (counted_position(api, targets[0], index) for index in indices)
    static = frozenset(position for position in positions if position is not None)
    return Subject(project, site, tuple(targets), static)


def traced_needs(project: Project, site: Site) -> Iterator[TracedNeed]:
    """Yield the arguments that a site traces although their values are needed, each once."""
    subject = _subject_of(project, site)
    if subject is None or site.definition.static_option is None:
        return
    target = subject.target
    node = target.function.node
    closed = closed_parameters(site, target)
    by_parameter: dict[str, list[Need]] = {}
    for need in subject.needs:
        if need.certain and need.argument(node) is None:
            by_parameter.setdefault(need.parameter, []).append(need)
    for parameter in parameters(node):
        name, argument = parameter.arg, Argument(project, target, parameter)
        if name in closed or argument.is_self or position_of(target, name) in subject.static:
            continue
        if argument.is_variadic or argument.has_attributes:
            continue
        needs = by_parameter.get(name)
        found = _evidence(subject, argument, needs) if needs else _string(subject, argument)
        if found is not None:
            yield found


def _evidence(subject: Subject, argument: Argument, needs: list[Need]) -> TracedNeed | None:
    """Return the strongest evidence that a needed parameter is traced."""
    project, target = subject.project, subject.target
    shown: list[TracedNeed] = []
    for call, expr in subject.passed(argument.name):
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
            shown.append(TracedNeed(target, need, shown_as, call, expr, sure, deliberate))
    if shown:
        # Expected failures come last. An array comes first: it cannot become static.
        return min(shown, key=lambda f: (f.deliberate, f.evidence != "array", not f.sure))
    if subject.bound or argument.default is not None:
        return None
    uses = uses_of(project, subject.site)
    if argument.annotated_kind == "python" or not (uses.calls or uses.escapes):
        deliberate = expects_failure(subject.site.module, subject.site.reference)
        return TracedNeed(target, needs[0], "declared", deliberate=deliberate)
    return None


def _string(subject: Subject, argument: Argument) -> TracedNeed | None:
    """Return a string that calls pass for a parameter that the result does not depend on.

    For example, an override ignores a parameter: JAX rejects the string all the same.
    """
    project = subject.project
    for target in subject.targets:
        results = project_needs(project).result(target.function, target.owner)
        if any(d.parameter == argument.name for d in results):
            return None
    for call, expr in subject.passed(argument.name):
        origins = kinds_of(project).origins(call.module, expr) if call.own else ()
        passed = [project.values(*origin) for origin in origins]
        if passed and all(values and all(map(_is_string, values)) for values in passed):
            need = Need(argument.name, None, call.module, expr, _STRING)
            deliberate = expects_failure(call.module, call.node)
            return TracedNeed(subject.target, need, "python", call, expr, True, deliberate)
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
    kind = kinds_of(argument.project).of(module, expr)
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
    subject = _subject_of(project, site)
    if subject is None:
        return
    closed = closed_parameters(site, subject.target)
    for result in needed_results(subject.needs):
        if any(need.passed for need in result.sources):
            continue  # to a function that may accept arrays as well
        if all(subject.is_static(name) for name in result.parameters - closed):
            yield result, result.may_be_traced(closed)
