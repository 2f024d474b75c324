"""Calls that do not pass a static argument by position."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from ..project import Project
from ..sites.calls import Call
from ..sites.find_sites import sites_of
from ..sites.site import Site
from ..values.bind import positional_parameters
from .static_options import StaticParameter, StaticSite, static_site


@dataclass(frozen=True, eq=False, slots=True)
class Misplaced:
    """A call that passes a static argument by keyword, or leaves it out.

    Attributes:
        static: the site.
        call: the call.
        parameter: the static argument.
        how: "keyword" or "omitted".
        keyword: the keyword, if the call itself writes it.
        instead: the name of the parameter that becomes static in its place; empty if JAX raises.
    """

    static: StaticSite
    call: Call
    parameter: StaticParameter
    how: Literal["keyword", "omitted"]
    keyword: ast.keyword | None = None
    instead: str = ""

    @property
    def last(self) -> int:
        """The last position that the call must pass by position."""
        return max(p.position for p in self.static.static)


def misplaced_calls(project: Project) -> Sequence[Misplaced]:
    """Return the calls of a project that misplace a static argument, each once."""
    return project.once(_misplaced_calls)


def _misplaced_calls(project: Project) -> Sequence[Misplaced]:
    by_call: dict[ast.Call, Misplaced] = {}
    for site in sites_of(project):
        for one in misplaced(project, site):
            by_call.setdefault(one.call.node, one)
    return [*by_call.values()]


def misplaced(project: Project, site: Site) -> Iterator[Misplaced]:
    """Yield the calls of a site's function that misplace a static argument."""
    static, rule = static_site(project, site), site.definition.static_calls
    if static is None or rule in ("bound", "unknown"):
        return
    positional = positional_parameters(static.function)
    for call, arguments in static.bound:
        wrong = [
            p
            for p in static.static
            if p.name not in arguments.by_position and p.position >= arguments.skip
        ]
        keywords = [p for p in wrong if p.name in arguments.by_name]
        if not (keywords if rule == "keywords-ignored" else wrong):
            continue
        first = (keywords or wrong)[0]
        written = next((k for k in call.node.keywords if k.arg == first.name), None)
        instead = ""
        if first.index < 0:  # it counts from the last argument that is passed by position
            omitted = len(positional) - arguments.skip - len(call.arguments[0])
            place = first.position - omitted
            if static.target.skip <= place < len(positional):
                instead = positional[place].arg
        how: Literal["keyword", "omitted"] = "keyword" if keywords else "omitted"
        yield Misplaced(static, call, first, how, written, instead)
