"""What happens to a function: it is called, differentiated, run in a loop, or passed on."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ...libraries.apis import SAME_CALL
from ..names.mentions import find_mentions, reads_of
from ..names.module import Module
from ..names.scopes import Definition, FunctionNode
from ..project import Project
from ..sites.forms import decorates
from ..sites.passed_arguments import called_function
from ..values.application import api_of, without_partials
from ..values.bind import bind_call
from ..values.haiku_transforms import APPLY, is_transformed, makes_pair
from ..values.values import External, Function, Instance, Parameter, Partial, alternatives
from .transforms import Derivative, LoopUse, Transforms

# Methods of a Flax module that run it.
_MODEL_METHODS = APPLY | {"tabulate"}
# Functions that only inspect the function that they receive.
_INSPECTING_FUNCTIONS = frozenset(
    {
        "functools.wraps", "functools.update_wrapper", "builtins.callable", "builtins.isinstance",
        "builtins.getattr", "builtins.hasattr", "builtins.repr", "builtins.print", "builtins.id",
        "inspect.signature", "inspect.getfullargspec", "inspect.unwrap",
    }
)  # fmt: skip

# Names that a function is given one after the other; beyond, its uses are not known.
_MOST_NAMES = 50

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
        via: the calls of the project's functions whose arguments it was, and those that made these
            functions.
    """

    how: How
    module: Module
    node: ast.AST
    loop: LoopUse | None = None
    derivative: Derivative | None = None
    via: frozenset[ast.Call] = frozenset()

    @property
    def passed(self) -> bool:
        """Whether it arrived as an argument of one of the project's functions."""
        return bool(self.via)


def find_occurrences(project: Project, module: Module, function: ast.AST) -> Iterator[Occurrence]:
    """Yield what happens to the function that an expression, definition, or decorator makes.

    It is followed through names, attributes, `jax.jit`, partials, and the parameters of the
    project's functions that receive it.
    """
    tracker = _Tracker(project)
    holder = module.parent(function)
    if isinstance(function, Definition):
        yield from tracker.decorated(module, function, function.decorator_list)
    elif isinstance(function, ast.expr):
        if isinstance(holder, Definition) and decorates(module, function):
            above = holder.decorator_list[: holder.decorator_list.index(function)]
            yield from tracker.decorated(module, holder, above)
        else:
            yield from tracker.follow(module, function)


class _Tracker:
    def __init__(self, project: Project) -> None:
        self.project = project
        self.evaluator = project.evaluator
        self.transforms = project.once(Transforms)
        self.seen: set[ast.AST] = set()
        self.depth = 0

    def decorated(
        self, module: Module, holder: Definition, above: Sequence[ast.expr]
    ) -> Iterator[Occurrence]:
        """Follow a definition that has decorators above the function that is followed."""
        for outer in reversed(above):
            transformed = self._transformed(module, outer)
            if transformed is not None:
                yield transformed  # the name stands for the derivative from here on
                return
        yield from self._named(module, holder.name, holder, holder)

    def follow(self, module: Module, node: ast.expr) -> Iterator[Occurrence]:
        """Follow the value of an expression that denotes the function."""
        if node in self.seen:
            return
        self.seen.add(node)
        applied = self._transformed(module, node)
        if applied is not None:
            yield applied
            return
        match holder := module.argument_holder(node):
            case ast.IfExp() | ast.BoolOp() | ast.NamedExpr() if node in alternatives(holder):
                yield from self.follow(module, holder)
            case ast.Call():
                yield from self._in_call(module, node, holder)
            case ast.Attribute(attr=attr) if attr in _MODEL_METHODS and self._is_model(
                module, node
            ):
                # All but `apply` are called once, to initialize the parameters.
                call = module.parent(holder)
                if attr == "apply" and isinstance(call, ast.Call) and call.func is holder:
                    yield Occurrence("called", module, call)
            case ast.Assign(targets=[target]) | ast.AnnAssign(target=target):
                yield from self._assigned(module, target, holder)
            case ast.Return():
                yield from self._returned(module, holder)
            case _ if not isinstance(holder, ast.Expr) and not self._is_inspected(module, node):
                yield Occurrence("elsewhere", module, node)

    def _in_call(self, module: Module, node: ast.expr, call: ast.Call) -> Iterator[Occurrence]:
        """Follow an expression that a call calls, or passes on."""
        if call.func is node:
            if self._makes_instance(module, call):
                yield from self.follow(module, call)
            elif not self._at_initialization(module, call):
                yield Occurrence("called", module, call)
        elif self._is_same_call(module, call, node):
            yield from self.follow(module, call)
        elif getattr(module.parent(node), "arg", None) == "apply_fn":
            yield Occurrence("exported", module, node)  # to what a training state calls
        elif targets := self._parameters(module, call, node):
            via = _with_makers(module, call)
            loads = ((f.module, load) for f, name in targets for load in _loads(f, name))
            for found in itertools.chain.from_iterable(itertools.starmap(self.follow, loads)):
                yield replace(found, via=found.via | via)
        elif not self._is_inspected(module, node):
            yield Occurrence("elsewhere", module, node)

    def _returned(self, module: Module, statement: ast.Return) -> Iterator[Occurrence]:
        """Follow what the calls of a function return: `loss = make_loss(model)`."""
        around = module.enclosing_function(statement)
        if not isinstance(around, ast.FunctionDef) or around in self.seen:
            yield Occurrence("elsewhere", module, statement)
            return
        self.seen.add(around)
        for found in self.decorated(module, around, around.decorator_list):
            if found.how == "called" and isinstance(found.node, ast.Call):
                for made in self.follow(found.module, found.node):
                    yield replace(made, via=made.via | {found.node})
            else:
                yield found

    def _transformed(self, module: Module, node: ast.expr) -> Occurrence | None:
        match self.transforms.transformed_at(module, node):
            case LoopUse() as loop:
                return Occurrence("body", module, node, loop=loop)
            case Derivative() as derivative:
                return Occurrence("differentiated", module, node, derivative=derivative)
        return None

    def _makes_instance(self, module: Module, call: ast.Call) -> bool:
        """Return whether this calls a class, so that the checkpoint is on its instances."""
        values = self.evaluator.values(module, call)
        if any(isinstance(v, Function) for v in self.evaluator.values(module, call.func)):
            return False  # a function that returns one
        return bool(values) and all(isinstance(v, Instance) for v in values)

    def _at_initialization(self, module: Module, node: ast.AST) -> bool:
        """Return whether code only runs to initialize parameters: under `if hk.running_init():`."""
        child = node
        for around in module.ancestors(node):
            if isinstance(around, FunctionNode):
                return False
            match around:
                case ast.If(test=ast.Call(func=func), body=body) if child in body:
                    if External("haiku.running_init") in self.evaluator.values(module, func):
                        return True
            child = around
        return False

    def _is_model(self, module: Module, node: ast.expr) -> bool:
        """Return whether an expression is an instance, or a parameter that receives one."""
        values = self.evaluator.values(module, node)
        return any(isinstance(v, Instance | Parameter) for v in values)

    def _is_same_call(self, module: Module, call: ast.Call, node: ast.expr) -> bool:
        """Return whether a call returns the same function: jitted, or with arguments bound."""
        if call.args[:1] != [node]:
            return False
        for value in self.evaluator.values(module, call.func):
            if api_of(self.project.apis, value) is not None:
                return True
            match without_partials(value):
                case External(name) if name == "functools.partial" or name in SAME_CALL:
                    return True
                case External(name) if makes_pair(name):
                    return True  # its `apply` runs the function
        return False

    def _is_inspected(self, module: Module, node: ast.expr) -> bool:
        """Return whether a function is only compared or inspected here."""
        match holder := module.parent(node):
            case ast.Compare(ops=[ast.Is() | ast.IsNot()]) | ast.If() | ast.UnaryOp():
                return True
            case ast.IfExp(test=test):
                return test is node
            case ast.Attribute(attr=attr):
                return attr.startswith("__") and attr != "__call__"
            case ast.Call() if holder.func is not node:
                values = self.evaluator.values(module, holder.func)
                return bool(values) and all(
                    isinstance(v, External) and v.name in _INSPECTING_FUNCTIONS for v in values
                )
        return False

    def _parameters(
        self, module: Module, call: ast.Call, node: ast.expr
    ) -> list[tuple[Function, str]] | None:
        """Return the parameters that receive an argument; None if some are unknown."""
        found: list[tuple[Function, str]] = []
        values = self.evaluator.values(module, call.func)
        for value in values:
            args = call.args
            if isinstance(value, Partial) and value.by_functools:
                args, value = [*value.call.args[1:], *args], value.func
            for function, skip in called_function(self.evaluator, value):
                bound = bind_call(function.node, args, call.keywords, skip)
                names = [name for name, given in bound.by_name.items() if given is node]
                if bound.unclear or not names:
                    return None
                found.append((function, names[0]))
        return found if found and len(found) == len(values) else None

    def _assigned(
        self, module: Module, target: ast.expr, statement: ast.AST
    ) -> Iterator[Occurrence]:
        match target:
            case ast.Name(id=name):
                yield from self._named(module, name, statement, target)
            case ast.Attribute(attr=name, value=ast.Name()):
                yield from self._attribute(module, name, target)
            case ast.Tuple(elts=[_, ast.Name(id=name) as apply]) if self._is_pair(
                module, statement
            ):
                yield from self._named(module, name, statement, apply)
            case _:
                yield Occurrence("elsewhere", module, target)

    def _is_pair(self, module: Module, statement: ast.AST) -> bool:
        """Return whether a statement unpacks `init, apply = haiku.transform(f)`."""
        value = getattr(statement, "value", None)
        values = self.evaluator.values(module, value) if value is not None else ()
        return any(map(is_transformed, values))

    def _attribute(self, module: Module, name: str, at: ast.AST) -> Iterator[Occurrence]:
        """Follow a method, or `self.step = ...`: any `.step` in this file may be it."""
        if not name.startswith("_") or name.endswith("__"):
            yield Occurrence("exported", module, at)
        for node in find_mentions(module).attributes.get(name, ()):
            yield from self.follow(module, node)

    def _imported(self, module: Module, name: str) -> Iterator[Occurrence]:
        """Follow a function of a file in the project's other files."""
        exported = self.evaluator.member(module, name)
        for other in self.project.modules.values():
            mentions = find_mentions(other)
            for one in (
                sorted({name, *mentions.renamed.get(name, ())}) if other is not module else ()
            ):
                for node in mentions.reads(one):
                    if not exported.isdisjoint(self.evaluator.values(other, node)):
                        yield from self.follow(other, node)

    def _named(
        self, module: Module, name: str, statement: ast.AST, at: ast.AST
    ) -> Iterator[Occurrence]:
        """Follow a function that a statement binds to a name."""
        scope = module.scope_at(statement)
        if scope.is_class:
            yield from self._attribute(module, name, at)
        elif scope.parent is None and not name.startswith("_"):
            yield Occurrence("exported", module, at)
            yield from self._imported(module, name)
        reads = reads_of(module, name)
        if self.depth == _MOST_NAMES or reads is None:
            yield Occurrence("elsewhere", module, at)
            return
        self.depth += 1
        for node in reads.get(statement, {}).get(scope, ()):
            yield from self.follow(module, node)
        self.depth -= 1


def _with_makers(module: Module, call: ast.Call) -> frozenset[ast.Call]:
    """Return a call, and the calls that made its callee: `layer_stack(8)(f)`, or in two steps."""
    found = [call]
    func = call.func
    while True:
        if isinstance(func, ast.Name):
            values = [b.value for b in module.reaching(func) if b.value is not None]
            func = values[0] if len(values) == 1 else func
        if not isinstance(func, ast.Call) or func in found:
            return frozenset(found)
        found.append(func)
        func = func.func


def _loads(function: Function, name: str) -> Iterator[ast.Name]:
    """Yield where a parameter of a function is read."""
    for node in find_mentions(function.module).names.get(name, ()):
        for binding in function.module.reaching(node):
            if binding.kind == "parameter" and binding.scope.node is function.node:
                yield node
