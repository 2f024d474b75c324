"""Which parameters of a function must be concrete at trace time.

A *need* is a place that needs a concrete value: a branch, a loop bound, a shape. A parameter is
needed if the value at such a place depends on it. The analysis follows local names, nested
functions, and calls of functions of any module.

`x.shape` depends on nothing, `n + 1` on the parameter `n`, and `jnp.sqrt(x.shape[0])` on constants,
with an operation of JAX in between. In `opts = {"train": train, "w": w}`, `opts["train"]` depends
on `train` alone, and so does `train` of a function that is called with `**opts`.
"""

from __future__ import annotations

import ast
import functools
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any

from ...libraries import library_arguments
from ...libraries.apis import COMPILERS
from ...libraries.library_arguments import is_array_attribute
from ...libraries.library_needs import (
    LibraryFunction,
    always_concrete,
    array_method,
    computes_array,
    needs_of,
)
from ..fixed_point import FixedPoint
from ..names.module import Binding, FunctionNode, Module, body_nodes, last_name, parameters
from ..values.bind import argument, bind_call, default_of, positional_parameters
from ..values.containers import looped, sources, stored_in
from ..values.contents import Contents, contents_of
from ..values.evaluator import (
    Callees,
    Overrides,
    Target,
    bodies_of,
    field_value,
    full_arguments,
    is_pytree,
    partial_calls,
    receiver_of,
    returned_expressions,
    skipped,
    static_passed,
    targets_of,
)
from ..values.values import (
    NOTHING,
    Class,
    Constant,
    Container,
    External,
    Function,
    Instance,
    ModuleValue,
    Partial,
    Result,
    Value,
    Values,
    Wrapped,
    alternatives,
    order,
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


# Reasons that are told apart.
BRANCH = "a branch on it"
LOOP = "a loop condition"
ASSERTION = "an assertion on it"
AND_OR = "`and`/`or` on it"
NOT = "`not` on it"
MATCH = "a match on it"
IDENTITY = "an identity test"
ORDER = "its order"
CONDITIONS = frozenset({BRANCH, LOOP, ASSERTION})
# Reasons that need the truth of a value, which for a container is known, whatever its items are.
TRUTH = frozenset({*CONDITIONS, AND_OR, NOT})

# A caller is told of so many places that need the same parameter in the same way: otherwise each
# of n functions that call one another would know every place in all of them.
_MOST_ALIKE = 20


@dataclass(frozen=True, slots=True)
class Need:
    """A place that needs a value at trace time.

    Attributes:
        parameter: the parameter that the value depends on, or CONSTANTS or UNSEEN.
        index: the item that is needed, if it is only one; see Dependence.
        module: the module with the place.
        node: the expression that must be concrete.
        reason: what needs it.
        certain: False if the value only reaches a place that may need it.
        opaque: whether that is code that cannot be seen.
        called: whether the value, or a method of it that arrays do not have, is called.
        type_test: whether the code tests the type of the value, or whether it is the same object as
            another, which differs for a tracer.
        changed: whether the code changes the object, of which a checkpointed function gets a copy,
            or sees the order of a dictionary, which the copy does not keep.
        stored: whether it puts something computed into the object.
        operands: further parameters; there is no need unless they are Python values.
        traced: the operations in between; see Dependence.
        is_result: whether the value is certainly a result of JAX, which a checkpoint traces
            whatever goes in.
        passed: whether a result is passed to a function that computes with it.
    """

    parameter: str
    index: int | str | None
    module: Module
    node: ast.expr
    reason: str
    certain: bool = True
    opaque: bool = False
    called: bool = False
    type_test: bool = False
    changed: bool = False
    stored: bool = False
    operands: frozenset[str] = frozenset()
    traced: frozenset[tuple[Module, ast.expr]] = frozenset()
    is_result: bool = False
    passed: bool = False

    @property
    def operations(self) -> list[tuple[Module, ast.expr]]:
        """The operations in `traced`, in source order."""
        return sorted(self.traced, key=lambda t: (t[0].source.path, t[0].span(t[1])))

    @property
    def is_of_parameter(self) -> bool:
        """Whether the place needs a parameter as it is, rather than something computed from it."""
        return _is_parameter(self.module, self.node)

    @property
    def is_of_truth(self) -> bool:
        """Whether the place needs only the truth of parameters as they are: `if not cache`."""
        if self.reason not in TRUTH or self.index is not None or self.traced:
            return False
        waiting: list[ast.expr] = [self.node]
        while waiting:
            match waiting.pop():
                case ast.BoolOp(values=values):
                    waiting += values
                case ast.UnaryOp(op=ast.Not(), operand=operand):
                    waiting.append(operand)
                case ast.Compare(ops=[ast.Is() | ast.IsNot()]):
                    pass
                case node if not _is_parameter(self.module, node):
                    return False
        return True

    def argument(self, function: FunctionNode) -> int | str | None:
        """Return the index if the parameter is `*args` or `**kwargs`, whose items are arguments."""
        a = function.args
        stars = [p.arg for p in (a.vararg, a.kwarg) if p is not None]
        return self.index if self.parameter in stars else None


def _is_parameter(module: Module, node: ast.expr) -> bool:
    bindings = module.reaching(node) if isinstance(node, ast.Name) else frozenset()
    return bool(bindings) and all(b.kind == "parameter" for b in bindings)


_NONE: frozenset[tuple[Module, ast.expr]] = frozenset()


def merged_needs(needs: Iterable[Need]) -> tuple[Need, ...]:
    """Merge the needs of each place into one with operations and one without, in the same order.

    Otherwise every call on the path to a need would double them; see `dependence.merged`.
    """
    found: dict[tuple[Need, bool], frozenset[tuple[Module, ast.expr]]] = {}
    for need in needs:
        alike = (replace(need, traced=_NONE) if need.traced else need, bool(need.traced))
        found[alike] = found.get(alike, _NONE) | need.traced
    return tuple(
        replace(need, traced=traced) if traced else need for (need, _), traced in found.items()
    )


def passed_on(needs: Iterable[Need]) -> Iterator[Need]:
    """Yield the needs of a function that concern its callers; of many that are alike, the first."""
    alike: Counter[tuple[object, ...]] = Counter()
    for need in needs:
        reason = need.reason if need.reason in TRUTH else ""
        kind = (
            *(need.parameter, need.index, reason, need.certain, need.opaque, need.called),
            *(need.type_test, need.operands, bool(need.traced), need.is_result),
            *(need.passed, need.changed, need.stored),
        )
        alike[kind] += 1
        if alike[kind] <= _MOST_ALIKE:
            yield need


@dataclass(frozen=True, slots=True)
class NeededResult:
    """A place that needs the value of a result of JAX, which a checkpoint traces whatever goes in.

    If nothing traced goes in, the operation can run at compile time.

    Attributes:
        need: the place, with all operations that lead to it.
        sources: the needs of all that goes into it.
    """

    need: Need
    sources: tuple[Need, ...]

    @property
    def parameters(self) -> set[str]:
        """The parameters that go in."""
        return {need.parameter for need in self.sources} - {CONSTANTS, UNSEEN}

    def may_be_traced(self, closed: Collection[str]) -> bool:
        """Return whether something besides arguments goes in that may be traced; the calls do not
        pass the parameters in `closed`.
        """
        return any(n.parameter == UNSEEN or n.parameter in closed for n in self.sources)


def needed_results(needs: Iterable[Need]) -> Iterator[NeededResult]:
    """Yield the results among the needs of a function, each place once."""
    by_place: dict[ast.expr, list[Need]] = {}
    for need in needs:
        if need.certain and need.is_result:
            by_place.setdefault(need.node, []).append(need)
    for found in by_place.values():
        traced = frozenset().union(*(need.traced for need in found))
        yield NeededResult(replace(found[0], traced=traced), tuple(found))


_CONTAINER_METHODS = frozenset(
    (*dir(dict), *dir(list), *dir(tuple), *dir(set), "_replace", "_asdict", "replace", "unfreeze")
)
# Methods of containers that return None.
_MUTATING_METHODS = frozenset(
    {"add", "append", "clear", "discard", "extend", "insert", "remove", "reverse", "sort", "update"}
)
# Methods that change their object, and return what they take or find.
_TAKING_METHODS = frozenset({"pop", "popitem", "popleft", "setdefault", "appendleft"})
# Methods of containers that hash their first argument, or use it as an index.
_OF_KEY = frozenset(
    {"get", "pop", "setdefault", "insert", "add", "discard", "__getitem__", "__contains__"}
)
# Methods that search for an equal item; the same object is equal without a comparison.
_OF_EQUAL = frozenset({"index", "count", "remove"})
# Builtins whose result does not depend on the order of their argument.
_UNORDERED = frozenset(
    {"sorted", "set", "frozenset", "len", "sum", "max", "min", "any", "all", "dict"}
)
# Builtins that compare the elements of their argument.
_ON_ELEMENTS = frozenset({"max", "min", "sorted", "any", "all"})
# Statements in which formatted text is a message.
_MASKS = frozenset({"isfinite", "isnan", "isinf", "isclose", "isin", "logical_not"})
_MESSAGES = (ast.Raise, ast.Assert, ast.Expr)
_ARITHMETIC = "arithmetic on Python numbers"
_STORED = "it is stored in an object"
# Builtins that may read any variable of the function that calls them.
_READING_VARIABLES = frozenset({"locals", "vars", "eval", "exec"})

# A function and, for a method, the class of the object that it is called on.
_Method = tuple[Function, Class | None]


class Needs:
    """Finds and caches the needs of functions."""

    def __init__(self, overrides: Overrides) -> None:
        self.evaluator = overrides.evaluator
        self.overrides = overrides
        self._answers = FixedPoint[_Method, tuple[Need, ...]](self._analyse, (), frozenset)
        self._results: dict[tuple[_Method, Key | None], Dependences] = {}

    def of(self, function: Function, receiver: Class | None = None) -> tuple[Need, ...]:
        """Return the needs of a function in source order.

        Args:
            function: the function.
            receiver: the class of the object, for a method; by default the class that defines it,
                or a subclass.
        """
        return self._answers.answer(_method(function, receiver))

    def _analyse(self, method: _Method) -> tuple[Need, ...]:
        function, receiver = method
        return merged_needs(_Analysis(self, function, receiver).needs())

    def result(
        self, function: Function, receiver: Class | None = None, key: Key | None = None
    ) -> Dependences:
        """Return the parameters that the result of a function, or an item of it, depends on."""
        method = _method(function, receiver)
        if (method, key) not in self._results:
            node = function.node
            self._results[method, key] = frozenset(Dependence(p.arg) for p in parameters(node))
            analysis = _Analysis(self, function, method[1])
            found: set[Dependence] = set()
            for expr in returned_expressions(node):
                found |= analysis.dependences(expr, key)
            self._results[method, key] = merged(found)
        return self._results[method, key]


def _method(function: Function, receiver: Class | None) -> _Method:
    """Return the cache key of a function, with the class of the object for a method."""
    cls = function.module.enclosing_class(function.node)
    if cls is None:
        return function, None
    return function, receiver or Class(function.module, cls, exact=False)


class _Analysis:
    """Finds what the expressions of one function, nested functions included, depend on, and its
    needs.

    Attributes:
        evaluator: evaluates expressions.
        module: the function's module.
        node: the function.
        scope: its scope.
        receiver: the class of the object that a method is called on.
    """

    def __init__(self, needs: Needs, function: Function, receiver: Class | None) -> None:
        self.evaluator = needs.evaluator
        self.module = function.module
        self.node = function.node
        self.scope = self.module.scope_of(function.node)
        self.receiver = receiver
        self._needs = needs
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
        for needed in self._needs.result(function, receiver_of(callee), key):
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
            found = self._needs.overrides.callees(self.module, node, self.receiver)
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

    # -- needs

    def needs(self) -> Iterator[Need]:
        """Yield every need in the function's body, nested functions included."""
        for node in body_nodes(self.node):
            yield from self._needs_at(node)

    def _truth(self, node: ast.expr) -> Dependences:
        """Return what the truth of an expression depends on, not counting items of containers."""
        match node:
            case ast.BoolOp():
                return frozenset().union(*(self._truth(v) for v in node.values))
            case ast.UnaryOp(op=ast.Not()):
                return self._truth(node.operand)
            case ast.IfExp():
                return self._truth(node.body) | self._truth(node.orelse)
        return NONE if self.contents.is_container(node) else self.dependences(node)

    def _needs_at(self, node: ast.AST) -> Iterator[Need]:
        yield from self._change_needs(node)
        yield from self._order_needs(node)
        for tested, reason in _conditions(node):
            yield from self._need(tested, reason, found=self._truth(tested))
        match node:
            case ast.Match():
                yield from self._match_needs(node)
            case ast.Try():
                yield from self._attribute_tests(node)
            case ast.Compare():
                yield from self._compare_needs(node)
            case ast.BinOp() | ast.UnaryOp():
                yield from self._arithmetic_needs(node)
            case ast.Assign() | ast.AnnAssign(value=ast.expr()):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                if node.value is not None and any(map(self._is_out_of_sight, targets)):
                    yield from self._need(node.value, _STORED, certain=False)
            case ast.Yield(value=ast.expr() as value):
                yield from self._need(value, "it is yielded", certain=False)
            case ast.Set():
                yield from self._needs_of(node.elts, "an element of a set")
            case ast.Slice():
                bounds = (node.lower, node.upper, node.step)
                yield from self._needs_of((b for b in bounds if b is not None), "a slice bound")
            case ast.Subscript(ctx=ast.Load()):
                yield from self._index_needs(node)
            case ast.Subscript(ctx=ast.Store(), value=array, slice=index):
                values = self.evaluator.values(self.module, array)
                if any(isinstance(v, Result) and v.name.startswith("numpy.") for v in values):
                    parts = index.elts if isinstance(index, ast.Tuple) else [index]
                    yield from self._needs_of(parts, "an index of a NumPy array")
            case ast.FormattedValue():
                for need in self._need(node.value, "text formatting", certain=False):
                    # A tracer has no `.2f`.
                    certain = need.is_result and node.format_spec is not None
                    if certain or not isinstance(self.module.statement(node), _MESSAGES):
                        yield replace(need, certain=certain)
            case ast.Call():
                yield from self._call_needs(node)

    def _is_out_of_sight(self, target: ast.expr) -> bool:
        """Return whether a target is read where the analysis does not follow it: in an object, a
        class, or a variable of the module.
        """
        if isinstance(target, ast.Name):
            scope = self.module.scope_at(target)
            return scope.is_class or target.id in scope.global_names
        return isinstance(target, ast.Subscript | ast.Attribute)

    def _match_needs(self, node: ast.Match) -> Iterator[Need]:
        patterns = [case.pattern for case in node.cases]
        if any(map(_compares, patterns)):
            yield from self._need(node.subject, MATCH)
        if any(map(self._tests_type, patterns)):
            reason = "a match on its type"
            yield from self._need(node.subject, reason, certain=False, type_test=True)

    def _change_needs(self, node: ast.AST) -> Iterator[Need]:
        """Yield the needs of arguments that the code changes in place."""
        for held, put in changes_in_place(node):
            if self._is_part(held):
                stored = any(map(self.dependences, put))
                reason = "it is changed in place"
                needs = self._need(held, reason, certain=False, changed=True, stored=stored)
                yield from (need for need in needs if not need.traced)

    def _order_needs(self, node: ast.AST) -> Iterator[Need]:
        """Yield the need of an argument that is a dictionary whose order the code sees."""
        match node:
            case ast.Call(
                func=ast.Attribute(value=held, attr="keys" | "values" | "items"), args=[]
            ):
                seen: ast.expr = node
            case ast.For(iter=held) | ast.comprehension(iter=held):
                seen = held
            case _:
                return
        if seen is held and not self.contents.is_mapping(held):
            return
        if self._is_part(held) and not self._is_unordered(seen):
            needs = self._need(held, ORDER, certain=False, changed=True)
            yield from (need for need in needs if not need.traced)

    def _is_unordered(self, seen: ast.expr) -> bool:
        """Return whether the order of a traversal does not matter: `max(d.values())`."""
        for around in self.module.ancestors(seen):
            match around:
                case ast.Call(func=ast.Name(id=name)) if name in _UNORDERED:
                    return True
                case ast.DictComp() | ast.SetComp() | ast.Compare():
                    return True
                case ast.comprehension() | ast.GeneratorExp() | ast.ListComp():
                    pass
                case _:
                    return False
        return False

    def _compare_needs(self, node: ast.Compare) -> Iterator[Need]:
        left = node.left
        for operator, right in zip(node.ops, node.comparators, strict=True):
            if isinstance(operator, ast.Is | ast.IsNot):
                constants = [n.value for n in (left, right) if isinstance(n, ast.Constant)]
                if None not in constants:
                    # A tracer is neither True nor False.
                    certain = any(isinstance(value, bool) for value in constants)
                    type_test = self._are_arguments(left, right)
                    yield from self._needs_of((left, right), IDENTITY, certain, type_test=type_test)
            elif isinstance(operator, ast.In | ast.NotIn):
                # A string is never in an array; a result of JAX is compared with the items.
                items = right.elts if isinstance(right, ast.Tuple | ast.List | ast.Set) else ()
                for operand in (left, *items):
                    found = self.operator(node, self.dependences(operand))
                    reason = "a membership test"
                    for need in self._need(operand, reason, certain=False, found=found):
                        if operand is left or need.is_result:
                            yield replace(need, certain=need.is_result)
            elif len(node.ops) > 1:
                for operand in (left, right):
                    found = self.operator(node, self.dependences(operand))
                    yield from self._need(operand, "a chained comparison", found=found)
            left = right

    def _are_arguments(self, left: ast.expr, right: ast.expr) -> bool:
        """Return whether two expressions are different arguments, or parts of them."""
        names = [{d.parameter for d in self.dependences(node)} for node in (left, right)]
        return self._is_part(left) and self._is_part(right) and names[0] != names[1]

    def _attribute_tests(self, node: ast.Try) -> Iterator[Need]:
        """Yield the needs of `try: x.shape`: a number has no shape, but the tracer for it has."""
        caught = {getattr(n, "id", "") for h in node.handlers if h.type for n in ast.walk(h.type)}
        if caught and not caught & {"AttributeError", "Exception", "BaseException"}:
            return
        for part in (n for statement in node.body for n in ast.walk(statement)):
            if isinstance(part, ast.Attribute) and is_array_attribute(part.attr):
                reason = f"a test for `.{part.attr}`"
                yield from self._need(part.value, reason, certain=False, type_test=True)

    def _tests_type(self, pattern: ast.pattern) -> bool:
        """Return whether a pattern is a class that a tracer is not: `case float()`."""
        classes = (p.cls for p in ast.walk(pattern) if isinstance(p, ast.MatchClass))
        return any(self._tests_for_number(cls) for cls in classes)

    def _arithmetic_needs(self, node: ast.BinOp | ast.UnaryOp) -> Iterator[Need]:
        """Yield needs of arithmetic on Python numbers: `2 ** -n` is 0 for a traced integer `n`."""
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            for sequence, times in ((node.left, node.right), (node.right, node.left)):
                is_text = isinstance(getattr(sequence, "value", None), str | bytes)
                if is_text or isinstance(sequence, ast.Tuple | ast.List | ast.JoinedStr):
                    yield from self._need(times, "repetition of a sequence")
                    return
        if not self.is_number(node):
            return
        names = frozenset(d.parameter for d in self.dependences(node))
        for need in self._need(node, _ARITHMETIC, certain=False):
            yield replace(need, operands=names - {need.parameter})

    def _index_needs(self, node: ast.Subscript) -> Iterator[Need]:
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if last_name(node.value) != "at":  # `x.at[x < 0].set(0.0)` is an operation of JAX
            for part in parts:
                if _is_mask(part):
                    yield from self._need(part, "a boolean index, which decides on a shape")
        if isinstance(node.slice, ast.Slice | ast.Tuple | ast.Constant):
            return
        values = self.evaluator.values(self.module, node.value)
        if any(isinstance(v, Container) for v in values):
            yield from self._need(node.slice, "an index of a Python container")
        elif any(isinstance(v, Constant) for v in values):
            yield from self._need(node.slice, "an index of a Python value")
        else:
            yield from self._need(node.slice, "an index, maybe of a Python container", False)

    def _call_needs(self, node: ast.Call) -> Iterator[Need]:
        callees = self.callees(node.func)
        values = callees.values
        called = self._called_object(node)
        if called is not None:
            yield from self._object_need(called)
        arguments = [*node.args, *(k.value for k in node.keywords)]
        if len(arguments) == 1 and External("jax.numpy.where") in values:
            yield from self._need(arguments[0], "`jnp.where` of one argument")
        if callees.abstract or callees.others:
            reason = f"`{ast.unparse(node.func)}`, which subclasses may override"
            yield from self._needs_of(arguments, reason, certain=False, opaque=callees.abstract)
        known = callees.abstract
        for value in sorted(values, key=order):
            found = self._callee_needs(value, node)
            known = known or found is not None
            yield from found or ()
            for passed, option, certain in static_passed(self.evaluator, value, node):
                yield from self._need(passed, option, certain)
        if not known:
            yield from self._unknown_callee_needs(node, is_object=called is not None)

    def _called_object(self, call: ast.Call) -> ast.expr | None:
        """Return the argument, or the part of one, that a call uses as an object: the call calls
        it, or a method of it that arrays do not have.
        """
        func = held = call.func
        if isinstance(func, ast.Attribute):
            attr = func.attr
            if array_method(func) is not None or attr in library_arguments.CONCRETE_METHODS:
                return None
            is_used = not isinstance(self.module.parent(call), ast.Expr)
            if attr in _CONTAINER_METHODS and not (is_used and attr in _MUTATING_METHODS):
                return None
            held = func.value
        return held if self._is_part(held) else None

    def _is_part(self, node: ast.expr) -> bool:
        """Return whether an expression is an argument, or an item, attribute or element of one."""
        return any(
            binding.kind == "parameter" and self.contains(binding.scope.node)
            for binding in sources(self.module, node)
        )

    def _callee_needs(self, value: Value, node: ast.Call) -> Iterator[Need] | None:
        """Return the needs of what a call calls; None if nothing is known about it."""
        inner = underlying(value)
        if isinstance(inner, Instance | Function):
            if targets := list(targets_of(self.evaluator, value)):
                return chain.from_iterable(self._function_needs(t, value, node) for t in targets)
        match inner:
            case External("functools.partial"):
                return self._partial_needs(node)
            case External(name):
                return self._external_needs(name, node)
            case Instance(cls=External(name)) if name in library_arguments.INSTANCES:
                return self._instance_needs(name, node)
            case Instance(cls=External(name)) if name.startswith(library_arguments.LAYER_MODULES):
                return self._keyword_needs(node)
            case Class():
                arguments = [*node.args, *(k.value for k in node.keywords)]
                return self._needs_of(arguments, "passed to a constructor", certain=False)
        return None

    def _unknown_callee_needs(self, node: ast.Call, *, is_object: bool) -> Iterator[Need]:
        """Yield the needs of a call of something that cannot be resolved."""
        if isinstance(node.func, ast.Attribute):
            attr, values = node.func.attr, self.callees(node.func).values
            if self.contents.is_container(node.func.value):
                # The analysis follows what is put into it.
                yield from self._container_needs(attr, node)
                return
            method = array_method(node.func)
            if method is None and not values and not is_object:
                reason = f"`.{attr}()` of it"
                yield from self._need(node.func.value, reason, certain=False)
            if attr in library_arguments.CONCRETE_METHODS:
                yield from self._need(node.func.value, f"`.{attr}()`")
            if method is not None and not values:
                yield from self._library_needs(method, f".{attr}()", node)
                return
        arguments = [*node.args, *(k.value for k in node.keywords)]
        reason = "passed to code that cannot be resolved"
        yield from self._needs_of(arguments, reason, certain=False, opaque=True)

    def _container_needs(self, method: str, node: ast.Call) -> Iterator[Need]:
        """Yield the need of the first argument of a container's method."""
        if not node.args or isinstance(node.args[0], ast.Starred):
            return
        if method in _OF_KEY:
            yield from self._need(node.args[0], f"an index or key of `.{method}()`")
        elif method in _OF_EQUAL:
            reason = f"`.{method}()` compares it"
            yield from self._need(node.args[0], reason, certain=False)

    def _partial_needs(self, node: ast.Call) -> Iterator[Need]:
        """Yield the needs of a function that `functools.partial` passes some of its arguments."""
        if node.args and self._is_part(node.args[0]):
            yield from self._object_need(node.args[0])
        for value in self.evaluator.values(self.module, node):
            inner = underlying(value)
            if isinstance(value, Partial) and isinstance(inner, Function):
                given = ast.Call(node.args[0], node.args[1:], node.keywords)
                target = Target(inner, receiver_of(value), skipped(value.func))
                yield from self._function_needs(target, value.func, given)

    def _function_needs(self, target: Target, callee: Value, node: ast.Call) -> Iterator[Need]:
        function = target.function
        if self.contains(function.node):
            return  # this analysis includes its body
        # The arguments of partials are among those of the call.
        given = sum(len(call.args) - 1 for call in partial_calls(callee))
        call, skip = full_arguments(callee, node), target.skip - given
        own = {p.arg for p in positional_parameters(function.node)[:skip]}

        @functools.cache
        def depends_on(name: str, index: Key | None) -> Dependences:
            if name in (CONSTANTS, UNSEEN):
                return frozenset((Dependence(name),))
            if name in own:
                return self._of_receiver(function, node, index)
            return self.argument(function.node, call, skip, name, index)

        at_compile_time = runs_at_compile_time(self.module, node)
        needs = list(passed_on(self._needs.of(function, target.owner)))
        bound = bind_call(function.node, *call, skip).by_name if needs else {}
        for need in needs:
            value = bound.get(need.parameter)
            called = need.called and self._passes_on(value)
            if need.changed and value is not None and not self._is_part(value):
                continue  # a copy changes
            passed = depends_on(need.parameter, need.index)
            for d in passed or ([Dependence(CONSTANTS)] if need.is_result else ()):
                if need.reason == _ARITHMETIC and d.operations is not None:
                    continue  # What JAX computes is no Python number.
                traced = d.traced if at_compile_time else d.traced | need.traced
                is_result = bool(traced) and (d.is_array or need.is_result)
                if is_result or d.parameter not in (CONSTANTS, UNSEEN):
                    yield replace(
                        need,
                        called=called,
                        parameter=d.parameter,
                        index=d.index,
                        traced=traced,
                        is_result=is_result,
                        passed=need.passed or (bool(d.traced) and not need.is_of_parameter),
                        operands=frozenset(),
                    )

    def _passes_on(self, value: ast.expr | None) -> bool:
        """Return whether a call passes on one of this function's arguments, or a container."""
        return (
            value is None
            or isinstance(value, ast.Dict | ast.Tuple | ast.List)
            or self._is_part(value)
        )

    def _of_receiver(self, method: Function, node: ast.Call, key: Key | None) -> Dependences:
        """Return what a field of a method's object depends on: `Options(train).apply(x)`."""
        cls = method.module.enclosing_class(method.node)
        if key is None or cls is None or is_pytree(self.evaluator, Class(method.module, cls)):
            return NONE
        match node.func:
            case ast.Attribute(value=receiver) | (ast.Name() | ast.Call() as receiver):
                return self.dependences(receiver, key)
        return NONE

    # -- calls of library functions

    def _need(
        self,
        node: ast.expr,
        reason: str,
        certain: bool = True,
        found: Dependences | None = None,
        **flags: Any,
    ) -> Iterator[Need]:
        """Yield the needs of an expression; `flags` are those of `Need`."""
        if found is None:
            found = self.dependences(node)
        for d in sorted(found, key=lambda d: (d.parameter, str(d.index), bool(d.operations))):
            traced = d.traced
            is_result = d.is_array and bool(traced) and not self.is_compiled(node)
            if is_result or d.parameter not in (CONSTANTS, UNSEEN):
                place = self.module, node
                need = Need(d.parameter, d.index, *place, reason, certain)
                yield replace(need, traced=traced, is_result=is_result, **flags)

    def _needs_of(
        self, nodes: Iterable[ast.expr], reason: str, certain: bool = True, **flags: Any
    ) -> Iterator[Need]:
        for node in nodes:
            yield from self._need(node, reason, certain, None, **flags)

    def _object_need(self, node: ast.expr) -> Iterator[Need]:
        """Yield the need of a value that is called, or a method of which is."""
        return self._need(node, "it is called", certain=False, called=True)

    def _keyword_needs(self, node: ast.Call) -> Iterator[Need]:
        for keyword in node.keywords:
            if keyword.arg in library_arguments.MODULE_KEYWORDS or always_concrete(keyword.arg):
                yield from self._need(keyword.value, f"`{keyword.arg}=`")

    def _external_needs(self, name: str, node: ast.Call) -> Iterator[Need]:
        last = name.rpartition(".")[2]
        arguments = [*node.args, *(k.value for k in node.keywords)]
        if name.startswith("builtins."):
            yield from self._builtin_needs(last, node, arguments)
        elif name in library_arguments.STATIC_RESULTS or name in library_arguments.IDENTITIES:
            return
        elif library_arguments.accepts_tracers(name):
            yield from self._needs_of(arguments[1:], f"an argument of `{name}`", certain=False)
        elif name.startswith(library_arguments.CONCRETE_MODULES):
            yield from self._needs_of(arguments, f"`{name}`, which does not accept tracers")
        elif (function := needs_of(name)) is not None:
            yield from self._library_needs(function, last, node)
        elif name.startswith(("jax.", "flax.", "haiku.", "equinox.")):
            yield from self._keyword_needs(node)
            # A Python value may be an option, and is accepted as well where it is data.
            is_field = last[:1].isupper() and name.startswith(("flax.linen.", "haiku."))
            reason = f"a field of `{last}`" if is_field else f"an argument of `{last}`"
            yield from self._needs_of(arguments, reason, certain=is_field)
        elif name.startswith("itertools."):
            yield from self._needs_of(arguments, f"`{name}`", certain=False)
        elif not name.startswith(("functools.", "typing.", "contextlib.")):
            reason = f"`{name}`, which cannot be resolved"
            yield from self._needs_of(arguments, reason, certain=False, opaque=True)

    def _builtin_needs(
        self, name: str, node: ast.Call, arguments: list[ast.expr]
    ) -> Iterator[Need]:
        reason = f"`{name}()`"
        if name in _READING_VARIABLES and (name != "vars" or not arguments):
            for parameter in parameters(self.node):
                yield Need(parameter.arg, None, self.module, node, reason, certain=False)
        if name in _ON_ELEMENTS:
            is_container = len(node.args) == 1
            for arg in node.args if is_container else arguments:
                compared = self.element(arg) if is_container else self.dependences(arg)
                yield from self._need(arg, reason, found=self.operator(node, compared))
            keys = (k.value.body for k in node.keywords if isinstance(k.value, ast.Lambda))
            yield from self._needs_of(keys, f"a key of `{name}()`", certain=False)
        elif name in library_arguments.CONCRETE_BUILTINS:
            yield from self._needs_of(arguments, reason)
        elif name in ("getattr", "setattr", "hasattr") and len(node.args) > 1:
            yield from self._need(node.args[1], reason)
            type_test = self._is_type_test(name, node)
            yield from self._need(node.args[0], reason, certain=False, type_test=type_test)
            if name == "setattr":
                yield from self._needs_of(node.args[2:], _STORED, certain=False)
        elif name in library_arguments.IDENTIFYING_BUILTINS:
            type_test = self._is_type_test(name, node)
            yield from self._needs_of(arguments, reason, certain=False, type_test=type_test)

    def _library_needs(
        self, function: LibraryFunction, name: str, node: ast.Call
    ) -> Iterator[Need]:
        """Yield the needs of a function's arguments by the table."""
        for given, parameter in function.passed(node):
            match parameter.takes:
                case "traced":
                    pass
                case "concrete":
                    yield from self._need(given, f"`{parameter.name}` of `{name}`")
                case "function" if self._is_part(given):
                    yield from self._object_need(given)
                case _:
                    yield from self._need(given, f"an argument of `{name}`", certain=False)
        if name == "fori_loop":
            # With traced bounds it is a while loop, which has no gradient.
            bounds = [k.value for k in node.keywords if k.arg in ("lower", "upper")]
            for arg in (*node.args[:2], *bounds):
                yield from self._need(arg, "bounds of a differentiated loop", certain=False)

    def _instance_needs(self, name: str, node: ast.Call) -> Iterator[Need]:
        last = name.rpartition(".")[2]
        for parameter, position in library_arguments.INSTANCES[name]:
            given = argument(node.args, node.keywords, parameter, position)
            if given is not None:
                yield from self._need(given, f"`{parameter}` of {last}")

    def _is_type_test(self, name: str, node: ast.Call) -> bool:
        """Return whether a call of a builtin may tell a number or an array from a tracer."""
        match name, node.args, self.module.parent(node):
            case "hash", _, _:
                return True  # a tracer has no hash
            case "hasattr", [_, ast.Constant(value=str(attribute))], _:
                return is_array_attribute(attribute)
            case "isinstance", [_, types], _:
                return self._tests_for_number(types)
            case "type", [_], ast.Compare(left=left, comparators=others):
                return any(self._tests_for_number(n) for n in (left, *others) if n is not node)
        return False

    def _tests_for_number(self, types: ast.expr) -> bool:
        """Return whether types are those of numbers or arrays, not of containers or classes."""
        values = self.evaluator.values(self.module, types)
        parts = [types, *(v.node for v in values if isinstance(v, Container))]
        names = {getattr(n, "id", getattr(n, "attr", "")) for p in parts for n in ast.walk(p)}
        return bool(names & library_arguments.NUMBER_TYPES)


def _is_mask(index: ast.expr) -> bool:
    """Return whether an index is an array of bools, so that the result's shape is its content."""
    match index:
        case ast.Compare(ops=ops):
            return not any(isinstance(op, ast.Is | ast.IsNot | ast.In | ast.NotIn) for op in ops)
        case ast.UnaryOp(op=ast.Invert(), operand=operand):
            return _is_mask(operand)
        case ast.BinOp(op=ast.BitAnd() | ast.BitOr(), left=left, right=right):
            return _is_mask(left) or _is_mask(right)
        case ast.Call():
            return last_name(index.func) in _MASKS
    return False


def _conditions(node: ast.AST) -> Iterator[tuple[ast.expr, str]]:
    """Yield the expressions whose truth a node needs, each with the reason."""
    match node:
        case ast.If(test=test) | ast.IfExp(test=test) | ast.match_case(guard=ast.expr() as test):
            yield test, BRANCH
        case ast.While(test=test):
            yield test, LOOP
        case ast.Assert(test=test):
            yield test, ASSERTION
        case ast.BoolOp(values=[*values, _]):
            yield from ((value, AND_OR) for value in values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield operand, NOT
        case ast.comprehension(ifs=tests):
            yield from ((test, BRANCH) for test in tests)


def _compares(pattern: ast.pattern) -> bool:
    """Return whether a pattern compares a value, rather than only matching a structure."""
    return any(
        isinstance(part, ast.MatchValue)
        or (isinstance(part, ast.MatchSingleton) and part.value is not None)
        for part in ast.walk(pattern)
    )


def changes_in_place(node: ast.AST) -> Iterator[tuple[ast.expr, list[ast.expr]]]:
    """Yield the objects that a statement or call changes in place, with what it stores there."""
    match node:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                parts = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
                for part in parts:
                    if isinstance(part, ast.Subscript | ast.Attribute):
                        yield part.value, [value]
        case ast.AugAssign(target=ast.Subscript() | ast.Attribute() as target, value=value):
            yield target.value, [value]
        case ast.AugAssign(target=ast.Name() as name, value=ast.List() as value):
            yield name, [value]
        case ast.Delete(targets=targets):
            for target in targets:
                if isinstance(target, ast.Subscript | ast.Attribute):
                    yield target.value, []
        case ast.Expr(ast.Call(func=ast.Attribute(value=held, attr=attr)) as call):
            if attr in _MUTATING_METHODS:
                yield held, [*call.args, *(keyword.value for keyword in call.keywords)]
        case ast.Call(func=ast.Name(id="setattr" | "delattr" | "next"), args=[held, *put]):
            yield held, put
        case ast.Call(func=ast.Attribute(attr="__setattr__"), args=[held, _, *put]):
            yield held, put
        case ast.Call(func=ast.Attribute(value=held, attr=attr), args=args):
            if attr in _TAKING_METHODS:
                yield held, args[1:] if attr in ("pop", "setdefault") else args
