"""Which arguments of a checkpointed function must be static, and whether they can be."""

from __future__ import annotations

import ast
from dataclasses import replace

from ...libraries.apis import Api
from ..names.module import Module
from ..names.scopes import FunctionNode, parameters
from ..needs.need import Need
from ..project import Project
from ..sites.call_search import uses_of
from ..sites.candidates import candidates
from ..sites.site import Site
from ..sites.subclasses import overrides_of
from ..sites.uses import Call, Uses
from ..values.bind import Arguments, bind_call, call_order, default_of, positional_parameters
from ..values.callees import Target, is_frozen, is_pytree, layers, targets_of
from ..values.declarations import Kind, annotation_kind, default_kind
from ..values.overrides import Callees
from ..values.values import Applied, Class, Function, Value
from .array_arguments import (
    is_data,
    is_first,
    is_self,
    is_strange_to_arrays,
    may_be_flag,
    unread_reason,
)
from .concrete_values import is_untraced
from .joint_statics import united
from .mutated_names import changing_name
from .mutated_objects import changing_self
from .opaque_functions import (
    abstract_obstacle,
    changed_below,
    decorator_obstacle,
    held_obstacle,
    is_held,
    out_of_sight,
    unseen_obstacle,
    unseen_statics,
)
from .passed_values import (
    BoundCalls,
    all_untraced,
    by_value,
    flag_like,
    is_mixed,
    narrowed,
    passed_kind,
)
from .project_needs import needs_with_overrides
from .statics import Obstacle, Required, Statics
from .untraceable import is_called_object, is_known_object, no_jax_value


def applied_values(project: Project, site: Site) -> list[Value]:
    """What a site wraps."""
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
    changed = changed_below(values)
    if changed is not None:
        return Statics(None, uses=uses, obstacle=decorator_obstacle(site, changed))
    held = is_held(project, site, values)
    seen = Callees(frozenset(values))
    if site.subject is not None and isinstance(site.subject[1], ast.expr):
        if held:
            values, unseen = candidates(project, site.subject[0], site.subject[1])
            if unseen is not None:
                return unseen_statics(project, site, uses, values, held_obstacle(site, unseen))
            seen = Callees(frozenset(values))
        else:
            seen = overrides_of(project).callees(site.subject[0], site.subject[1])
    targets = {
        (t.function.node, t.owner): t for v in seen.values for t in targets_of(project.evaluator, v)
    }
    if not targets:
        obstacle = abstract_obstacle(site) if seen.abstract else None
        return unseen_statics(project, site, uses, values, obstacle)
    ordered = sorted(targets.values(), key=place_of)
    own = {t.function.node for v in values for t in targets_of(project.evaluator, v)}
    nodes = frozenset(node for node, _ in targets)
    if not nodes <= own or (len(ordered) == 1 and not held):
        # What may be called instead of a method is called with the same arguments.
        return united(
            project, site, [_for_target(project, site, t, uses, seen.others) for t in ordered]
        )
    alike = len({call_order(node) for node in nodes}) == 1
    if held:
        # Callers choose what is held: any call may run any of the functions.
        calls = [
            replace(call, own=alike and (call.own or _calls_only(project, call, nodes)))
            for call in uses.calls
        ]
        per_target = [replace(uses, calls=calls)] * len(ordered)
    else:
        per_target = [_uses_of(project, site, t, nodes, uses) for t in ordered]
    found = [
        _for_target(project, site, t, own, seen.others)
        for t, own in zip(ordered, per_target, strict=True)
    ]
    first = next((s for s in found if s.obstacle is not None), found[0])
    if first.obstacle is not None:
        return first
    disagree = any(other.indices != first.indices for other in found)
    if disagree or not all(r.certain for statics in found for r in statics.required):
        called = {frozenset(call.node for call in own.calls) for own in per_target}
        if alike and len(called) == 1 and all(called):
            statics = united(project, site, found)
            return replace(statics, open_ended=held or statics.open_ended)
    if disagree:
        return _several(
            site,
            first,
            "it wraps different functions whose static arguments stand at different places: give"
            " each its own checkpoint with its own `static_argnums`",
        )
    changing = next((s.changing for s in found if s.changing is not None), None)
    return replace(first, others=tuple(found[1:]), changing=changing, open_ended=held or not alike)


def _called(project: Project, call: Call) -> list[frozenset[FunctionNode]]:
    """The functions that each value runs which a call may call; none where it cannot be told."""
    return [
        frozenset(t.function.node for t in targets_of(project.evaluator, value))
        for value in project.values(call.module, call.node.func)
    ]


def _calls_only(project: Project, call: Call, functions: frozenset[FunctionNode]) -> bool:
    """Whether a call certainly runs one of some functions, checkpointed or not."""
    called = _called(project, call)
    return bool(called) and all(nodes and nodes <= functions for nodes in called)


def _uses_of(
    project: Project, site: Site, target: Target, wrapped: frozenset[FunctionNode], uses: Uses
) -> Uses:
    """The uses that may call `target`, one of several functions that a site wraps."""
    alike = {node for node in wrapped if call_order(node) == call_order(target.function.node)}
    calls = []
    for call in uses.calls:
        # What cannot be told apart may be any of them.
        called = [nodes or wrapped for nodes in _called(project, call)]
        if any(target.function.node in nodes for nodes in called):
            calls.append(replace(call, own=all(nodes <= alike for nodes in called)))
    return replace(uses, calls=calls)


def _several(site: Site, statics: Statics, reason: str) -> Statics:
    """The decision where one application wraps several functions that do not agree."""
    assert site.application is not None
    obstacle = Obstacle(
        reason, site.module, site.application, "wraps one of several functions", unseen=True
    )
    return replace(statics, obstacle=obstacle)


def place_of(target: Target) -> tuple[str, int, int, str]:
    """An order of targets that is the same in every run."""
    node = target.function.node
    owner = target.owner.module.qualified_name(target.owner.node) if target.owner else ""
    return str(target.function.module.source.path), node.lineno, node.col_offset, owner


def _for_target(project: Project, site: Site, target: Target, uses: Uses, others: bool) -> Statics:
    """The decision for one function; `others`: it is a method that others may override."""
    function = target.function
    calls = tuple((call, bind_use(site, target, call)) for call in uses.calls)
    # What is known to be passed; the calls that take what partials give are not seen.
    bound = (*calls, *((call, bind_use(site, target, call)) for call in uses.given))
    needs: dict[tuple[str, int | str | None], list[Need]] = {}
    all_needs = needs_with_overrides(project).of(function, target.owner)
    for need in all_needs:
        needs.setdefault((need.parameter, need.argument(function.node)), []).append(need)
    required: list[Required] = []
    differentiated = {argument + target.skip for argument in uses.differentiated}
    positional = positional_parameters(function.node)
    closed = {p.arg for p in positional[: target.skip]} | target.given
    obstacle: Obstacle | None = None
    if site.definition.counting != "function" and target.skip == 0 and positional:
        closed.add(positional[0].arg)  # the module or scope of a lifted function
    for parameter in parameters(function.node):
        is_object = (
            not is_self(target, positional, parameter)
            and position_of(target, parameter.arg, None) not in differentiated
            and site.definition.modules != "nnx"  # whose modules need be no pytrees
            and is_called_object(project, target, parameter, all_needs, bound, uses)
        )
        is_known = not is_object or is_known_object(project, target, parameter, bound)
        for (name, index), own in sorted(needs.items(), key=lambda item: str(item[0][1])):
            if name != parameter.arg:
                continue
            if name in closed or is_self(target, positional, parameter):
                continue
            certain = tuple(n for n in own if n.certain)
            parts = narrowed(project, parameter, own, bound)
            kind, shown = passed_kind(project, target, parameter, index, parts)
            if any(n.identity for n in own) and not (
                (kind == "array" and not is_mixed(project, parameter, index, parts))
                or annotation_kind(parameter.annotation) == "array"
                or flag_like(project, target, parameter, index, parts)
            ):
                obstacle = obstacle or _mixed_obstacle(parameter, own)
                continue
            sure = bool(certain) or (
                flag_like(project, target, parameter, index, parts)
                and any(_stands_alone(project, target, need, bound) for need in own)
            )
            if not sure and (
                not any(is_strange_to_arrays(need) for need in own)
                or not may_be_flag(project, target, parameter, index, parts, uses)
            ):
                continue
            if shown is not None and not is_first(project, target, parameter):
                if all_untraced(project, target, parameter, certain, index, parts):
                    kind, shown = "python", None
            if is_object and kind == "unknown":
                kind = "python"
            problem = _obstacle(project, target, parameter, index, kind, shown, certain, uses)
            if problem is not None:
                if certain and obstacle is None:
                    obstacle = replace(problem, parameter=name)
                continue
            reason = (certain or tuple(own))[0].reason
            position = position_of(target, name, index)
            fixed = is_known and by_value(project, target, parameter, index, bound)
            # Nothing is computed at compile time for the sake of what may be traced.
            needed = certain or (tuple(own) if sure else ())
            required.append(Required(name, index, position, needed, reason, fixed, sure))
        if parameter.arg not in closed and all(r.name != parameter.arg for r in required):
            reason, sure = "", True
            fixed = is_known and by_value(project, target, parameter, None, bound)
            if no_jax_value(project, target, parameter, bound):
                reason = "what is passed for it is not a value of JAX"
            elif is_object:
                reason = "it is called, or a method of it, so it may be no value of JAX"
            elif others or all(need.parameter != parameter.arg for need in all_needs):
                reason, sure = unread_reason(project, target, parameter, bound, uses, others)
            if reason:
                position = position_of(target, parameter.arg, None)
                required.append(Required(parameter.arg, None, position, (), reason, fixed, sure))
    if obstacle is None:
        known = closed | {r.name for r in required}
        hidden = list(out_of_sight(project, target, needs, known, bound))
        by_name = {p.arg: p for p in parameters(function.node)}
        options = [
            need for need in hidden if not is_data(project, target, by_name[need.parameter], bound)
        ]
        if options and site.definition.counting == "function":
            for need in options:
                position = position_of(target, need.parameter, None)
                reason = "it goes into code that cannot be seen, which may need its value"
                required.append(Required(need.parameter, None, position, (), reason, False))
        elif hidden and not required:
            obstacle = unseen_obstacle(hidden[0])
    own_self = _static_self(project, site, target)
    if own_self is not None and obstacle is None:
        required.insert(0, own_self)
    indices = static_indices(site.definition, target, required)
    changing = changing_name(project, function.module, function.node) or changing_self(
        project, target
    )
    return Statics(target, tuple(required), indices, uses, calls, obstacle, changing)


def bind_use(site: Site, target: Target, call: Call) -> Arguments:
    """A call's arguments by the parameters of what the site wraps."""
    args, keywords = call.arguments
    skip = max(target.skip, call.skip if target.owner is not None else 0)
    return bind_call(target.function.node, args, keywords, skip)


def _obstacle(
    project: Project,
    target: Target,
    parameter: ast.arg,
    index: int | str | None,
    kind: Kind,
    shown: tuple[Module, ast.expr] | None,
    needs: tuple[Need, ...],
    uses: Uses,
) -> Obstacle | None:
    """Why a needed parameter cannot be static: it is an array, or a gradient is taken of it."""
    place = needs[0] if needs else None
    instead = (
        "write the branch with `jax.lax.cond` or `jnp.where`"
        if place is not None and "branch" in place.reason
        else "use operations that work on traced values (`jax.lax.cond`, `jnp.where`)"
    )
    position = position_of(target, parameter.arg, index)
    for argument, (module, node) in uses.differentiated.items():
        if position == argument + target.skip:
            return Obstacle(
                f"Python needs the value of `{parameter.arg}`, of which a gradient is taken, so it"
                f" cannot be static: {instead}",
                module,
                node,
                f"a gradient with respect to `{parameter.arg}` is taken here",
            )
    if shown is not None and not is_first(project, target, parameter):
        if is_untraced(project, *shown):
            return Obstacle(
                f"Python needs the value of `{parameter.arg}`, for which an array of JAX is passed,"
                " and inside a checkpoint operations on one are traced: pass an array of NumPy, or"
                " compute what is needed before the call",
                *shown,
                f"an array is passed for `{parameter.arg}`",
            )
    if shown is not None:
        return Obstacle(
            f"Python needs the value of `{parameter.arg}`, but an array is passed for it, which"
            f" may be traced: {instead}",
            *shown,
            f"an array is passed for `{parameter.arg}`",
        )
    if kind == "python":
        return None
    declared = annotation_kind(parameter.annotation)
    if declared == "unknown":
        declared = default_kind(default_of(target.function.node, parameter))
    if declared == "array":
        return Obstacle(
            f"Python needs the value of `{parameter.arg}`, which is declared to be an array, so it"
            f" may be traced: {instead}",
            target.function.module,
            parameter,
            "declared to be an array",
        )
    if declared == "unknown" and kind == "unknown" and is_first(project, target, parameter):
        return Obstacle(
            f"Python needs the value of `{parameter.arg}`, which the function also computes with"
            f" and returns, so it may be differentiated: {instead}; if it is a Python value, name"
            " it in `static_argnums`",
            target.function.module,
            parameter,
            "may be an array that is differentiated",
        )
    return None


def _mixed_obstacle(parameter: ast.arg, needs: list[Need]) -> Obstacle:
    need = next(n for n in needs if n.identity)
    return Obstacle(
        f"the function asks what kind of value `{parameter.arg}` is, and what is passed may be a"
        " Python number or an array: ask before the call, or name it in `static_argnums` if it is"
        " never traced",
        need.module,
        need.node,
        "asks what kind of value it is",
        parameter.arg,
        unseen=True,
    )


def _stands_alone(project: Project, target: Target, need: Need, bound: BoundCalls) -> bool:
    """Whether the other parameters of an operation are Python values, too."""
    by_name = {p.arg: p for p in parameters(target.function.node)}
    return all(
        name in by_name and flag_like(project, target, by_name[name], None, bound)
        for name in need.beside
    )


def position_of(target: Target, name: str, index: int | str | None) -> int | None:
    """The index of a parameter, `self` counted; None where it is passed by keyword only."""
    node = target.function.node
    names = [p.arg for p in positional_parameters(node)]
    if name in names and target.given & set(names[: names.index(name)]):
        return None  # a partial gives an earlier one by keyword
    if node.args.vararg is not None and name == node.args.vararg.arg:
        return len(names) + index if isinstance(index, int) else None
    return names.index(name) if name in names else None


def static_indices(api: Api, target: Target, required: list[Required]) -> tuple[int, ...] | None:
    """`static_argnums` of the required parameters, counted as the Api counts."""
    found: list[int] = []
    for item in required:
        if item.position is None:
            return None
        match api.counting:
            case "function":
                found.append(item.position - target.skip)
            case "method":
                found.append(item.position)
            case "method-without-self":
                found.append(item.position - 1)
    return tuple(sorted(set(found)))


def _static_self(project: Project, site: Site, target: Target) -> Required | None:
    """`self` of a decorated method, where JAX cannot take it for an argument."""
    if site.definition.counting != "function" or target.owner is None or target.skip:
        return None
    positional = positional_parameters(target.function.node)
    if not positional or not is_self(target, positional, positional[0]):
        return None
    if is_pytree(project.evaluator, target.owner):
        return None
    return Required(
        positional[0].arg,
        None,
        0,
        (),
        f"`{target.owner.node.name}` is not a value of JAX",
        is_frozen(project.evaluator, target.owner),
    )
