"""Where checkpoints stand: what differentiates, what loops, and what becomes of a checkpoint."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from .apis import SAME_CALL
from .differentiation import Derivative, derivative_rules, find_derivatives
from .evaluate import Evaluator
from .forms import decorates
from .loops import LoopUse, find_loops
from .mentions import Mentions, find_mentions
from .module import Module
from .parts import DifferentiatedPart, find_parts
from .reach import Reach, find_reach
from .scopes import Binding, FunctionNode, Scope
from .sites import Site
from .transformed import Transformed, find_transformed
from .values import External, Instance, Partial

if TYPE_CHECKING:
    from .project import Project

# Methods of a Flax module; the ones but `apply` are called once, for the parameters.
_MODULE_METHODS = frozenset({"apply", "init", "init_with_output", "lazy_init", "tabulate"})

How = Literal["body", "called", "differentiated", "elsewhere", "exported"]


@dataclass(frozen=True, eq=False, slots=True)
class Occurrence:
    """One place where a function is used.

    Attributes:
        how: it is the body of a loop, it is called, it is differentiated, it goes out of sight
            ("elsewhere"), or other files may import it ("exported").
        node: the expression that stands for the function there; of a call, the call.
        loop: the loop whose body it is.
        derivative: what differentiates it.
    """

    how: How
    node: ast.AST
    loop: LoopUse | None = None
    derivative: Derivative | None = None


@dataclass(eq=False, slots=True)
class Placement:
    """What is known of gradients and loops, module by module, found when first asked for."""

    project: Project
    _mentions: dict[Module, Mentions] = field(default_factory=dict)
    _transformed: dict[Module, list[Transformed]] = field(default_factory=dict)
    _uses: dict[Module, dict[ast.expr, LoopUse | Derivative]] = field(default_factory=dict)
    _loops: dict[Module, tuple[LoopUse, ...]] = field(default_factory=dict)
    _derivatives: dict[Module, tuple[Derivative, ...]] = field(default_factory=dict)
    _rules: dict[Module, frozenset[FunctionNode]] = field(default_factory=dict)
    _occurrences: dict[ast.AST, tuple[Occurrence, ...]] = field(default_factory=dict)
    _reach: Reach | None = None
    _reach_back: Reach | None = None
    _parts: dict[Module, list[DifferentiatedPart]] | None = None

    @property
    def evaluator(self) -> Evaluator:
        """What tells what an expression denotes."""
        return self.project.evaluator

    def mentions(self, module: Module) -> Mentions:
        """Where a module reads each name."""
        if module not in self._mentions:
            self._mentions[module] = find_mentions(module)
        return self._mentions[module]

    def _all(self, module: Module) -> list[Transformed]:
        if module not in self._transformed:
            mentions = self.mentions(module)
            self._transformed[module] = find_transformed(module, mentions, self.evaluator)
        return self._transformed[module]

    def use_at(self, module: Module, node: ast.expr) -> LoopUse | Derivative | None:
        """What is done to the function that an expression is, or that a decorator decorates."""
        if module not in self._uses:
            every: list[LoopUse | Derivative] = [*self.loops(module), *self.derivatives(module)]
            self._uses[module] = {found.use.subject or found.node: found for found in every}
        return self._uses[module].get(node)

    def loops(self, module: Module) -> tuple[LoopUse, ...]:
        """The loops of a module."""
        if module not in self._loops:
            self._loops[module] = tuple(find_loops(self._all(module), self.evaluator))
        return self._loops[module]

    def derivatives(self, module: Module) -> tuple[Derivative, ...]:
        """The places in a module where functions are differentiated."""
        if module not in self._derivatives:
            self._derivatives[module] = tuple(find_derivatives(self._all(module), self.evaluator))
        return self._derivatives[module]

    @property
    def reach(self) -> Reach:
        """Which functions run inside something differentiated."""
        if self._reach is None:
            self._reach = find_reach(self)
        return self._reach

    @property
    def reach_back(self) -> Reach:
        """Which functions run inside something whose gradient goes backward."""
        if self._reach_back is None:
            self._reach_back = find_reach(self, backward=True)
        return self._reach_back

    def parts(self, module: Module) -> list[DifferentiatedPart]:
        """The checkpoints of a module that are the whole, or the last stage, of what is
        differentiated."""
        if self._parts is None:
            self._parts = find_parts(self)
        return self._parts.get(module, [])

    def in_derivative_rule(self, module: Module, node: ast.AST) -> bool:
        """Whether code is part of a function's own derivative rule."""
        if module not in self._rules:
            self._rules[module] = derivative_rules(module, self.evaluator)
        rules = self._rules[module]
        return any(around in rules for around in (node, *module.ancestors(node)))

    def occurrences(self, module: Module, function: ast.AST) -> tuple[Occurrence, ...]:
        """What becomes of a function within its module.

        `function` is an expression that makes one, a definition, or a decorator: what it makes of
        what is below it. Names, attributes of `self`, `jax.jit` and partials are followed.
        """
        if function not in self._occurrences:
            self._occurrences[function] = ()  # a function that is passed to itself
            found = _Follow(self, module).start(function)
            self._occurrences[function] = tuple(found)
        return self._occurrences[function]

    def of_site(self, site: Site) -> tuple[Occurrence, ...]:
        """What becomes of what a site makes."""
        return self.occurrences(site.module, site.application) if site.application else ()

    def loops_of(self, module: Module, occurrence: Occurrence) -> tuple[LoopUse, ...]:
        """The loops in whose rounds a function is run where it occurs; none if also elsewhere.

        It is the body, or is called by a function that is a body and nothing else.
        """
        if occurrence.loop is not None:
            return (occurrence.loop,)
        if occurrence.how != "called":
            return ()
        around = module.enclosing_function(occurrence.node)
        if around is None:
            return ()
        found = self.occurrences(module, around)
        if not all(o.how == "body" for o in found):
            return ()
        return tuple(o.loop for o in found if o.loop is not None)


class _Follow:
    def __init__(self, placement: Placement, module: Module) -> None:
        self.placement = placement
        self.module = module
        self.evaluator = placement.evaluator
        self.seen: set[ast.AST] = set()

    def start(self, function: ast.AST) -> Iterator[Occurrence]:
        match function:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield from self._decorated(function, function.decorator_list)
            case ast.expr() if decorates(self.module, function):
                holder = self.module.parent(function)
                assert isinstance(holder, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
                above = holder.decorator_list[: holder.decorator_list.index(function)]
                yield from self._decorated(holder, above)
            case ast.expr():
                yield from self._follow(function)

    def _decorated(
        self,
        holder: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef,
        above: list[ast.expr],
    ) -> Iterator[Occurrence]:
        for outer in reversed(above):
            transformed = self._transformed(outer)
            if transformed is not None:
                yield transformed  # the name stands for the derivative from here on
                return
        yield from self._named(holder.name, holder, holder)

    def _follow(self, node: ast.expr) -> Iterator[Occurrence]:
        """What becomes of the value of an expression that is the function."""
        if node in self.seen:
            return
        self.seen.add(node)
        applied = self._transformed(node)
        if applied is not None:
            yield applied
            return
        holder = self.module.parent(node)
        if isinstance(holder, ast.keyword):
            holder = self.module.parent(holder)
        match holder:
            case ast.IfExp() if holder.test is not node:
                yield from self._follow(holder)
            case ast.BoolOp() | ast.NamedExpr():
                yield from self._follow(holder)
            case ast.Call() if holder.func is node:
                if self._makes_instance(holder):
                    yield from self._follow(holder)
                else:
                    yield Occurrence("called", holder)
            case ast.Attribute(attr=attr) if attr in _MODULE_METHODS and self._is_instance(node):
                call = self.module.parent(holder)
                if attr == "apply" and isinstance(call, ast.Call) and call.func is holder:
                    yield Occurrence("called", call)
            case ast.Call() if self._is_same_call(holder, node):
                yield from self._follow(holder)
            case ast.Assign(targets=[target]) | ast.AnnAssign(target=target):
                yield from self._assigned(target, holder)
            case ast.Expr():
                return
            case _:
                yield Occurrence("elsewhere", node)

    def _transformed(self, node: ast.expr) -> Occurrence | None:
        match self.placement.use_at(self.module, node):
            case LoopUse() as loop:
                return Occurrence("body", node, loop=loop)
            case Derivative() as derivative:
                return Occurrence("differentiated", node, derivative=derivative)
        return None

    def _makes_instance(self, call: ast.Call) -> bool:
        """Whether it is a class that is called, so that the checkpoint is on its instances."""
        values = self.evaluator.values(self.module, call)
        return bool(values) and all(isinstance(v, Instance) for v in values)

    def _is_instance(self, node: ast.expr) -> bool:
        values = self.evaluator.values(self.module, node)
        return any(isinstance(v, Instance) for v in values)

    def _is_same_call(self, call: ast.Call, node: ast.expr) -> bool:
        """Whether a call gives a function that is the same one: jitted, with arguments given."""
        if call.args[:1] != [node]:
            return False
        for value in self.evaluator.values(self.module, call.func):
            while isinstance(value, Partial):
                value = value.func
            if isinstance(value, External):
                if value.name == "functools.partial" or value.name in SAME_CALL:
                    return True
                if self.placement.project.apis.find(value.name) is not None:
                    return True
        return False

    def _assigned(self, target: ast.expr, statement: ast.AST) -> Iterator[Occurrence]:
        match target:
            case ast.Name(id=name):
                yield from self._named(name, statement, target)
            case ast.Attribute(attr=name, value=ast.Name()):
                # `self.step = ...`: any `.step` of this file may be it.
                yield Occurrence("exported", target)
                yield from self._attributes(name)
            case _:
                yield Occurrence("elsewhere", target)

    def _attributes(self, name: str) -> Iterator[Occurrence]:
        for node in self.placement.mentions(self.module).attributes.get(name, ()):
            yield from self._follow(node)

    def _named(self, name: str, statement: ast.AST, at: ast.AST) -> Iterator[Occurrence]:
        """What becomes of a function that a statement gives a name."""
        scope = self.module.scope_at(statement)
        if scope.is_class:
            yield Occurrence("exported", at)
            yield from self._attributes(name)
        elif scope.parent is None and not name.startswith("_"):
            yield Occurrence("exported", at)
        for node in self.placement.mentions(self.module).names.get(name, ()):
            if any(_makes(binding, statement, scope) for binding in self.module.reaching(node)):
                yield from self._follow(node)


def _makes(binding: Binding, statement: ast.AST, scope: Scope) -> bool:
    return binding.scope is scope and binding.node is statement
