"""Migrating `concrete=`: drop it, name static arguments, or close over them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ..analysis import Module, Project
from ..analysis.names.scopes import FunctionNode, parameters
from ..analysis.needs.need import Need
from ..analysis.sites.concrete_options import ConcreteUse
from ..analysis.sites.site import Option, Site
from ..analysis.sites.uses import Call
from ..analysis.statics.static_arguments import find_statics
from ..analysis.statics.statics import Required, Statics
from ..analysis.values.bind import default_of, positional_parameters
from ..analysis.values.values import Function
from ..codemod.changes import ArrangeArguments, Change, Code, Replace, SetArgument
from .arguments.argument_specs import Added, spec_changes
from .arguments.calls import pass_by_position
from .closures.when_to_close import closing_all_changes, closing_changes
from .compile_time import hoist
from .forwarding import drop_parameter
from .imports import written
from .options import drop_option, given_behind, naming_changes, static_argnums_changes
from .refusal import Refused


@dataclass(frozen=True, slots=True)
class Note:
    """A place and what it says about a migration."""

    module: Module
    node: ast.expr | ast.stmt | ast.keyword | ast.arg
    message: str


@dataclass(frozen=True, slots=True)
class Migration:
    """How one `concrete=` is migrated: what was decided, its changes, the places that explain it.

    `breaks`: what callers outside the project may lose by it.
    """

    title: str
    changes: tuple[Change, ...]
    notes: tuple[Note, ...] = ()
    breaks: str = ""


def drop(project: Project, use: ConcreteUse) -> Migration:
    """Take out a `concrete=False`."""
    changes = [*drop_option(project, use.option), *_named_behind(use.option)]
    return Migration("drop `concrete=False`, which has no effect", distinct(changes))


Decide = Callable[[Project, Site], Statics]


def migrate(project: Project, use: ConcreteUse, decide: Decide = find_statics) -> Migration:
    """Migrate a `concrete=True`, or a parameter that is handed on as `concrete`.

    `decide` says what must be static at an application.

    Raises:
        Refused: no rewriting keeps the meaning.
    """
    option, sites = use.option, use.sites
    if use.value is None:
        title, dropped, breaks = drop_parameter(project, option)
        return Migration(title, distinct([*dropped, *_named_behind(option)]), breaks=breaks)
    if not sites:
        raise Refused(
            "where it is applied cannot be seen: take `concrete` out and name the static arguments"
            " in `static_argnums` at each application",
            option.module,
            option.value,
        )
    plans = [plan_site(project, site, decide(project, site), option) for site in sites]
    shared = _shared_indices(plans, option)
    changes: list[Change] = []
    notes: list[Note] = []
    titles: list[str] = []
    in_place = False
    for plan in plans:
        notes += plan.notes
        changes += plan.changes
        if plan.title not in titles:
            titles.append(plan.title)
        if plan.indices:
            own = option.call is plan.site.application
            named = "static_argnums" in plan.site.arguments
            if (own or shared) and not named and not isinstance(option.call, ast.Dict):
                if not in_place:
                    changes += static_argnums_changes(plan.site, plan.indices, option)
                    in_place = True
                continue
            changes += at_application(project, plan.site, plan.indices, named)
    if not in_place and not any(plan.replaces for plan in plans):
        # `functools.partial` is still needed where a plan writes it anew.
        needed = any(p.indices and not isinstance(p.site.application, ast.Call) for p in plans)
        changes += drop_option(project, option, shorten=not needed)
    if not any(plan.replaces for plan in plans):
        changes += _named_behind(option)
    return Migration("; ".join(titles), distinct(changes), tuple(notes))


def _named_behind(option: Option) -> list[Change]:
    """The changes that name what stands behind an option by position."""
    if not isinstance(option.call, ast.Call):
        return []
    return naming_changes(option.module, given_behind(option))


def distinct(changes: Iterable[Change]) -> tuple[Change, ...]:
    """Changes without repetitions.

    Raises:
        Refused: two change one call in different ways.
    """
    found: dict[tuple[object, ...], Change] = {}
    for change in dict.fromkeys(changes):
        if isinstance(change, SetArgument | ArrangeArguments | Replace):
            name = change.name if isinstance(change, SetArgument) else ""
            if found.setdefault((type(change), change.node, name), change) != change:
                raise Refused("two changes of one place contradict each other")
        else:
            found[change,] = change
    return tuple(found.values())


@dataclass(frozen=True, slots=True)
class Plan:
    """What is done at one application.

    `replaces`: the changes rewrite the application itself, the option included.
    """

    site: Site
    title: str
    indices: tuple[int, ...] = ()
    changes: tuple[Change, ...] = ()
    notes: tuple[Note, ...] = ()
    replaces: bool = False


def plan_site(project: Project, site: Site, statics: Statics, option: Option | None) -> Plan:
    """How one application is rewritten so that `statics` are static; `option` goes.

    Raises:
        Refused: no rewriting keeps the meaning.
    """
    if statics.obstacle is not None:
        obstacle = statics.obstacle
        why = Refused(obstacle.reason, obstacle.module, obstacle.node, obstacle.label)
        if not obstacle.unseen:
            raise why
        return _closure_of_all(project, site, statics, option, (), why)
    if not statics.required and statics.changing is None:
        return Plan(site, "drop `concrete`: Python needs the value of no argument")
    needs = [n for one in statics.each for r in one.required for n in r.needs]
    notes = tuple(_note(r.needs[0], r) for r in statics.required if r.needs)
    try:
        changes = _positional(project, site, statics)
    except Refused as refused:
        return _closure(project, site, statics, option, notes, refused)
    assert statics.indices is not None
    hoisted = hoist(project, needs)
    title = f"static_argnums={statics.indices!r}"
    changed = {change.node for change in changes}
    calls = len({call.node for one in statics.each for call, _ in one.bound} & changed)
    if changes:
        title += f", and {calls} call{'s' if calls != 1 else ''} passed by position"
    if hoisted:
        title += ", with `jax.ensure_compile_time_eval`"
    called = tuple(
        Note(
            call.module,
            call.node,
            "called here; a static argument must stand by position",
        )
        for one in statics.each
        for call, _ in one.bound
        if call.node in changed
    )
    return Plan(site, title, statics.indices, (*changes, *hoisted), (*notes, *called))


def _note(need: Need, required: Required) -> Note:
    return Note(need.module, need.node, f"Python needs `{required.name}`: {need.reason}")


def _positional(project: Project, site: Site, statics: Statics) -> list[Change]:
    """The changes of calls that static arguments by position ask for.

    Raises:
        Refused: some call cannot be seen or cannot be rewritten.
    """
    if "methods" in site.arguments:
        raise Refused(
            "`methods` names other methods than `__call__`: name their static arguments in"
            " `static_argnums`",
            site.module,
            site.reference,
        )
    if site.definition.static_option is None:
        raise Refused(f"`{site.api}` has no static arguments", site.module, site.reference)
    if statics.indices is None:
        raise Refused("a parameter that Python needs can only be passed by keyword")
    if statics.changing is not None:
        raise Refused(
            f"`{statics.changing.id}` may change between calls, and JAX would not see it: it traces"
            " the function once",
            statics.target.function.module if statics.target else site.module,
            statics.changing,
        )
    for item in (r for one in statics.each for r in one.required):
        if not item.certain:
            raise Refused(
                f"`{item.name}` may be a Python value that is needed, or an array: not all of its"
                " callers can be seen"
            )
        if not item.by_value:
            raise Refused(
                f"what is passed for `{item.name}` can change, and JAX would not see the change"
                " of a static argument"
            )
    if statics.escapes:
        escape = statics.escapes[0]
        raise Refused(f"not every call can be seen: {escape.reason}", escape.module, escape.node)
    return [
        change
        for one in statics.each
        if one.target is not None
        for change in _calls_by_position(project, site, one, one.target.function)
    ]


def _calls_by_position(
    project: Project, site: Site, statics: Statics, function: Function
) -> list[Change]:
    changes: list[Change] = []
    positions = [r.position for r in statics.required if r.position is not None]
    count = len(positional_parameters(function.node))
    last = max(min(p, count - 1) for p in positions)
    star = max((p - count + 1 for p in positions), default=0)
    every = site.definition.counting == "method-without-self"
    if not statics.bound and _has_default(statics, function.node):
        raise Refused("no call can be seen, and callers may leave the argument to its default")
    needed = {r.name for r in statics.required}
    through: list[tuple[Call, list[Added]]] = []
    for call, bound in statics.bound:
        made, added = pass_by_position(
            call, bound, function, last, needed=needed, every=every, star_count=max(star, 0)
        )
        through.append((call, added))
        if made and not call.own:
            raise Refused(
                "a call that must be rewritten may call another function, too",
                call.module,
                call.node,
            )
        if made and not call.module.editable:
            raise Refused(
                "a call that must be rewritten stands in a file that was not named: name it, too",
                call.module,
                call.node,
            )
        changes += made
    return [*changes, *spec_changes(project, through)]


def _has_default(statics: Statics, function: ast.AST) -> bool:
    assert isinstance(function, FunctionNode)
    names = {r.name for r in statics.required}
    return any(p.arg in names and default_of(function, p) is not None for p in parameters(function))


def _closure(
    project: Project,
    site: Site,
    statics: Statics,
    option: Option | None,
    notes: tuple[Note, ...],
    why: Refused,
) -> Plan:
    if statics.open_ended:
        return _closure_of_all(project, site, statics, option, notes, why)
    try:
        changes, closed = closing_changes(project, site, statics, option)
    except Refused as refused:
        if refused.module is None:
            raise why from refused
        raise Refused(
            f"{why.reason}; and it cannot be closed over: {refused.reason}",
            why.module or refused.module,
            why.node or refused.node,
        ) from refused
    names = ", ".join(f"`{r.name}`" for r in closed.required)
    if why.module is not None and isinstance(why.node, ast.expr):
        notes = (*notes, Note(why.module, why.node, why.reason))
    title = f"close over {names}" if names else "a new checkpointed function for each call"
    own = _holds(site, option)
    return Plan(site, title, (), tuple(changes), notes, own)


def _closure_of_all(
    project: Project,
    site: Site,
    statics: Statics,
    option: Option | None,
    notes: tuple[Note, ...],
    why: Refused,
) -> Plan:
    try:
        changes = closing_all_changes(project, site, statics, option)
    except Refused as refused:
        raise why from refused
    if why.module is not None and isinstance(why.node, ast.expr | ast.stmt | ast.arg):
        notes = (*notes, Note(why.module, why.node, why.label))
    own = _holds(site, option)
    return Plan(site, "close over all arguments", (), tuple(changes), notes, own)


def _holds(site: Site, option: Option | None) -> bool:
    """Whether an application that is written anew holds the option that goes."""
    if option is None or site.application is None:
        return True
    return any(node is option.call for node in ast.walk(site.application))


def _shared_indices(plans: list[Plan], option: Option) -> bool:
    """Whether one `static_argnums` in the place of the option serves all applications."""
    return len({plan.indices for plan in plans}) == 1


def at_application(
    project: Project, site: Site, indices: tuple[int, ...], named: bool
) -> list[Change]:
    """The changes that write `static_argnums` at an application; `named`: it has some already."""
    if not site.certain:
        raise Refused(
            "what is applied there is not always a checkpoint, and takes no `static_argnums`",
            site.module,
            site.reference,
        )
    if isinstance(site.application, ast.Call) or named:
        return static_argnums_changes(site, indices, None)
    assert site.application is not None
    partial = written(project, site.module, "functools.partial", site.application)
    code = Code.of(
        f"{partial.text}({{checkpoint}}, static_argnums={indices!r})", checkpoint=site.application
    )
    return [Replace(site.module, site.application, code), *partial.changes]
