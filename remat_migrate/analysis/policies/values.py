"""Where policies are passed, and what a policy expression denotes."""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from ..names.mentions import find_mentions
from ..names.module import Module
from ..names.scopes import FunctionNode
from ..project import Project
from ..sites.find_sites import sites_of
from ..sites.site import Option, Site
from ..values.evaluator import returned_expressions
from ..values.values import External, Function, Values
from .known_policies import (
    NAMESPACES,
    POLICIES,
    POLICY_OPTION,
    TAKES_POLICY,
    Policy,
    Version,
    policy_of,
)


@dataclass(frozen=True, eq=False, slots=True)
class PolicyPlace:
    """An expression passed as a policy.

    Attributes:
        module: the module.
        node: the expression.
        site: the site whose option it is; None for an argument of a factory.
        option: that option.
        within: the name of the factory whose argument it is; "" for an option.
    """

    module: Module
    node: ast.expr
    site: Site | None = None
    option: Option | None = None
    within: str = ""


@dataclass(frozen=True, eq=False, slots=True)
class Origin:
    """The origin of a value: an expression that is not a local name, or a function.

    Attributes:
        module: the module.
        node: the expression or the definition.
        only: whether this is the only possible origin.
    """

    module: Module
    node: ast.expr | ast.FunctionDef | ast.AsyncFunctionDef
    only: bool


def policy_places(project: Project, module: Module) -> Iterator[PolicyPlace]:
    """Yield the expressions of a module that are passed as policies, each once."""
    yield from project.once(_policy_options).get(module, ())
    for call, policy in factory_calls(project, module):
        for name, value in given_to(policy, call).items():
            if name in policy.policies:
                yield PolicyPlace(module, value, within=policy.name)


def _policy_options(project: Project) -> Mapping[Module, list[PolicyPlace]]:
    found: dict[ast.expr, PolicyPlace] = {}
    for site in sites_of(project):
        option = site.arguments.get(POLICY_OPTION)
        # A user's wrapper may turn any value into a policy.
        if option is not None and site.api in TAKES_POLICY and site.certain:
            place = PolicyPlace(option.module, option.value, site, option)
            found.setdefault(option.value, place)
    by_module: dict[Module, list[PolicyPlace]] = {}
    for place in found.values():
        by_module.setdefault(place.module, []).append(place)
    return by_module


def factory_calls(project: Project, module: Module) -> Iterator[tuple[ast.Call, Policy]]:
    """Yield the calls in a module that make a policy of `jax.checkpoint_policies`."""
    for call, policy in policy_calls(project, module):
        if policy.is_made:
            yield call, policy


def policy_calls(project: Project, module: Module) -> Iterator[tuple[ast.Call, Policy]]:
    """Yield the calls of names of `jax.checkpoint_policies` in a module, including policies."""
    if not any(name in module.source.text for name in POLICIES):
        return
    names = aliases_of(module, POLICIES.keys())
    for node in module.nodes:
        match node:
            case ast.Call(func=ast.Name(id=last) | ast.Attribute(attr=last) as func) if (
                last in names
            ):
                policy = named(project, module, func)
                if policy is not None:
                    yield node, policy


def aliases_of(module: Module, names: AbstractSet[str]) -> frozenset[str]:
    """Return `names` and the names that a module imports or assigns them to."""
    mentions = find_mentions(module)
    found = {*names, *(alias for name in names for alias in mentions.renamed.get(name, ()))}
    for assignment in mentions.assigned:
        match assignment:
            case ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.Name(id=last) | ast.Attribute(attr=last),
            ) if last in names:
                found.add(name)
    return frozenset(found)


def named(project: Project, module: Module, node: ast.expr) -> Policy | None:
    """Return the policy or factory that an expression denotes, if it denotes nothing else."""
    return of_values(project.values(module, node))


def of_values(values: Values) -> Policy | None:
    """Return the policy that all values are; None if there is no such one."""
    found = {policy_of(value.name) if isinstance(value, External) else None for value in values}
    return found.pop() if len(found) == 1 else None


def is_namespace(project: Project, module: Module, node: ast.expr) -> bool:
    """Return whether an expression is `jax.checkpoint_policies`."""
    return denotes_one_of(project, module, node, NAMESPACES)


def denotes_one_of(project: Project, module: Module, node: ast.expr, names: Container[str]) -> bool:
    """Return whether an expression denotes only library objects with these qualified names."""
    values = project.values(module, node)
    return bool(values) and all(
        isinstance(value, External) and value.name in names for value in values
    )


def given_to(policy: Policy, call: ast.Call) -> dict[str, ast.expr]:
    """Return the arguments of a factory call by parameter name, up to the first `*` argument."""
    found: dict[str, ast.expr] = {}
    for name, arg in zip(policy.parameters, call.args, strict=False):
        if isinstance(arg, ast.Starred):
            break
        found[name] = arg
    found.update((k.arg, k.value) for k in call.keywords if k.arg is not None)
    return found


# -- where a value comes from


def origins(project: Project, module: Module, node: ast.expr) -> list[Origin]:
    """Return the origins of an expression's value, through local names, `if`, and `or`."""
    found: list[tuple[ast.expr | ast.FunctionDef | ast.AsyncFunctionDef, Module]] = []
    complete = True
    seen: set[ast.expr] = set()
    open_: list[ast.expr] = [node]
    while open_:
        part = open_.pop(0)
        if part in seen:
            continue
        seen.add(part)
        match part:
            case ast.IfExp(body=one, orelse=other):
                open_ += [one, other]
            case ast.BoolOp(values=parts):
                open_ += parts
            case ast.NamedExpr(value=value):
                open_.append(value)
            case ast.Name():
                complete = _follow(module, part, open_, found) and complete
            case _:
                found.append((part, module))
    only = complete and len(found) == 1
    return [Origin(owner, part, only) for part, owner in found]


def _follow(
    module: Module,
    name: ast.Name,
    open_: list[ast.expr],
    found: list[tuple[ast.expr | ast.FunctionDef | ast.AsyncFunctionDef, Module]],
) -> bool:
    """Add what a name is bound to; return whether that covers all its bindings."""
    complete = True
    bindings = module.reaching(name)
    for binding in bindings:
        if binding.kind == "assign" and binding.value is not None and not binding.path:
            open_.append(binding.value)
        elif binding.kind == "def":
            assert isinstance(binding.node, ast.FunctionDef | ast.AsyncFunctionDef)
            found.append((binding.node, module))
        elif binding.kind == "import" and len(bindings) == 1:
            found.append((name, module))
        else:
            complete = False
    return complete and bool(bindings)


# -- what a policy answers


def function_of(project: Project, origin: Origin) -> Function | None:
    """Return the project function that an origin is; None if it is decorated or not unique."""
    node = origin.node
    if isinstance(node, FunctionNode):
        if isinstance(node, ast.Lambda) or not node.decorator_list:
            return Function(origin.module, node)
        return None
    values = project.values(origin.module, node)
    match list(values):
        case [Function() as function]:
            return function
    return None


UNKNOWN = object()


def answer_of_function(function: Function) -> object:
    """Return the constant that a function always returns: True, False, or None; else `UNKNOWN`."""
    node = function.node
    if isinstance(node, ast.AsyncFunctionDef):
        return UNKNOWN
    returned: list[object] = []
    for expr in returned_expressions(node):
        if not isinstance(expr, ast.Constant):
            return UNKNOWN
        returned.append(expr.value)
    if isinstance(node, ast.FunctionDef):
        if any(isinstance(n, ast.Yield | ast.YieldFrom | ast.Raise) for n in ast.walk(node)):
            return UNKNOWN
        if not _ends_in_return(node.body):
            returned.append(None)
    for answer in (True, False, None):
        if returned and all(other is answer for other in returned):
            return answer
    return UNKNOWN


def _ends_in_return(body: list[ast.stmt]) -> bool:
    """Return whether every visible path through a body ends in `return`."""
    match body[-1]:
        case ast.Return(value=value):
            return value is not None
        case ast.If(body=yes, orelse=no):
            return bool(no) and _ends_in_return(yes) and _ends_in_return(no)
        case ast.With(body=inner):
            return _ends_in_return(inner)
        case ast.Try() | ast.Match() | ast.While():
            return True  # not looked into: then nothing is claimed of a missing `return`
    return False


def saves_everything(
    project: Project, origin: Origin, version: Version, asked: set[ast.AST] | None = None
) -> str | None:
    """Return a description of a policy that saves everything; None if it may not.

    `asked` are its parts that do not: one policy may be part of many.
    """
    node, module = origin.node, origin.module
    asked = set() if asked is None else asked
    if node in asked:
        return None
    asked.add(node)
    function = function_of(project, origin)
    if function is not None:
        shown = "a function" if isinstance(node, ast.Lambda) else f"`{_text(module, node)}`"
        return f"{shown} that always returns True" if answer_of_function(function) is True else None
    if not isinstance(node, ast.expr):  # a function under decorators
        return None
    policy = named(project, module, node)
    if policy is not None and not policy.is_made:
        return f"`{policy.name}`" if policy.answer(version) is True else None
    if not isinstance(node, ast.Call):
        return None
    made = named(project, module, node.func)
    if made is None or not made.is_made:
        return None
    if made.answer(version) is True:
        return f"`{made.name}`"
    for name, value in given_to(made, node).items():
        if name in made.policies:
            inner = origins(project, module, value)
            if len(inner) == 1 and inner[0].only:
                how = saves_everything(project, inner[0], version, asked)
                if how is not None:
                    return f"`{made.name}` with {how}"
    return None


def _text(module: Module, node: ast.AST) -> str:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return node.name
    assert isinstance(node, ast.expr)
    return module.segment(node)
