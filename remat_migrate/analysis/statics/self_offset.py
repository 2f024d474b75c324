"""`static_argnums` of Flax that count `self` although the Api does not, or the other way round.

`nn.remat` counts the module as 0, for a class, a method or a function that takes it first.
`partitioning.remat` does not. `jax.checkpoint` counts what it is called with. An index that counts
as another Api does names the argument next to the intended one.
"""

from __future__ import annotations

import ast
from collections.abc import Collection
from dataclasses import dataclass

from ..project import Project
from ..sites.site import Site
from ..values.bind import default_of, positional_parameters
from ..values.declarations import annotation_kind
from .argument_kinds import kinds_of
from .arguments import Argument
from .positions import counted_position
from .project_needs import project_needs
from .static_options import StaticParameter, StaticSite, read_indices, static_site
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
    option = site.arguments.get("static_argnums")
    if shift is None or option is None or site.definition.modules != "linen":
        return None
    indices = read_indices(project, option)
    static = static_site(project, site)
    if static is None or not indices.values or indices.type not in site.definition.static_indices:
        return None
    found = _shifted(static, indices.values, shift)
    if found is None:
        return None
    now, wanted = found
    names = {p.name for p in wanted}
    needed = {
        n.parameter
        for n in project_needs(project).of(static.target.function, static.target.owner)
        if n.certain and not n.index
    }
    lost = [p for p in now if p.arg not in names]
    if any(p.arg in needed for p in lost):
        return None
    needs = tuple(traced_needs(project, site))
    flags = [p for p in wanted if _is_flag(static, p.parameter)]
    if needs:
        if any(n.evidence != "python" or n.need.parameter not in names for n in needs):
            return None
        exact = all(p.name in needed or p in flags for p in wanted)
        return SelfOffset(static, wanted, needs, exact)
    if lost and len(flags) == len(wanted) and all(_is_array(project, static, p) for p in lost):
        return SelfOffset(static, wanted, (), exact=True)
    return None


def _shifted(
    static: StaticSite, values: Collection[int], shift: int
) -> tuple[list[ast.arg], tuple[StaticParameter, ...]] | None:
    """Return the parameters that indices name, and those that they name when shifted.

    Returns None if some shifted index names none.
    """
    api, target = static.site.definition, static.target
    positional = positional_parameters(static.function)
    now: list[ast.arg] = []
    wanted: list[StaticParameter] = []
    for index in values:
        if index < 0 or index + shift < 0:
            return None
        position = counted_position(api, target, index)
        other = counted_position(api, target, index + shift)
        if position is None or other is None or not 1 <= other < len(positional):
            return None
        if position < len(positional):
            now.append(positional[position])
        elif shift > 0:
            return None
        wanted.append(StaticParameter(index + shift, other, positional[other]))
    return now, tuple(wanted)


def _is_flag(static: StaticSite, parameter: ast.arg) -> bool:
    """Return whether a parameter is declared as a bool, or has one as its default."""
    default = default_of(static.function, parameter)
    if isinstance(default, ast.Constant) and isinstance(default.value, bool):
        return True
    match parameter.annotation:
        case ast.Name(id="bool"):
            return True
        case ast.Subscript(slice=ast.Name(id="bool")):
            return annotation_kind(parameter.annotation) == "python"
    return False


def _is_array(project: Project, static: StaticSite, parameter: ast.arg) -> bool:
    """Return whether a parameter is the module itself, or certainly an array."""
    if parameter is positional_parameters(static.function)[0]:
        return True
    argument = Argument(project, static.target, parameter, static.bound)
    if argument.annotated_kind == "array":
        return True
    passed = [(c.module, a.by_name.get(parameter.arg)) for c, a in static.bound]
    if passed and all(e is not None and kinds_of(project).of(m, e) == "array" for m, e in passed):
        return True
    return argument.annotated_kind == "unknown" and argument.is_used_as_array
