"""Fixes of what is a checkpoint on some paths only, such as `remat(f)` where `remat` depends on a
setting: another function may not accept the new options, or may use the old ones.
"""

from __future__ import annotations

import ast

from ..analysis import Project
from ..analysis.sites.find_sites import is_certain, sites_of
from ..analysis.sites.site import Site, own_call
from ..analysis.values.bind import argument_calls
from ..codemod.changes import Change
from ..text import Edit


def uncertain_site(project: Project, changes: tuple[Change | Edit, ...]) -> Site | None:
    """Return an application that Changes edit and that is not a checkpoint on every path."""
    uncertain = project.once(_uncertain)
    if not uncertain:
        return None
    nodes = (change.node for change in changes if isinstance(change, Change))
    return next((uncertain[node] for node in nodes if node in uncertain), None)


def _uncertain(project: Project) -> dict[ast.AST, Site]:
    """Return the applications that are not always checkpoints, by their nodes and options."""
    found: dict[ast.AST, Site] = {}
    for site in sites_of(project):
        if site.certain:
            continue
        nodes: list[ast.AST | None] = [site.application]
        own = own_call(site.module, site.application, site.callee)
        for module, call, args in argument_calls(site.callee, site.module, own):
            # `remat = partial(jax.checkpoint, concrete=True) if flag else ...`: what the partial
            # holds reaches no other function.
            if call is own or not is_certain(project, module, call):
                nodes += [call, *args, *call.keywords, *(k.value for k in call.keywords)]
        for option in site.arguments.values():
            if option.call is not own and isinstance(option.call, ast.Call):
                if is_certain(project, option.module, option.call):
                    continue
            nodes += [option.call, option.value]
            if isinstance(option.call, ast.Dict):
                nodes += option.call.keys
        subject = site.subject[1] if site.subject is not None else None
        found |= {node: site for node in nodes if node is not None and node is not subject}
    return found
