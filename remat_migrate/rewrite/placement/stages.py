"""Moving a checkpoint from the whole function to its stages.

A checkpoint on all that is differentiated frees nothing: the backward pass begins by computing it
all again. On each stage but the last it leaves one stage's values alive at a time.
"""

from __future__ import annotations

import ast
from collections.abc import Collection

from ...analysis import Module, Project
from ...analysis.names.scopes import parameters
from ...analysis.sites.site import Site
from ...analysis.sites.uses import Call
from ...analysis.statics.mutated_names import changes_later
from ...analysis.values.bind import bind_call
from ...analysis.values.values import Class, Function
from ...codemod.changes import Change, Code, Replace
from ..arguments.calls import pass_by_position
from ..arguments.traced_arguments import Arrays
from ..flax_names import flax_name, is_flax_class, name_change, unnamed
from ..imports import written
from ..refusal import Refused
from .loop_bodies import wrap_body
from .staging import Stage, stages_of
from .unwrapping import remove_site
from .wrapping import wrap_call

_NO_STAGE = (
    "no stage can be seen that a checkpoint could go on: make each stage a function of its"
    " arrays, or choose a `policy=` (`remat-migrate measure --policies` compares them)"
)


def move_to_stages(
    project: Project, site: Site, target: Function, differentiated: Collection[str] = ()
) -> list[Change]:
    """Take a checkpoint off a whole function and put it on its stages but the last.

    Args:
        project: the project.
        site: the application to take off.
        target: the function that is wrapped there, and differentiated.
        differentiated: those of its parameters that a gradient is known to be taken of.

    Raises:
        Refused: no stage can be seen, or one cannot be wrapped.
    """
    checkpoint = site.api if site.api in ("jax.checkpoint", "jax.remat") else "jax.checkpoint"
    options = _options(site)
    found = stages_of(project, target)
    chosen = _chosen(found)
    if not found:
        raise Refused(_NO_STAGE, target.module, target.node)
    if not chosen and not any(stage.done for stage in found):
        raise Refused(
            f"there is one stage alone: {_NO_STAGE.partition(': ')[2]}", target.module, target.node
        )
    known = frozenset(p for p in parameters(target.node) if p.arg in differentiated)
    arrays = Arrays(project, known)
    changes: list[Change] = []
    for stage in chosen:
        if options and stage.module is not site.module:
            raise Refused(
                "its options would have to be written in another file", site.module, site.reference
            )
        changes += _wrapped(project, stage, checkpoint, options, arrays)
    changes = list(dict.fromkeys(changes))
    replaced = [change.node for change in changes if isinstance(change, Replace)]
    if len(set(replaced)) < len(replaced):
        raise Refused(
            "stages stand inside one another: give the inner ones names first",
            site.module,
            site.reference,
        )
    return [*changes, *remove_site(project, site)]


def _options(site: Site) -> list[str]:
    """The options that hold for the stages as well.

    Raises:
        Refused: they mean something else there.
    """
    policy = site.arguments.get("policy")
    if site.spread:
        raise Refused("its options are spread, and cannot be moved", site.module, site.reference)
    if policy is None:
        return []
    later = changes_later(policy.module, policy.value)
    local = [
        n
        for n in ast.walk(policy.value)
        if isinstance(n, ast.Name)
        and any(b.scope.parent is not None for b in policy.module.reaching(n))
    ]
    if later is not None or local or policy.module is not site.module:
        raise Refused(
            "its policy is made where the stages cannot see it", policy.module, policy.value
        )
    return [f"policy={policy.module.segment(policy.value)}"]


def _chosen(found: list[Stage]) -> list[Stage]:
    """All stages but the last, each call once, without those that have a checkpoint."""
    if found and not found[-1].looped:
        found = found[:-1]
    once = {stage.call: stage for stage in found}
    return [stage for stage in once.values() if not stage.done]


def _wrapped(
    project: Project, stage: Stage, checkpoint: str, options: list[str], arrays: Arrays
) -> list[Change]:
    if stage.flax is not None:
        return _flax(project, stage, stage.flax, options, arrays)
    if stage.body is not None:
        if options:
            raise Refused("its policy would go on the body of a loop", stage.module, stage.call)
        return wrap_body(project, stage.module, stage.call, stage.body, checkpoint=checkpoint)
    return wrap_call(
        project, stage.module, stage.call, options, checkpoint=checkpoint, arrays=arrays
    )


# -- Flax


def _flax(
    project: Project, stage: Stage, cls: Class, options: list[str], arrays: Arrays
) -> list[Change]:
    """`nn.remat` around the class of a submodule, names kept, flags static."""
    module = stage.module
    changes: list[Change] = []
    places = _static_places(arrays, stage, changes)
    given = "".join(f", {option}" for option in options)
    if places:
        given += f", static_argnums={tuple(places)!r}"
    for call in _makers(project, stage, cls):
        reference = written(project, module, "flax.linen.remat", call)
        code = Code.of(f"{reference.text}({{cls}}{given})", cls=call.func)
        changes += [
            Replace(module, call.func, code),
            *reference.changes,
            *_names(project, module, call, cls),
        ]
    return changes


def _makers(project: Project, stage: Stage, cls: Class) -> list[ast.Call]:
    """The calls that make the submodule.

    Raises:
        Refused: they cannot be seen.
    """
    module, func = stage.module, stage.call.func
    if isinstance(func, ast.Call):
        return [func]
    owner = module.enclosing_class(stage.function.node)
    nodes: Collection[ast.AST] = list(ast.walk(owner)) if owner is not None else ()
    found = [
        n for n in nodes if isinstance(n, ast.Call) and project.values(module, n.func) == {cls}
    ]
    if not found or not is_flax_class(project, Class(module, owner) if owner else None):
        raise Refused(
            f"where `{cls.node.name}` is made cannot be seen: write `nn.remat({cls.node.name})`"
            " there, and keep its name with `name=`",
            module,
            stage.call,
        )
    return found


def _names(project: Project, module: Module, call: ast.Call, cls: Class) -> list[Change]:
    """The `name=` of a submodule, and of those that would be counted anew without it."""
    text = flax_name(project, module, call)
    if text is None:
        return []
    function = module.enclosing_function(call)
    assert function is not None
    own = cls.node.name
    changes: list[Change] = [name_change(module, call, text)]
    for made in unnamed(project, module, function):
        if made.name == own and made.call is not call:
            other = flax_name(project, module, made.call)
            if other is not None:
                changes.append(name_change(module, made.call, other))
    return changes


def _static_places(arrays: Arrays, stage: Stage, changes: list[Change]) -> list[int]:
    """The `static_argnums` of a submodule's call; `self` is 0. Keywords are moved to positions.

    Raises:
        Refused: what an argument is cannot be told.
    """
    if not stage.callees:
        raise Refused("what is called cannot be seen", stage.module, stage.call)
    function = stage.callees[0]
    node, module, call = function.node, stage.module, stage.call
    bound = bind_call(node, call.args, call.keywords, 1)
    if bound.unclear or bound.wrong or bound.star or bound.double_star:
        raise Refused("which arguments it takes cannot be seen", module, call)
    static: list[int] = []
    names = [p.arg for p in parameters(node)]
    for name, expr in bound.by_name.items():
        kind = arrays.kind(module, expr)
        parameter = next(p for p in parameters(node) if p.arg == name)
        if kind == "unknown" and _is_array(arrays, function, parameter):
            kind = "array"
        if kind == "unknown":
            raise Refused(
                f"whether `{name}` is an array cannot be seen: it would be traced", module, expr
            )
        if kind == "python":
            static.append(names.index(name))
    if static:
        if any(
            p.arg in bound.by_name and names.index(p.arg) in static for p in node.args.kwonlyargs
        ):
            raise Refused(
                "a flag can only be passed by keyword, which `nn.remat` ignores", module, call
            )
        made = Call(module, call, stage.flax or function, skip=1)
        changes += pass_by_position(made, bound, function, max(static))[0]
    return sorted(static)


def _is_array(arrays: Arrays, function: Function, parameter: ast.arg) -> bool:
    return arrays.parameter(function.module, function.node, parameter) == "array"
