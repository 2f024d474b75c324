"""Wrapped code that cannot be seen, or whose arguments a decorator may change."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping

from ...libraries.library_arguments import INSTANCES
from ...libraries.library_needs import needs_of
from ..names.module import Module
from ..names.scopes import parameters
from ..needs.need import Need
from ..project import Project
from ..sites.site import Site
from ..sites.uses import Uses
from ..values.callees import Target, layers
from ..values.classes import class_annotations, class_chain
from ..values.declarations import annotation_kind
from ..values.values import Applied, Bound, Class, External, Instance, Parameter, Value, Wrapped
from .argument_kinds import kinds_of
from .passed_values import BoundCalls, is_flag, passed_kind, used_as_array
from .statics import Obstacle, Required, Statics


def decorator_obstacle(site: Site, wrapped: Wrapped) -> Obstacle:
    """Why nothing is made static under such a decorator."""
    return Obstacle(
        "a decorator stands between the checkpoint and the function, so it is not known which"
        " arguments are passed on: name those that Python needs in `static_argnums`",
        wrapped.module,
        wrapped.node,
        "this may change the arguments",
        unseen=True,
    )


def is_field(project: Project, site: Site) -> bool:
    """Whether what is wrapped is a field of an object, that callers set: `nn.remat(self.cls)`."""
    if site.subject is None or not isinstance(site.subject[1], ast.Attribute):
        return False
    module, node = site.subject
    assert isinstance(node, ast.Attribute)
    for value in project.values(module, node.value):
        if isinstance(value, Instance) and isinstance(value.cls, Class):
            for owner in class_chain(project.evaluator, value.cls):
                if isinstance(owner, Class) and node.attr in class_annotations(owner.node):
                    return True
    return False


def is_held(project: Project, site: Site, values: list[Value]) -> bool:
    """Whether a field or a parameter holds what is wrapped, which callers choose."""
    return is_field(project, site) or any(isinstance(v, Parameter) for v in values)


def held_obstacle(site: Site, unseen: tuple[Module, ast.expr]) -> Obstacle:
    """Why nothing is made static where a parameter or field holds what cannot be seen."""
    return Obstacle(
        f"`{site.target}` is whatever callers pass for it, and not all of that can be seen, so it"
        " is not known which arguments Python needs: name them in `static_argnums`",
        *unseen,
        "this cannot be seen",
        unseen=True,
    )


def _unseen_obstacle(site: Site) -> Obstacle:
    what = f"`{site.target}`" if site.target else "what it wraps"
    return Obstacle(
        f"{what} cannot be seen, so it is not known which of its arguments Python needs: name them"
        " in `static_argnums`, or tell remat-migrate where its package is installed"
        " (`search-path`)",
        site.module,
        site.application or site.reference,
        "wraps code that cannot be seen",
        unseen=True,
    )


def abstract_obstacle(site: Site) -> Obstacle:
    """Why nothing is made static where no class of the project implements a method."""
    what = f"`{site.target}`" if site.target else "what it wraps"
    return Obstacle(
        f"{what} is abstract, and no class of the project implements it, so it is not known which"
        " of its arguments Python needs: name them in `static_argnums`",
        site.module,
        site.application or site.reference,
        "wraps an abstract method",
        unseen=True,
    )


def unseen_statics(
    project: Project,
    site: Site,
    uses: Uses,
    values: list[Value],
    obstacle: Obstacle | None = None,
) -> Statics:
    """A target that cannot be seen: what is passed tells what is static, else `obstacle` holds."""
    if values and all(_library_layer(v, uses) for v in values):
        return Statics(None, uses=uses)
    obstacle = obstacle or _unseen_obstacle(site)
    calls = uses.calls
    known = calls and not uses.escapes and site.definition.counting == "function"
    if not known or is_field(project, site):
        return Statics(None, uses=uses, obstacle=obstacle)
    positions: set[int] = set()
    for call in calls:
        args, keywords = call.arguments
        if any(isinstance(a, ast.Starred) for a in args) or not call.own:
            return Statics(None, uses=uses, obstacle=obstacle)
        for keyword in keywords:
            if keyword.arg is None or kinds_of(project).of(call.module, keyword.value) == "python":
                return Statics(None, uses=uses, obstacle=obstacle)
        for index, arg in enumerate(args):
            if is_flag(project, call.module, arg):
                positions.add(index)
    for call in calls:
        args, _ = call.arguments
        for index in positions:
            if index >= len(args) or kinds_of(project).of(call.module, args[index]) != "python":
                return Statics(None, uses=uses, obstacle=obstacle)
    if not positions:
        return Statics(None, uses=uses, obstacle=obstacle)
    required = tuple(
        Required(f"argument {i + 1}", None, i, (), "every call passes a Python value for it")
        for i in sorted(positions)
    )
    return Statics(None, required, tuple(sorted(positions)), uses)


def _library_layer(value: Value, uses: Uses) -> bool:
    """A layer of a neural network library none of whose arguments Python needs: `nn.Dense`."""
    match value:
        case External(name) | Instance(cls=External(name)):
            if name in INSTANCES:
                return not INSTANCES[name]
            layer = name.startswith(("flax.linen.", "flax.nnx.", "haiku.", "equinox.nn."))
            if layer and name.rpartition(".")[2][:1].isupper():
                return True
    return _library_function(value, uses)


def _library_function(value: Value, uses: Uses) -> bool:
    """A function of arrays, such as `jnp.sin` and `jax.nn.relu`, that no call gives an option."""
    match value:
        case External(name) | Bound(func=External(name)):
            function = needs_of(name)
            if function is None or any(p.takes != "traced" for p in function.positional[:1]):
                return False
            calls = [ast.Call(call.node, *call.arguments) for call in uses.calls]
            return all(p.takes == "traced" for call in calls for _, p in function.passed(call))
    return False


def out_of_sight(
    project: Project,
    target: Target,
    needs: Mapping[tuple[str, int | str | None], list[Need]],
    known: Collection[str],
    bound: BoundCalls,
) -> Iterator[Need]:
    """The needs, one for each parameter, of code that cannot be seen: it may need the value.

    Somebody asked for concrete values: where no need of them is found, it may be there. Left out
    are the parameters in `known`, and arrays.
    """
    for parameter in parameters(target.function.node):
        if parameter.arg in known or annotation_kind(parameter.annotation) == "array":
            continue
        for (name, index), own in needs.items():
            unseen = [n for n in own if n.unseen]
            if name != parameter.arg or not unseen or used_as_array(project, target, parameter):
                continue
            if passed_kind(project, target, parameter, index, bound)[0] != "array":
                yield unseen[0]
                break


def unseen_obstacle(need: Need) -> Obstacle:
    """Why nothing is made static where a value goes into code that cannot be seen."""
    return Obstacle(
        f"`{need.parameter}` goes into code that cannot be seen, which may need its value: if it"
        " does, name it in `static_argnums`; then take the option out",
        need.module,
        need.node,
        "this cannot be seen",
        unseen=True,
    )


def changed_below(values: list[Value]) -> Wrapped | None:
    """A decorator under the checkpoint that may take other arguments than the function."""
    for value in values:
        for layer in layers(value):
            if isinstance(layer, Applied):
                break  # another checkpoint stands between
            if isinstance(layer, Wrapped) and layer.how == "?":
                return layer
    return None
