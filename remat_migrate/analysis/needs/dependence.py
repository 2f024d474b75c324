"""Which parameters an expression needs the value of, to have a value itself.

`x.shape` needs nothing; `n + 1` needs `n`. Followed through local names, nested functions and the
results of other functions.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

from ...libraries import library_arguments
from ...libraries.library_needs import array_method, needs_of
from ..names.scopes import Binding, FunctionNode
from ..values.callees import full_arguments, receiver_of, skipped, underlying
from ..values.calls import returned_expressions
from ..values.contents import Contents, contents_of
from ..values.evaluator import Evaluator
from ..values.overrides import Callees, Overrides
from ..values.values import Class, External, Function, Value
from .item_dependence import ItemAnalysis, element, item, supplied
from .operations import NONE, Dependence, Dependences, Key, merged, through


class DependenceAnalysis(ItemAnalysis):
    """The dependences of one function's expressions, nested functions included.

    `receiver` is the class of the object that the method is called on. `result_of` gives the
    parameters that the result of another function, with its own receiver, or an item of that
    result, depends on.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        function: Function,
        receiver: Class | None,
        overrides: Overrides,
        result_of: Callable[[Function, Class | None, Key | None], Dependences],
    ) -> None:
        super().__init__(evaluator, function.module)
        self.receiver = receiver
        self._overrides = overrides
        self._result_of = result_of
        self._callees: dict[ast.expr, Callees] = {}
        self._numbers: dict[ast.expr, bool] = {}
        self.node = function.node
        self.scope = self.module.scope_of(function.node)
        self._known: dict[ast.expr, Dependences] = {}
        self._running: set[ast.AST] = set()
        self._cut = False

    def callees(self, node: ast.expr) -> Callees:
        """What calling an expression may run."""
        if node not in self._callees:
            found = self._overrides.callees(self.module, node, self.receiver)
            self._callees[node] = found
        return self._callees[node]

    @cached_property
    def contents(self) -> Contents:
        """What the code shows of its values."""
        return contents_of(self.evaluator, self.module, self.node)

    # -- what an expression depends on

    def depends(self, node: ast.expr | None) -> Dependences:
        """The parameters whose value `node` needs to have a value."""
        if node is None:
            return NONE
        known = self._known.get(node)
        if known is not None:
            return known
        if node in self._running:
            self._cut = True
            return NONE
        outermost = not self._running
        self._running.add(node)
        found = merged(self._depends(node))
        self._running.discard(node)
        if not self._cut or outermost:
            self._known[node] = found
        if outermost:
            self._cut = False
        return found

    def _union(self, *nodes: ast.expr | None) -> Dependences:
        return frozenset().union(*(self.depends(n) for n in nodes))

    def _depends(self, node: ast.expr) -> Dependences:
        found = self._operands(node)
        # An operator on the result of an operation of JAX is one more.
        if isinstance(node, ast.BinOp | ast.Compare | ast.Subscript):
            if any(d.through for d in found) and not self._at_compile_time(node):
                return through(found, self.module, node, traced_only=True)
        return found

    def _operands(self, node: ast.expr) -> Dependences:
        match node:
            case ast.Name():
                return self._name(node)
            case ast.Constant() | ast.Lambda():
                return NONE
            case ast.Attribute():
                if node.attr in library_arguments.STATIC_ATTRIBUTES:
                    return NONE
                if node.attr in library_arguments.ARRAY_ATTRIBUTES:
                    return self.depends(node.value)
                return item(self, node.value, node.attr)
            case ast.Subscript(slice=ast.Constant(value=str() | int() as key)):
                return item(self, node.value, key)
            case ast.Subscript():
                return self._union(node.value, node.slice)
            case ast.Compare():
                return self._compare(node)
            case ast.IfExp():
                return self._union(node.body, node.orelse)
            case ast.Call():
                return self._call(node)
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp():
                return self.depends(node.elt)
            case ast.DictComp():
                return self._union(node.key, node.value)
            case ast.BinOp():
                return self._union(node.left, node.right)
        return self._union(*(c for c in ast.iter_child_nodes(node) if isinstance(c, ast.expr)))

    def _name(self, node: ast.Name) -> Dependences:
        found: set[Dependence] = set()
        for binding in self.module.reaching(node):
            found |= self.binding(binding)
        return frozenset(found) | self.stored_in(node)

    def stored_in(self, node: ast.Name) -> Dependences:
        """What the values depend on that are put into the object of a name, made here."""
        stored = self.contents.stored.get(node.id)
        if not stored:
            return NONE
        bindings = {b for b in self.module.reaching(node) if b.kind != "parameter"}
        return self._union(*(v for name, _, v in stored if self.module.reaching(name) & bindings))

    def binding(self, binding: Binding) -> Dependences:
        """What a binding gives its name depends on."""
        if binding.kind == "parameter":
            return self.parameter(binding)
        if binding.value is None or not self.inside(binding.scope.node):
            return NONE
        if binding.kind == "element":
            return element(self, binding.value, binding.path)
        if binding.path and binding.path[0] >= 0 and binding.kind == "assign":
            return item(self, binding.value, binding.path[0])
        found = self.depends(binding.value)
        if binding.kind == "augment" and isinstance(binding.node, ast.AugAssign):
            found |= self.depends(binding.node.target)
        return found

    def parameter(self, binding: Binding, key: Key | None = None) -> Dependences:
        """A parameter, or an item of it; of a nested function, what calls in this one pass."""
        if binding.scope is self.scope:
            return frozenset((Dependence(binding.name, key),))
        inner = binding.scope.node
        if not isinstance(inner, FunctionNode) or not self.inside(inner):
            return NONE
        found: set[Dependence] = set()
        for call in self._inner_calls.get(inner, ()):
            found |= supplied(self, inner, (call.args, call.keywords), 0, binding.name, key)
        return frozenset(found)

    def inside(self, node: ast.AST) -> bool:
        """Whether a node is the function or stands in it."""
        return node is self.node or any(a is self.node for a in self.module.ancestors(node))

    @cached_property
    def _inner_calls(self) -> dict[FunctionNode, list[ast.Call]]:
        """The calls in this function, by the function that they call."""
        found: dict[FunctionNode, list[ast.Call]] = {}
        for call in ast.walk(self.node):
            if isinstance(call, ast.Call):
                for value in self.callees(call.func).values:
                    function = underlying(value)
                    if isinstance(function, Function):
                        found.setdefault(function.node, []).append(call)
        return found

    def _compare(self, node: ast.Compare) -> Dependences:
        found: set[Dependence] = set()
        left = node.left
        for operator, right in zip(node.ops, node.comparators, strict=True):
            match operator:
                case ast.Is() | ast.IsNot():
                    pass
                case ast.In() | ast.NotIn():
                    found |= self.depends(left)
                    # Keys are known while tracing; what a string is among is no array.
                    if not (self.contents.is_text(left) or self.contents.is_mapping(right)):
                        found |= self._keys_or_parts(right)
                case _:
                    found |= self._union(left, right)
            left = right
        return frozenset(found)

    def _keys_or_parts(self, node: ast.expr) -> Dependences:
        match node:
            case ast.Call(func=ast.Attribute(attr="keys"), args=[]):
                return NONE
        return element(self, node)

    def _call(self, node: ast.Call) -> Dependences:
        arguments = [*node.args, *(k.value for k in node.keywords)]
        callees = self.callees(node.func)
        values = callees.values
        found: set[Dependence] = set()
        if callees.abstract:
            found |= self._union(*arguments)
        for value in values:
            match underlying(value):
                case External(name):
                    found |= self._external_result(name, node, arguments)
                case Function() as function:
                    found |= self.function_result(function, value, node)
                case _:
                    found |= self._union(*arguments)
        if not values:
            found |= self._union(*arguments)
            if isinstance(node.func, ast.Attribute):
                match node:
                    case ast.Call(
                        func=ast.Attribute(attr="get" | "pop", value=receiver),
                        args=[ast.Constant(value=str() | int() as key), *_],
                    ):
                        found |= item(self, receiver, key)
                    case ast.Call(func=ast.Attribute(attr="keys"), args=[]):
                        pass
                    case _:
                        found |= self.depends(node.func.value)
                if array_method(node.func) is not None:
                    return through(found, self.module, node)
        return frozenset(found)

    def is_number(self, node: ast.expr) -> bool:
        """Whether an expression is made of parameters and numbers alone."""
        if node not in self._numbers:
            self._numbers[node] = self._made_of_numbers(node)
        return self._numbers[node]

    def _made_of_numbers(self, node: ast.expr) -> bool:
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

    def _external_result(self, name: str, node: ast.Call, arguments: list[ast.expr]) -> Dependences:
        if name in library_arguments.STATIC_RESULTS:
            return NONE
        if name.startswith("builtins."):
            if name.removeprefix("builtins.") in library_arguments.STATIC_BUILTINS:
                return NONE
            match name, node.args:
                case "builtins.getattr", [base, ast.Constant(value=str(key)), *default]:
                    return item(self, base, key) | self._union(*default)
                case (
                    "builtins.next" | "builtins.min" | "builtins.max" | "builtins.sorted",
                    [iterable],
                ):
                    return element(self, iterable)
                case "builtins.int" | "builtins.float" | "builtins.bool", _:
                    # A number of Python, whatever it was made of.
                    return frozenset(replace(d, through=None) for d in self._union(*arguments))
            return self._union(*arguments)
        function = needs_of(name)
        if function is not None and function.static_result:
            needed = [a for a, p in function.passed(node) if p.takes not in ("traced", "function")]
            return self._union(*needed)
        found = self._union(*arguments)
        if name.startswith(library_arguments.TRACED_MODULES) and not self._at_compile_time(node):
            return through(found, self.module, node)
        return found

    def _at_compile_time(self, node: ast.AST) -> bool:
        """Whether a node stands in `with jax.ensure_compile_time_eval():`."""
        for around in self.module.ancestors(node):
            if isinstance(around, ast.With):
                for item in around.items:
                    context = item.context_expr
                    if isinstance(context, ast.Call):
                        for value in self.evaluator.values(self.module, context.func):
                            if value == External("jax.ensure_compile_time_eval"):
                                return True
            if around is self.node:
                break
        return False

    def function_result(
        self, function: Function, callee: Value, node: ast.Call, key: Key | None = None
    ) -> Dependences:
        """What the result of a function of the project, or an item of it, depends on."""
        if self.inside(function.node):
            # A nested function: its result depends on the enclosing parameters, too.
            found: set[Dependence] = set()
            for expr in returned_expressions(function.node):
                found |= self.depends(expr)
            return frozenset(found) | self._union(*node.args, *(k.value for k in node.keywords))
        call = full_arguments(callee, node)
        found = set()
        for needed in self._result_of(function, receiver_of(callee), key):
            name, index = needed.parameter, needed.index
            for inner in supplied(self, function.node, call, skipped(callee), name, index):
                found.add(inner.after(needed.through) if needed.through else inner)
        return frozenset(found)
