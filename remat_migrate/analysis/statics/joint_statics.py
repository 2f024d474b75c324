"""What is static where one checkpoint is put around one of several functions.

An override is called as the method that it overrides: static is what any of them needs.
"""

from __future__ import annotations

import ast
from dataclasses import replace

from ..project import Project
from ..sites.site import Site
from ..values.bind import call_order, default_of, positional_parameters
from ..values.callees import Target
from .passed_values import is_flag
from .statics import Obstacle, Required, Statics


def united(project: Project, site: Site, found: list[Statics]) -> Statics:
    """The decision for all of some functions, any of which each call may run."""
    first = next((s for s in found if s.obstacle is not None), found[0])
    if first.obstacle is not None or len(found) == 1:
        return first
    changing = next((s.changing for s in found if s.changing is not None), None)
    if len({_signature(s.target) for s in found}) > 1:
        return replace(_by_position(project, site, found), changing=changing, open_ended=True)
    required: dict[tuple[str, int | str | None], Required] = {}
    for item in (r for statics in found for r in statics.required):
        known = required.get((item.name, item.index), item)
        by_value = item.by_value and known.by_value
        needs = tuple(dict.fromkeys((*known.needs, *item.needs)))
        certain = item.certain or known.certain
        required[item.name, item.index] = replace(
            known, needs=needs, by_value=by_value, certain=certain
        )
    everything, indices = tuple(required.values()), _all_indices(found)
    return replace(first, required=everything, indices=indices, changing=changing)


def _by_position(project: Project, site: Site, found: list[Statics]) -> Statics:
    """The same for functions with other parameters or defaults: calls must pass all by position."""
    first, indices = found[0], _all_indices(found)
    obstacle = Obstacle(
        "it wraps functions with different parameters or defaults, and not every call passes the"
        " static arguments by position: pass them there, and name them in `static_argnums`",
        site.module,
        site.application or site.reference,
        "wraps one of several functions",
        unseen=True,
    )
    if indices is None or first.target is None or not first.bound:
        return replace(first, obstacle=obstacle)
    counted = 1 if site.definition.counting == "method" else 0
    skip = first.target.skip or int(site.definition.counting != "function")
    positional = positional_parameters(first.target.function.node)[skip:]
    by_value = all(item.by_value for statics in found for item in statics.required)
    required: list[Required] = []
    for index in indices:
        place = index - counted
        everywhere = all(index in (s.indices or ()) for s in found)
        for call, _ in first.bound:
            args = call.arguments[0][: place + 1]
            if len(args) <= place or any(isinstance(a, ast.Starred) for a in args):
                return replace(first, obstacle=obstacle)
            if not everywhere and not is_flag(project, call.module, args[place]):
                return replace(first, obstacle=obstacle)
        if place >= len(positional):
            return replace(first, obstacle=obstacle)
        name = positional[place].arg
        own = next((r for r in first.required if r.name == name), None)
        reason = "another function that may be wrapped here needs it"
        required.append(own or Required(name, None, place + skip, (), reason, by_value))
    return replace(first, required=tuple(required), indices=indices)


def _all_indices(found: list[Statics]) -> tuple[int, ...] | None:
    """The static arguments of all; None where some cannot be passed by position."""
    if any(s.indices is None for s in found):
        return None
    return tuple(sorted({i for s in found for i in s.indices or ()}))


def _signature(target: Target | None) -> object:
    """What a call of a function depends on: its parameters with their kinds and defaults."""
    if target is None:
        return None
    node = target.function.node
    a = node.args
    stars = tuple(p.arg if p is not None else "" for p in (a.vararg, a.kwarg))
    defaults = (default_of(node, p) for p in a.kwonlyargs)
    keywords = zip((p.arg for p in a.kwonlyargs), defaults, strict=True)
    named = tuple((n, ast.dump(d) if d is not None else "") for n, d in keywords)
    return call_order(node)[target.skip :], named, stars, target.given
