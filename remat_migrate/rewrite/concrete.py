"""Migrates `concrete=`, and makes arguments static: drops it, names them, or closes over them."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from ..analysis import Project
from ..analysis.names.module import parameters
from ..analysis.sites.find_sites import sites_of
from ..analysis.sites.options import ConcreteUse
from ..analysis.sites.site import Option, Site
from ..analysis.statics.required_arguments import Statics, find_statics, static_indices
from ..analysis.statics.static_options import tracing_layer
from ..analysis.values.bind import default_of, positional_parameters
from ..analysis.values.values import Function
from ..codemod.changes import ArrangeArguments, Change, Code, Replace, SetArgument
from ..rule import Related
from .calls import positional_changes
from .checkpoint_code import CheckpointCode
from .closure import closing_changes, code_to_write
from .compile_time import hoist
from .forwarding import drop_parameter
from .options import check_only_checkpoints_get, drop_option, naming_changes, static_argnums_changes
from .refusal import Refused


@dataclass(frozen=True, slots=True)
class Migration:
    """How one `concrete=` is migrated.

    Attributes:
        title: the decision.
        changes: its changes.
        notes: the places that explain it.
        breaks: why callers outside the project may break; "" if they cannot.
    """

    title: str
    changes: tuple[Change, ...]
    notes: tuple[Related, ...] = ()
    breaks: str = ""


def drop(project: Project, use: ConcreteUse) -> Migration:
    """Remove a `concrete=False`.

    Raises:
        Refused: another function gets it, too.
    """
    check_only_checkpoints_get(project, use.option)
    changes = [*drop_option(project, use.option), *naming_changes(use.option)]
    return Migration("drop `concrete=False`, which has no effect", distinct(changes))


_HOISTED = ", with `jax.ensure_compile_time_eval`"


def migrate(project: Project, use: ConcreteUse) -> Migration:
    """Migrate a `concrete=True`, or a parameter that is passed on as `concrete`.

    Raises:
        Refused: no rewrite keeps the meaning.
    """
    option, sites = use.option, use.sites
    if use.value is None:
        title, dropped, breaks = drop_parameter(project, option)
        return Migration(title, distinct([*dropped, *naming_changes(option)]), breaks=breaks)
    check_only_checkpoints_get(project, option)
    if not sites:
        raise Refused(
            "it is not known which applications use it: remove `concrete`, and name the static"
            " arguments in `static_argnums` at each application",
            option.module,
            option.value,
        )
    plans = [plan_site(project, site, find_statics(project, site), option) for site in sites]
    # One `static_argnums` in the place of the option serves all applications; what is called there
    # may be another function on some paths, which must not get it.
    shared = len({plan.indices for plan in plans}) == 1 and not _is_overridden(project, option)
    changes = [change for plan in plans for change in plan.changes]
    in_place = False
    for plan in plans:
        is_own = option.call is plan.site.application
        if not plan.indices:
            continue
        is_named = "static_argnums" in plan.site.arguments
        if is_named or not (is_own or shared) or isinstance(option.call, ast.Dict):
            changes += at_application(project, plan.site, plan.indices)
        elif not in_place:
            changes += static_argnums_changes(plan.site, plan.indices, option)
            in_place = True
    if not any(plan.replaces for plan in plans):
        if not in_place:
            changes += drop_option(project, option)
        changes += naming_changes(option)
    title = "; ".join(dict.fromkeys(plan.title for plan in plans))
    notes = tuple(note for plan in plans for note in plan.notes)
    return Migration(title, distinct(changes), notes)


def _is_overridden(project: Project, option: Option) -> bool:
    """Return whether a checkpoint overrides an option; others in its place would reach that one."""
    overridden = (
        site.arguments[option.name].overrides
        for site in sites_of(project)
        if option.name in site.arguments
    )
    return any(hidden is not None and hidden.value is option.value for hidden in overridden)


def distinct(changes: Iterable[Change]) -> tuple[Change, ...]:
    """Return changes without repetitions.

    Raises:
        Refused: two of them change one call in different ways.
    """
    found: dict[tuple[object, ...], Change] = {}
    for change in dict.fromkeys(changes):
        if isinstance(change, SetArgument | ArrangeArguments | Replace):
            name = change.name if isinstance(change, SetArgument) else ""
            if found.setdefault((type(change), change.node, name), change) != change:
                raise Refused("two changes of the same code contradict each other")
        else:
            found[change,] = change
    return tuple(found.values())


@dataclass(frozen=True, slots=True)
class Plan:
    """How one application is rewritten.

    `replaces` tells whether the changes replace the application, including the option.
    """

    site: Site
    title: str
    indices: tuple[int, ...] = ()
    changes: tuple[Change, ...] = ()
    notes: tuple[Related, ...] = ()
    replaces: bool = False


def plan_site(project: Project, site: Site, statics: Statics, option: Option | None) -> Plan:
    """Plan how one application makes `statics` static, without `option`.

    Raises:
        Refused: no rewrite keeps the meaning.
    """
    if statics.obstacle is not None:
        obstacle = statics.obstacle
        why = Refused(obstacle.reason, obstacle.module, obstacle.node, obstacle.label)
        raise _by_hand(project, site, statics, option, why) if obstacle.unseen else why
    if not statics.required and statics.changing is None:
        hoisted = hoist(project, statics.computed)
        title = "drop `concrete`: no argument must be concrete"
        return Plan(site, title + _HOISTED * bool(hoisted), changes=tuple(hoisted))
    if site.spread:
        raise Refused(
            "not all of its options are known, so `static_argnums` may be among them: name the"
            " arguments there",
            site.module,
            site.application or site.reference,
            "unpacks options",
        )
    notes = tuple(
        Related(
            *r.needs[0].module.location(r.needs[0].node),
            f"the value of `{r.name}` is needed here: {r.needs[0].reason}",
        )
        for r in statics.required
        if r.needs
    )
    try:
        changes = _positional(project, site, statics)
    except Refused as refused:
        return _closure(project, site, statics, option, notes, refused)
    assert statics.indices is not None
    hoisted = hoist(project, statics.computed)
    names = " and ".join(f"`{r.name}`" for r in statics.required) or "no argument"
    them = "it" if len(statics.required) == 1 else "them"
    title = (
        f"pass {names} by position and mark {them} static" if changes else f"mark {names} static"
    )
    title += f": `static_argnums={statics.indices!r}`"
    changed = {change.node for change in changes}
    title += _HOISTED * bool(hoisted)
    text = "called here; static arguments must be passed by position"
    called = tuple(
        Related(*call.module.location(call.node), text)
        for call, _ in statics.bound
        if call.node in changed
    )
    return Plan(site, title, statics.indices, (*changes, *hoisted), (*notes, *called))


def _positional(project: Project, site: Site, statics: Statics) -> list[Change]:
    """Return the changes of calls that must pass static arguments by position.

    Raises:
        Refused: a call is unknown or cannot be rewritten.
    """
    if "methods" in site.arguments:
        raise Refused(
            "`methods` names methods other than `__call__`: name their static arguments in"
            " `static_argnums`",
            site.module,
            site.reference,
        )
    if site.definition.static_option is None:
        raise Refused(f"`{site.api}` has no static arguments", site.module, site.reference)
    if statics.indices is None:
        raise Refused("a parameter that must be concrete is keyword-only")
    if statics.changing is not None:
        module, node = statics.changing
        raise Refused(
            f"`{module.segment(node)}` may change between calls, which JAX would not notice: it"
            " traces the function once",
            module,
            node,
        )
    for item in statics.required:
        if not item.certain:
            raise Refused(
                f"`{item.name}` may be a Python value that must be concrete, or an array: not all"
                " of its callers are known"
            )
        if not item.by_value:
            raise Refused(
                f"the argument for `{item.name}` may be mutable, and JAX does not notice changes of"
                " a static argument"
            )
    if statics.uses.escapes:
        escape = statics.uses.escapes[0]
        raise Refused(f"not all calls are known: {escape.reason}", escape.module, escape.node)
    if statics.target is None:
        return []
    return _calls_by_position(project, site, statics, statics.target.function)


def _calls_by_position(
    project: Project, site: Site, statics: Statics, function: Function
) -> list[Change]:
    positions = [r.position for r in statics.required if r.position is not None]
    needed = {r.name for r in statics.required}
    last = len(positional_parameters(function.node)) - 1
    if not statics.bound and any(
        p.arg in needed and default_of(function.node, p) is not None
        for p in parameters(function.node)
    ):
        raise Refused("no call is known, and callers may leave the argument to its default")
    end = max(min(p, last) for p in positions)
    for call, bound in statics.bound:
        for parameter in positional_parameters(function.node)[bound.skip : end]:
            default = default_of(function.node, parameter)
            left = parameter.arg not in bound.by_name and parameter.arg not in needed
            if left and default is not None and ast.unparse(default) != "None":
                raise Refused(
                    f"a call leaves `{parameter.arg}` to its default, which would be traced",
                    call.module,
                    call.node,
                )
    star_count = max(0, *(p - last for p in positions))
    return positional_changes(project, site, function, statics.bound, end, star_count=star_count)


def _closure(
    project: Project,
    site: Site,
    statics: Statics,
    option: Option | None,
    notes: tuple[Related, ...],
    why: Refused,
) -> Plan:
    try:
        changes, closed = closing_changes(project, site, statics, option)
    except Refused as refused:
        raise _by_hand(project, site, statics, option, why, refused) from refused
    if why.module is not None and isinstance(why.node, ast.expr):
        notes = (*notes, Related(*why.module.location(why.node), why.reason))
    names = ", ".join(f"`{r.name}`" for r in closed.required)
    title = f"close over {names}" if names else "a new checkpointed function for each call"
    return Plan(site, title, (), tuple(changes), notes, _holds(site, option))


def _by_hand(
    project: Project,
    site: Site,
    statics: Statics,
    option: Option | None,
    why: Refused,
    closing: Refused | None = None,
) -> Refused:
    """Return why arguments are neither static nor closed over, with the code to write instead."""
    shown = closing if closing is not None and why.module is None else why
    reason = why.reason
    if closing is not None and closing.module is not None:
        reason += f"; the fix cannot close over it: {closing.reason}"
    code = code_to_write(project, site, statics, option)
    if code not in reason:
        reason += f"; {code}"
    return Refused(reason, shown.module, shown.node, shown.label)


def _holds(site: Site, option: Option | None) -> bool:
    """Return whether an application holds the option, so that replacing it removes both."""
    if option is None or site.application is None:
        return True
    return any(node is option.call for node in ast.walk(site.application))


def at_application(project: Project, site: Site, indices: tuple[int, ...]) -> list[Change]:
    """Return the changes that write `static_argnums` at an application."""
    if isinstance(site.application, ast.Call) or "static_argnums" in site.arguments:
        return static_argnums_changes(site, indices, None)
    assert site.application is not None
    code = CheckpointCode("{checkpoint}", (f"static_argnums={indices!r}",))
    partial = code.decorator(project, site.module, site.application)
    new = Code.of(partial.text, checkpoint=site.application)
    return [Replace(site.module, site.application, new), *partial.changes]


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
