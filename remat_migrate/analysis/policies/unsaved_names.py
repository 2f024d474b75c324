"""Names that a policy lists and that no residual can have, whatever the program computes."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Mapping

from ..names.mentions import find_mentions
from ..names.module import Module, Place
from ..names.scopes import Definition
from ..project import Project
from ..sites.find_sites import wrapped_by
from ..values.callees import targets_of, underlying
from ..values.values import External
from .checkpoint_names import Listed, name_calls
from .values import policy_places

# JAX differentiates the rule of such a function, and never its body.
_WITH_OWN_RULE = ("jax.custom_vjp", "jax.custom_jvp")


def why_unsaved(project: Project, module: Module, listed: Listed) -> tuple[str, str] | None:
    """Return why no checkpoint can save the value of a listed name, and what to do; None if one
    may.
    """
    places = project.once(_places)[listed.name]
    if not places or listed.role == "excluded":
        return None
    around = [_custom_rule_around(project, *place) for place in places]
    if all(around):
        rule, name = around[0] or ("", "")
        why = f"is given only inside `{name}`, but JAX differentiates the rules of a `{rule}`"
        return why, "name the value in the rule, where it becomes a residual"
    returned = _returned_by(project, module, listed)
    if all(place in returned for place in places):
        why = "is given only to what the checkpointed function returns, which is not a residual"
        return why, "drop the name, or name a value that the function uses again"
    return None


def _places(project: Project) -> Mapping[str, list[Place]]:
    """Return the calls that give each name."""
    found = defaultdict[str, list[Place]](list)
    for module, call, strings in name_calls(project):
        if call is not None:
            for name in strings.known:
                found[name].append((module, call))
    return found


def _custom_rule_around(project: Project, module: Module, node: ast.AST) -> tuple[str, str] | None:
    """Return the transformation with a custom rule, and the name, of a function around a node."""
    for around in module.ancestors(node):
        if not isinstance(around, Definition):
            continue
        for decorator in around.decorator_list:
            for value in map(underlying, project.values(module, decorator)):
                match value:
                    case External(name) if name in _WITH_OWN_RULE:
                        return name, around.name
    return None


def _returned_by(project: Project, module: Module, listed: Listed) -> list[Place]:
    """Return the named values that the checkpointed functions return, and do nothing else with.

    Empty if the policy may be used elsewhere, too.
    """
    sites = [place.site for place in policy_places(project, module) if place.node is listed.policy]
    if len(sites) != 1 or (site := sites[0]) is None or site.application is None:
        return []
    targets = [t for v in wrapped_by(project, site) for t in targets_of(project.evaluator, v)]
    functions = {target.function for target in targets}
    return [
        (function.module, node)
        for function in functions
        for node in ast.walk(function.node)
        if isinstance(node, ast.Call) and _is_returned(function.module, node, function.node)
    ]


def _is_returned(module: Module, node: ast.expr, function: ast.AST) -> bool:
    """Return whether a value is only returned by a function: at once, in a tuple, or by name."""
    match holder := module.parent(node):
        case ast.Tuple():
            return _is_returned(module, holder, function)
        case ast.Return():
            return module.enclosing_function(holder) is function
        case ast.Lambda():
            return holder is function
        case ast.Assign(targets=[ast.Name(id=name)]):
            loads = [
                load
                for load in find_mentions(module).names.get(name, ())
                if any(binding.node is holder for binding in module.reaching(load))
            ]
            return bool(loads) and all(_is_returned(module, load, function) for load in loads)
    return False
