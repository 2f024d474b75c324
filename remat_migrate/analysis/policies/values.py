"""Where policies are passed and read, what a policy expression denotes, which strings a name may
be, and the flag `jax_remat3`.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from ..names.module import Module
from ..project import Project
from ..sites.find_sites import sites_of
from ..sites.site import Site
from ..values.api_names import with_aliases
from ..values.evaluator import returned_expressions
from ..values.values import Class, Constant, External, Function, ModuleValue, alternatives
from .known_policies import (
    NAMESPACE,
    NAMESPACES,
    POLICIES,
    POLICY_OPTION,
    TAKES_POLICY,
    Policy,
    Version,
    policy_of,
)

# An expression that is not a local name, or the definition of a function.
Origin = ast.expr | ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, eq=False, slots=True)
class PolicyPlace:
    """An expression passed as a policy.

    Attributes:
        node: the expression.
        site: the site whose option it is; None for an argument of a factory.
        within: the name of the factory whose argument it is; "" for an option.
    """

    node: ast.expr
    site: Site | None = None
    within: str = ""


def policy_places(project: Project, module: Module) -> Iterator[PolicyPlace]:
    """Yield the expressions of a module that are passed as policies, each once."""
    yield from project.once(_policy_options).get(module, {}).values()
    for call, policy in policy_calls(project, module):
        for name, value in given_to(policy, call).items():
            if name in policy.policies:
                yield PolicyPlace(value, within=policy.name)


def _policy_options(project: Project) -> Mapping[Module, dict[ast.expr, PolicyPlace]]:
    found: dict[Module, dict[ast.expr, PolicyPlace]] = {}
    for site in sites_of(project):
        option = site.arguments.get(POLICY_OPTION)
        # A user's wrapper may turn any value into a policy.
        if option is not None and site.api in TAKES_POLICY and site.certain:
            places = found.setdefault(option.module, {})
            places.setdefault(option.value, PolicyPlace(option.value, site))
    return found


def policy_calls(project: Project, module: Module) -> Iterator[tuple[ast.Call, Policy]]:
    """Yield the calls of names of `jax.checkpoint_policies` in a module."""
    if not any(name in module.source.text for name in POLICIES):
        return
    names = with_aliases(module, POLICIES)
    for node in module.nodes:
        match node:
            case ast.Call(func=ast.Name(id=last) | ast.Attribute(attr=last) as func):
                if last in names and (policy := named(project, module, func)) is not None:
                    yield node, policy


def named(project: Project, module: Module, node: ast.expr) -> Policy | None:
    """Return the policy or factory that an expression denotes, if it denotes nothing else."""
    values = project.values(module, node)
    found = {policy_of(value.name) if isinstance(value, External) else None for value in values}
    return found.pop() if len(found) == 1 else None


def is_namespace(project: Project, module: Module, node: ast.expr) -> bool:
    """Return whether an expression is `jax.checkpoint_policies`."""
    values = project.values(module, node)
    return bool(values) and all(isinstance(v, External) and v.name in NAMESPACES for v in values)


def given_to(policy: Policy, call: ast.Call) -> dict[str, ast.expr]:
    """Return the arguments of a factory call by parameter name, up to the first `*` argument."""
    positional = itertools.takewhile(lambda arg: not isinstance(arg, ast.Starred), call.args)
    found = dict(zip(policy.parameters, positional, strict=False))
    found.update((k.arg, k.value) for k in call.keywords if k.arg is not None)
    return found


# -- where a value comes from


def sole_origin(module: Module, node: ast.expr) -> Origin | None:
    """Return the only possible origin of an expression's value; None if there are several."""
    origins = _origins(module, node)
    return origins[0] if len(origins) == 1 else None


def _origins(module: Module, node: ast.expr) -> list[Origin | None]:
    """Return the origins of a value, through local names, `if`, and `or`; None for unknown ones."""
    found: list[Origin | None] = []
    parts = [node]
    for part in parts:  # which grows
        more = [] if isinstance(part, ast.Starred) else alternatives(part)
        bindings = module.reaching(part) if isinstance(part, ast.Name) else frozenset()
        if not more and not bindings:
            found.append(None if isinstance(part, ast.Name) else part)
        for binding in bindings:
            if binding.kind == "assign" and binding.value is not None and not binding.path:
                more = [*more, binding.value]
            elif isinstance(binding.node, ast.FunctionDef | ast.AsyncFunctionDef):
                found.append(binding.node)
            else:
                only_import = binding.kind == "import" and len(bindings) == 1
                found.append(part if only_import else None)
        parts += [each for each in more if each not in parts]
    return found


@dataclass(frozen=True, slots=True)
class Strings:
    """The strings that an expression may be.

    Attributes:
        known: the strings.
        is_open: whether it may be others.
    """

    known: frozenset[str] = frozenset()
    is_open: bool = False

    @property
    def only(self) -> str | None:
        """The string, if there is only one."""
        return next(iter(self.known)) if len(self.known) == 1 and not self.is_open else None


OPEN = Strings(is_open=True)


def union(parts: Iterable[Strings]) -> Strings:
    """Return the strings that are in any of some sets."""
    each = list(parts)
    known = frozenset[str]().union(*(part.known for part in each))
    return Strings(known, any(part.is_open for part in each))


def strings_of(project: Project, module: Module, node: ast.expr) -> Strings:
    """Return the strings that an expression may be, through names, attributes, `if`, and `or`."""
    return union(_constants(project, module, origin) for origin in _origins(module, node))


def _constants(project: Project, module: Module, node: Origin | None) -> Strings:
    """Return the strings that an expression may be by its own value."""
    if not isinstance(node, ast.expr):
        return OPEN
    values = project.values(module, node)
    is_fixed = True
    if isinstance(node, ast.Attribute | ast.Subscript):
        # A field of an instance can be assigned anywhere.
        owners = project.values(module, node.value)
        is_fixed = all(isinstance(v, Class | ModuleValue) for v in owners)
    constants = [v.value for v in values if isinstance(v, Constant)]
    known = frozenset(str(v) for v in constants if isinstance(v, str | int | float))
    is_open = not values or len(constants) < len(values) or not is_fixed
    return Strings(known, is_open)


# -- what a policy answers


def function_of(project: Project, module: Module, node: Origin) -> Function | None:
    """Return the project function that an origin is; None if it is decorated or not unique."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return None if node.decorator_list else Function(module, node)
    match list(project.values(module, node)):
        case [Function() as function]:
            return function
    return None


def always_returns(function: Function, value: bool | None) -> bool:
    """Return whether a function surely returns the same constant on every path."""
    node = function.node
    if isinstance(node, ast.AsyncFunctionDef) or any(
        isinstance(inner, ast.Yield | ast.YieldFrom | ast.Raise) for inner in ast.walk(node)
    ):
        return False
    if value is not None and isinstance(node, ast.FunctionDef):
        if not isinstance(node.body[-1], ast.Return):
            return False
    returned = returned_expressions(node)
    return all(isinstance(expr, ast.Constant) and expr.value is value for expr in returned)


def saves_everything(
    project: Project, module: Module, node: Origin, version: Version
) -> str | None:
    """Return a description of a policy that saves everything; None if it may not."""
    function = function_of(project, module, node)
    if function is not None:
        if not always_returns(function, True):
            return None
        name = node.name if not isinstance(node, ast.expr) else module.segment(node)
        shown = "a function" if isinstance(node, ast.Lambda) else f"`{name}`"
        return f"{shown} that always returns True"
    if not isinstance(node, ast.expr):  # a function under decorators
        return None
    made = named(project, module, node.func) if isinstance(node, ast.Call) else None
    policy = made or named(project, module, node)
    if policy is None or policy.is_made != (made is not None):
        return None
    return f"`{policy.name}`" if policy.answer(version) is True else None


@dataclass(frozen=True, eq=False, slots=True)
class PolicyName:
    """A name read from `jax.checkpoint_policies`.

    Attributes:
        node: the attribute, or the `getattr` call.
        name: the name.
        written: the attribute or string that holds the name, if it may be changed.
        default: the default of `getattr`.
    """

    node: ast.expr
    name: str
    written: ast.Attribute | ast.Constant | None = None
    default: ast.expr | None = None


def policy_names_read(project: Project, module: Module) -> Iterator[PolicyName]:
    """Yield the names that a module reads, in source order, unless it handles their absence."""
    if NAMESPACE.rpartition(".")[2] not in module.source.text:
        return
    found = [read for node in module.nodes for read in _read(project, module, node)]
    for read in sorted(found, key=lambda read: module.span(read.node)):
        if not read.name.startswith("_") and not _is_ready(module, read.node):
            yield read


def is_added(project: Project, name: str) -> bool:
    """Return whether the project itself adds a name to `jax.checkpoint_policies`.

    The first question searches all files, so ask only for names that JAX lacks.
    """
    return name in project.once(_added_names)


def _read(project: Project, module: Module, node: ast.AST) -> Iterator[PolicyName]:
    match node:
        case ast.Attribute(ctx=ast.Load(), value=ast.Name() | ast.Attribute() as base, attr=name):
            if is_namespace(project, module, base):
                yield PolicyName(node, name, node)
        case ast.Call(func=ast.Name(id="getattr"), args=[base, asked, *default], keywords=[]):
            if not is_namespace(project, module, base):
                return
            if External("builtins.getattr") not in project.values(module, node.func):
                return
            # One of several names, or of a field that may be set, may stand for no policy.
            only = strings_of(project, module, asked).only
            if only is not None:
                written = _written_name(module, asked, only)
                yield PolicyName(node, only, written, default[0] if default else None)


def _written_name(module: Module, asked: ast.expr, name: str) -> ast.Constant | None:
    """Return the string that a name comes from, if it can be replaced there."""
    literal = sole_origin(module, asked) if module.is_own else None
    if isinstance(literal, ast.Constant) and module.segment(literal)[1:-1] == name:
        return literal
    return None  # it has a prefix or escapes, or comes from several places


def _is_ready(module: Module, node: ast.AST) -> bool:
    """Return whether the code handles a JAX without the name, by `try` or by an `if` that tests for
    it.
    """
    for around in module.ancestors(node):
        match around:
            case ast.Try(handlers=[_, *_]):
                return True
            case ast.If(test=test) | ast.IfExp(test=test):
                asked = ast.unparse(test)
                if "version" in asked or "hasattr" in asked:
                    return True
    return False


def _added_names(project: Project) -> frozenset[str]:
    """Return the names that the project itself adds to `jax.checkpoint_policies`."""
    found: set[str] = set()
    for module in project.mentioning(("checkpoint_policies",)):
        for node in module.nodes:
            match node:
                case (
                    ast.Attribute(ctx=ast.Store(), value=base, attr=name)
                    | ast.Call(
                        func=ast.Name(id="setattr"), args=[base, ast.Constant(value=str(name)), _]
                    )
                ) if is_namespace(project, module, base):
                    found.add(name)
    return frozenset(found)


# The flag of the next implementation, which accepts some static arguments that today's rejects.
_NAMES = ("jax_remat3", "JAX_REMAT3")


def uses_next_implementation(project: Project) -> bool:
    """Return whether a module sets the flag by `update`, as an attribute, or in the environment."""
    for module in project.mentioning(_NAMES):
        for node in module.nodes:
            match node:
                case (
                    ast.Call(args=[ast.Constant(value=name), ast.Constant(value=value)])
                    | ast.Assign(
                        targets=[
                            ast.Attribute(attr=name) | ast.Subscript(slice=ast.Constant(value=name))
                        ],
                        value=ast.Constant(value=value),
                    )
                ) if name in _NAMES and value not in (False, "0", "false", "False"):
                    return True
    return False
