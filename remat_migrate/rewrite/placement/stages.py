"""Moves a checkpoint from a whole function to its stages.

A checkpoint around a whole differentiated function saves no memory: the backward pass starts by
recomputing all of it. With one on each stage but the last, one stage's values are live at a time.
"""

from __future__ import annotations

import ast
from collections.abc import Collection

from ...analysis import Module, Project
from ...analysis.names.scopes import parameters
from ...analysis.sites.calls import Call
from ...analysis.sites.references import reference_to
from ...analysis.sites.site import Site
from ...analysis.statics.argument_kinds import kinds_of
from ...analysis.statics.mutated_state import changes_later
from ...analysis.values.bind import bind_call
from ...analysis.values.callees import Target, targets_of
from ...analysis.values.values import Class, Function, Instance
from ...codemod.changes import Change, Code, Replace
from ..arguments.calls import pass_by_position
from ..checkpoint_code import CheckpointCode
from ..flax_names import flax_name, is_flax_class, name_change, unnamed
from ..refusal import Refused
from .loop_bodies import wrap_body
from .staging import Stage, stages_of
from .unwrapping import remove_site
from .wrapping import is_array, wrap_call

_ADVICE = "make each stage a function of its arrays"


def move_to_stages(project: Project, site: Site, target: Function) -> list[Change]:
    """Return the changes that checkpoint the stages of a function but the last, in place of it.

    Args:
        project: the project.
        site: the application to remove.
        target: the function that it wraps, which is differentiated.

    Raises:
        Refused: the function has no stages, or one cannot be wrapped.
    """
    checkpoint = site.api if site.api in ("jax.checkpoint", "jax.remat") else "jax.checkpoint"
    options = _options(site)
    found = stages_of(project, target)
    chosen = _chosen(found)
    if not found:
        raise Refused(f"no stages could be told apart; {_ADVICE}", target.module, target.node)
    if not chosen and not any(stage.done for stage in found):
        raise Refused(f"only one stage could be told apart; {_ADVICE}", target.module, target.node)
    changes: list[Change] = []
    for stage in chosen:
        if options and stage.module is not site.module:
            reason = "a stage in another file needs its options"
            raise Refused(reason, site.module, site.reference)
        changes += _wrapped(project, stage, checkpoint, options)
    changes = list(dict.fromkeys(changes))
    replaced = [change.node for change in changes if isinstance(change, Replace)]
    if len(set(replaced)) < len(replaced):
        reason = "stages are nested in each other: assign the inner ones to names first"
        raise Refused(reason, site.module, site.reference)
    return [*changes, *remove_site(project, site)]


def _options(site: Site) -> list[str]:
    """Return the options that the stages need as well."""
    policy = site.arguments.get("policy")
    if site.spread:
        raise Refused("its options are unpacked, and cannot move", site.module, site.reference)
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
        reason = "its policy is a value that the stages cannot read"
        raise Refused(reason, policy.module, policy.value)
    return [f"policy={policy.module.segment(policy.value)}"]


def _chosen(found: list[Stage]) -> list[Stage]:
    """Return the stages that need a checkpoint: all but the last, each call once."""
    if found and not found[-1].looped:
        found = found[:-1]
    once = {stage.call: stage for stage in found}
    return [stage for stage in once.values() if not stage.done]


def _wrapped(project: Project, stage: Stage, checkpoint: str, options: list[str]) -> list[Change]:
    if stage.flax is not None:
        return _flax(project, stage, stage.flax, options)
    if stage.body is not None:
        if options:
            reason = "its policy would apply to the body of a loop"
            raise Refused(reason, stage.module, stage.call)
        return wrap_body(project, stage.module, stage.call, stage.body, checkpoint=checkpoint)
    return wrap_call(project, stage.module, stage.call, options, checkpoint=checkpoint)


def wrap_submodule(
    project: Project, module: Module, call: ast.Call, options: list[str]
) -> list[Change]:
    """Return the changes that wrap the class of a called Flax submodule in `nn.remat`.

    Raises:
        Refused: the call is of something else, or its instances are not found.
    """
    values = project.values(module, call.func)
    classes = [v.cls for v in values if isinstance(v, Instance) and is_flax_class(project, v.cls)]
    function = module.enclosing_function(call)
    if len(values) != 1 or not classes or not isinstance(classes[0], Class) or function is None:
        raise Refused("it does not call a Flax submodule of a known class", module, call)
    callees = tuple(t.function for v in values for t in targets_of(project.evaluator, v))
    holder = Function(module, function)
    stage = Stage(module, holder, call, None, False, classes[0], False, callees)
    return _flax(project, stage, classes[0], options)


def _flax(project: Project, stage: Stage, cls: Class, options: list[str]) -> list[Change]:
    """Return the changes that wrap the class of a submodule in `nn.remat`, with static flags."""
    module = stage.module
    static, changes = _static_arguments(project, stage)
    if static:
        options = [*options, f"static_argnums={tuple(static)!r}"]
    for call in _instances(project, stage, cls):
        reference = reference_to(module, project, "flax.linen.remat", call)
        code = CheckpointCode(reference.text, tuple(options)).around("{cls}")
        changes += [
            Replace(module, call.func, Code.of(code, cls=call.func)),
            *reference.changes,
            *_names(project, module, call, cls),
        ]
    return changes


def _instances(project: Project, stage: Stage, cls: Class) -> list[ast.Call]:
    """Return the calls that create the submodule."""
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
            f"no instance of `{cls.node.name}` is found: write `nn.remat({cls.node.name})` where"
            " it is created, and keep its name with `name=`",
            module,
            stage.call,
        )
    if isinstance(func, ast.Attribute):  # `self.attention = Attention()`
        own = [n for n in found if _attribute_of(module.parent(n)) == func.attr]
        return own or found
    return found


def _attribute_of(node: ast.AST | None) -> str | None:
    """Return the attribute that a statement assigns, if it is one."""
    match node:
        case ast.Assign(targets=[ast.Attribute(attr=name)]):
            return name
    return None


def _names(project: Project, module: Module, call: ast.Call, cls: Class) -> list[Change]:
    """Return the changes that name a submodule, and those whose numbers would change."""
    function = module.enclosing_function(call)
    if function is None or flax_name(project, module, call) is None:
        return []
    return [
        name_change(module, made.call, text)
        for made in unnamed(project, module, function)
        if made.name == cls.node.name and (text := flax_name(project, module, made.call))
    ]


def _static_arguments(project: Project, stage: Stage) -> tuple[list[int], list[Change]]:
    """Return the `static_argnums` of a submodule's call, where `self` is 0.

    Also returns the changes that pass static keyword arguments by position.
    """
    if not stage.callees:
        raise Refused("the called function is unknown", stage.module, stage.call)
    function = stage.callees[0]
    node, module, call = function.node, stage.module, stage.call
    bound = bind_call(node, call.args, call.keywords, 1)
    if bound.unclear or bound.wrong or bound.star or bound.double_star:
        raise Refused("its arguments are unknown", module, call)
    static: list[int] = []
    every = parameters(node)
    for index, parameter in enumerate(every):
        expr = bound.by_name.get(parameter.arg)
        if expr is None:
            continue
        if kinds_of(project).of(module, expr) == "python":
            static.append(index)
        elif not is_array(project, module, call, expr, [Target(function, stage.flax, skip=1)]):
            reason = f"`{parameter.arg}` would be traced, and may not be an array"
            raise Refused(reason, module, expr)
    if not static:
        return [], []
    if any(every[index] in node.args.kwonlyargs for index in static):
        raise Refused("a flag is keyword-only, and `nn.remat` ignores keywords", module, call)
    made = Call(module, call, stage.flax or function, skip=1)
    return static, pass_by_position(made, bound, function, max(static))
