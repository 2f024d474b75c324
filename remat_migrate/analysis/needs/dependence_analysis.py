"""Which parameters the value of an expression depends on.

`x.shape` depends on none, `n + 1` depends on `n`. The analysis follows local names, nested
functions and the results of other functions.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import replace

from ...libraries import library_arguments
from ...libraries.library_needs import array_method, needs_of
from ..fixed_point import FixedPoint
from ..names.scopes import Binding, FunctionNode
from ..values.callees import full_arguments, receiver_of, skipped, underlying
from ..values.calls import returned_expressions
from ..values.overrides import Overrides
from ..values.values import Class, External, Function, Value
from .dependence import NONE, Dependence, Dependences, Key, merged, with_operation
from .function_analysis import FunctionAnalysis
from .items import argument, element, item, item_of_name


class DependenceAnalysis(FunctionAnalysis):
    """Finds what the expressions of one function depend on.

    Args:
        function: the function.
        receiver: the class of the object that a method is called on.
        overrides: finds the methods that a call may run.
        result_of: returns the parameters that the result of a function, given its receiver, or an
            item of that result, depends on.
    """

    def __init__(
        self,
        function: Function,
        receiver: Class | None,
        overrides: Overrides,
        result_of: Callable[[Function, Class | None, Key | None], Dependences],
    ) -> None:
        super().__init__(function, receiver, overrides)
        self._result_of = result_of
        # A loop may compute a value from itself: `opts = merge(opts)`.
        self._answers = FixedPoint(self._answer, NONE, _kinds)

    def dependences(self, node: ast.expr | None, key: Key | None = None) -> Dependences:
        """Return the parameters whose values an expression, or an item of a name, depends on."""
        return NONE if node is None else self._answers.answer((node, key))

    def _answer(self, question: tuple[ast.expr, Key | None] | Binding) -> Dependences:
        match question:
            case Binding():
                return self.of_binding(question)
            case ast.Name() as node, str() | int() as key:
                return item_of_name(self, node, key)
            case node, _:
                return merged(self._compute(node))

    def _union(self, nodes: Iterable[ast.expr]) -> Dependences:
        # A loop rather than `union(*map(...))`: Python 3.12 limits recursion through C functions.
        found: Dependences = NONE
        for node in nodes:
            found |= self.dependences(node)
        return found

    def _compute(self, node: ast.expr) -> Dependences:
        found = self._operands(node)
        # An operator on the result of a JAX operation is one more operation.
        if isinstance(node, ast.BinOp | ast.Compare | ast.Subscript):
            if any(d.operations for d in found) and not self.runs_at_compile_time(node):
                return with_operation(found, self.module, node, traced_only=True)
        return found

    def _operands(self, node: ast.expr) -> Dependences:
        match node:
            case ast.Name():
                return self._name(node)
            case ast.Constant() | ast.Lambda():
                return NONE
            case ast.Attribute(attr=attr) if attr in library_arguments.STATIC_ATTRIBUTES:
                return NONE
            case ast.Attribute(attr=attr) if attr in library_arguments.ARRAY_ATTRIBUTES:
                return self.dependences(node.value)
            case ast.Attribute():
                return item(self, node.value, node.attr)
            case ast.Subscript(slice=ast.Constant(value=str() | int() as key)):
                return item(self, node.value, key)
            case ast.Compare():
                return self._compare(node)
            case ast.IfExp():
                return self._union((node.body, node.orelse))
            case ast.Call():
                return self._call(node)
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp():
                return self.dependences(node.elt)
            case ast.DictComp():
                return self._union((node.key, node.value))
        return self._union([c for c in ast.iter_child_nodes(node) if isinstance(c, ast.expr)])

    def _name(self, node: ast.Name) -> Dependences:
        # Many assignments may reach each of many names.
        found = {self.stored_in(node)}
        for binding in self.module.reaching(node):
            found.add(self._answers.answer(binding))
        return NONE.union(*found)

    def stored_in(self, node: ast.Name) -> Dependences:
        """Return what the values depend on that the code puts into the object of a name.

        The object of a parameter is the caller's, which the parameter stands for.
        """
        stored = self.contents.stored.get(node.id)
        if not stored:
            return NONE
        bindings = {b for b in self.module.reaching(node) if b.kind != "parameter"}
        return self._union([v for name, _, v in stored if self.module.reaching(name) & bindings])

    def of_binding(self, binding: Binding) -> Dependences:
        """Return what the value that a binding gives its name depends on."""
        if binding.kind == "parameter":
            return self.of_parameter(binding)
        if binding.value is None or not self.contains(binding.scope.node):
            return NONE
        if binding.kind == "element":
            return element(self, binding.value, binding.path)
        if binding.path and binding.path[0] >= 0 and binding.kind == "assign":
            return item(self, binding.value, binding.path[0])
        found = self.dependences(binding.value)
        if binding.kind == "augment" and isinstance(binding.node, ast.AugAssign):
            found |= self.dependences(binding.node.target)
        return found

    def of_parameter(self, binding: Binding, key: Key | None = None) -> Dependences:
        """Return what a parameter, or an item of it, depends on.

        A parameter of a nested function depends on what the calls in this function pass for it.
        """
        if binding.scope is self.scope:
            return frozenset((Dependence(binding.name, key),))
        inner = binding.scope.node
        if not isinstance(inner, FunctionNode) or not self.contains(inner):
            return NONE
        found: Dependences = NONE
        for call in self.inner_calls.get(inner, ()):
            found |= argument(self, inner, (call.args, call.keywords), 0, binding.name, key)
        return found

    def _compare(self, node: ast.Compare) -> Dependences:
        found: Dependences = NONE
        left = node.left
        for operator, right in zip(node.ops, node.comparators, strict=True):
            match operator:
                case ast.Is() | ast.IsNot():
                    pass
                case ast.In() | ast.NotIn():
                    found |= self.dependences(left)
                    # Keys are known at trace time; a string is never in an array.
                    if not (self.contents.is_text(left) or self.contents.is_mapping(right)):
                        found |= element(self, right)
                case _:
                    found |= self._union((left, right))
            left = right
        return found

    def _call(self, node: ast.Call) -> Dependences:
        arguments = [*node.args, *(k.value for k in node.keywords)]
        callees = self.callees(node.func)
        found = self._union(arguments) if callees.abstract else NONE
        for value in callees.values:
            match underlying(value):
                case External(name):
                    found |= self._external_result(name, node, arguments)
                case Function() as function:
                    found |= self.of_result(function, value, node)
                case _:
                    found |= self._union(arguments)
        if callees.values:
            return found
        found |= self._union(arguments)
        if not isinstance(node.func, ast.Attribute):
            return found
        receiver = node.func.value
        match node.func.attr, node.args:
            case (("get" | "pop"), [ast.Constant(value=str() | int() as key), *_]):
                found |= item(self, receiver, key)
            case "keys", []:
                pass
            case _:
                found |= self.dependences(receiver)
        if array_method(node.func) is not None:
            return with_operation(found, self.module, node)
        return found

    def _external_result(self, name: str, node: ast.Call, arguments: list[ast.expr]) -> Dependences:
        if name in library_arguments.STATIC_RESULTS:
            return NONE
        if name.startswith("builtins."):
            return self._builtin_result(name.removeprefix("builtins."), node, arguments)
        function = needs_of(name)
        if function is not None and function.static_result:
            needed = [a for a, p in function.passed(node) if p.takes not in ("traced", "function")]
            return self._union(needed)
        found = self._union(arguments)
        if name.startswith(library_arguments.TRACED_MODULES):
            if not self.runs_at_compile_time(node):
                return with_operation(found, self.module, node)
        return found

    def _builtin_result(self, name: str, node: ast.Call, arguments: list[ast.expr]) -> Dependences:
        if name in library_arguments.STATIC_BUILTINS:
            return NONE
        match name, node.args:
            case "getattr", [base, ast.Constant(value=str(key)), *default]:
                return item(self, base, key) | self._union(default)
            case "next" | "min" | "max" | "sorted", [iterable]:
                return element(self, iterable)
            case "int" | "float" | "bool", _:
                # A Python number, however it was computed.
                return frozenset(replace(d, operations=None) for d in self._union(arguments))
        return self._union(arguments)

    def of_result(
        self, function: Function, callee: Value, node: ast.Call, key: Key | None = None
    ) -> Dependences:
        """Return what the result of a function of the project, or an item of it, depends on."""
        if self.contains(function.node):
            # The result of a nested function depends on the enclosing parameters, too.
            arguments = [*node.args, *(k.value for k in node.keywords)]
            return self._union([*returned_expressions(function.node), *arguments])
        call = full_arguments(callee, node)
        found: Dependences = NONE
        for needed in self._result_of(function, receiver_of(callee), key):
            name, index = needed.parameter, needed.index
            passed = argument(self, function.node, call, skipped(callee), name, index)
            if needed.operations:
                found |= {d.after(needed.operations) for d in passed}
            else:
                found |= passed
        return found


def _kinds(found: Dependences) -> frozenset[tuple[str, Key | None, bool]]:
    """Return the dependences without their operations, to which each round adds some."""
    return frozenset((d.parameter, d.index, d.operations is None) for d in found)
