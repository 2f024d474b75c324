"""Calls that do not pass a static argument by position."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from ..names.module import Module
from ..project import Project
from ..sites.site import Site, sites_in
from ..sites.uses import Call
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


def misplaced_in(project: Project, module: Module) -> Sequence[Misplaced]:
    """Return the calls in a module that misplace a static argument, each once.

    Calls in files that no rule visits, since they contain nothing but calls, belong to the site's
    module.
    """
    return project.once(_by_owner).get(module, ())


def _by_owner(project: Project) -> dict[Module, list[Misplaced]]:
    seen: set[tuple[Module, ast.Call]] = set()
    visited = set(project.modules.values())
    owned: dict[Module, list[Misplaced]] = {}
    for module in project.modules.values():
        for site in sites_in(project, module):
            for found in misplaced(project, site):
                place = found.call.module
                owner = place if place in visited else module
                if place.editable and (owner, found.call.node) not in seen:
                    seen.add((owner, found.call.node))
                    owned.setdefault(owner, []).append(found)
    return owned


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
