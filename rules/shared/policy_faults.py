"""Expressions that are passed as a policy but are not one, for RMT404."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from remat_migrate.api import Fix, Module, Project, Safety
from remat_migrate.api.changes import Code, Keep, Replace
from remat_migrate.api.policies import (
    ANSWER_IS_CHECKED_SINCE,
    BOTH_SAY_YES_OR_NO_SINCE,
    NAMESPACE,
    POLICIES,
    POLICY_OPTION,
    Origin,
    Policy,
    PolicyPlace,
    answer_of_function,
    function_of,
    named,
    origins,
    policy_calls,
    policy_places,
)

from .policy_arguments import Fault, argument_faults

_RAISES = "differentiating raises `TypeError`"
_PASS_POLICY = Fix.manual(f"pass an attribute of `{NAMESPACE}`")


def faults_in(project: Project, module: Module) -> Iterator[Fault]:
    """Yield the faults in a module, at most one per expression."""
    seen: set[ast.AST] = set()
    for fault in (*_faults_of_calls(project, module), *_faults_of_places(project, module)):
        if fault.node not in seen:
            seen.add(fault.node)
            yield fault


def _faults_of_calls(project: Project, module: Module) -> Iterator[Fault]:
    for call, policy in policy_calls(project, module):
        if not policy.is_in(project.jax_version(module.source.path)):
            continue
        if policy.is_made:
            yield from argument_faults(project, module, call, policy)
        elif not call.args and not call.keywords:
            yield _called(module, call, policy)


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


def _faults_of_places(project: Project, module: Module) -> Iterator[Fault]:
    for place in policy_places(project, module):
        for origin in origins(project, module, place.node):
            fault = _fault_of(project, place, origin) if origin.only else None
            if fault is not None:
                yield fault


def _fault_of(project: Project, place: PolicyPlace, origin: Origin) -> Fault | None:
    module, node = origin.module, origin.node
    function = function_of(project, origin)
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
        return _no_answer(project, module, node) if answer_of_function(function) is None else None
    if not isinstance(node, ast.expr):  # a decorated function
        return None
    policy = named(project, module, node)
    if policy is not None:
        return _not_called(node, policy) if policy.is_made else None
    match node:
        case ast.Constant(value=str(text)) if text:
            return _string(project, place, node, text)
        case ast.Constant(value=bool() | int() | float() as value):
            return _number(place, node, bool(value))
        case ast.List() | ast.Tuple() | ast.Set() | ast.Dict():
            combine = f"combine two policies with `{NAMESPACE}.save_from_both_policies`"
            return Fault(node, f"a collection is not a policy; {_RAISES}", Fix.manual(combine))
        case ast.Call() if place.within:
            made = named(project, module, node.func)
            fails = project.jax_version(module.source.path) >= BOTH_SAY_YES_OR_NO_SINCE
            if made is not None and made.offloads and fails:
                return Fault(
                    node,
                    f"`{place.within}` rejects policies that offload since jax 0.4.38 and raises"
                    " `ValueError`",
                    Fix.manual("write a function that asks both policies"),
                )
    return None


def _no_answer(project: Project, module: Module, node: ast.expr) -> Fault:
    if project.jax_version(module.source.path) < ANSWER_IS_CHECKED_SINCE:
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


def _string(project: Project, place: PolicyPlace, node: ast.Constant, text: str) -> Fault:
    from remat_migrate.api.rewrites import written

    message = f"a string is not a policy; {_RAISES}"
    policy = POLICIES.get(text)
    if (
        policy is None
        or policy.is_made
        or not policy.is_in(project.jax_version(place.module.source.path))
    ):
        return Fault(node, message, _PASS_POLICY)
    title = f"pass `{NAMESPACE}.{text}`"
    if node is not place.node or not place.module.is_own:
        return Fault(node, message, Fix.manual(title), reason="the string is assigned elsewhere")
    found = written(project, place.module, f"{NAMESPACE}.{text}", node)
    change = Replace(place.module, node, Code(found.text))
    return Fault(node, message, Fix(title, Safety.SAFE, (change, *found.changes)))


def _number(place: PolicyPlace, node: ast.expr, value: bool) -> Fault:
    if value:
        return Fault(node, f"this is not a policy; {_RAISES}", _PASS_POLICY)
    message = "this is not a policy; it acts like no policy until `jax_remat3` calls it"
    advice = "pass a policy" if place.within else f"remove `{POLICY_OPTION}`"
    return Fault(node, message, Fix.manual(advice), is_silent=True)
