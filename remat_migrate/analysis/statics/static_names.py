"""`static_argnames` as it is written, and what it would make static."""

from __future__ import annotations

from ..names.scopes import parameters
from ..needs.static_layers import listed_items
from ..project import Project
from ..sites.call_search import uses_of
from ..sites.site import Option, Site
from ..values.callees import Target
from .mutated_names import changing_name
from .passed_values import by_value
from .static_arguments import bind_use, position_of, static_indices
from .static_options import known_target
from .statics import Obstacle, Required, Statics


def read_names(project: Project, option: Option) -> tuple[str, ...] | None:
    """The names that an option `static_argnames` gives; None where they are not known."""
    listed = listed_items(project.evaluator, option.module, option.value)
    names = tuple(item for item in listed or () if isinstance(item, str))
    return names if listed is not None and len(names) == len(listed) else None


def named_statics(project: Project, site: Site) -> Statics:
    """What must be static at a site by its `static_argnames`."""
    option = site.arguments["static_argnames"]
    names, target = read_names(project, option), known_target(project, site)
    uses = uses_of(project, site)
    if names is None or target is None:
        what = "what it wraps cannot be seen" if target is None else "the names are computed"
        reason = f"{what}: name the arguments by their indices in `static_argnums`"
        return Statics(target, uses=uses, obstacle=_obstacle(option, reason))
    bound = tuple((call, bind_use(site, target, call)) for call in uses.calls)
    by_name = {p.arg: p for p in parameters(target.function.node)}
    required: list[Required] = []
    for name in names:
        if name not in by_name:
            reason = f"`{name}` is no argument of `{site.target}`"
            return Statics(target, uses=uses, obstacle=_obstacle(option, reason))
        if not _is_given(target, name):
            fixed = by_value(project, target, by_name[name], None, bound)
            position = position_of(target, name, None)
            required.append(Required(name, None, position, (), "it is named static", fixed))
    function = target.function
    return Statics(
        target,
        tuple(required),
        static_indices(site.definition, target, required),
        uses,
        bound,
        None,
        changing_name(project, function.module, function.node),
    )


def _is_given(target: Target, name: str) -> bool:
    """Whether the call does not pass it: `self`, arguments of partials."""
    position = position_of(target, name, None)
    return name in target.given or (position is not None and position < target.skip)


def _obstacle(option: Option, reason: str) -> Obstacle:
    return Obstacle(reason, option.module, option.value, "named here")
