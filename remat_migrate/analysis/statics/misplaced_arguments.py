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
    found = [one for site in sites_of(project) for one in misplaced(project, site)]
    return list({one.call.node: one for one in reversed(found)}.values())[::-1]


def misplaced(project: Project, site: Site) -> Iterator[Misplaced]:
    """Yield the calls of a site's function that misplace a static argument."""
    static = static_site(project, site)
    if static is None or not static.static:
        return
    rule = site.definition.static_calls
    if rule in ("bound", "unknown"):
        return
    for call, arguments in static.bound:
        wrong = [
            p
            for p in static.static
            if p.name not in arguments.by_position and p.position >= _given(static, call)
        ]
        keywords = [p for p in wrong if p.name in arguments.by_name]
        if rule == "keywords-ignored" and not keywords:
            continue
        if wrong:
            first = (keywords or wrong)[0]
            written = next((k for k in call.node.keywords if k.arg == first.name), None)
            instead = "" if first.index >= 0 else _instead(static, call, first)
            how: Literal["keyword", "omitted"] = "keyword" if keywords else "omitted"
            yield Misplaced(static, call, first, how, written, instead)


def _given(static: StaticSite, call: Call) -> int:
    """Return how many leading parameters are bound before the call: `self`, partial arguments."""
    return max(static.target.skip, call.skip if static.target.owner is not None else 0)


def _instead(static: StaticSite, call: Call, parameter: StaticParameter) -> str:
    """Return the parameter that a negative index names if a call passes fewer by position."""
    positional = positional_parameters(static.function)
    passed = _given(static, call) + len(call.arguments[0])
    place = parameter.position - (len(positional) - passed)
    return positional[place].arg if static.target.skip <= place < len(positional) else ""
