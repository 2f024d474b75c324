"""What the value of an expression in a function depends on.

`x.shape` depends on nothing, `n + 1` on the parameter `n`, and `jnp.sqrt(x.shape[0])` on constants,
with an operation of JAX in between. In `opts = {"train": train, "w": w}`, `opts["train"]` depends
on `train` alone, and so does `train` of a function that is called with `**opts`. The analysis
follows local names, nested functions, and the results of other functions.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from ...libraries import library_arguments
from ...libraries.apis import COMPILERS
from ...libraries.library_needs import array_method, computes_array, needs_of
from ..fixed_point import FixedPoint
from ..names.module import Binding, FunctionNode, Module, last_name
from ..values.bind import bind_call, default_of, positional_parameters
from ..values.containers import looped, stored_in
from ..values.contents import Contents, contents_of
from ..values.evaluator import (
    Callees,
    Overrides,
    bodies_of,
    field_value,
    full_arguments,
    receiver_of,
    returned_expressions,
    skipped,
)
from ..values.values import (
    NOTHING,
    Class,
    External,
    Function,
    ModuleValue,
    Result,
    Value,
    Values,
    Wrapped,
    alternatives,
    underlying,
)

Key = str | int
Operation = tuple[Module, ast.expr]
# What a value depends on if not on a parameter: on constants and shapes alone, or on something that
# cannot be seen, such as a variable of an enclosing function or the result of unknown code.
CONSTANTS = ""
UNSEEN = "?"
# Beyond this many items, a value depends on the parameter as a whole.
_MOST_ITEMS = 32


@dataclass(frozen=True, slots=True, eq=False)
class Operations:
    """The `jax.numpy` operations that a value is the result of, which a checkpoint traces.

    Values share them: a chain of n operations takes memory for n of them.

    Attributes:
        last: the last operation, with its module; None where several paths meet.
        before: the operations between what the value depends on and the operands.
        certain: whether the value is certainly an array of JAX; what has methods of the same names
            may be a NumPy array.
    """

    last: Operation | None
    before: tuple[Operations, ...]
    certain: bool = False

    def all(self) -> frozenset[Operation]:
        """Return every operation."""
        found: set[Operation] = set()
        seen = {self}
        waiting = [self]
        while waiting:
            operations = waiting.pop()
            if operations.last is not None:
                found.add(operations.last)
            new = set(operations.before) - seen
            seen |= new
            waiting += new
        return frozenset(found)


# Of an array that exists before the checkpoint, or is computed at compile time: it is concrete, but
# operations on it are traced.
CONCRETE_ARRAY = Operations(None, (), certain=True)


@dataclass(frozen=True, slots=True)
class Dependence:
    """A parameter that the value of an expression depends on.

    Attributes:
        parameter: its name, or CONSTANTS or UNSEEN.
        index: the item that is needed, if it is only one: the position in `*args` or a tuple, the
            key in `**kwargs` or a dict, the attribute of an object.
        operations: the `jax.numpy` operations in between, if any: inside a checkpointed function,
            their results are tracers even if nothing traced goes in.
    """

    parameter: str
    index: Key | None = None
    operations: Operations | None = None

    @property
    def traced(self) -> frozenset[Operation]:
        """The operations in between, in any order."""
        return frozenset() if self.operations is None else self.operations.all()

    @property
    def is_array(self) -> bool:
        """Whether the value is certainly an array of JAX."""
        return self.operations is not None and self.operations.certain

    def after(self, operations: Operations) -> Dependence:
        """Return the dependence of a value after further operations."""
        before = [operations] if self.operations is None else [self.operations, operations]
        return Dependence(self.parameter, self.index, _joined(before))


Dependences = frozenset[Dependence]
NONE: Dependences = frozenset()


def _joined(operations: Sequence[Operations]) -> Operations:
    if len(operations) == 1:
        return operations[0]
    return Operations(None, tuple(operations), any(one.certain for one in operations))


def merged(found: Iterable[Dependence]) -> Dependences:
    """Merge the dependences on each parameter into one with operations and one without.

    It does not matter which operations are on the same path, and every `x = x + jnp.sin(x)` doubles
    the number of paths.
    """
    items: dict[tuple[str, bool], dict[Key | None, dict[Operations, None]]] = {}
    for dependence in found:
        operations = dependence.operations
        alike = items.setdefault((dependence.parameter, operations is None), {})
        paths = alike.setdefault(dependence.index, {})
        if operations is not None:
            paths[operations] = None
    for alike in items.values():
        if len(alike) > _MOST_ITEMS:
            together = {one: None for paths in alike.values() for one in paths}
            alike.clear()
            alike[None] = together
    return frozenset(
        Dependence(parameter, index, _joined(list(paths)) if paths else None)
        for (parameter, _), alike in items.items()
        for index, paths in alike.items()
    )


def with_operation(
    found: Iterable[Dependence], module: Module, node: ast.expr, *, certain: bool
) -> Dependences:
    """Return the dependences of an operation's result, given those of its operands.

    Args:
        found: the dependences of the operands.
        module: the module with the operation.
        node: the operation.
        certain: whether JAX certainly computes it.
    """
    results: dict[Operations | None, Operations] = {}
    after: set[Dependence] = set()
    for dependence in found or ([Dependence(CONSTANTS)] if certain else ()):
        before = dependence.operations
        if before not in results:
            operands = () if before is None else (before,)
            results[before] = Operations((module, node), operands, certain)
        after.add(replace(dependence, operations=results[before]))
    return frozenset(after)


def concrete_array(found: Iterable[Dependence]) -> Dependences:
    """Return the dependences of an array of JAX that is concrete."""
    found = list(found) or [Dependence(CONSTANTS)]
    return frozenset(replace(dependence, operations=CONCRETE_ARRAY) for dependence in found)


def python_value(found: Iterable[Dependence]) -> Dependences:
    """Return the dependences of a Python value, such as `int(x)`, however it is computed."""
    return frozenset(
        replace(dependence, operations=None)
        for dependence in found
        if dependence.parameter not in (CONSTANTS, UNSEEN)
    )


_UNSEEN: Dependences = frozenset((Dependence(UNSEEN),))
# What is computed outside of functions: displays may be long, and are not searched for arrays.
_COMPUTED = (ast.Call, ast.BinOp, ast.UnaryOp, ast.Subscript, ast.Attribute, ast.Name)
# Calls that return a container with the contents of their first argument and their keywords.
_COPIES = frozenset(
    {
        "builtins.dict", "builtins.list", "builtins.tuple", "builtins.vars", "builtins.reversed",
        "copy.copy", "copy.deepcopy", "dataclasses.asdict", "dataclasses.replace",
        "types.SimpleNamespace", "flax.core.FrozenDict", "flax.core.freeze", "flax.core.unfreeze",
    }
)  # fmt: skip
_COPYING_METHODS = frozenset({"copy", "_replace", "replace", "_asdict"})


class DependenceAnalysis:
    """Finds what the expressions of one function, nested functions included, depend on.

    Attributes:
        evaluator: evaluates expressions.
        module: the function's module.
        node: the function.
        scope: its scope.
        receiver: the class of the object that a method is called on.
    """

    def __init__(
        self,
        function: Function,
        receiver: Class | None,
        overrides: Overrides,
        result_of: Callable[[Function, Class | None, Key | None], Dependences],
    ) -> None:
        """`result_of` returns the parameters that the result of a function, given its receiver, or
        an item of that result, depends on; `overrides` finds the methods that a call may run.
        """
        self.evaluator = overrides.evaluator
        self.module = function.module
        self.node = function.node
        self.scope = self.module.scope_of(function.node)
        self.receiver = receiver
        self._overrides = overrides
        self._result_of = result_of
        self._callees: dict[ast.expr, Callees] = {}
        self._numbers: dict[ast.expr, bool] = {}
        # A loop may compute a value from itself: `opts = merge(opts)`.
        self._answers = FixedPoint(self._answer, NONE, _kinds)

    def dependences(self, node: ast.expr | None, key: Key | None = None) -> Dependences:
        """Return the parameters whose values an expression, or an item of a name, depends on."""
        return NONE if node is None else self._answers.answer((node, key))

    def _answer(self, question: tuple[ast.expr, Key | None] | Binding) -> Dependences:
        match question:
            case Binding():
                return self._of_binding(question)
            case node, None:
                return merged(self._compute(node))
            case node, key:
                return self._item(node, key)

    def _union(self, nodes: Iterable[ast.expr], key: Key | None = None) -> Dependences:
        # A loop rather than `union(*map(...))`: Python 3.12 limits recursion through C functions.
        found: Dependences = NONE
        for node in nodes:
            found |= self.dependences(node, key)
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
        if runs_at_compile_time(self.module, node):
            return concrete_array(found) if certain else found
        return with_operation(found, self.module, node, certain=certain)

    def _operands(self, node: ast.expr) -> Dependences:
        match node:
            case ast.Name():
                return self._name(node)
            case ast.Lambda():
                return NONE
            case ast.Attribute(attr=attr) if attr in library_arguments.STATIC_ATTRIBUTES:
                return NONE
            case ast.Attribute(attr=attr) if attr in library_arguments.ARRAY_ATTRIBUTES:
                return self.dependences(node.value)
            case ast.Attribute():
                return self.dependences(node.value, node.attr) | self._held_array(node)
            case ast.Subscript(slice=ast.Constant(value=str() | int() as key)):
                return self.dependences(node.value, key) | self._held_array(node)
            case ast.Compare():
                return self._compare(node)
            case ast.Call():
                return self._call(node)
        parts = alternatives(node) or ast.iter_child_nodes(node)
        return self._union([part for part in parts if isinstance(part, ast.expr)])

    def _held_array(self, node: ast.expr) -> Dependences:
        """Return the dependences of an array of JAX that a class, an object or a module holds."""
        values = self.evaluator.values(self.module, node)
        held = any(isinstance(v, Result) and computes_array(v.name) for v in values)
        return concrete_array(NONE) if held else NONE

    def _name(self, node: ast.Name) -> Dependences:
        # Many assignments may reach each of many names.
        found = {self._stored_in(node)}
        for binding in self.module.reaching(node):
            found.add(self._answers.answer(binding))
        return NONE.union(*found)

    def _stored_in(self, node: ast.Name) -> Dependences:
        """Return what the values depend on that the code puts into the object of a name.

        The object of a parameter is the caller's, which the parameter stands for.
        """
        bindings = {b for b in self.module.reaching(node) if b.kind != "parameter"}
        return self._union([one.value for one in stored_in(self.module, self.node, node, bindings)])

    def _of_binding(self, binding: Binding) -> Dependences:
        """Return what the value that a binding gives its name depends on."""
        if binding.kind == "parameter":
            return self._of_parameter(binding)
        if not self.contains(binding.scope.node):
            return self._from_outside(binding)
        if binding.value is None:
            return NONE
        if binding.kind == "element":
            place = self._listed(binding.value)
            return self.operator(place, self.element(binding.value, binding.path))
        if binding.path and binding.path[0] >= 0 and binding.kind == "assign":
            return self.operator(binding.value, self.dependences(binding.value, binding.path[0]))
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

    def _of_parameter(self, binding: Binding, key: Key | None = None) -> Dependences:
        """Return what a parameter, or an item of it, depends on.

        A parameter of a nested function depends on what the calls in this function pass for it.
        """
        if binding.scope is self.scope:
            return frozenset((Dependence(binding.name, key),))
        inner = binding.scope.node
        if not isinstance(inner, FunctionNode) or not self.contains(inner):
            return _UNSEEN
        found = _UNSEEN if inner in self._passed_on else NONE
        default = default_of(inner, binding.node) if isinstance(binding.node, ast.arg) else None
        found |= self.dependences(default) if default is not None else NONE
        for call in self.inner_calls.get(inner, ()):
            found |= self.argument(inner, (call.args, call.keywords), 0, binding.name, key)
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
                    if not (
                        self.contents.kind_of(left) == "text" or self.contents.is_mapping(right)
                    ):
                        found |= self.element(right)
                case _:
                    found |= self._union((left, right))
            left = right
        return found

    def _call(self, node: ast.Call) -> Dependences:
        arguments = [*node.args, *(k.value for k in node.keywords)]
        callees = self.callees(node.func)
        found = self._union(arguments) | _UNSEEN if callees.abstract else NONE
        for value in callees.values:
            found |= self._result_of_callee(value, node, arguments)
        if callees.values:
            return found
        found |= self._union(arguments)
        if not isinstance(node.func, ast.Attribute):
            return found | _UNSEEN
        return self._result_of_method(node, node.func, found)

    def _result_of_callee(
        self, value: Value, node: ast.Call, arguments: list[ast.expr]
    ) -> Dependences:
        match underlying(value):
            case External(name):
                return self._external_result(name, node, arguments)
            case Function() as function:
                return self._of_result(function, value, node)
            case Class():
                return self._union(arguments)
        return self._union(arguments) | _UNSEEN

    def _result_of_method(
        self, node: ast.Call, method: ast.Attribute, found: Dependences
    ) -> Dependences:
        """Return what a method of an unknown object returns; `found` are those of the arguments."""
        receiver = method.value
        match method.attr, node.args:
            case (("get" | "pop"), [ast.Constant(value=str() | int() as key), *_]):
                found |= self.dependences(receiver, key)
            case "keys", []:
                pass
            case _:
                found |= self.dependences(receiver)
        if method.attr in library_arguments.CONCRETE_METHODS:
            return python_value(found)
        if array_method(method) is not None:
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
                return self.dependences(base, key) | self._union(default)
            case "next" | "min" | "max" | "sorted", [iterable]:
                return self.element(iterable)
            case "any" | "all", [iterable]:
                return python_value(self.element(iterable))
            case "int" | "float" | "bool" | "complex" | "str" | "format", _:
                return python_value(self._union(arguments))
            case "round" | "abs" | "pow" | "divmod" | "sum", _:
                return self.operator(node, self._union(arguments))
        return self._union(arguments)

    def _of_result(
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
            passed = self.argument(function.node, call, skipped(callee), name, needed.index)
            if operations is not None:
                if operations.certain and not passed:
                    passed = frozenset((Dependence(CONSTANTS),))
                passed = frozenset(d.after(operations) for d in passed)
            found |= passed
        if found and runs_at_compile_time(self.module, node):
            return concrete_array(found) if any(d.is_array for d in found) else found
        return found

    # -- items

    def _item(self, node: ast.expr, key: Key) -> Dependences:
        """Return what `node[key]`, or the attribute `node.key`, depends on."""
        match node:
            case ast.Dict():
                return self._item_of_display(node, key)
            case ast.Tuple() | ast.List() if isinstance(key, int):
                if not any(isinstance(part, ast.Starred) for part in node.elts):
                    in_range = -len(node.elts) <= key < len(node.elts)
                    return self.dependences(node.elts[key]) if in_range else NONE
            case ast.Name():
                return self._item_of_name(node, key)
            case ast.Call():
                return self._item_of_call(node, key)
        if parts := alternatives(node):
            return self._union(parts, key)
        return self.dependences(node)

    def _item_of_display(self, node: ast.Dict, key: Key) -> Dependences:
        found: Dependences = NONE
        for name, value in reversed(list(zip(node.keys, node.values, strict=True))):
            if name is None:
                found |= self.dependences(value, key)
            elif not isinstance(name, ast.Constant):
                found |= self.dependences(value)
            elif name.value == key:
                return found | self.dependences(value)
        return found

    def _item_of_name(self, node: ast.Name, key: Key) -> Dependences:
        """Return what an item of a name's value depends on."""
        bindings = self.module.reaching(node)
        found: Dependences = NONE
        for binding in bindings:
            if binding.kind == "parameter":
                found |= self._of_parameter(binding, key)
            elif (
                binding.kind in ("assign", "augment")
                and binding.value
                and not binding.path
                and self.contains(binding.scope.node)
            ):
                found |= self.dependences(binding.value, key)
            else:
                found |= self._of_binding(binding)
        for one in stored_in(self.module, self.node, node, bindings):
            if one.key is None or not isinstance(one.key, ast.Constant):
                found |= self.dependences(one.value, key)
            elif one.key.value == key:
                found |= self.dependences(one.value)
        return found

    def _item_of_call(self, node: ast.Call, key: Key) -> Dependences:
        if isinstance(node.func, ast.Attribute) and node.func.attr in _COPYING_METHODS:
            return self._item_of_copy(node, key, [node.func.value, *node.args])
        values = self.callees(node.func).values
        found: Dependences = NONE
        for value in values:
            match underlying(value):
                case External(name) if name in _COPIES:
                    found |= self._item_of_copy(node, key, node.args)
                case Class() as cls:
                    field = self._item_of_new_object(cls, node, key)
                    found |= self.dependences(node) if field is None else field
                case Function() as function if not self.contains(function.node):
                    found |= self._of_result(function, value, node, key)
                case _:
                    found |= self.dependences(node)
        return found if values else self.dependences(node)

    def _item_of_copy(self, node: ast.Call, key: Key, sources: Sequence[ast.expr]) -> Dependences:
        """Return the same of a copy that keywords change: `dict(base, n=n)`, `replace(o, n=n)`."""
        for keyword in node.keywords:
            if keyword.arg == key:
                return self.dependences(keyword.value)
        spread = [keyword.value for keyword in node.keywords if keyword.arg is None]
        return self._union((*sources, *spread), key)

    def _item_of_new_object(self, cls: Class, node: ast.Call, key: Key) -> Dependences | None:
        """Return what a field of a new object depends on; None if the class does not tell."""
        if any(keyword.arg is None for keyword in node.keywords):
            return self._item_of_copy(node, key, ())
        found = field_value(self.evaluator, cls, node, key)
        if found is None:
            return None
        return self.dependences(found) if found in ast.walk(node) else NONE

    def element(self, iterable: ast.expr, path: tuple[int, ...] = ()) -> Dependences:
        """Return what an element of a loop over `iterable`, unpacked by `path`, depends on."""
        part = looped(self.module, iterable, path)
        iterable, path = part.source, part.path
        if part.kind in ("key", "position"):
            return NONE
        if part.kind == "value":
            return self.dependences(iterable)
        if self.contents.is_mapping(iterable):
            return NONE
        match iterable:
            case ast.Tuple() | ast.List() | ast.Set():
                found = NONE
                for item in iterable.elts:
                    found |= self._unpacked(item, path)
                return found
            case ast.Name():
                return self._element_of_name(iterable, path)
        return self.dependences(iterable)

    def _element_of_name(self, node: ast.Name, path: tuple[int, ...]) -> Dependences:
        found = self._stored_in(node)
        for binding in self.module.reaching(node):
            if binding.kind == "parameter" and self.contents.is_mapping_binding(binding):
                continue
            if binding.kind == "assign" and binding.value and not binding.path:
                if self.contains(binding.scope.node) and not isinstance(binding.value, ast.Name):
                    found |= self.element(binding.value, path)
                    continue
            found |= self._of_binding(binding)
        return found

    def _unpacked(self, node: ast.expr, path: tuple[int, ...]) -> Dependences:
        if isinstance(node, ast.Starred):
            return self.element(node.value, path)
        if path and path[0] >= 0:
            return self.dependences(node, path[0])
        return self.dependences(node)

    def argument(
        self,
        function: FunctionNode,
        call: tuple[Sequence[ast.expr], Sequence[ast.keyword]],
        skip: int,
        name: str,
        key: Key | None = None,
    ) -> Dependences:
        """Return what an argument of a call, or an item of it, depends on.

        Args:
            function: the function that is called.
            call: the arguments.
            skip: how many leading parameters are bound already.
            name: the parameter.
            key: the item.
        """
        args, keywords = call
        bound = bind_call(function, args, keywords, skip)
        if name in bound.by_name:
            return self.dependences(bound.by_name[name], key)
        signature = function.args
        spread = [k.value for k in keywords if k.arg is None]
        if signature.kwarg is not None and name == signature.kwarg.arg:
            if isinstance(key, str) and (given := [k for k in bound.double_star if k.arg == key]):
                return self.dependences(given[0].value)
            named = [k.value for k in bound.double_star if key is None]
            return self._union((*named, *spread), key)
        first = next((i for i, arg in enumerate(args) if isinstance(arg, ast.Starred)), len(args))
        names = [p.arg for p in positional_parameters(function)][skip:]
        if signature.vararg is not None and name == signature.vararg.arg:
            if not isinstance(key, int):
                return self._union((*bound.star, *args[first:]), None)
            if key < len(bound.star):
                return self.dependences(bound.star[key])
            return self._from_star(args[first:], len(names) + key - first)
        found = self._union(spread, name)
        if name in names and names.index(name) >= first and first < len(args):
            found |= self._from_star(args[first:], names.index(name) - first)
        return found

    def _from_star(self, rest: Sequence[ast.expr], place: int) -> Dependences:
        """Return what the argument at a place of `rest`, which starts with `*args`, depends on."""
        match rest:
            case [ast.Starred(value=spread)] if place >= 0:
                return self.dependences(spread, place)
        return self._union(rest, None)

    # -- the function

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
        """The nested functions that are used otherwise than in calls of them."""
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

    @cached_property
    def _compiled(self) -> set[FunctionNode]:
        found: set[Value] = set()
        for node in ast.walk(self.node):
            made: Values = NOTHING
            if isinstance(node, ast.Call):
                made = self.evaluator.values(self.module, node)
                for body in bodies_of(self.evaluator, self.module, node):
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

    def is_number(self, node: ast.expr) -> bool:
        """Return whether an expression consists of parameters and numbers alone."""
        if node not in self._numbers:  # asked for each part of a long sum
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


def _kinds(found: Dependences) -> frozenset[tuple[str, Key | None, bool, bool]]:
    """Return the dependences without their operations, to which each round adds some."""
    return frozenset((d.parameter, d.index, d.operations is None, d.is_array) for d in found)


def runs_at_compile_time(module: Module, node: ast.AST) -> bool:
    """Return whether a node is inside `with jax.ensure_compile_time_eval():`."""
    return any(
        last_name(getattr(item.context_expr, "func", item)) == "ensure_compile_time_eval"
        for around in module.ancestors(node)
        if isinstance(around, ast.With)
        for item in around.items
    )
