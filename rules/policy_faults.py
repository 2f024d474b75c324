"""What is wrong with how a policy is made or given: found for RMT404."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from remat_migrate.analysis import Module, Project
from remat_migrate.analysis.policies.known_policies import (
    ANSWER_IS_CHECKED_SINCE,
    BOTH_SAY_YES_OR_NO_SINCE,
    NAMESPACE,
    POLICIES,
    POLICY_OPTION,
    Policy,
)
from remat_migrate.analysis.policies.values import (
    Origin,
    PolicyPlace,
    answer_of_function,
    function_of,
    named,
    origins,
    policy_calls,
    policy_places,
)
from remat_migrate.codemod.changes import Change, Code, Keep, Replace
from remat_migrate.rule import Safety

from .policy_arguments import argument_faults


@dataclass(frozen=True, eq=False, slots=True)
class Fault:
    """One expression that is no policy, or makes none.

    Attributes:
        node: what to report.
        message: what is wrong, and what comes of it.
        silent: whether nothing fails.
        title: what a fix does; "" where there is none.
        safety: how far it may be trusted.
        changes: the fix.
        reason: why there is none, or what to write.
    """

    node: ast.expr
    message: str
    silent: bool = False
    title: str = ""
    safety: Safety = Safety.SAFE
    changes: tuple[Change, ...] = ()
    reason: str = ""


def faults_of(project: Project, module: Module) -> Iterator[Fault]:
    """The faults in a module, each once."""
    seen: set[ast.AST] = set()
    for fault in (*_faults_of_calls(project, module), *_faults_of_places(project, module)):
        if fault.node not in seen:
            seen.add(fault.node)
            yield fault


def _faults_of_calls(project: Project, module: Module) -> Iterator[Fault]:
    version = project.settings.jax_version
    for call, policy in policy_calls(project, module):
        if not policy.is_in(version):
            continue
        if policy.is_made:
            for found in argument_faults(project, module, call, policy):
                yield Fault(*found)
        elif not call.args and not call.keywords:
            yield _called(module, call, policy)


def _called(module: Module, call: ast.Call, policy: Policy) -> Fault:
    """A policy that is called without anything."""
    if policy.constant is False:
        what = "is False, and no policy: under `jax_remat3` it is called, and raises TypeError"
    elif policy.constant is True:
        what = "is True, and no policy: differentiating raises TypeError"
    else:
        what = "raises TypeError: a policy is given as it is"
    return Fault(
        call,
        f"`{policy.name}()` {what}",
        silent=policy.constant is False,
        title=f"give `{policy.name}` itself",
        changes=(Keep(module, call, call.func),),
    )


def _faults_of_places(project: Project, module: Module) -> Iterator[Fault]:
    for place in policy_places(project, module):
        for origin in origins(project, module, place.node):
            if not origin.only:
                continue
            fault = _fault_of(project, place, origin)
            if fault is not None:
                yield fault


def _fault_of(project: Project, place: PolicyPlace, origin: Origin) -> Fault | None:
    module, node = origin.module, origin.node
    function = function_of(project, origin)
    if function is not None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node = place.node
        args = function.node.args
        if args.kwarg is None:
            return Fault(
                node,
                "this policy raises TypeError: it is called with the primitive, its operands and,"
                " by keyword, its parameters",
                reason="let it take `*_, **__`, too",
            )
        if answer_of_function(function) is None:
            return _no_answer(project, node)
        return None
    if not isinstance(node, ast.expr):  # a function under decorators
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
            return Fault(
                node,
                "no policy, but several values: differentiating raises TypeError",
                reason=f"put two together by `{NAMESPACE}.save_from_both_policies`",
            )
        case ast.Call() if place.within:
            made = named(project, module, node.func)
            fails = project.settings.jax_version >= BOTH_SAY_YES_OR_NO_SINCE
            if made is not None and made.offloads and fails:
                return Fault(
                    node,
                    f"since jax 0.4.38 a policy that offloads raises ValueError in"
                    f" `{place.within}`",
                    reason="write a function that asks both policies",
                )
    return None


def _no_answer(project: Project, node: ast.expr) -> Fault | None:
    if project.settings.jax_version < ANSWER_IS_CHECKED_SINCE:
        return Fault(node, "this policy answers None, which saves nothing in silence", silent=True)
    return Fault(
        node,
        "this policy answers None: differentiating raises TypeError",
        reason="return True for what is to be saved, and False for what is computed again",
    )


def _not_called(node: ast.expr, policy: Policy) -> Fault:
    given = ", ".join(
        [*(f'"{n.name}"' for n in policy.names if n.star), *policy.parameters, *policy.keyword_only]
    )
    return Fault(
        node,
        f"`{policy.name}` makes a policy and is none: differentiating raises TypeError",
        reason=f"call it: `{policy.name}({given})`",
    )


def _string(project: Project, place: PolicyPlace, node: ast.Constant, text: str) -> Fault:
    from remat_migrate.rewrite.imports import written

    message = "a string is no policy: differentiating raises TypeError"
    policy = POLICIES.get(text)
    if policy is None or policy.is_made or not policy.is_in(project.settings.jax_version):
        return Fault(node, message, reason=f"give an attribute of `{NAMESPACE}`")
    title = f"give `{NAMESPACE}.{text}`"
    if node is not place.node or not place.module.editable:
        reason = "the string is given a name first"
        return Fault(node, message, title=title, safety=Safety.MANUAL, reason=reason)
    found = written(project, place.module, f"{NAMESPACE}.{text}", node)
    change = Replace(place.module, node, Code(found.text))
    return Fault(node, message, title=title, changes=(change, *found.changes))


def _number(place: PolicyPlace, node: ast.expr, value: bool) -> Fault:
    if value:
        message = "this is no policy: differentiating raises TypeError"
        return Fault(node, message, reason=f"give an attribute of `{NAMESPACE}`")
    return Fault(
        node,
        "this is no policy: it is as good as none, until `jax_remat3` calls it",
        silent=True,
        reason=f"leave `{POLICY_OPTION}` out" if not place.within else "give a policy",
    )
