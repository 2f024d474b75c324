"""The arguments that `static_argnames` names."""

from __future__ import annotations

from ..names.scopes import parameters
from ..needs.static_layers import listed_items
from ..project import Project
from ..sites.calls import uses_of
from ..sites.site import Site
from .arguments import Argument
from .mutated_state import changing_state
from .positions import bind_use, position_of, static_indices
from .required_arguments import closed_parameters
from .static_options import known_target
from .statics import Obstacle, Required, Statics


def named_statics(project: Project, site: Site) -> Statics:
    """Return what must be static at a site by its `static_argnames`."""
    option, target = site.arguments["static_argnames"], known_target(project, site)
    names, uses = (
        listed_items(project.evaluator, option.module, option.value),
        uses_of(project, site),
    )
    own = {} if target is None else {p.arg: p for p in parameters(target.function.node)}
    if names is None or target is None or not own.keys() >= set(names):
        reason = (
            "its target cannot be resolved"
            if target is None
            else f"not all of its names are literals and parameters of `{site.target}`"
        )
        reason += ": name the arguments by index in `static_argnums`"
        obstacle = Obstacle(reason, option.module, option.value, "named here")
        return Statics(target, uses=uses, obstacle=obstacle)
    bound = tuple((call, bind_use(site, target, call)) for call in uses.calls)
    passed = [
        p for p in own if p in names and p not in closed_parameters(site, target) | target.given
    ]
    required = tuple(
        Required(
            name,
            None,
            position_of(target, name),
            by_value=Argument(project, target, own[name], bound).is_immutable,
        )
        for name in passed
    )
    return Statics(
        target,
        required,
        static_indices(site.definition, target, required),
        uses,
        bound,
        changing=changing_state(project, target, site),
    )
