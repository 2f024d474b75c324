"""The changes that close over arguments at an application, and the options that it keeps."""

from __future__ import annotations

import ast
from dataclasses import replace

from ...analysis import Project
from ...analysis.sites.site import Option, Site
from ...analysis.statics.mutated_state import changes_later
from ...analysis.statics.statics import Required, Statics
from ...analysis.values.bind import positional_parameters
from ...codemod.changes import Change
from ..checkpoint_code import CheckpointCode
from ..compile_time import hoist
from ..options import given_behind, literal_indices
from ..refusal import Refused, check_editable
from .closure import close_over
from .closure_of_call import close_over_all


def closing_changes(
    project: Project, site: Site, statics: Statics, option: Option | None
) -> tuple[list[Change], Statics]:
    """Return the changes that close over the required arguments, and the complete decision.

    Raises:
        Refused: closing over them would change the meaning.
    """
    _check(site)
    statics = _with_named(site, statics)
    checkpoint = _kept(site, option)
    hoisted = hoist(project, statics.computed)
    return [*close_over(project, site, statics, checkpoint), *hoisted], statics


def closing_all_changes(
    project: Project, site: Site, statics: Statics, option: Option | None
) -> list[Change]:
    """Return the changes that close over all arguments at an application.

    Raises:
        Refused: the form of the application does not allow it.
    """
    _check(site)
    changes = close_over_all(project, site, _kept(site, option))
    return [*changes, *hoist(project, statics.computed)]


def _check(site: Site) -> None:
    if not site.certain:
        raise Refused("it is not always a checkpoint", site.module, site.reference)
    assert site.application is not None
    check_editable(site.module, [site.application])


def _with_named(site: Site, statics: Statics) -> Statics:
    """Return a decision that includes the present `static_argnums`, whose indices change."""
    named, target = site.arguments.get("static_argnums"), statics.target
    if named is None or target is None:
        return statics
    if site.definition.counting == "method-without-self":
        shift = 1
    else:
        shift = target.skip if site.definition.counting == "function" else 0
    positional = positional_parameters(target.function.node)
    more = []
    for index in literal_indices(named):
        place = index + shift if index >= 0 else index
        if not -len(positional) <= place < len(positional):
            raise Refused("`static_argnums` is out of range", named.module, named.value)
        parameter = positional[place]
        if all(r.name != parameter.arg for r in statics.required):
            more.append(Required(parameter.arg, None, place))
    return replace(statics, required=(*statics.required, *more))


def _kept(site: Site, option: Option | None) -> CheckpointCode:
    """Return the checkpoint with the options that it keeps."""
    module = site.module
    call = site.application
    named = site.arguments.get("static_argnums")
    # One that a partial gives counts the arguments of another function.
    elsewhere = named is not None and named.call is not call
    if not isinstance(call, ast.Call):
        assert call is not None
        return CheckpointCode(module.segment(call), ("static_argnums=()",) if elsewhere else ())
    # The call that gives the options: the application, or a partial that is called at once.
    holder = call
    if isinstance(call.func, ast.Call) and call.func.args == [site.reference]:
        if not call.keywords and len(call.args) == 1:
            holder = call.func
    if option is not None and option.call is not holder and option.module is module:
        if any(inner is option.call for inner in ast.walk(call)):
            reason = "its options are unpacked from a dictionary here: write them as keywords"
            raise Refused(reason, module, option.call)
    through_partial = holder.args and holder.args[0] is site.reference
    head = holder.args[0] if through_partial else holder.func
    options = []
    for keyword in holder.keywords:
        if option is not None and keyword is option.keyword:
            continue
        if keyword.arg in (site.definition.subject, "static_argnums"):
            continue
        name = changes_later(module, keyword.value)
        if name is not None:
            reason = f"the option `{keyword.arg}` depends on `{name.id}`, which may change later"
            raise Refused(reason, module, name)
        options.append(module.segment(keyword))
    if elsewhere:
        spread = next((keyword for keyword in call.keywords if keyword.arg is None), None)
        if spread is not None:
            raise Refused("`static_argnums` is among the unpacked options", module, spread)
        options.append("static_argnums=()")
    behind = given_behind(option) if option is not None and option.call is holder else []
    by_position = option is not None and option.position is not None and option.call is holder
    if len(call.args) > (2 + len(behind) if by_position else 1):
        raise Refused("options are passed by position", module, call)
    for option_name, value in behind:
        text = module.segment(value)
        if isinstance(value, ast.NamedExpr):
            text = f"({text})"
        options.append(f"{option_name}={text}")
    return CheckpointCode(module.segment(head), tuple(options))
