"""Targets that cannot be resolved, or whose arguments a decorator may change."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from ...libraries.library_arguments import INSTANCES, LAYER_MODULES
from ...libraries.library_needs import needs_of
from ..names.module import Module
from ..names.scopes import FunctionNode, parameters
from ..needs.dependence import Key
from ..needs.need import Need
from ..project import Project
from ..sites.calls import Uses
from ..sites.passed_arguments import is_field
from ..sites.site import Site
from ..values.callees import Target, layers
from ..values.values import Applied, Bound, External, Instance, Parameter, Value, Wrapped
from .arguments import Argument, BoundCalls
from .statics import Obstacle


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


def opaque_use_obstacle(need: Need) -> Obstacle:
    """Return why nothing is made static where a value is passed to code that cannot be resolved."""
    return Obstacle(
        f"`{need.parameter}` is passed to code that cannot be resolved, which may need its value:"
        " if it does, name it in `static_argnums`; then remove the option",
        need.module,
        need.node,
        "cannot be resolved",
        unseen=True,
    )


def wraps_field(project: Project, site: Site) -> bool:
    """Return whether the target is a field of an object, set by callers: `nn.remat(self.cls)`."""
    module, node = site.subject or (site.module, None)
    return isinstance(node, ast.expr) and is_field(project, module, node)


def is_held(project: Project, site: Site, values: list[Value]) -> bool:
    """Return whether callers choose the target: a field or a parameter holds it."""
    return wraps_field(project, site) or any(isinstance(v, Parameter) for v in values)


def changing_decorator(values: list[Value]) -> Wrapped | None:
    """Return a decorator under the checkpoint that may change the function's arguments."""
    for value in values:
        for layer in layers(value):
            if isinstance(layer, Applied):
                break  # another checkpoint stands between
            if isinstance(layer, Wrapped) and layer.how == "?":
                return layer
    return None


def takes_arrays_alone(values: list[Value], uses: Uses) -> bool:
    """Return whether a site wraps code of libraries that the calls pass nothing but arrays."""
    return bool(values) and all(_is_layer(v) or _is_array_function(v, uses) for v in values)


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
            return all(p.takes == "traced" for call in calls for _, p in function.passed(call))
    return False


def opaque_needs(
    project: Project,
    target: Target,
    needs: Mapping[str, Mapping[Key | None, list[Need]]],
    known: Collection[str],
    bound: BoundCalls,
) -> Iterator[tuple[Argument, Need]]:
    """Yield the arguments that are passed to code that cannot be resolved, each with one place.

    The user asked for concrete values, so that code may need them. Arrays and the parameters in
    `known` are left out.
    """
    for parameter in parameters(target.function.node):
        argument = Argument(project, target, parameter, bound)
        if parameter.arg in known or argument.annotated_kind == "array":
            continue
        for index, own in needs.get(parameter.arg, {}).items():
            opaque = [need for need in own if need.opaque]
            if opaque and not argument.is_used_as_array:
                if replace(argument, index=index).kind != "array":
                    yield argument, opaque[0]
                    break
