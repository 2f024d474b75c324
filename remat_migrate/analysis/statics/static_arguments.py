"""Which arguments must be static where a checkpoint is applied, and whether they can be."""

from __future__ import annotations

import ast
from dataclasses import replace

from ...libraries.library_arguments import INSTANCES, LAYER_MODULES
from ...libraries.library_needs import needs_of
from ..names.module import Module
from ..names.scopes import FunctionNode
from ..needs.dependence import Key
from ..project import Project
from ..sites.calls import Call, Uses, uses_of
from ..sites.find_sites import wrapped_by
from ..sites.passed_arguments import candidates, is_field
from ..sites.site import Site
from ..sites.subclasses import overrides_of
from ..values.bind import call_order, default_of
from ..values.callees import Target, targets_of
from ..values.overrides import Callees
from ..values.values import Applied, Bound, External, Instance, Parameter, Value, Wrapped, layers
from .required_arguments import statics_of_target
from .statics import Obstacle, Required, Statics, static_indices


def find_statics(project: Project, site: Site) -> Statics:
    """Decide what must be static where `site` is applied."""
    values = list(wrapped_by(project, site))
    uses = uses_of(project, site)
    changing = changing_decorator(values)
    if changing is not None:
        label = "may change the arguments"
        reason = f"a decorator between the checkpoint and the function {label}"
        obstacle = unknown_obstacle(reason, changing.module, changing.node, label)
        return Statics(None, uses=uses, obstacle=obstacle)
    # Callers choose what a field or a parameter holds.
    held = wraps_field(project, site) or any(isinstance(v, Parameter) for v in values)
    callees = Callees(frozenset(values))
    if site.subject is not None and isinstance(site.subject[1], ast.expr):
        if held:
            values, unseen = candidates(project, site.subject[0], site.subject[1])
            if unseen is not None:
                reason = f"callers choose `{site.target}`, and not all of them are known"
                obstacle = unknown_obstacle(reason, *unseen, "cannot be resolved")
                return Statics(None, uses=uses, obstacle=obstacle)
            callees = Callees(frozenset(values))
        else:
            callees = overrides_of(project).callees(site.subject[0], site.subject[1])
    by_function = {
        (t.function.node, t.owner): t
        for v in callees.values
        for t in targets_of(project.evaluator, v)
    }
    if not by_function:
        # Code of libraries that the calls pass nothing but arrays.
        if values and all(_is_layer(v) or _is_array_function(v, uses) for v in values):
            return Statics(None, uses=uses)
        obstacle = unseen_target_obstacle(site)
        if values and all(isinstance(v, External) and needs_of(v.name) for v in values):
            reason = (
                f"`{site.target}` may need the values of some arguments: name those in"
                " `static_argnums`, and pass them by position"
            )
            obstacle = replace(obstacle, reason=reason, label="wraps a function of a library")
        return Statics(None, uses=uses, obstacle=obstacle)
    targets = sorted(by_function.values(), key=place_of)
    functions = frozenset(node for node, _ in by_function)
    own = {t.function.node for v in values for t in targets_of(project.evaluator, v)}
    are_alike = len({_signature(target) for target in targets}) == 1
    # An override is called with the same arguments as the method that it overrides; otherwise any
    # call may run any of the functions.
    if functions <= own and (held or len(targets) > 1):
        calls = [
            replace(call, own=are_alike and (call.own or _calls_only(project, call, functions)))
            for call in uses.calls
        ]
        uses = replace(uses, calls=calls)
    found = [
        statics_of_target(project, site, target, uses, may_be_overridden=callees.others)
        for target in targets
    ]
    return _combined(site, found, are_alike=are_alike, held=held and functions <= own)


def _calls_only(project: Project, call: Call, functions: frozenset[FunctionNode]) -> bool:
    """Return whether a call certainly runs one of some functions, checkpointed or not."""
    called = [
        {t.function.node for t in targets_of(project.evaluator, value)}
        for value in project.values(call.module, call.node.func)
    ]
    return bool(called) and all(nodes and nodes <= functions for nodes in called)


def place_of(target: Target) -> tuple[str, int, int, str]:
    """Return a sort key for targets that is the same in every run."""
    node = target.function.node
    owner = target.owner.module.qualified_name(target.owner.node) if target.owner else ""
    return str(target.function.module.source.path), node.lineno, node.col_offset, owner


def _combined(site: Site, found: list[Statics], *, are_alike: bool, held: bool) -> Statics:
    """Return the decision for all functions that a site wraps, any of which each call may run.

    An argument is static if any of the functions needs it. The functions are alike if they have the
    same signature, and `held` if callers choose one.
    """
    first = next((statics for statics in found if statics.obstacle is not None), found[0])
    if first.obstacle is not None:
        return first
    required: dict[tuple[str, Key | None], Required] = {}
    for item in (r for statics in found for r in statics.required):
        known = required.get((item.name, item.index), item)
        required[item.name, item.index] = replace(
            known,
            needs=tuple(dict.fromkeys((*known.needs, *item.needs))),
            by_value=item.by_value and known.by_value,
            certain=item.certain or known.certain,
        )
    if required and not are_alike:
        reason = (
            "it wraps functions with different signatures, which may need different static"
            " arguments: give each its own checkpoint with its own `static_argnums`"
        )
        place, label = site.application or site.reference, "wraps one of several functions"
        return replace(first, obstacle=Obstacle(reason, site.module, place, label, unseen=True))
    assert first.target is not None
    return replace(
        first,
        required=tuple(required.values()),
        indices=static_indices(site.definition, first.target, required.values()),
        results=tuple(dict.fromkeys(need for statics in found for need in statics.results)),
        changing=next((s.changing for s in found if s.changing is not None), None),
        open_ended=held or not are_alike,
    )


def _signature(target: Target) -> object:
    """Return what the arguments of a call depend on: parameters with their kinds and defaults."""
    node = target.function.node
    stars = tuple(p.arg if p is not None else "" for p in (node.args.vararg, node.args.kwarg))
    defaults = ((p.arg, default_of(node, p)) for p in node.args.kwonlyargs)
    keywords = tuple((n, ast.dump(d) if d is not None else "") for n, d in defaults)
    return call_order(node)[target.skip :], keywords, stars, target.given


# -- targets that are not known


def unknown_obstacle(
    reason: str, module: Module, node: ast.expr | FunctionNode, label: str, hint: str = ""
) -> Obstacle:
    """Return why nothing is made static where it is not known what a checkpoint calls."""
    return Obstacle(
        f"{reason}, so the arguments that must be concrete are not known: name them in"
        f" `static_argnums`{hint}",
        module,
        node,
        label,
        unseen=True,
    )


def unseen_target_obstacle(site: Site) -> Obstacle:
    """Return why nothing is made static where the target cannot be resolved, or is abstract."""
    what = f"`{site.target}`" if site.target else "its target"
    hint = ", or, if it is imported, set `search-path` to where its package is installed"
    place, label = site.application or site.reference, "wraps code that cannot be resolved"
    return unknown_obstacle(f"{what} cannot be resolved", site.module, place, label, hint)


def wraps_field(project: Project, site: Site) -> bool:
    """Return whether the target is a field of an object, set by callers: `nn.remat(self.cls)`."""
    module, node = site.subject or (site.module, None)
    return isinstance(node, ast.expr) and is_field(project, module, node)


def changing_decorator(values: list[Value]) -> Wrapped | None:
    """Return a decorator under the checkpoint that may change the function's arguments."""
    for value in values:
        for layer in layers(value):
            if isinstance(layer, Applied):
                break  # another checkpoint stands between
            if isinstance(layer, Wrapped) and layer.how == "?":
                return layer
    return None


def _is_layer(value: Value) -> bool:
    """Return whether a value is a library's layer that takes arrays alone: `nn.Dense`."""
    match value:
        case External(name) | Instance(cls=External(name)):
            if name in INSTANCES:
                return not INSTANCES[name]
            return name.startswith(LAYER_MODULES) and name.rpartition(".")[2][:1].isupper()
    return False


def _is_array_function(value: Value, uses: Uses) -> bool:
    """Return whether a value is a function such as `jnp.sin` that the calls pass arrays alone."""
    match value:
        case External(name) | Bound(func=External(name)):
            function = needs_of(name)
            if function is None or any(p.takes != "traced" for p in function.positional[:1]):
                return False
            calls = [ast.Call(call.node, *call.arguments) for call in uses.calls]
            passed = [p for call in calls for _, p in function.passed(call)]
            if uses.escapes or not calls:  # A call may pass anything.
                passed += function.keywords.values()
            return all(p.takes == "traced" for p in passed)
    return False
