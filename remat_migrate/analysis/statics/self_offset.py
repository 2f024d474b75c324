"""`static_argnums` of Flax that count `self` although the Api does not, or the other way round.

`nn.remat` counts the module as 0, for a class, a method or a function that takes it first.
`partitioning.remat` does not. `jax.checkpoint` counts what it is called with. An index that counts
as another Api does names the argument next to the intended one.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from ..project import Project
from ..sites.site import Site
from ..values.bind import positional_parameters
from .arguments import Argument, is_computed_with, project_needs
from .static_options import StaticParameter, StaticSite, read_indices, static_site
from .statics import counted_position
from .traced_needs import TracedNeed, traced_needs

_SHIFTS = {"method": 1, "method-without-self": -1}


@dataclass(frozen=True, eq=False, slots=True)
class SelfOffset:
    """Indices that are off by one.

    Attributes:
        static: the parameters that they name as written.
        wanted: the intended parameters, with the indices that name them.
        needs: the values that are needed but traced as written; empty if nothing fails.
        exact: whether all of `wanted` are needed at trace time, or flags.
    """

    static: StaticSite
    wanted: tuple[StaticParameter, ...]
    needs: tuple[TracedNeed, ...]
    exact: bool


def self_offset(project: Project, site: Site) -> SelfOffset | None:
    """Return the indices of a site if they certainly count `self` in the wrong way."""
    shift = _SHIFTS.get(site.definition.counting)
    option, static = site.arguments.get("static_argnums"), static_site(project, site)
    if shift is None or option is None or static is None or site.definition.modules != "linen":
        return None
    if read_indices(project, option).type not in site.definition.static_indices:
        return None
    wanted = _shifted(static, shift)
    if wanted is None:
        return None
    names = {p.name for p in wanted}
    needed = {
        n.parameter
        for n in project_needs(project).of(static.target.function, static.target.owner)
        if n.certain and not n.index
    }
    lost = {p.name: p.parameter for p in static.static if p.name not in names}
    if needed & lost.keys():
        return None
    needs = tuple(traced_needs(project, site))
    if any(n.evidence == "array" or n.need.parameter not in names for n in needs):
        return None
    flags = {p.name for p in wanted if _argument(project, static, p.parameter).is_option}
    exact = names <= needed | flags
    if any(n.evidence == "python" for n in needs):
        return SelfOffset(static, wanted, needs, exact)
    is_static = names <= {p.name for p in static.static}
    if exact and not is_static and all(_is_array(project, static, p) for p in lost.values()):
        return SelfOffset(static, wanted, (), exact)
    return None


def _shifted(static: StaticSite, shift: int) -> tuple[StaticParameter, ...] | None:
    """Return the parameters that the indices name when shifted; None if one of them names none."""
    api, target = static.site.definition, static.target
    positional = positional_parameters(static.function)
    wanted: list[StaticParameter] = []
    for index in static.indices:
        position = counted_position(api, target, index + shift)
        if index < 0 or index + shift < 0 or position is None:
            return None
        if not 1 <= position < len(positional):
            return None
        wanted.append(StaticParameter(index + shift, position, positional[position]))
    return tuple(wanted) or None


def _argument(project: Project, static: StaticSite, parameter: ast.arg) -> Argument:
    return Argument(project, static.target, parameter, static.bound)


def _is_array(project: Project, static: StaticSite, parameter: ast.arg) -> bool:
    """Return whether a parameter is the module itself, or an array."""
    argument = _argument(project, static, parameter)
    if parameter is positional_parameters(static.function)[0] or argument.kind == "array":
        return True
    return argument.annotated_kind != "python" and is_computed_with(argument)
