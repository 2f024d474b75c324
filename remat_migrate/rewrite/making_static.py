"""Makes arguments static at a site without `concrete=`: `static_argnums`, or a closure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from ..analysis import Project
from ..analysis.sites.site import Site
from ..analysis.statics.positions import static_indices
from ..analysis.statics.static_arguments import find_statics
from ..analysis.statics.static_options import tracing_layer
from ..analysis.statics.statics import Statics
from .concrete import Migration, at_application, distinct, plan_site
from .refusal import Refused


def make_static(project: Project, site: Site, names: Collection[str]) -> Migration:
    """Make some parameters of the function that a site wraps static.

    Raises:
        Refused: no rewrite keeps the meaning, or one of them cannot be static.
    """
    statics = _only(find_statics(project, site), site, names)
    named = site.arguments.get("static_argnums")
    if named is not None and named.call is not site.application:
        raise Refused(
            "other applications may share this `static_argnums`: name the argument there, and pass"
            " it by position",
            named.module,
            named.value,
        )
    for call, arguments in statics.bound:
        layer = tracing_layer(call.callee)
        scanned = layer is not None and layer.how.endswith(".scan")  # `in_axes=nn.broadcast`
        if layer is not None and not (scanned and set(names) <= arguments.by_position):
            raise Refused(
                f"a call goes through `{layer.how}`, which may trace its arguments: make the"
                " arguments that must be concrete static there, too, and name them in"
                " `static_argnums`",
                call.module,
                call.node,
                "called here",
            )
    plan = plan_site(project, site, statics, None)
    changes = [*plan.changes]
    if plan.indices:
        changes += at_application(project, site, plan.indices)
    return Migration(plan.title, distinct(changes), plan.notes)


def _only(statics: Statics, site: Site, names: Collection[str]) -> Statics:
    """Return the decision for some parameters, and for those that JAX cannot trace.

    Results that must be concrete are another finding's.
    """
    obstacle = statics.obstacle
    if obstacle is not None and obstacle.parameter in {"", *names}:
        raise Refused(obstacle.reason, obstacle.module, obstacle.node, obstacle.label)
    kept = [r for r in statics.required if r.name in names or r.certain]
    if statics.target is None or not set(names) <= {r.name for r in kept}:
        raise Refused("name the argument in `static_argnums`, and pass it by position")
    indices = static_indices(site.definition, statics.target, kept)
    return replace(statics, required=tuple(kept), indices=indices, obstacle=None, results=())
