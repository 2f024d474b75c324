"""What the value of an expression depends on.

`x.shape` depends on nothing, `n + 1` on the parameter `n`, and `jnp.sqrt(x.shape[0])` on constants,
with an operation of JAX in between. The analysis follows local names, nested functions and the
results of other functions.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable

from ...libraries import library_arguments
from ...libraries.library_needs import array_method, computes_array, needs_of
from ..fixed_point import FixedPoint
from ..names.scopes import Binding, FunctionNode
from ..values.callees import full_arguments, receiver_of, skipped, underlying
from ..values.calls import returned_expressions
from ..values.overrides import Overrides
from ..values.values import Class, External, Function, ModuleValue, Result, Value
from .dependence import (
    CONSTANTS,
    NONE,
    UNSEEN,
    Dependence,
    Dependences,
    Key,
    concrete_array,
    merged,
    python_value,
    with_operation,
)
from .function_analysis import FunctionAnalysis
from .items import argument, element, item, item_of_name

_UNSEEN: Dependences = frozenset((Dependence(UNSEEN),))
# What is computed outside of functions: displays may be long, and are not searched for arrays.
_COMPUTED = (ast.Call, ast.BinOp, ast.UnaryOp, ast.Subscript, ast.Attribute, ast.Name)


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
        match node:
            case ast.Compare(ops=ops) if all(isinstance(op, ast.In | ast.NotIn) for op in ops):
                return python_value(found)
            case ast.UnaryOp(op=ast.Not()) | ast.JoinedStr():
                return python_value(found)
            case ast.BinOp() | ast.UnaryOp() | ast.Compare() | ast.Subscript():
                return self.operator(node, found)
            case ast.Attribute(attr=attr) if attr in library_arguments.ARRAY_ATTRIBUTES:
                return self.operator(node, found)
        return found

    def operator(self, node: ast.expr, found: Dependences) -> Dependences:
        """Return the dependences of an operator's result; on an array, it is one more operation."""
        if any(d.operations for d in found):
            return self._operation(node, found)
        return found

    def _operation(
        self, node: ast.expr, found: Dependences, *, certain: bool = False
    ) -> Dependences:
        certain = certain or any(d.is_array for d in found)
        if self.runs_at_compile_time(node):
            return concrete_array(found) if certain else found
        return with_operation(found, self.module, node, certain=certain)

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
                return item(self, node.value, node.attr) | self._held_array(node)
            case ast.Subscript(slice=ast.Constant(value=str() | int() as key)):
                return item(self, node.value, key) | self._held_array(node)
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

    def _held_array(self, node: ast.expr) -> Dependences:
        """Return the dependences of an array of JAX that a class, an object or a module holds."""
        values = self.evaluator.values(self.module, node)
        held = any(isinstance(v, Result) and computes_array(v.name) for v in values)
        return concrete_array(NONE) if held else NONE

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
        if not self.contains(binding.scope.node):
            return self._from_outside(binding)
        if binding.value is None:
            return NONE
        if binding.kind == "element":
            place = self._listed(binding.value)
            return self.operator(place, element(self, binding.value, binding.path))
        if binding.path and binding.path[0] >= 0 and binding.kind == "assign":
            return self.operator(binding.value, item(self, binding.value, binding.path[0]))
        found = self.dependences(binding.value)
        if binding.kind == "augment" and isinstance(binding.node, ast.AugAssign):
            target = binding.node.target
            found = self.operator(target, found | self.dependences(target))
        return found

    def _listed(self, iterable: ast.expr) -> ast.expr:
        """Return where an array becomes the list that a loop is over, else the iterable."""
        bound = self.module.reaching(iterable) if isinstance(iterable, ast.Name) else ()
        match [binding.value for binding in bound if not binding.path]:
            case [ast.Call(func=ast.Name(id="list" | "tuple")) as made]:
                return made
        return iterable

    def _from_outside(self, binding: Binding) -> Dependences:
        """Return what a variable of a module, a class, or an enclosing function depends on.

        An array that exists before the function runs is concrete, unless it may be traced itself.
        """
        if binding.kind == "import":
            return concrete_array(NONE) if self._imports_array(binding) else NONE
        found = NONE
        if isinstance(binding.value, _COMPUTED) and binding.kind == "assign":
            found = self.dependences(binding.value)
        elif isinstance(binding.scope.node, FunctionNode) and binding.kind not in ("def", "class"):
            if not isinstance(binding.value, ast.Constant):
                return _UNSEEN
        if any(d.parameter != CONSTANTS for d in found):
            is_array = any(d.is_array for d in found)
            return concrete_array(_UNSEEN) if is_array else _UNSEEN
        return concrete_array(found) if found else NONE

    def _imports_array(self, binding: Binding) -> bool:
        """Return whether an import gives an array of JAX that another module holds."""
        statement, alias = binding.statement, binding.node
        if not isinstance(statement, ast.ImportFrom) or not isinstance(alias, ast.alias):
            return False
        return any(
            isinstance(value, Result) and computes_array(value.name)
            for base in self.evaluator.import_base(statement, self.module)
            if isinstance(base, ModuleValue)
            for exported in base.module.exported(alias.name)
            if exported.kind == "assign" and exported.value is not None and not exported.path
            for part in ast.walk(exported.value)
            if isinstance(part, ast.Call)
            for value in self.evaluator.values(base.module, part)
        )

    def of_parameter(self, binding: Binding, key: Key | None = None) -> Dependences:
        """Return what a parameter, or an item of it, depends on.

        A parameter of a nested function depends on what the calls in this function pass for it.
        """
        if binding.scope is self.scope:
            return frozenset((Dependence(binding.name, key),))
        inner = binding.scope.node
        if not isinstance(inner, FunctionNode) or not self.contains(inner):
            return _UNSEEN
        found = _UNSEEN if self.is_passed_on(inner) else NONE
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
        found = self._union(arguments) | _UNSEEN if callees.abstract else NONE
        for value in callees.values:
            match underlying(value):
                case External(name):
                    found |= self._external_result(name, node, arguments)
                case Function() as function:
                    found |= self.of_result(function, value, node)
                case Class():
                    found |= self._union(arguments)
                case _:
                    found |= self._union(arguments) | _UNSEEN
        if callees.values:
            return found
        found |= self._union(arguments)
        if not isinstance(node.func, ast.Attribute):
            return found | _UNSEEN
        receiver = node.func.value
        match node.func.attr, node.args:
            case (("get" | "pop"), [ast.Constant(value=str() | int() as key), *_]):
                found |= item(self, receiver, key)
            case "keys", []:
                pass
            case _:
                found |= self.dependences(receiver)
        if node.func.attr in library_arguments.CONCRETE_METHODS:
            return python_value(found)
        if array_method(node.func) is not None:
            return self._operation(node, found)
        return found

    def _external_result(self, name: str, node: ast.Call, arguments: list[ast.expr]) -> Dependences:
        if name in library_arguments.STATIC_RESULTS:
            return NONE
        module, _, last = name.rpartition(".")
        if module == "builtins":
            return self._builtin_result(last, node, arguments)
        function = needs_of(name)
        if function is not None and function.static_result:
            needed = [a for a, p in function.passed(node) if p.takes not in ("traced", "function")]
            return python_value(self._union(needed))
        found = self._union(arguments)
        if name.startswith(library_arguments.TRACED_MODULES):
            return self._operation(node, found, certain=computes_array(name))
        if library_arguments.accepts_tracers(name):
            return self.operator(node, found)
        if name.startswith(library_arguments.CONCRETE_MODULES):
            return python_value(found)
        if name.startswith(library_arguments.LAYER_MODULES):
            return found | _UNSEEN
        return found

    def _builtin_result(self, name: str, node: ast.Call, arguments: list[ast.expr]) -> Dependences:
        if name in library_arguments.STATIC_BUILTINS:
            return NONE
        match name, node.args:
            case "getattr", [base, ast.Constant(value=str(key)), *default]:
                return item(self, base, key) | self._union(default)
            case "next" | "min" | "max" | "sorted", [iterable]:
                return element(self, iterable)
            case "any" | "all", [iterable]:
                return python_value(element(self, iterable))
            case "int" | "float" | "bool" | "complex" | "str" | "format", _:
                return python_value(self._union(arguments))
            case "round" | "abs" | "pow" | "divmod" | "sum", _:
                return self.operator(node, self._union(arguments))
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
            name, operations = needed.parameter, needed.operations
            if name in (CONSTANTS, UNSEEN):
                found |= {needed}
                continue
            passed = argument(self, function.node, call, skipped(callee), name, needed.index)
            if operations is not None:
                if operations.certain and not passed:
                    passed = frozenset((Dependence(CONSTANTS),))
                passed = frozenset(d.after(operations) for d in passed)
            found |= passed
        if found and self.runs_at_compile_time(node):
            return concrete_array(found) if any(d.is_array for d in found) else found
        return found


def _kinds(found: Dependences) -> frozenset[tuple[str, Key | None, bool, bool]]:
    """Return the dependences without their operations, to which each round adds some."""
    return frozenset((d.parameter, d.index, d.operations is None, d.is_array) for d in found)
