"""Where checkpoints are: what is differentiated, what runs in loops, and how functions are used.

A function that runs inside a gradient need not be the one that is differentiated. Whether a loop
lies between the two decides what a checkpoint on it does.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from ...libraries.apis import SAME_CALL
from ...libraries.transforms import RULE_METHODS, Gradient
from ..names.expected_failures import in_test
from ..names.module import Module
from ..names.scopes import FunctionNode, own_nodes
from ..project import Project
from ..sites.calls import Call, uses_of, words_of
from ..sites.find_sites import sites_in, wrapped_by
from ..sites.site import Site, decorates
from ..values.bind import without_partials
from ..values.callees import targets_of
from ..values.evaluator import Evaluator
from ..values.values import (
    APPLY,
    Applied,
    Bound,
    Class,
    External,
    Function,
    Instance,
    Parameter,
    Partial,
    Value,
    Wrapped,
    is_transformed,
    layers,
)
from .operations import Operations
from .transforms import (
    Derivative,
    LoopUse,
    derivatives_in,
    in_derivative_rule,
    loops_in,
    transforms_in,
)


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


How = Literal["body", "called", "differentiated", "elsewhere", "exported"]


@dataclass(frozen=True, eq=False, slots=True)
class Occurrence:
    """One place where a function is used.

    Attributes:
        how: it is the body of a loop, it is called, it is differentiated, it escapes ("elsewhere"),
            or other files may import it ("exported").
        module: the module.
        node: the expression that denotes the function there; for a call, the call.
        loop: the loop whose body it is.
        derivative: what differentiates it.
    """

    how: How
    module: Module
    node: ast.AST
    loop: LoopUse | None = None
    derivative: Derivative | None = None


def find_occurrences(project: Project, origin: Site | Function) -> Iterator[Occurrence]:
    """Yield what happens to what a site makes, or to a function, in the project's modules.

    What a loop or a gradient makes of it is another function, whose uses are not its own.
    """
    uses = uses_of(project, origin, loaded=True)
    places = [place for place in uses.places if not _denotes_transformed(project, *place)]
    transformed: set[ast.AST] = set()
    above = _decorators_above(origin)
    for module, node in (*((origin.module, decorator) for decorator in above), *places):
        match transforms_in(project, module).get(node):
            case LoopUse() as loop:
                yield Occurrence("body", module, node, loop=loop)
            case Derivative() as derivative:
                yield Occurrence("differentiated", module, node, derivative=derivative)
            case _:
                continue
        transformed.add(node)
    named: list[tuple[Module, ast.AST]] = [*places]
    if (definition := _definition(origin)) is not None and not transformed.intersection(above):
        named.append((origin.module, definition))
    for module, place in named:
        if any(_is_public(word) for word, is_local in words_of(module, place) if not is_local):
            yield Occurrence("exported", module, place)
    for call in uses.calls:
        if not (_is_transformed(project, call.callee) or _only_initializes(project, call)):
            if call.through:
                transformed.add(call.node.args[0])
            else:
                yield Occurrence("called", call.module, call.node)
    for escape in uses.escapes:
        module, place = escape.module, escape.node
        match module.parent(place):
            case ast.Call() as outer if any(map(is_transformed, project.values(module, outer))):
                continue  # `haiku.transform(f)`, whose `apply` runs the function
        if place not in transformed and not _denotes_transformed(project, module, place):
            for_state = getattr(module.parent(place), "arg", None) == "apply_fn"
            yield Occurrence("exported" if for_state else "elsewhere", module, place)


def _is_public(word: str) -> bool:
    name = word.lstrip(".")
    return not name.startswith("_") or name.endswith("__")


def _definition(origin: Site | Function) -> ast.AST | None:
    """Return the definition whose name denotes a function, or what a site makes of it."""
    if isinstance(origin, Function):
        return origin.node
    assert origin.application is not None
    holder = origin.module.parent(origin.application)
    return holder if decorates(origin.module, origin.application) else None


def _decorators_above(origin: Site | Function) -> Sequence[ast.expr]:
    """Return the decorators above a site, or those of a function, from below."""
    above: list[ast.expr] = getattr(_definition(origin), "decorator_list", [])
    if isinstance(origin, Site) and origin.application in above:
        above = above[: above.index(origin.application)]
    return above[::-1]


def _denotes_transformed(project: Project, module: Module, node: ast.AST) -> bool:
    values = project.values(module, node) if isinstance(node, ast.expr) else ()
    return any(_is_transformed(project, value) for value in values)


def _is_transformed(project: Project, value: Value) -> bool:
    """Return whether a value is what a loop or a gradient makes of a function."""
    value = value.cls if isinstance(value, Instance) else value
    find = project.evaluator.transforms.find
    return any(isinstance(one, Wrapped) and find(one.how) is not None for one in layers(value))


def _only_initializes(project: Project, call: Call) -> bool:
    """Return whether a call only makes parameters: `model.init(...)`, or any in `if
    hk.running_init():`.
    """
    module, node = call.module, call.node
    if call.first and getattr(node.func, "attr", "apply") in APPLY - {"apply"}:
        return True
    child: ast.AST = node
    for around in module.ancestors(node):
        if isinstance(around, FunctionNode):
            return False
        match around:
            case ast.If(test=ast.Call(func=func), body=body) if child in body:
                if External("haiku.running_init") in project.values(module, func):
                    return True
        child = around
    return False


# How many functions may lie between a checkpoint and the loop that runs it.
_DEPTH = 4


def placement_of(project: Project) -> Placement:
    """Return what is differentiated and what runs in loops in a project."""
    return project.once(Placement)


class Placement:
    """What is differentiated and what runs in loops, and where functions are used."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.operations = project.once(Operations)
        self._occurrences: dict[Site | Function, tuple[Occurrence, ...]] = {}

    @property
    def evaluator(self) -> Evaluator:
        """The evaluator of the project."""
        return self.project.evaluator

    @cached_property
    def differentiated(self) -> DifferentiatedFunctions:
        """The functions that run inside something differentiated."""
        return find_differentiated(self.project)

    @cached_property
    def differentiated_backward(self) -> DifferentiatedFunctions:
        """The functions that run inside something that is differentiated in reverse mode."""
        return find_differentiated(self.project, backward=True)

    def occurrences(self, origin: Site | Function) -> tuple[Occurrence, ...]:
        """Return what happens to a function, or to what a site makes, in the project.

        Nothing does if the site only names its Api.
        """
        if isinstance(origin, Site) and origin.application is None:
            return ()
        if origin not in self._occurrences:
            self._occurrences[origin] = tuple(find_occurrences(self.project, origin))
        return self._occurrences[origin]

    @cached_property
    def transformed(self) -> dict[ast.AST, list[LoopUse | Derivative]]:
        """The loops and gradients of each class, and of each function that another one makes, by
        the class and the place that makes the function.
        """
        found: dict[ast.AST, list[LoopUse | Derivative]] = {}
        for module in self.project.modules.values():
            for use in transforms_in(self.project, module).values():
                for layer in (layer for value in use.functions for layer in layers(value)):
                    if isinstance(layer, Wrapped | Class):
                        found.setdefault(layer.node, []).append(use)
        return found

    def loops_of(self, occurrence: Occurrence, depth: int = 0) -> tuple[LoopUse, ...]:
        """Return the loops that run a function where it occurs; none if something else also runs
        it.

        The function is the loop body, or is called by a function that only runs in loops.
        """
        if occurrence.loop is not None:
            return (occurrence.loop,)
        if occurrence.how != "called" or depth > _DEPTH:
            return ()
        module = occurrence.module
        around = module.enclosing_function(occurrence.node)
        if around is None:
            return ()
        found: list[LoopUse] = []
        for outer in self.occurrences(Function(module, around)):
            loops = self.loops_of(outer, depth + 1)
            if not loops:
                return ()
            found += loops
        return tuple(found)


_CHECKPOINT_WORDS = ("remat", "checkpoint", "ckpt")


def differentiated_loops(placement: Placement, module: Module) -> Iterator[LoopUse]:
    """Yield the loops of a module that are surely differentiated in reverse mode, but for those in
    tests and in custom derivative rules.
    """
    for loop in loops_in(placement.project, module):
        # Looking for derivatives in the whole project comes last.
        if (
            loop.certain
            and not in_test(module, loop.node)
            and not in_derivative_rule(placement.project, module, loop.node)
            and placement.differentiated_backward.contains(module, loop.node)
        ):
            yield loop


def has_heavy_body(placement: Placement, loop: LoopUse) -> bool:
    """Return whether every body of a loop surely multiplies matrices, where it is differentiated.

    Bodies that run or mention a checkpoint have what they need.
    """
    operations, differentiated = placement.operations, placement.differentiated_backward
    bodies = operations.run_by(loop.functions)
    if loop.transform.own_checkpoints or not bodies or not _is_known(placement, loop):
        return False
    for body in bodies:
        inside = list(operations.of_value(body))
        if any(operation.checkpoint is not None for operation in inside):
            return False
        if not any(o.kind == "product" and o.function in differentiated for o in inside):
            return False
        for target in targets_of(placement.evaluator, body):
            if _mentions_checkpoint(placement.project, target.function):
                return False
    return True


def _is_known(placement: Placement, loop: LoopUse) -> bool:
    """Return whether a body is known on every path: not after `if wrap: body = wrap(body)`."""
    module, body = loop.module, loop.subject
    bindings = module.reaching(body) if isinstance(body, ast.Name) else ()
    return all(placement.evaluator.binding(module, binding) for binding in bindings)


def _mentions_checkpoint(project: Project, function: Function) -> bool:
    module = function.module
    sites = sites_in(project, module)
    if any(around is function.node for s in sites for around in module.ancestors(s.reference)):
        return True
    # `remat_ffn(x)`, where a caller says which
    called = (node.func for node in own_nodes(function.node) if isinstance(node, ast.Call))
    names = (getattr(func, "attr", getattr(func, "id", "")).lower() for func in called)
    return any(word in name for name in names for word in _CHECKPOINT_WORDS)


def in_checkpoint(placement: Placement, module: Module, node: ast.AST) -> bool:
    """Return whether code is in a function that a checkpoint of its module wraps."""
    wrapped = {
        target.function.node
        for site in sites_in(placement.project, module)
        if site.application is not None
        for value in wrapped_by(placement.project, site)
        for target in targets_of(placement.evaluator, value)
    }
    return any(around in wrapped for around in module.ancestors(node))
