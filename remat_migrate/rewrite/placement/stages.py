"""Moves a checkpoint from a whole function to its stages.

A checkpoint around a whole differentiated function saves no memory: the backward pass starts by
recomputing all of it. With one on each stage but the last, one stage's values are live at a time.

A stage is a call of a project function with expensive operations such as matrix products, the body
of a loop, or a Flax submodule. A function that contains a loop of stages is split; any other is one
stage. A function that is a single product is none: a checkpoint of it drops nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from ...analysis import Module, Project
from ...analysis.names.module import FunctionNode, own_nodes
from ...analysis.placement.operations import Operation, Operations
from ...analysis.placement.placement import only_checkpoint, python_loop, wraps_policy
from ...analysis.sites.site import Site
from ...analysis.values.evaluator import bodies_of, targets_of
from ...analysis.values.values import Applied, Class, External, Function, Value, layers, underlying
from ...codemod.changes import Change, Replace
from ..refusal import Refused
from .loop_bodies import wrap_body
from .unwrapping import remove_site
from .wrapping import wrap_call

_ADVICE = "make each stage a function of its arrays"
_LOOPS = frozenset({"jax.lax.scan", "jax.lax.map", "jax.lax.fori_loop", "haiku.scan"})
_DEPTH = 8


@dataclass(frozen=True, eq=False, slots=True)
class Stage:
    """A call that is one stage, or that runs many.

    Attributes:
        module: the module of the call.
        call: the call.
        body: the body of the loop, if the call is a JAX loop.
        looped: whether it runs many times: in a Python loop, or as a body.
        done: whether it is checkpointed already.
        callees: the functions that it calls.
    """

    module: Module
    call: ast.Call
    body: ast.expr | None
    looped: bool
    done: bool
    callees: tuple[Function, ...]


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
    if wraps_policy(site):
        raise Refused("each stage would need its policy", site.module, site.reference)
    found = stages_of(project, target)
    before_last = found if found and found[-1].looped else found[:-1]
    chosen = {stage.call: stage for stage in before_last if not stage.done}
    if not found:
        raise Refused(f"no stages could be told apart; {_ADVICE}", target.module, target.node)
    if not chosen and not any(stage.done for stage in found):
        raise Refused(f"only one stage could be told apart; {_ADVICE}", target.module, target.node)
    changes: list[Change] = []
    for stage in chosen.values():
        if stage.body is not None:
            changes += wrap_body(
                project, stage.module, stage.call, stage.body, checkpoint=checkpoint
            )
        else:
            changes += wrap_call(project, stage.module, stage.call, checkpoint=checkpoint)
    changes = list(dict.fromkeys(changes))
    replaced = [change.node for change in changes if isinstance(change, Replace)]
    if len(set(replaced)) < len(replaced):
        reason = "stages are nested in each other: assign the inner ones to names first"
        raise Refused(reason, site.module, site.reference)
    return [*changes, *remove_site(project, site)]


def stages_of(
    project: Project, function: Function, around: frozenset[FunctionNode] = frozenset()
) -> list[Stage]:
    """Return the stages of a function in the order in which they run.

    A single stage that is not a loop is split into its own stages, as are functions that contain
    loops. `around` are the functions that are split already.
    """
    if function.node in around or len(around) > _DEPTH:
        return []
    around |= {function.node}
    calls = _calls_in_order(project, function)
    own = [stage for call in calls if (stage := _stage(project, function.module, *call))]
    found: list[Stage] = []
    for stage in own:
        inner: list[Stage] = []
        if not stage.looped and not stage.done:
            for callee in stage.callees:
                inner += stages_of(project, callee, around)
        if inner and (len(own) == 1 or any(one.looped for one in inner)):
            found += inner
        else:
            found.append(stage)
    return found


def _stage(project: Project, module: Module, call: ast.Call, looped: bool) -> Stage | None:
    """Return the stage that a call is."""
    operations = project.once(Operations)
    # Calling a class creates an instance, and computes nothing.
    made = project.values(module, call.func)
    values = frozenset(v for v in made if not isinstance(underlying(v), Class))
    if any(isinstance(v, External) and v.name in _LOOPS for v in values):
        passed = bodies_of(project.evaluator, module, call)
        if not passed:
            return None
        body = passed[0]
        bodies = project.values(module, body)
        if not any(_is_heavy(operations.of_value(v)) for v in bodies):
            return None
        return Stage(module, call, body, True, any(_is_done(project, v) for v in bodies), ())
    runs = operations.run_by(values)
    callees = [t.function for v in runs for t in targets_of(project.evaluator, v)]
    if not any(_is_heavy(operations.of(callee)) for callee in callees):
        return None
    done = any(_is_done(project, v) for v in values)
    if not done and all(_is_one_product(operations.of(callee)) for callee in callees):
        return None
    return Stage(module, call, None, looped, done, tuple(callees))


def _is_heavy(operations: Iterable[Operation]) -> bool:
    return any(operation.kind == "product" for operation in operations)


def _is_one_product(operations: Iterable[Operation]) -> bool:
    """Return whether a checkpoint of a function drops nothing: it keeps only its arguments."""
    return [(o.kind, o.weight) for o in operations if o.kind != "broadcast"] == [("product", 1)]


def _is_done(project: Project, value: Value) -> bool:
    """Return whether a value is a checkpoint, or only calls one."""
    found = list(layers(value))
    if any(isinstance(layer, Applied) for layer in found):
        return True
    operations = project.once(Operations)
    runs = operations.run_by(found[-1:])
    return any(only_checkpoint(operations, inner) is not None for inner in runs)


def _calls_in_order(project: Project, function: Function) -> list[tuple[ast.Call, bool]]:
    """Return the calls in a function's body in order of evaluation, and whether a loop repeats
    each.

    Calls in nested functions are left out, except in a lambda that `functools.reduce` calls.
    """
    module = function.module
    calls: list[tuple[ast.Call, bool]] = []
    holders: list[FunctionNode] = [function.node]
    for holder in holders:
        for node in own_nodes(holder):
            if isinstance(node, ast.Call):
                looped = holder is not function.node or python_loop(module, node) is not None
                calls.append((node, looped))
                if External("functools.reduce") in project.values(module, node.func):
                    holders += [arg for arg in node.args[:1] if isinstance(arg, ast.Lambda)]
    return sorted(calls, key=lambda one: (one[0].end_lineno or 0, one[0].end_col_offset or 0))
