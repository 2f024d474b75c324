"""One function as the data-flow analysis sees it."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from functools import cached_property

from ...libraries.apis import COMPILERS
from ..names.scopes import Binding, FunctionNode
from ..values.callees import body_positions, underlying
from ..values.contents import Contents, contents_of
from ..values.overrides import Callees, Overrides
from ..values.values import NOTHING, Class, External, Function, Value, Values, Wrapped
from .dependence import Dependences, Key


class FunctionAnalysis(ABC):
    """The code of one function, nested functions included, and what its expressions depend on.

    Attributes:
        evaluator: evaluates expressions.
        module: the function's module.
        node: the function.
        scope: its scope.
        receiver: the class of the object that a method is called on.
    """

    def __init__(self, function: Function, receiver: Class | None, overrides: Overrides) -> None:
        self.evaluator = overrides.evaluator
        self.module = function.module
        self.node = function.node
        self.scope = self.module.scope_of(function.node)
        self.receiver = receiver
        self._overrides = overrides
        self._callees: dict[ast.expr, Callees] = {}
        self._numbers: dict[ast.expr, bool] = {}

    def callees(self, node: ast.expr) -> Callees:
        """Return what calling an expression may run."""
        if node not in self._callees:
            found = self._overrides.callees(self.module, node, self.receiver)
            self._callees[node] = found
        return self._callees[node]

    @cached_property
    def contents(self) -> Contents:
        """What the code shows of its values."""
        return contents_of(self.evaluator, self.module, self.node)

    def contains(self, node: ast.AST) -> bool:
        """Return whether a node is the function or is inside it."""
        return node is self.node or any(a is self.node for a in self.module.ancestors(node))

    @cached_property
    def inner_calls(self) -> dict[FunctionNode, list[ast.Call]]:
        """The calls in this function, by the function that they call."""
        found: dict[FunctionNode, list[ast.Call]] = {}
        for call in ast.walk(self.node):
            if isinstance(call, ast.Call):
                for value in self.callees(call.func).values:
                    function = underlying(value)
                    if isinstance(function, Function):
                        found.setdefault(function.node, []).append(call)
        return found

    @cached_property
    def _passed_on(self) -> set[FunctionNode]:
        found: set[FunctionNode] = set()
        for node in ast.walk(self.node):
            if isinstance(node, ast.Name | ast.Attribute | ast.Lambda):
                parent = self.module.parent(node)
                if isinstance(parent, ast.Call) and parent.func is node:
                    continue
                if isinstance(node, ast.Lambda):
                    is_named = isinstance(parent, ast.Assign | ast.AnnAssign)
                    found |= set() if is_named else {node}
                elif isinstance(node.ctx, ast.Load):
                    values = self.evaluator.values(self.module, node)
                    found |= {v.node for v in values if isinstance(v, Function)}
        return found

    def is_passed_on(self, function: FunctionNode) -> bool:
        """Return whether a nested function is used otherwise than in calls of it."""
        return function in self._passed_on

    @cached_property
    def _compiled(self) -> set[FunctionNode]:
        found: set[Value] = set()
        for node in ast.walk(self.node):
            made: Values = NOTHING
            if isinstance(node, ast.Call):
                made = self.evaluator.values(self.module, node)
                for place in body_positions(self.evaluator, self.module, node):
                    for body in node.args[place : place + 1]:
                        found |= self.evaluator.values(self.module, body)
            elif isinstance(node, ast.FunctionDef) and node is not self.node:
                made = self.evaluator.definition(self.module, node)
            found |= {v.func for v in made if isinstance(v, Wrapped) and v.how in COMPILERS}
        return {value.node for value in found if isinstance(value, Function)}

    def is_compiled(self, node: ast.AST) -> bool:
        """Return whether a node is in a nested function that is traced anyway."""
        for around in self.module.ancestors(node):
            if around is self.node:
                return False
            if isinstance(around, FunctionNode) and around in self._compiled:
                return True
        return False

    def runs_at_compile_time(self, node: ast.AST) -> bool:
        """Return whether a node is inside `with jax.ensure_compile_time_eval():`."""
        for around in self.module.ancestors(node):
            if isinstance(around, ast.With):
                for item in around.items:
                    context = item.context_expr
                    if isinstance(context, ast.Call):
                        callees = self.evaluator.values(self.module, context.func)
                        if External("jax.ensure_compile_time_eval") in callees:
                            return True
            if around is self.node:
                break
        return False

    def is_number(self, node: ast.expr) -> bool:
        """Return whether an expression consists of parameters and numbers alone."""
        if node not in self._numbers:
            self._numbers[node] = self._consists_of_numbers(node)
        return self._numbers[node]

    def _consists_of_numbers(self, node: ast.expr) -> bool:
        match node:
            case ast.Constant(value=int() | float()):
                return True
            case ast.UnaryOp(operand=operand):
                return self.is_number(operand)
            case ast.BinOp(left=left, right=right):
                return self.is_number(left) and self.is_number(right)
            case ast.Name():
                bindings = self.module.reaching(node)
                return bool(bindings) and all(
                    b.kind == "parameter" and b.scope is self.scope for b in bindings
                )
        return False

    @abstractmethod
    def dependences(self, node: ast.expr | None, key: Key | None = None) -> Dependences:
        """Return the parameters whose values an expression, or an item of a name, depends on."""

    @abstractmethod
    def stored_in(self, node: ast.Name) -> Dependences:
        """Return what the values depend on that the code puts into the object of a name."""

    @abstractmethod
    def of_binding(self, binding: Binding) -> Dependences:
        """Return what the value that a binding gives its name depends on."""

    @abstractmethod
    def of_parameter(self, binding: Binding, key: Key | None = None) -> Dependences:
        """Return what a parameter, or an item of it, depends on."""

    @abstractmethod
    def of_result(
        self, function: Function, callee: Value, node: ast.Call, key: Key | None = None
    ) -> Dependences:
        """Return what the result of a function of the project, or an item of it, depends on."""
