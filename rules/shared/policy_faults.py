"""Expressions that are passed as a policy but are not one, and invalid calls of factories, for
RMT404.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from remat_migrate.api import Fix, Module, Project, Safety
from remat_migrate.api.changes import Code, Keep, Replace, Spread
from remat_migrate.api.code import External, reference_to
from remat_migrate.api.policies import (
    ANSWER_IS_CHECKED_SINCE,
    NAMESPACE,
    POLICIES,
    POLICY_OPTION,
    Origin,
    Policy,
    PolicyPlace,
    Version,
    always_returns,
    function_of,
    given_to,
    named,
    policy_calls,
    policy_of,
    policy_places,
    sole_origin,
)

_RAISES = "differentiating raises `TypeError`"
_PASS_POLICY = Fix.manual(f"pass an attribute of `{NAMESPACE}`")
_UNPACK = "pass the names as separate arguments"
_FACTORIES = frozenset(name for name, policy in POLICIES.items() if policy.is_made)
_UNHASHABLE = frozenset({"list", "set", "dict"})


@dataclass(frozen=True, eq=False, slots=True)
class Fault:
    """An expression that is not a policy, or does not make one.

    Attributes:
        node: what to report.
        message: what is wrong, and what happens because of it.
        fix: the fix, or the advice what to write instead.
        is_silent: whether nothing raises.
    """

    node: ast.expr
    message: str
    fix: Fix | None = None
    is_silent: bool = False


def faults_in(project: Project, module: Module) -> Iterator[Fault]:
    """Yield the faults in a module, at most one per expression."""
    seen: set[ast.AST] = set()
    for fault in (
        *_faults_of_calls(project, module),
        *_faults_of_places(project, module),
        *_faults_of_tables(project, module),
    ):
        if fault.node not in seen:
            seen.add(fault.node)
            yield fault


# -- calls of policies and factories


def _faults_of_calls(project: Project, module: Module) -> Iterator[Fault]:
    version = project.jax_version(module.source.path)
    for call, policy in policy_calls(project, module):
        if not policy.is_in(version):
            continue
        if not policy.is_made:
            if not call.args and not call.keywords:
                yield _called(module, call, policy)
        elif policy.answer(version) is None:  # else it ignores the names
            yield from _wrong_names(project, module, call, policy)


def _called(module: Module, call: ast.Call, policy: Policy) -> Fault:
    """Return the fault of a policy that is called without arguments."""
    if policy.constant is False:
        problem = "is `False`, not a policy; under `jax_remat3` it raises `TypeError`"
    elif policy.constant is True:
        problem = f"is `True`, not a policy; {_RAISES}"
    else:
        problem = "raises `TypeError`; pass the policy without calling it"
    change = Keep(module, call, call.func)
    fix = Fix(f"pass `{policy.name}` itself", Safety.SAFE, (change,))
    return Fault(call, f"`{policy.name}()` {problem}", fix, is_silent=policy.constant is False)


def _wrong_names(
    project: Project, module: Module, call: ast.Call, policy: Policy
) -> Iterator[Fault]:
    """Yield what is wrong with the names that are passed to a factory."""
    given = given_to(policy, call)
    for names in policy.names:
        if names.star:
            yield from _collections(project, module, call, policy)
        elif (value := given.get(names.name)) is not None:
            match sole_origin(module, value):
                case ast.Constant(value=str(text)) if len(text) > 1:
                    message = f"`{names.name}` takes a list; a string is split into letters"
                    change = Replace(module, value, Code.of("[{name}]", name=value))
                    fix = Fix("put it in a list", Safety.UNSAFE, (change,))
                    yield Fault(value, message, fix, is_silent=True)


def _collections(
    project: Project, module: Module, call: ast.Call, policy: Policy
) -> Iterator[Fault]:
    """Yield the collections that are passed where a factory takes one name."""
    for arg in call.args:
        origin = sole_origin(module, arg)
        kind = _kind(project, module, origin) if origin is not None else None
        if kind is None:
            continue
        is_hashable = kind not in _UNHASHABLE
        effect = "silently matches no name" if is_hashable else "raises `TypeError`"
        message = f"`{policy.name}` takes names as separate arguments; a {kind} {effect}"
        fix = Fix.manual(_UNPACK)
        if kind != "dict" and not isinstance(arg, ast.GeneratorExp):
            safety = Safety.UNSAFE if is_hashable else Safety.SAFE
            fix = Fix(_UNPACK, safety, (Spread(module, arg),))
        yield Fault(arg, message, fix, is_silent=is_hashable)


def _kind(project: Project, module: Module, node: ast.AST) -> str | None:
    match node:
        case ast.List() | ast.ListComp():
            return "list"
        case ast.Tuple():
            return "tuple"
        case ast.Set() | ast.SetComp():
            return "set"
        case ast.Dict() | ast.DictComp():
            return "dict"
        case ast.GeneratorExp():
            return "generator"
        case ast.Call(
            func=ast.Name(id="list" | "set" | "dict" | "tuple" | "frozenset" | "sorted" as name)
        ):
            is_builtin = External(f"builtins.{name}") in project.values(module, node.func)
            return name.replace("sorted", "list") if is_builtin else None
    return None


# -- expressions that are passed as policies


def _faults_of_places(project: Project, module: Module) -> Iterator[Fault]:
    for place in policy_places(project, module):
        origin = sole_origin(module, place.node)
        fault = _fault_of(project, module, place, origin) if origin is not None else None
        if fault is not None:
            yield fault


def _fault_of(project: Project, module: Module, place: PolicyPlace, node: Origin) -> Fault | None:
    version = project.jax_version(module.source.path)
    function = function_of(project, module, node)
    if function is not None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node = place.node
        if function.node.args.kwarg is None:
            return Fault(
                node,
                "this policy raises `TypeError`: JAX passes the primitive and, by keyword, its"
                " parameters",
                Fix.manual("also accept `*_, **__`"),
            )
        return _no_answer(node, version) if always_returns(function, None) else None
    if not isinstance(node, ast.expr):  # a decorated function
        return None
    policy = named(project, module, node)
    if policy is not None:
        return _not_called(node, policy) if policy.is_made else None
    match node:
        case ast.Constant(value=str(text)) if text:
            return _string(project, module, place, node, text)
        case ast.Constant(value=bool() | int() | float() as value):
            return _number(place, node, bool(value))
        case ast.List() | ast.Tuple() | ast.Set() | ast.Dict():
            combine = f"combine two policies with `{NAMESPACE}.save_from_both_policies`"
            return Fault(node, f"a collection is not a policy; {_RAISES}", Fix.manual(combine))
    return None


def _no_answer(node: ast.expr, version: Version) -> Fault:
    if version < ANSWER_IS_CHECKED_SINCE:
        return Fault(
            node, "this policy returns `None`, which silently saves nothing", is_silent=True
        )
    return Fault(
        node,
        f"this policy returns `None`; {_RAISES}",
        Fix.manual("return `True` for values to save and `False` for values to recompute"),
    )


def _not_called(node: ast.expr, policy: Policy) -> Fault:
    stars = (f'"{names.name}"' for names in policy.names if names.star)
    arguments = ", ".join((*stars, *policy.parameters, *policy.keyword_only))
    return Fault(
        node,
        f"`{policy.name}` makes a policy but is not one; {_RAISES}",
        Fix.manual(f"call it: `{policy.name}({arguments})`"),
    )


def _string(
    project: Project, module: Module, place: PolicyPlace, node: ast.Constant, text: str
) -> Fault:
    message = f"a string is not a policy; {_RAISES}"
    policy = POLICIES.get(text)
    version = project.jax_version(module.source.path)
    if policy is None or policy.is_made or not policy.is_in(version):
        return Fault(node, message, _PASS_POLICY)
    title = f"pass `{NAMESPACE}.{text}`"
    if node is not place.node or not module.is_own:
        return Fault(node, message, Fix.manual(f"{title}; the string is assigned elsewhere"))
    found = reference_to(module, project, f"{NAMESPACE}.{text}", node)
    change = Replace(module, node, Code(found.text))
    return Fault(node, message, Fix(title, Safety.SAFE, (change, *found.changes)))


def _number(place: PolicyPlace, node: ast.expr, value: bool) -> Fault:
    if value:
        return Fault(node, f"this is not a policy; {_RAISES}", _PASS_POLICY)
    message = "this is not a policy; it acts like no policy until `jax_remat3` calls it"
    advice = "pass a policy" if place.within else f"remove `{POLICY_OPTION}`"
    return Fault(node, message, Fix.manual(advice), is_silent=True)


# -- tables of policies


def _faults_of_tables(project: Project, module: Module) -> Iterator[Fault]:
    """Yield the factories that a dictionary holds beside policies, if no value of it is called."""
    if not any(name in module.source.text for name in _FACTORIES):
        return
    for node in module.nodes:
        match node:
            case ast.Dict(values=values):
                pass
            case ast.Call(func=ast.Name(id="dict"), keywords=keywords):
                values = [keyword.value for keyword in keywords]
            case _:
                continue
        held = [(v, p) for v in values if (p := named(project, module, v)) is not None]
        factories = [(value, policy) for value, policy in held if policy.is_made]
        if 0 < len(factories) < len(held) and not _calls(project, module, node, factories):
            yield from (_not_called(value, policy) for value, policy in factories)


def _calls(
    project: Project,
    module: Module,
    table: ast.AST,
    factories: Collection[tuple[ast.expr, Policy]],
) -> bool:
    """Return whether a factory of a table is called under another name, here or in a module that
    mentions the variable or the function that the table is in.
    """
    parent, function = module.parent(table), module.enclosing_function(table)
    holders = [t.id for t in getattr(parent, "targets", ()) if isinstance(t, ast.Name)]
    if isinstance(function, ast.FunctionDef):
        holders = [function.name]
    names = {policy.name for _, policy in factories}
    return any(
        isinstance(node, ast.Call)
        and getattr(node.func, "attr", getattr(node.func, "id", None)) not in names
        and any(
            isinstance(value, External) and getattr(policy_of(value.name), "name", None) in names
            for value in project.values(other, node.func)
        )
        for other in {module, *(project.mentioning(holders) if holders else ())}
        for node in other.nodes
    )
