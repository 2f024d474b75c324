"""What happens to a function: it is called, differentiated, run in a loop, or passed on."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from ...libraries.apis import SAME_CALL
from ..names.mentions import find_mentions, reads_of
from ..names.module import Module
from ..names.scopes import Definition, FunctionNode
from ..project import Project
from ..sites.forms import decorates
from ..sites.passed_arguments import called_function, parameter_of_default
from ..values.application import without_partials
from ..values.bind import bind_call
from ..values.callees import order
from ..values.haiku_transforms import APPLY, is_transformed, makes_pair
from ..values.values import External, Function, Instance, Parameter, Partial, Value, Values
from .transforms import Derivative, LoopUse, Transforms

# Methods of a Flax module; all but `apply` are called once, to initialize the parameters.
_MODULE_METHODS = APPLY | {"tabulate"}
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


_Read = tuple[Module, ast.Name | ast.Attribute]


class _Reads:
    """The reads of names in all modules of a project, by what they may denote."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self._reads: dict[str, dict[Value, list[_Read]]] = {}

    def of(self, name: str, values: Values) -> list[_Read]:
        """Return where the project's modules read a name, or an alias of it, that may denote one of
        some values."""
        if name not in self._reads:
            self._reads[name] = self._find_reads(name)
        known = self._reads[name]
        found = (read for value in sorted(values, key=order) for read in known.get(value, ()))
        return list(dict.fromkeys(found))

    def _find_reads(self, name: str) -> dict[Value, list[_Read]]:
        found: dict[Value, list[_Read]] = {}
        for module in self.project.modules.values():
            mentions = find_mentions(module)
            for one in sorted({name, *mentions.renamed.get(name, ())}):
                for node in mentions.reads(one):
                    for value in self.project.values(module, node):
                        found.setdefault(value, []).append((module, node))
        return found


class FunctionTracker:
    """Follows a function from where it is made.

    With `through`, also into the parameters of the project's functions that receive it.
    """

    def __init__(self, project: Project, module: Module, *, through: bool = False) -> None:
        self.project = project
        self.module = module
        self.evaluator = project.evaluator
        self.through = through
        self.seen: set[ast.AST] = set()
        self.depth = 0

    def start(self, function: ast.AST) -> Iterator[Occurrence]:
        """Return what happens to the function that an expression, definition, or decorator
        makes.
        """
        match function:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield from self._decorated(function, function.decorator_list)
            case ast.expr() if decorates(self.module, function):
                holder = self.module.parent(function)
                assert isinstance(holder, Definition)
                above = holder.decorator_list[: holder.decorator_list.index(function)]
                yield from self._decorated(holder, above)
            case ast.expr():
                yield from self._follow(function)

    def wrapper(self, node: ast.expr) -> Iterator[Occurrence]:
        """Return what happens to the results of a wrapper that is an argument or a default."""
        holder = self.module.argument_holder(node)
        targets: list[tuple[Function, str]] | None = None
        via: frozenset[ast.Call] = frozenset()
        if isinstance(holder, ast.Call):
            via = self._via(holder)
            targets = self._parameters(holder, node)
        elif isinstance(holder, ast.arguments):
            owner = self.module.parent(holder)
            assert isinstance(owner, FunctionNode)
            name = parameter_of_default(owner, node)
            targets = [(Function(self.module, owner), name)] if name is not None else None
        if not targets:
            yield Occurrence("elsewhere", self.module, node)
            return
        for function, parameter in targets:
            inside = self._inside(function.module)
            for load in inside._loads(function.node, parameter):
                call = function.module.parent(load)
                if isinstance(call, ast.Call) and call.func is load:
                    for found in inside._follow(call):
                        yield replace(found, via=found.via | via)
                elif not inside._only_inspects(load):
                    yield Occurrence("elsewhere", function.module, load)

    def _decorated(
        self,
        holder: Definition,
        above: list[ast.expr],
    ) -> Iterator[Occurrence]:
        for outer in reversed(above):
            transformed = self._transformed(outer)
            if transformed is not None:
                yield transformed  # the name stands for the derivative from here on
                return
        yield from self._named(holder.name, holder, holder)

    def _follow(self, node: ast.expr) -> Iterator[Occurrence]:
        """Follow the value of an expression that denotes the function."""
        if node in self.seen:
            return
        self.seen.add(node)
        applied = self._transformed(node)
        if applied is not None:
            yield applied
            return
        holder = self.module.argument_holder(node)
        match holder:
            case ast.IfExp() if holder.test is not node:
                yield from self._follow(holder)
            case ast.BoolOp() | ast.NamedExpr():
                yield from self._follow(holder)
            case ast.Call():
                yield from self._in_call(node, holder)
            case ast.Attribute(attr=attr) if attr in _MODULE_METHODS and self._is_instance(node):
                call = self.module.parent(holder)
                if attr == "apply" and isinstance(call, ast.Call) and call.func is holder:
                    yield Occurrence("called", self.module, call)
            case ast.Assign(targets=[target]) | ast.AnnAssign(target=target):
                yield from self._assigned(target, holder)
            case ast.Expr():
                return
            case ast.Return():
                yield from self._returned(holder)
            case _:
                yield from self._elsewhere(node)

    def _in_call(self, node: ast.expr, call: ast.Call) -> Iterator[Occurrence]:
        """Follow an expression that a call calls, or passes on."""
        if call.func is node:
            if self._makes_instance(call):
                yield from self._follow(call)
            elif not self._at_initialization(call):
                yield Occurrence("called", self.module, call)
        elif self._is_same_call(call, node):
            yield from self._follow(call)
        elif getattr(self.module.parent(node), "arg", None) == "apply_fn":
            yield Occurrence("exported", self.module, node)  # to what a training state calls
        elif self.through and (targets := self._parameters(call, node)):
            via = self._via(call)
            for function, name in targets:
                inside = self._inside(function.module)
                for load in inside._loads(function.node, name):
                    for found in inside._follow(load):
                        yield replace(found, via=found.via | via)
        else:
            yield from self._elsewhere(node)

    def _elsewhere(self, node: ast.expr) -> Iterator[Occurrence]:
        if not self.through or not self._only_inspects(node):
            yield Occurrence("elsewhere", self.module, node)

    def _returned(self, statement: ast.Return) -> Iterator[Occurrence]:
        """Follow what the calls of a function return: `loss = make_loss(model)`."""
        around = self.module.enclosing_function(statement)
        if not isinstance(around, ast.FunctionDef) or around in self.seen:
            yield Occurrence("elsewhere", self.module, statement)
            return
        self.seen.add(around)
        for found in self.start(around):
            if found.how == "called" and isinstance(found.node, ast.Call):
                for made in self._inside(found.module)._follow(found.node):
                    yield replace(made, via=made.via | {found.node})
            else:
                yield found

    def _transformed(self, node: ast.expr) -> Occurrence | None:
        match self.project.once(Transforms).transformed_at(self.module, node):
            case LoopUse() as loop:
                return Occurrence("body", self.module, node, loop=loop)
            case Derivative() as derivative:
                return Occurrence("differentiated", self.module, node, derivative=derivative)
        return None

    def _makes_instance(self, call: ast.Call) -> bool:
        """Return whether this calls a class, so that the checkpoint is on its instances."""
        values = self.evaluator.values(self.module, call)
        if any(isinstance(v, Function) for v in self.evaluator.values(self.module, call.func)):
            return False  # a function that returns one
        return bool(values) and all(isinstance(v, Instance) for v in values)

    def _at_initialization(self, node: ast.AST) -> bool:
        """Return whether code only runs to initialize parameters: under `if hk.running_init():`."""
        child = node
        for around in self.module.ancestors(node):
            if isinstance(around, ast.If) and child in around.body:
                if isinstance(around.test, ast.Call) and External("haiku.running_init") in (
                    self.evaluator.values(self.module, around.test.func)
                ):
                    return True
            elif isinstance(around, FunctionNode):
                return False
            child = around
        return False

    def _is_instance(self, node: ast.expr) -> bool:
        values = self.evaluator.values(self.module, node)
        # An instance that is followed into a function is a parameter there.
        kinds = Instance | Parameter if self.through else Instance
        return any(isinstance(v, kinds) for v in values)

    def _is_same_call(self, call: ast.Call, node: ast.expr) -> bool:
        """Return whether a call returns the same function: jitted, or with arguments bound."""
        if call.args[:1] != [node]:
            return False
        for value in self.evaluator.values(self.module, call.func):
            value = without_partials(value)
            if isinstance(value, External):
                if value.name == "functools.partial" or value.name in SAME_CALL:
                    return True
                if makes_pair(value.name):
                    return True  # its `apply` runs the function
                if self.project.apis.find(value.name) is not None:
                    return True
        return False

    def _only_inspects(self, node: ast.expr) -> bool:
        """Return whether a function is only compared or inspected here."""
        holder = self.module.parent(node)
        match holder:
            case ast.Compare(ops=[ast.Is() | ast.IsNot()]) | ast.If() | ast.UnaryOp():
                return True
            case ast.IfExp(test=test):
                return test is node
            case ast.Attribute(attr=attr):
                return attr.startswith("__") and attr != "__call__"
            case ast.Call() if holder.func is not node:
                values = self.evaluator.values(self.module, holder.func)
                return bool(values) and all(
                    isinstance(v, External) and v.name in _INSPECTING_FUNCTIONS for v in values
                )
        return False

    def _inside(self, module: Module) -> FunctionTracker:
        inside = FunctionTracker(self.project, module, through=self.through)
        inside.seen, inside.depth = self.seen, self.depth
        return inside

    def _via(self, call: ast.Call) -> frozenset[ast.Call]:
        """Return a call, and the calls that made its callee: `layer_stack(8)(f)`, or in two
        steps.
        """
        found = [call]
        func = call.func
        while True:
            if isinstance(func, ast.Name):
                values = [b.value for b in self.module.reaching(func) if b.value is not None]
                func = values[0] if len(values) == 1 else func
            if not isinstance(func, ast.Call) or func in found:
                return frozenset(found)
            found.append(func)
            func = func.func

    def _parameters(self, call: ast.Call, node: ast.expr) -> list[tuple[Function, str]] | None:
        """Return the parameters that receive an argument; None if some are unknown."""
        found: list[tuple[Function, str]] = []
        values = self.evaluator.values(self.module, call.func)
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

    def _loads(self, function: FunctionNode, name: str) -> Iterator[ast.Name]:
        """Return where a parameter of a function is read."""
        for node in find_mentions(self.module).names.get(name, ()):
            for binding in self.module.reaching(node):
                if binding.kind == "parameter" and binding.scope.node is function:
                    yield node

    def _assigned(self, target: ast.expr, statement: ast.AST) -> Iterator[Occurrence]:
        match target:
            case ast.Name(id=name):
                yield from self._named(name, statement, target)
            case ast.Attribute(attr=name, value=ast.Name()):
                # `self.step = ...`: any `.step` in this file may be it.
                if not _is_private(name):
                    yield Occurrence("exported", self.module, target)
                yield from self._attributes(name)
            case ast.Tuple(elts=[_, ast.Name(id=name) as apply]) if self._is_pair(statement):
                yield from self._named(name, statement, apply)
            case _:
                yield Occurrence("elsewhere", self.module, target)

    def _is_pair(self, statement: ast.AST) -> bool:
        """Return whether a statement unpacks `init, apply = haiku.transform(f)`."""
        value = getattr(statement, "value", None)
        values = self.evaluator.values(self.module, value) if value is not None else ()
        return any(map(is_transformed, values))

    def _attributes(self, name: str) -> Iterator[Occurrence]:
        for node in find_mentions(self.module).attributes.get(name, ()):
            yield from self._follow(node)

    def _imported(self, name: str) -> Iterator[Occurrence]:
        """Follow a function of this file in the project's other files."""
        exported = self.evaluator.member(self.module, name)
        for other, node in self.project.once(_Reads).of(name, exported):
            if other is not self.module:
                yield from self._inside(other)._follow(node)

    def _named(self, name: str, statement: ast.AST, at: ast.AST) -> Iterator[Occurrence]:
        """Follow a function that a statement binds to a name."""
        scope = self.module.scope_at(statement)
        if scope.is_class:
            if not _is_private(name):
                yield Occurrence("exported", self.module, at)
            yield from self._attributes(name)
        elif scope.parent is None and not name.startswith("_"):
            yield Occurrence("exported", self.module, at)
            yield from self._imported(name)
        reads = reads_of(self.module, name)
        if self.depth == _MOST_NAMES or reads is None:
            yield Occurrence("elsewhere", self.module, at)
            return
        self.depth += 1
        for node in reads.get(statement, {}).get(scope, ()):
            yield from self._follow(node)
        self.depth -= 1


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")
