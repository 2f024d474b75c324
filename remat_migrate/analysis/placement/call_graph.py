"""The call graph below what is differentiated: which functions run inside a gradient.

Such a function need not be the one that is differentiated. Whether a loop lies between the two
decides what a checkpoint on it does.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from ...libraries.apis import SAME_CALL
from ...libraries.transforms import RULE_METHODS, Gradient
from ..names.expected_failures import in_test
from ..names.module import Module
from ..names.scopes import FunctionNode, own_nodes
from ..project import Project
from ..values.application import without_partials
from ..values.callees import targets_of
from ..values.values import (
    Applied,
    Bound,
    Class,
    External,
    Function,
    Parameter,
    Partial,
    Value,
    Wrapped,
    layers,
)
from .operations import Operations
from .transforms import LoopUse, derivatives_in, transforms_in


@dataclass(eq=False, slots=True)
class DifferentiatedFunctions:
    """The functions that run inside something differentiated.

    Attributes:
        outside_loops: those reached without a JAX loop in between.
        in_loops: those reached through one, or through what may be one: an unknown function that
            receives them.
    """

    outside_loops: set[FunctionNode] = field(default_factory=set)
    in_loops: set[FunctionNode] = field(default_factory=set)

    def __contains__(self, function: FunctionNode | None) -> bool:
        """Return whether a function runs inside something differentiated, as far as is known."""
        return function in self.outside_loops or function in self.in_loops

    def contains(self, module: Module, node: ast.AST) -> bool:
        """Return whether code runs inside something differentiated, as far as is known."""
        return any(function in self for function in _around(module, node))

    def only_outside_loops(self, module: Module, node: ast.AST) -> bool:
        """Return whether code runs inside something differentiated, and never in a loop of it."""
        around = list(_around(module, node))
        return any(f in self.outside_loops for f in around) and not any(
            f in self.in_loops for f in around
        )


def find_differentiated(project: Project, *, backward: bool = False) -> DifferentiatedFunctions:
    """Return what the derivatives in the project's modules run.

    With `backward`, only those in reverse mode whose memory matters: none in tests.
    """
    modules = set(project.modules.values())
    found = DifferentiatedFunctions()
    queue: list[tuple[Function, bool]] = []
    for module in list(modules):
        for derivative in derivatives_in(project, module):
            if backward and derivative.transform.mode == "forward":
                continue
            if backward and in_test(module, derivative.node):
                continue
            for value in project.once(Operations).run_by(derivative.functions):
                queue += ((function, False) for function in _run_by(project, value))
    while queue:
        function, in_loop = queue.pop()
        known = found.in_loops if in_loop else found.outside_loops
        if function.node in known or function.module not in modules:
            continue
        known.add(function.node)
        queue += ((setup, in_loop) for setup in _set_up_for(function))
        for inner, looped in _calls(project, function, found):
            queue.append((inner, in_loop or looped))
    return found


def _set_up_for(function: Function) -> Iterator[Function]:
    """Yield the `setup` of a Flax module, which runs before its methods."""
    cls = function.module.enclosing_class(function.node)
    for statement in cls.body if cls is not None else ():
        if isinstance(statement, ast.FunctionDef) and statement.name == "setup":
            yield Function(function.module, statement)


def _around(module: Module, node: ast.AST) -> Iterator[FunctionNode]:
    function = module.enclosing_function(node)
    while function is not None:
        yield function
        function = module.enclosing_function(function)


def _calls(
    project: Project, function: Function, found: DifferentiatedFunctions
) -> Iterator[tuple[Function, bool]]:
    """Yield the functions that a function calls or passes on, and whether as a loop body."""
    module, operations = function.module, project.once(Operations)
    for node in own_nodes(function.node):
        if not isinstance(node, ast.Call) or getattr(node.func, "attr", "") in RULE_METHODS:
            continue
        called = project.evaluator.values(module, node.func)
        # What is passed inside something differentiated is followed where it is passed.
        passed = any(isinstance(v, Parameter) and v.function in found for v in called)
        callees = operations.callees(module, node)
        for value in callees:
            if passed and not any(isinstance(layer, Bound) for layer in layers(value)):
                continue
            for inner in _run_by(project, value):
                yield inner, _is_looped(value)
        known = bool(callees) and all(_runs_once(project, value) for value in callees)
        yield from _passed_on(project, module, node, runs_once=known)


def _passed_on(
    project: Project, module: Module, call: ast.Call, *, runs_once: bool
) -> Iterator[tuple[Function, bool]]:
    """Yield the functions that a call passes on, and whether as a loop body."""
    for arg in (*call.args, *(keyword.value for keyword in call.keywords)):
        if not isinstance(arg, ast.Name | ast.Attribute | ast.Lambda | ast.Call):
            continue
        is_body = isinstance(transforms_in(project, module).get(arg), LoopUse)
        for value in project.evaluator.values(module, arg):
            if isinstance(value, Function | Applied | Wrapped | Partial | Bound):
                for inner in _run_by(project, value):
                    yield inner, is_body or not runs_once or _is_looped(value)


def _runs_once(project: Project, value: Value) -> bool:
    """Return whether a function passed to a value runs outside of any loop: `jax.jit`, a
    gradient.
    """
    value = without_partials(value)
    if not isinstance(value, External):
        return False
    if value.name == "functools.partial" or project.apis.find(value.name) is not None:
        return True
    if isinstance(project.evaluator.transforms.find(value.name), Gradient):
        return True
    return value.name in SAME_CALL and not value.name.endswith(".scan")


def _is_looped(value: Value) -> bool:
    """Return whether a value runs its function in a loop: `nn.scan(Block)`, or an instance of
    it.
    """
    return any(
        isinstance(layer, Wrapped) and layer.how.endswith(".scan") for layer in layers(value)
    )


def _run_by(project: Project, value: Value) -> Iterator[Function]:
    if isinstance(value, Class):
        return  # calling a class makes an instance
    if any(isinstance(one, Wrapped) and one.how.endswith("custom_vjp") for one in layers(value)):
        return  # its rule runs in its place
    for target in targets_of(project.evaluator, value):
        yield target.function
