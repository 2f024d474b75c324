"""Targets that cannot be resolved, or whose arguments a decorator may change."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping

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
from ..values.callees import Target, applied_module, layers
from ..values.values import Applied, Bound, External, Instance, Parameter, Value, Wrapped
from .argument_kinds import kinds_of
from .arguments import Argument, BoundCalls, is_python_value
from .statics import Obstacle, Required, Statics

_UNKNOWN = "the arguments that must be concrete are not known"


def decorator_obstacle(wrapped: Wrapped) -> Obstacle:
    """Return why nothing is made static under a decorator that may change the arguments."""
    return Obstacle(
        "a decorator between the checkpoint and the function may change the arguments, so"
        f" {_UNKNOWN}: name them in `static_argnums`",
        wrapped.module,
        wrapped.node,
        "may change the arguments",
        unseen=True,
    )


def held_obstacle(site: Site, unseen: tuple[Module, ast.expr | FunctionNode]) -> Obstacle:
    """Return why nothing is made static where callers choose the function, which is unknown."""
    return Obstacle(
        f"callers choose `{site.target}`, and not all of them are known, so {_UNKNOWN}: name them"
        " in `static_argnums`",
        *unseen,
        "cannot be resolved",
        unseen=True,
    )


def abstract_obstacle(site: Site) -> Obstacle:
    """Return why nothing is made static where no class of the project implements a method."""
    return _site_obstacle(
        site,
        f"is abstract, and no class of the project implements it, so {_UNKNOWN}: name them in"
        " `static_argnums`",
        "wraps an abstract method",
    )


def unseen_target_obstacle(site: Site, values: Iterable[Value]) -> Obstacle:
    """Return why nothing is made static where the target cannot be resolved."""
    if any(map(applied_module, values)):
        return _site_obstacle(
            site,
            f"passes on to the model what follows its own arguments, so {_UNKNOWN}: if they are"
            " passed by position, name them in `static_argnums`, which counts all arguments",
            "wraps the function that applies a model",
        )
    elsewhere = ", or set `search-path` to where its package is installed"
    return _site_obstacle(
        site,
        f"cannot be resolved, so {_UNKNOWN}: name them in `static_argnums`"
        f"{elsewhere if _may_be_elsewhere(site) else ''}",
        "wraps code that cannot be resolved",
    )


def _may_be_elsewhere(site: Site) -> bool:
    """Return whether the target is imported, or a class, whose base may be."""
    module, node = site.subject or (site.module, site.reference)
    while isinstance(node, ast.Attribute):
        node = node.value
    bindings = module.reaching(node) if isinstance(node, ast.Name) else ()
    return any(binding.kind in ("import", "class") for binding in bindings)


def _site_obstacle(site: Site, reason: str, label: str) -> Obstacle:
    what = f"`{site.target}`" if site.target else "its target"
    place = site.application or site.reference
    return Obstacle(f"{what} {reason}", site.module, place, label, unseen=True)


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


def opaque_statics(
    project: Project, site: Site, uses: Uses, values: list[Value], obstacle: Obstacle
) -> Statics:
    """Return what is static where the target cannot be resolved, judging by what the calls pass.

    If the calls do not tell, `obstacle` holds.
    """
    if values and all(_is_layer(v) or _is_array_function(v, uses) for v in values):
        return Statics(None, uses=uses)
    unknown = Statics(None, uses=uses, obstacle=obstacle)
    if not uses.calls or uses.escapes or site.definition.counting != "function":
        return unknown
    if wraps_field(project, site):
        return unknown
    kinds = kinds_of(project)
    positions: set[int] = set()
    for call in uses.calls:
        args, keywords = call.arguments
        if any(isinstance(a, ast.Starred) for a in args) or not call.own:
            return unknown
        for keyword in keywords:
            if keyword.arg is None or kinds.of(call.module, keyword.value) == "python":
                return unknown
        positions |= {i for i, a in enumerate(args) if is_python_value(project, call.module, a)}
    for call in uses.calls:
        args, _ = call.arguments
        for index in positions:
            if index >= len(args) or kinds.of(call.module, args[index]) != "python":
                return unknown
    if not positions:
        return unknown
    required = tuple(
        Required(f"argument {position + 1}", None, position) for position in sorted(positions)
    )
    return Statics(None, required, tuple(sorted(positions)), uses)


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
    needs: Mapping[tuple[str, Key | None], list[Need]],
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
        for (name, index), own in needs.items():
            opaque = [n for n in own if n.opaque]
            if name != parameter.arg or not opaque or argument.is_used_as_array:
                continue
            if Argument(project, target, parameter, bound, index).kind != "array":
                yield argument, opaque[0]
                break
