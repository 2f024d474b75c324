"""Arguments of checkpointed functions whose values Python needs, and that are not static.

The same question as for `concrete=`, but nobody has asked for concrete values here: code that works
must not be found. So the need must be certain, and a call must be seen that passes what
`jax.checkpoint` makes a tracer of: an argument that is left to its default stays a Python value.
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
from ..needs.need import Need
from ..project import Project
from ..sites.call_search import uses_of
from ..sites.site import Site
from ..sites.uses import Call
from ..values.bind import Arguments, default_of, positional_parameters
from ..values.callees import Target
from ..values.declarations import annotation_kind, default_kind
from ..values.values import Constant, Container, External, Parameter
from .argument_kinds import kinds_of
from .array_arguments import is_self
from .passed_values import has_attributes
from .project_needs import project_needs
from .static_arguments import bind_use, position_of
from .static_options import counted_position, known_targets, lost_indices, read_indices

Evidence = Literal["python", "array", "declared"]


@dataclass(frozen=True, eq=False, slots=True)
class TracedNeed:
    """A parameter whose value Python needs, and that is traced.

    Attributes:
        target: the function.
        need: the place that needs it.
        evidence: what is passed for it: "python": a Python value; "array"; "declared": no call is
            seen, but the parameter has no default, and is declared to be a Python value or must be
            passed by callers elsewhere.
        call: a call that passes it.
        shown: the expression that it passes.
        sure: whether what is passed is a value of Python beyond doubt.
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

    Its calls are looked for when somebody asks: that takes a search of the project, and most
    functions need no value of an argument.

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
        """Where Python needs a value, whatever class the function is called on."""
        for target in self.targets:
            yield from project_needs(self.project).of(target.function, target.owner)

    @cached_property
    def bound(self) -> tuple[tuple[Call, Arguments], ...]:
        """The calls whose arguments are seen."""
        calls = uses_of(self.project, self.site).calls
        pairs = ((call, bind_use(self.site, self.target, call)) for call in calls)
        return tuple((c, a) for c, a in pairs if not a.unclear and not a.wrong)

    @property
    def hidden(self) -> bool:
        """Whether there may be other calls."""
        uses = uses_of(self.project, self.site)
        return bool(uses.escapes) or len(self.bound) < len(uses.calls)


def subject_of_site(project: Project, site: Site) -> Subject | None:
    """What a site wraps, with the static arguments that it names; None where that is not known."""
    api = site.definition
    if site.application is None or api.static_option is None or not api.same_function:
        return None
    if api.static_calls == "unknown" or {"concrete", "static_argnames"} & set(site.arguments):
        return None
    targets = known_targets(project, site)
    if not targets:
        return None
    static: set[int] = set()
    option = site.arguments.get("static_argnums")
    if option is not None:
        indices = read_indices(project, option).values
        if indices is None or lost_indices(api, indices):
            return None  # a wrong index is mended first
        for index in indices:
            position = counted_position(api, targets[0], index)
            if position is not None:
                static.add(position)
    return Subject(project, site, tuple(targets), frozenset(static))


def traced_needs(project: Project, site: Site) -> Iterator[TracedNeed]:
    """The arguments whose values Python needs and that the site traces, each once."""
    subject = subject_of_site(project, site)
    if subject is None:
        return
    target = subject.target
    node = target.function.node
    positional = positional_parameters(node)
    closed = {p.arg for p in positional[: target.skip]}
    if site.definition.counting != "function" and target.skip == 0 and positional:
        closed.add(positional[0].arg)
    by_parameter: dict[str, list[Need]] = {}
    for need in subject.needs:
        if need.certain and need.argument(node) is None:
            by_parameter.setdefault(need.parameter, []).append(need)
    for parameter in parameters(node):
        needed = by_parameter.get(parameter.arg)
        if parameter.arg in closed or is_self(target, positional, parameter):
            continue
        if position_of(target, parameter.arg, None) in subject.static:
            continue
        if parameter in (node.args.vararg, node.args.kwarg) or has_attributes(target, parameter):
            continue
        if needed is not None:
            found = _evidence(project, subject, parameter, needed)
        else:
            found = _string(project, subject, parameter)
        if found is not None:
            yield found


def _evidence(
    project: Project, subject: Subject, parameter: ast.arg, needs: list[Need]
) -> TracedNeed | None:
    """What the calls say of a parameter that Python needs."""
    target = subject.target
    of_arrays = next((n for n in needs if _of_an_array(target, n)), None)
    of_parts = next((n for n in needs if not n.reason.startswith(_TRUTH)), None)
    shown: list[TracedNeed] = []
    for call, arguments in subject.bound:
        expr = arguments.by_name.get(parameter.arg)
        if expr is None:
            continue
        evidence, sure = _passed(project, target, parameter, call.module, expr)
        need = of_arrays if evidence == "array" else needs[0]
        if evidence is None and _is_written_out(project, call.module, expr):
            evidence, sure, need = "python", True, of_parts
        if evidence is not None and need is not None:
            deliberate = expects_failure(call.module, call.node)
            sure = sure and call.own
            shown.append(TracedNeed(target, need, evidence, call, expr, sure, deliberate))
    if shown:
        # What is not deliberate before what is; a Python value before an array; what is sure first.
        return min(shown, key=lambda f: (f.deliberate, f.evidence, not f.sure))
    declared = annotation_kind(parameter.annotation) == "python"
    required = default_of(target.function.node, parameter) is None
    if not subject.bound and required and (declared or _is_never_called(subject)):
        deliberate = expects_failure(subject.site.module, subject.site.reference)
        return TracedNeed(target, needs[0], "declared", deliberate=deliberate)
    return None


_A_STRING = "it is a string, which JAX cannot trace"


def _string(project: Project, subject: Subject, parameter: ast.arg) -> TracedNeed | None:
    """A string that calls pass for a parameter that the result does not depend on.

    It is an override's, say, that ignores it: JAX rejects the string all the same.
    """
    for target in subject.targets:
        results = project_needs(project).result(target.function, target.owner)
        if any(d.parameter == parameter.arg for d in results):
            return None
    for call, arguments in subject.bound:
        expr = arguments.by_name.get(parameter.arg)
        if expr is None or not call.own:
            continue
        passed = [project.values(*o) for o in kinds_of(project).origins(call.module, expr)]
        values = [v for found in passed for v in found]
        if all(passed) and values:
            if all(isinstance(v, Constant) and isinstance(v.value, str | bytes) for v in values):
                need = Need(parameter.arg, None, call.module, expr, _A_STRING)
                deliberate = expects_failure(call.module, call.node)
                return TracedNeed(subject.target, need, "python", call, expr, True, deliberate)
    return None


# The truth of a tuple is known whatever its parts are.
_TRUTH = ("a branch", "a loop that", "an assertion", "`and`", "`not`")


def _is_written_out(project: Project, module: Module, expr: ast.expr) -> bool:
    """Whether an argument is a tuple of numbers and strings: an axis, a shape."""
    values = project.values(module, expr)
    tuples = [v.node for v in values if isinstance(v, Container)]
    others = [v for v in values if not isinstance(v, Container | Parameter)]
    return bool(tuples) and not others and all(default_kind(n) == "python" for n in tuples)


def _is_never_called(subject: Subject) -> bool:
    """Whether nothing in the project calls the function or hands it on: others must pass it all."""
    uses = uses_of(subject.project, subject.site)
    return not uses.calls and not uses.escapes


def _of_an_array(target: Target, need: Need) -> bool:
    """Whether a need is there if an array is passed, too: a comparison or a result that decides.

    Not the truth of a name, which may be a tree; and not in other functions, which may take many
    things.
    """
    node = need.node
    if not any(node is inner for inner in ast.walk(target.function.node)):
        return False
    if not need.reason.startswith(("a branch", "a loop that", "an assertion")):
        return False
    return isinstance(node, ast.Compare | ast.Call)


def _passed(
    project: Project, target: Target, parameter: ast.arg, module: Module, expr: ast.expr
) -> tuple[Evidence | None, bool]:
    """Whether a call passes a Python value or an array, and whether that is sure."""
    match expr:
        case ast.Constant(value=value):
            return (None, False) if value is None else ("python", True)
        case ast.UnaryOp(op=ast.Not()) | ast.UnaryOp(operand=ast.Constant()):
            return "python", True
        case ast.List() | ast.Tuple() | ast.Dict() | ast.Set() | ast.Lambda():
            return None, False  # a tree of arguments: its truth, say, is known
    values = project.values(module, expr)
    if any(isinstance(v, Container) or v == Constant(None) for v in values):
        return None, False
    if values and all(isinstance(v, Constant) for v in values):
        return "python", True
    kind = kinds_of(project).of(module, expr)
    if kind == "array":
        return "array", False
    annotated = annotation_kind(parameter.annotation) == "python"
    default = default_of(target.function.node, parameter)
    if kind == "python":
        return "python", annotated or default_kind(default) == "python"
    if annotated or default_kind(default) == "python":
        return "python", False
    return None, False


def needs_of_static(project: Project, site: Site) -> Iterator[tuple[Subject, Need]]:
    """Where Python needs the result of a `jax.numpy` operation on static values.

    Static are the arguments that are named so, and those that no call passes.
    """
    subject = subject_of_site(project, site)
    if subject is None:
        return
    node = subject.target.function.node
    names = {p.arg: p for p in parameters(node)}
    for need in subject.needs:
        parameter = names.get(need.parameter)
        if (
            not need.certain
            or not need.traced
            or need.argument(node) is not None
            or parameter is None
        ):
            continue
        if not _is_computed_here(project, need):
            continue
        named = position_of(subject.target, need.parameter, None) in subject.static
        omitted = (
            not subject.hidden
            and bool(subject.bound)
            and default_of(node, parameter) is not None
            and all(need.parameter not in a.by_name for _, a in subject.bound)
        )
        if named or omitted:
            yield subject, need


def _is_computed_here(project: Project, need: Need) -> bool:
    """Whether a function needs in itself what a function of JAX makes in it.

    Code that is handed a result takes lists, and arrays of NumPy, whose methods have JAX's names.
    """
    own = need.module.enclosing_function(need.node)
    return any(
        isinstance(node, ast.Call)
        and module is need.module
        and module.enclosing_function(node) is own
        and any(
            isinstance(value, External) and value.name.startswith("jax.")
            for value in project.values(module, node.func)
        )
        for module, node in need.traced
    )
