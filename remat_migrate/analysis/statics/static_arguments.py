"""Which arguments must be static where a checkpoint is applied, and whether they can be."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import replace

from ..names.module import Place
from ..names.scopes import FunctionNode
from ..needs.dependence import Key
from ..project import Project
from ..sites.calls import Call, Uses, uses_of
from ..sites.passed_arguments import candidates
from ..sites.site import Site
from ..sites.subclasses import overrides_of
from ..values.bind import call_order, default_of, positional_parameters
from ..values.callees import Target, layers, targets_of
from ..values.overrides import Callees
from ..values.values import Applied, Class, Function, Value
from .arguments import is_python_value
from .opaque_targets import (
    abstract_obstacle,
    changing_decorator,
    decorator_obstacle,
    held_obstacle,
    is_held,
    opaque_statics,
    unseen_target_obstacle,
)
from .required_arguments import statics_of_target
from .statics import Obstacle, Required, Statics


def applied_values(project: Project, site: Site) -> list[Value]:
    """Return what a site wraps."""
    if site.subject is None:
        return []
    module, node = site.subject
    if isinstance(node, ast.expr):
        return list(project.values(module, node))
    if isinstance(node, ast.ClassDef):
        return [Class(module, node)]
    assert site.application is not None
    holder: Value = Function(module, node)
    for value in project.evaluator.definition(module, node):
        # Decorators below this one are part of what is wrapped.
        for layer in layers(value):
            if isinstance(layer, Applied) and layer.node is site.application:
                holder = layer.target or holder
    return [holder]


def find_statics(project: Project, site: Site) -> Statics:
    """Decide what must be static where `site` is applied."""
    values = applied_values(project, site)
    uses = uses_of(project, site)
    changing = changing_decorator(values)
    if changing is not None:
        return Statics(None, uses=uses, obstacle=decorator_obstacle(changing))
    held = is_held(project, site, values)
    callees = Callees(frozenset(values))
    if site.subject is not None and isinstance(site.subject[1], ast.expr):
        if held:
            values, unseen = candidates(project, site.subject[0], site.subject[1])
            if unseen is not None:
                obstacle = held_obstacle(site, unseen)
                return opaque_statics(project, site, uses, values, obstacle)
            callees = Callees(frozenset(values))
        else:
            callees = overrides_of(project).callees(site.subject[0], site.subject[1])
    by_function = {
        (t.function.node, t.owner): t
        for v in callees.values
        for t in targets_of(project.evaluator, v)
    }
    if not by_function:
        obstacle = (
            abstract_obstacle(site) if callees.abstract else unseen_target_obstacle(site, values)
        )
        return opaque_statics(project, site, uses, values, obstacle)
    targets = sorted(by_function.values(), key=place_of)
    functions = frozenset(node for node, _ in by_function)
    own = {t.function.node for v in values for t in targets_of(project.evaluator, v)}
    # An override is called with the same arguments as the method that it overrides.
    are_overrides = not functions <= own
    alike = len({call_order(node) for node in functions}) == 1
    if are_overrides or (len(targets) == 1 and not held):
        uses_by_target = [uses] * len(targets)
    elif held:
        # Callers choose the function, so any call may run any of them.
        calls = [
            replace(call, own=alike and (call.own or _calls_only(project, call, functions)))
            for call in uses.calls
        ]
        uses_by_target = [replace(uses, calls=calls)] * len(targets)
    else:
        uses_by_target = [_uses_of(project, t, functions, uses) for t in targets]
    found = [
        statics_of_target(project, site, target, own_uses, may_be_overridden=callees.others)
        for target, own_uses in zip(targets, uses_by_target, strict=True)
    ]
    if are_overrides or (len(targets) == 1 and not held):
        return _combined(project, site, found)
    return _alternatives(project, site, found, alike=alike, held=held)


def _alternatives(
    project: Project, site: Site, found: list[Statics], *, alike: bool, held: bool
) -> Statics:
    """Return the decision where a site wraps one of several functions, given that for each.

    The functions are alike if they have the same positional parameters and defaults, and `held` if
    callers choose one.
    """
    first = _first_obstacle(found)
    if first.obstacle is not None:
        return first
    disagree = any(other.indices != first.indices for other in found)
    if disagree or not all(r.certain for statics in found for r in statics.required):
        called = {frozenset(call.node for call in statics.uses.calls) for statics in found}
        if alike and len(called) == 1 and all(called):
            statics = _combined(project, site, found)
            return replace(statics, open_ended=held or statics.open_ended)
    if disagree:
        assert site.application is not None
        reason = (
            "it wraps functions that may need different static arguments: give each its own"
            " checkpoint with its own `static_argnums`"
        )
        return replace(first, obstacle=_one_of_several(reason, site, site.application))
    changing = _first_changing(found)
    return replace(first, others=tuple(found[1:]), changing=changing, open_ended=held or not alike)


def _called(project: Project, call: Call) -> list[frozenset[FunctionNode]]:
    """Return the functions that each value that may be called runs; empty if not known."""
    return [
        frozenset(t.function.node for t in targets_of(project.evaluator, value))
        for value in project.values(call.module, call.node.func)
    ]


def _calls_only(project: Project, call: Call, functions: frozenset[FunctionNode]) -> bool:
    """Return whether a call certainly runs one of some functions, checkpointed or not."""
    called = _called(project, call)
    return bool(called) and all(nodes and nodes <= functions for nodes in called)


def _uses_of(
    project: Project, target: Target, wrapped: frozenset[FunctionNode], uses: Uses
) -> Uses:
    """Return the uses that may call `target`, one of several functions that a site wraps."""
    alike = {node for node in wrapped if call_order(node) == call_order(target.function.node)}
    calls = []
    for call in uses.calls:
        # What cannot be told apart may be any of them.
        called = [nodes or wrapped for nodes in _called(project, call)]
        if any(target.function.node in nodes for nodes in called):
            calls.append(replace(call, own=all(nodes <= alike for nodes in called)))
    return replace(uses, calls=calls)


def place_of(target: Target) -> tuple[str, int, int, str]:
    """Return a sort key for targets that is the same in every run."""
    node = target.function.node
    owner = target.owner.module.qualified_name(target.owner.node) if target.owner else ""
    return str(target.function.module.source.path), node.lineno, node.col_offset, owner


def _combined(project: Project, site: Site, found: list[Statics]) -> Statics:
    """Return the decision for all of some functions, any of which each call may run.

    An argument is static if any of the functions needs it.
    """
    first = _first_obstacle(found)
    if first.obstacle is not None or len(found) == 1:
        return first
    changing = _first_changing(found)
    if len({_signature(s.target) for s in found}) > 1:
        return replace(_by_position(project, site, found), changing=changing, open_ended=True)
    required: dict[tuple[str, Key | None], Required] = {}
    for item in (r for statics in found for r in statics.required):
        known = required.get((item.name, item.index), item)
        required[item.name, item.index] = replace(
            known,
            needs=tuple(dict.fromkeys((*known.needs, *item.needs))),
            by_value=item.by_value and known.by_value,
            certain=item.certain or known.certain,
        )
    everything, indices = tuple(required.values()), _all_indices(found)
    return replace(first, required=everything, indices=indices, changing=changing)


def _by_position(project: Project, site: Site, found: list[Statics]) -> Statics:
    """Return the same for functions with different signatures: all must be passed by position."""
    first, indices = found[0], _all_indices(found)
    reason = (
        "it wraps functions with different parameters or defaults, and not every call passes the"
        " static arguments by position: pass them by position, and name them in `static_argnums`"
    )
    place = site.application or site.reference
    obstructed = replace(first, obstacle=_one_of_several(reason, site, place))
    if indices is None or first.target is None or not first.bound:
        return obstructed
    counted = 1 if site.definition.counting == "method" else 0
    skip = first.target.skip or int(site.definition.counting != "function")
    positional = positional_parameters(first.target.function.node)[skip:]
    by_value = all(item.by_value for statics in found for item in statics.required)
    required: list[Required] = []
    for index in indices:
        position = index - counted
        everywhere = all(index in (s.indices or ()) for s in found)
        for call, _ in first.bound:
            args = call.arguments[0][: position + 1]
            if len(args) <= position or any(isinstance(a, ast.Starred) for a in args):
                return obstructed
            if not everywhere and not is_python_value(project, call.module, args[position]):
                return obstructed
        if position >= len(positional):
            return obstructed
        name = positional[position].arg
        own = next((r for r in first.required if r.name == name), None)
        required.append(own or Required(name, None, position + skip, by_value=by_value))
    return replace(first, required=tuple(required), indices=indices)


def _one_of_several(reason: str, site: Site, node: ast.expr) -> Obstacle:
    return Obstacle(reason, site.module, node, "wraps one of several functions", unseen=True)


def _first_obstacle(found: list[Statics]) -> Statics:
    """Return the first decision with an obstacle, or else the first."""
    return next((statics for statics in found if statics.obstacle is not None), found[0])


def _first_changing(found: Iterable[Statics]) -> Place | None:
    return next((statics.changing for statics in found if statics.changing is not None), None)


def _all_indices(found: list[Statics]) -> tuple[int, ...] | None:
    """Return the static arguments of all; None if some cannot be passed by position."""
    if any(s.indices is None for s in found):
        return None
    return tuple(sorted({i for s in found for i in s.indices or ()}))


def _signature(target: Target | None) -> object:
    """Return what the arguments of a call depend on: parameters with their kinds and defaults."""
    if target is None:
        return None
    node = target.function.node
    stars = tuple(p.arg if p is not None else "" for p in (node.args.vararg, node.args.kwarg))
    defaults = ((p.arg, default_of(node, p)) for p in node.args.kwonlyargs)
    keywords = tuple((n, ast.dump(d) if d is not None else "") for n, d in defaults)
    return call_order(node)[target.skip :], keywords, stars, target.given
