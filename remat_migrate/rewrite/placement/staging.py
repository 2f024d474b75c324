"""The stages of a differentiated function: the calls that a checkpoint could wrap, in order.

A stage is a call of a project function with expensive operations such as matrix products, the body
of a loop, or a Flax submodule. A function that contains a loop of stages is split; any other is one
stage. A function that is a single product is none: a checkpoint of it drops nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ...analysis import Module, Project
from ...analysis.names.scopes import FunctionNode
from ...analysis.placement.nested_checkpoints import only_checkpoint
from ...analysis.placement.operations import Operations
from ...analysis.values.callees import (
    body_positions,
    layers,
    targets_of,
    underlying,
)
from ...analysis.values.values import Applied, Class, External, Function, Value

_LOOPS = frozenset({"jax.lax.scan", "jax.lax.map", "jax.lax.fori_loop", "haiku.scan"})
_DEPTH = 8


@dataclass(frozen=True, eq=False, slots=True)
class Stage:
    """A call that is one stage, or that runs many.

    Attributes:
        module: the module of the call.
        function: the function whose body contains the call.
        call: the call.
        body: the body of the loop, if the call is a JAX loop.
        looped: whether it runs many times: in a Python loop, or as a body.
        done: whether it is checkpointed already.
        callees: the functions that it calls.
    """

    module: Module
    function: Function
    call: ast.Call
    body: ast.expr | None
    looped: bool
    done: bool
    callees: tuple[Function, ...]


def stages_of(project: Project, function: Function) -> list[Stage]:
    """Return the stages of a function in the order in which they run.

    A single stage that is not a loop is split into its own stages.
    """
    return _Search(project).expanded(function, frozenset())


class _Search:
    def __init__(self, project: Project) -> None:
        self.project = project
        self.operations = project.once(Operations)

    def expanded(self, function: Function, around: frozenset[FunctionNode]) -> list[Stage]:
        """Return the stages of a function, with functions that contain loops split."""
        if function.node in around or len(around) > _DEPTH:
            return []
        around |= {function.node}
        own = list(self._stages(function))
        if not own and not self.is_heavy(function):
            own = list(self._stages(function, light=True))
        found: list[Stage] = []
        for stage in own:
            inner: list[Stage] = []
            if not stage.looped and not stage.done:
                for callee in stage.callees:
                    inner += self.expanded(callee, around)
            if inner and (len(own) == 1 or any(one.looped for one in inner)):
                found += inner
            else:
                found.append(stage)
        return found

    def _stages(self, function: Function, light: bool = False) -> Iterator[Stage]:
        for call, looped in calls_in_order(self.project, function):
            stage = self._stage(function, call, looped, light)
            if stage is not None:
                yield stage

    def _stage(self, function: Function, call: ast.Call, looped: bool, light: bool) -> Stage | None:
        module, project = function.module, self.project
        # Calling a class creates an instance, and computes nothing.
        made = project.values(module, call.func)
        values = frozenset(v for v in made if not isinstance(underlying(v), Class))
        if any(isinstance(v, External) and v.name in _LOOPS for v in values):
            place = body_positions(project.evaluator, module, call)[0]
            if place >= len(call.args):
                return None
            body = call.args[place]
            bodies = project.values(module, body)
            if not light and not any(self._runs_heavy(v) for v in bodies):
                return None
            done = any(_is_done(project, v) for v in bodies)
            return Stage(module, function, call, body, True, done, ())
        runs = self.operations.run_by(values)
        callees = [t.function for v in runs for t in targets_of(project.evaluator, v)]
        if not callees or not any(
            self.is_heavy(c) or (light and _computes(project, c)) for c in callees
        ):
            return None
        done = any(_is_done(project, v) for v in values)
        if not done and all(_is_one_product(project, c) for c in callees):
            return None
        return Stage(module, function, call, None, looped, done, tuple(callees))

    def _runs_heavy(self, value: Value) -> bool:
        return any(o.kind == "product" for o in self.operations.of_value(value))

    def is_heavy(self, function: Function) -> bool:
        """Return whether a function, or one that it calls, has expensive operations."""
        return any(o.kind == "product" for o in self.operations.of(function))


def _is_one_product(project: Project, function: Function) -> bool:
    """Return whether a checkpoint of a function drops nothing: it keeps only its arguments."""
    operations = project.once(Operations).of(function)
    return [(o.kind, o.weight) for o in operations if o.kind != "broadcast"] == [("product", 1)]


def _computes(project: Project, function: Function) -> bool:
    return any(
        isinstance(value, External) and value.name.startswith(("jax.numpy.", "jax.nn.", "jax.lax."))
        for node in ast.walk(function.node)
        if isinstance(node, ast.Call)
        for value in project.values(function.module, node.func)
    )


def _is_done(project: Project, value: Value) -> bool:
    """Return whether a value is a checkpoint, or only calls one."""
    found = list(layers(value))
    if any(isinstance(layer, Applied) for layer in found):
        return True
    return any(
        only_checkpoint(project.once(Operations), inner) is not None
        for inner in project.once(Operations).run_by(found[-1:])
    )


def calls_in_order(project: Project, function: Function) -> Iterator[tuple[ast.Call, bool]]:
    """Yield the calls in a function's body in order of evaluation, and whether a loop repeats each.

    Calls in nested functions are left out, except in a lambda that `functools.reduce` calls.
    """
    node = function.node
    body = [node.body] if isinstance(node, ast.Lambda) else node.body
    yield from _calls(project, function.module, body, False)


def _calls(
    project: Project, module: Module, nodes: Iterable[ast.AST], looped: bool
) -> Iterator[tuple[ast.Call, bool]]:
    for node in nodes:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() | ast.Lambda():
                continue
            case ast.For() | ast.AsyncFor():
                yield from _calls(project, module, [node.iter], looped)
                yield from _calls(project, module, node.body, True)
                yield from _calls(project, module, node.orelse, looped)
            case ast.While():
                yield from _calls(project, module, [node.test, *node.body], True)
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                yield from _calls(project, module, ast.iter_child_nodes(node), True)
            case ast.Call():
                inner = [node.func, *node.args, *(k.value for k in node.keywords)]
                if External("functools.reduce") in project.values(module, node.func):
                    for arg in node.args[:1]:
                        if isinstance(arg, ast.Lambda):
                            yield from _calls(project, module, [arg.body], True)
                yield from _calls(project, module, inner, looped)
                yield node, looped
            case _:
                yield from _calls(project, module, ast.iter_child_nodes(node), looped)
