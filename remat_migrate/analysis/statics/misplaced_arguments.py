"""Calls that do not pass a static argument by position, and what becomes of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal
from weakref import WeakKeyDictionary

from ..names.module import Module
from ..project import Project
from ..sites.site import Site, sites_in
from ..sites.uses import Call
from .static_options import StaticParameter, StaticSite, static_site


@dataclass(frozen=True, eq=False, slots=True)
class Misplaced:
    """A call that passes a static argument by keyword, or leaves it out.

    Attributes:
        static: the site.
        call: the call.
        parameter: the static argument.
        how: "keyword" or "omitted".
        keyword: the keyword, if that is written in the call itself.
        instead: the name of the parameter that is made static in its place; "": it is an error.
    """

    static: StaticSite
    call: Call
    parameter: StaticParameter
    how: Literal["keyword", "omitted"]
    keyword: ast.keyword | None = None
    instead: str = ""

    @property
    def last(self) -> int:
        """The position up to which the call must pass its arguments by position."""
        return max(p.position for p in self.static.static)


def misplaced_in(project: Project, module: Module) -> Iterator[Misplaced]:
    """The calls written in a module that misplace a static argument, each once.

    Those in files that hold nothing but calls, which no rule looks at, belong to their site's.
    """
    if project not in _MISPLACED:
        _MISPLACED[project] = _by_owner(project)
    yield from _MISPLACED[project].get(module, ())


# What each module is told of is found in the sites of all: once for the project, not for each.
_MISPLACED: WeakKeyDictionary[Project, dict[Module, list[Misplaced]]] = WeakKeyDictionary()


def _by_owner(project: Project) -> dict[Module, list[Misplaced]]:
    seen: set[tuple[Module, ast.Call]] = set()
    looked_at = set(project.modules.values())
    owned: dict[Module, list[Misplaced]] = {}
    for site in _sites_reaching(project):
        for found in misplaced(project, site):
            place = found.call.module
            owner = place if place in looked_at else site.module
            if place.editable and (owner, found.call.node) not in seen:
                seen.add((owner, found.call.node))
                owned.setdefault(owner, []).append(found)
    return owned


def _sites_reaching(project: Project) -> Iterator[Site]:
    """The sites with static arguments, of all modules: their calls may stand in any file."""
    for owner in project.modules.values():
        for site in sites_in(project, owner):
            if "static_argnums" in site.arguments:
                yield site


def misplaced(project: Project, site: Site) -> Iterator[Misplaced]:
    """The calls of a site's function that misplace a static argument."""
    static = static_site(project, site)
    if static is None or not static.static:
        return
    way = site.definition.static_calls
    if way in ("bound", "unknown"):
        return
    for call, arguments in static.bound:
        wrong = [
            p
            for p in static.static
            if p.name not in arguments.by_position and p.position >= _given(static, call)
        ]
        keywords = [p for p in wrong if p.name in arguments.by_name]
        if way == "keywords-ignored" and not keywords:
            continue
        if wrong:
            first = (keywords or wrong)[0]
            written = next((k for k in call.node.keywords if k.arg == first.name), None)
            instead = "" if first.index >= 0 else _instead(static, call, first)
            how: Literal["keyword", "omitted"] = "keyword" if keywords else "omitted"
            yield Misplaced(static, call, first, how, written, instead)


def _given(static: StaticSite, call: Call) -> int:
    """How many leading parameters are bound before the call: `self`, those of a partial."""
    return max(static.target.skip, call.skip if static.target.owner is not None else 0)


def _instead(static: StaticSite, call: Call, parameter: StaticParameter) -> str:
    """The parameter that a negative index makes static where fewer are passed by position."""
    positional = static.function.args.posonlyargs + static.function.args.args
    passed = _given(static, call) + len(call.arguments[0])
    place = parameter.position - (len(positional) - passed)
    return positional[place].arg if static.target.skip <= place < len(positional) else ""
