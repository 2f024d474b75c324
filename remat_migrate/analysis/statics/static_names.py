"""The arguments that `static_argnames` names."""

from __future__ import annotations

from ..names.scopes import parameters
from ..needs.static_layers import listed_items
from ..project import Project
from ..sites.calls import uses_of
from ..sites.site import Option, Site
from ..values.callees import Target
from .arguments import Argument
from .mutated_state import changing_state
from .positions import bind_use, position_of, static_indices
from .static_options import known_target
from .statics import Obstacle, Required, Statics


def _read_names(project: Project, option: Option) -> tuple[str, ...] | None:
    """Return the names that an option `static_argnames` gives; None if they are not known."""
    listed = listed_items(project.evaluator, option.module, option.value)
    names = tuple(item for item in listed or () if isinstance(item, str))
    return names if listed is not None and len(names) == len(listed) else None


def named_statics(project: Project, site: Site) -> Statics:
    """Return what must be static at a site by its `static_argnames`."""
    option = site.arguments["static_argnames"]
    names, target = _read_names(project, option), known_target(project, site)
    uses = uses_of(project, site)
    if names is None or target is None:
        what = "its target cannot be resolved" if target is None else "the names are not literals"
        reason = f"{what}: name the arguments by index in `static_argnums`"
        return Statics(target, uses=uses, obstacle=_obstacle(option, reason))
    bound = tuple((call, bind_use(site, target, call)) for call in uses.calls)
    by_name = {p.arg: p for p in parameters(target.function.node)}
    required: list[Required] = []
    for name in names:
        if name not in by_name:
            reason = f"`{name}` is not a parameter of `{site.target}`"
            return Statics(target, uses=uses, obstacle=_obstacle(option, reason))
        if not _is_given(target, name):
            by_value = Argument(project, target, by_name[name], bound).is_immutable
            position = position_of(target, name)
            required.append(Required(name, None, position, (), by_value))
    return Statics(
        target,
        tuple(required),
        static_indices(site.definition, target, required),
        uses,
        bound,
        None,
        changing=changing_state(project, target, site, uses),
    )


def _is_given(target: Target, name: str) -> bool:
    """Return whether the call does not pass a parameter: `self`, arguments of partials."""
    position = position_of(target, name)
    return name in target.given or (position is not None and position < target.skip)


def _obstacle(option: Option, reason: str) -> Obstacle:
    return Obstacle(reason, option.module, option.value, "named here")
