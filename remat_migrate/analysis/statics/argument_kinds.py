"""Whether an argument is a Python value, an array, or unknown."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from ...libraries.apis import COMPILERS, DIFFERENTIATE
from ...libraries.library_arguments import STATIC_ATTRIBUTES, STATIC_BUILTINS
from ...libraries.library_needs import has_static_result
from ..names.module import Module, Place
from ..names.scopes import FunctionNode
from ..needs.static_layers import gradient_places
from ..project import Project
from ..sites.calls import passed_for
from ..values.bind import default_of, positional_parameters
from ..values.callees import body_positions, targets_of
from ..values.classes import class_annotations, self_assignments
from ..values.containers import looped
from ..values.declarations import Kind, annotation_kind, default_kind, join
from ..values.evaluator import class_chain, returned_expressions
from ..values.values import (
    Bound,
    Class,
    Constant,
    Container,
    External,
    Function,
    Instance,
    Parameter,
    Partial,
    Value,
    Values,
    Wrapped,
    alternatives,
)

_NUMPY_SCALARS = frozenset(
    f"numpy.{name}"
    for name in (
        "bool_", "int8", "int16", "int32", "int64", "uint8", "uint32", "float16", "float32",
        "float64", "dtype", "prod",
    )
)  # fmt: skip
_PYTHON_BUILTINS = STATIC_BUILTINS | {"int", "bool", "str", "float", "range", "any", "all"}
_ARRAYS = ("jax.numpy.", "jax.random.", "jax.lax.", "jax.nn.", "numpy.", "jax.device_put")
_DEPTH = 4
# Of one use of a name; an expression with more has no known values, either.
_MOST_BINDINGS = 256


def kinds_of(project: Project) -> Kinds:
    """Return what tells Python values from arrays in a project."""
    return project.once(Kinds)


class Kinds:
    """Tells the kinds of expressions, following names, callers and classes for a few steps."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.evaluator = project.evaluator
        self._traced: dict[Module, dict[FunctionNode, set[int]]] = {}
        self._known: dict[tuple[ast.expr | ast.arg, int], Kind] = {}
        self._origins: dict[tuple[ast.expr, int], dict[Place, None]] = {}

    def of(self, module: Module, node: ast.expr, depth: int = _DEPTH) -> Kind:
        """Return the kind of an expression."""
        if depth <= 0:
            return "unknown"
        key = (node, depth)
        if key not in self._known:
            self._known[key] = self._of(module, node, depth)
        return self._known[key]

    def _of(self, module: Module, node: ast.expr, depth: int) -> Kind:
        match node:
            case ast.Constant(value=float()):
                return "unknown"  # it may be passed for an argument that is differentiated
            case ast.Constant() | ast.Lambda() | ast.JoinedStr() | ast.UnaryOp(op=ast.Not()):
                return "python"
            case ast.Attribute():
                return self._attribute(module, node, depth)
            case ast.Subscript():
                return self._subscript(module, node, depth)
            case ast.Name():
                return self._name(module, node, depth)
            case ast.Call():
                return self._call(module, node, depth)
        return self._joined(module, _computed_from(node), depth)

    def _joined(self, module: Module, nodes: Iterable[ast.expr], depth: int) -> Kind:
        return join([self.of(module, node, depth) for node in nodes])

    def _objects(self, module: Module, node: ast.expr) -> Kind:
        """Return "python" for functions, classes, dtypes and constants."""
        values = self.evaluator.values(module, node)
        if values and all(
            isinstance(v, Function | Class | External | Bound | Partial | Wrapped | Constant)
            for v in values
        ):
            return "python"
        return "unknown"

    def _attribute(self, module: Module, node: ast.Attribute, depth: int) -> Kind:
        if node.attr in STATIC_ATTRIBUTES:
            return "python"
        if self._objects(module, node) == "python":
            return "python"
        for value in self.evaluator.values(module, node.value):
            if isinstance(value, Instance) and isinstance(value.cls, Class):
                kinds: list[Kind] = []
                for owner in class_chain(self.evaluator, value.cls):
                    if isinstance(owner, Class):
                        annotation = class_annotations(owner.node).get(node.attr)
                        if annotation is not None:
                            kind = annotation_kind(annotation)
                            # A float of a module or configuration is not traced.
                            text = ast.unparse(annotation)
                            return "python" if text == "float" else kind
                        for expr in self_assignments(owner.node).get(node.attr, ()):
                            kinds.append(self.of(owner.module, expr, depth - 1))
                if kinds:
                    return join(kinds)
        return "unknown"

    def _subscript(self, module: Module, node: ast.Subscript, depth: int) -> Kind:
        values = self.evaluator.values(module, node)
        if values and all(isinstance(v, Constant) for v in values):
            return "python"
        return self.of(module, node.value, depth - 1)

    def _name(self, module: Module, node: ast.Name, depth: int) -> Kind:
        kinds: list[Kind] = []
        bindings = module.reaching(node)
        if len(bindings) > _MOST_BINDINGS:
            return "unknown"
        for binding in bindings:
            match binding.kind:
                case "assign" | "augment":
                    assert binding.value is not None
                    value = _unpacked(binding.value, binding.path)
                    kinds.append(self.of(module, value, depth - 1))
                case "element":
                    assert binding.value is not None
                    kinds.append(self._element(module, binding.value, binding.path, depth))
                case "parameter":
                    assert isinstance(binding.node, ast.arg)
                    assert isinstance(binding.scope.node, FunctionNode)
                    kinds.append(
                        self.parameter(module, binding.scope.node, binding.node, depth - 1)
                    )
                case "def" | "class" | "import":
                    kinds.append(self._objects(module, node))
                case _:
                    kinds.append("unknown")
        return join(kinds)

    def _element(
        self, module: Module, iterable: ast.expr, path: tuple[int, ...], depth: int
    ) -> Kind:
        part = looped(module, iterable, path)
        match part.source:
            case ast.Call(func=ast.Name(id="range")):
                return "python"
        if part.kind == "position":
            return "python"
        return join(
            [
                self.of(value.module, _unpacked(item, part.path), depth - 1)
                for value in self.evaluator.values(module, part.source)
                if isinstance(value, Container) and isinstance(value.node, ast.List | ast.Tuple)
                for item in value.node.elts
            ]
        )

    def _call(self, module: Module, node: ast.Call, depth: int) -> Kind:
        values = self.evaluator.values(module, node.func)
        if values or not isinstance(node.func, ast.Attribute):
            return join([self._result(module, node, value, depth) for value in values])
        match node.func.attr:
            case "startswith" | "endswith" | "lower" | "upper" | "item":
                return "python"
            case "get":
                return "unknown"
        return self.of(module, node.func.value, depth - 1)

    def _result(self, module: Module, node: ast.Call, callee: Value, depth: int) -> Kind:
        """Return the kind of the result of a call, given one of the values that it may call."""
        match callee:
            case External(name) if name.removeprefix("builtins.") in _PYTHON_BUILTINS:
                return "python"
            case External(name) if name.startswith("builtins."):
                return self._joined(module, node.args, depth - 1)
            case External(name) if name in _NUMPY_SCALARS or has_static_result(name):
                return "python"
            case External(name) if name.startswith(_ARRAYS):
                return "array"
            case External(name) if name.startswith(("os.", "math.")):
                return "python"
            case Function(module=owner, node=function):
                if not any(isinstance(n, ast.Yield) for n in ast.walk(function)):
                    return self._joined(owner, returned_expressions(function), depth - 2)
        return "unknown"

    # -- parameters

    def parameter(
        self, module: Module, function: FunctionNode, node: ast.arg, depth: int = _DEPTH
    ) -> Kind:
        """Return the kind of a parameter by its annotation, default, gradients and callers."""
        key = (node, depth)
        if key not in self._known:
            self._known[key] = self._of_parameter(module, function, node, depth)
        return self._known[key]

    def _of_parameter(
        self, module: Module, function: FunctionNode, node: ast.arg, depth: int
    ) -> Kind:
        kind = annotation_kind(node.annotation)
        if kind != "unknown":
            return kind
        default = default_of(function, node)
        kind = default_kind(default)
        if isinstance(default, ast.Name) and depth > 0:
            kind = self.of(module, default, depth - 1)
        if kind != "unknown":
            return kind
        places = self._differentiated(module).get(function, ())
        if any(node in positional_parameters(function)[p : p + 1] for p in places):
            return "array"
        if depth <= 0:
            return "unknown"
        passed = passed_for(self.project, Parameter(module, function, node.arg)).places
        return join([self.of(*place, depth - 1) for place in passed])

    def origins(self, module: Module, node: ast.expr, depth: int = _DEPTH) -> Iterable[Place]:
        """Return an expression, or for a parameter its default and what the callers pass for it."""
        key = (node, depth)
        if key not in self._origins:
            self._origins[key] = dict.fromkeys(self._origins_of(module, node, depth))
        return self._origins[key]

    def _origins_of(self, module: Module, node: ast.expr, depth: int) -> Iterator[Place]:
        bindings = module.reaching(node) if isinstance(node, ast.Name) else frozenset()
        own = [b for b in bindings if b.kind == "parameter"] if depth > 0 else []
        if not own or len(own) < len(bindings):
            yield module, node
        for binding in own:
            assert isinstance(binding.scope.node, FunctionNode)
            parameter = Parameter(module, binding.scope.node, binding.name)
            passed = passed_for(self.project, parameter)
            if passed.default is not None:
                yield passed.default
            for place in passed.places:
                yield from self.origins(*place, depth - 1)

    # -- what is differentiated

    def _differentiated(self, module: Module) -> dict[FunctionNode, set[int]]:
        """Return the positions of differentiated or traced arguments by function."""
        if module not in self._traced:
            found = self._traced[module] = {}
            for node in module.nodes:
                if isinstance(node, ast.Call) and node.args:
                    for position in body_positions(self.evaluator, module, node):
                        for body in node.args[position : position + 1]:
                            self._mark(self.evaluator.values(module, body), range(8), found)
                    # Also through a function of the project that returns `jax.grad(f)`.
                    self._mark_transformed(self.evaluator.values(module, node), found)
                elif isinstance(node, ast.FunctionDef) and node.decorator_list:
                    self._mark_transformed(self.evaluator.definition(module, node), found)
        return self._traced[module]

    def _mark_transformed(self, values: Values, found: dict[FunctionNode, set[int]]) -> None:
        """Mark the arguments of `jax.grad(f)`, and of `jax.jit(f)` if none is static."""
        for value in values:
            if isinstance(value, Wrapped):
                keywords = value.node.keywords if isinstance(value.node, ast.Call) else []
                if value.how in DIFFERENTIATE:
                    self._mark({value.func}, gradient_places(self.evaluator, value), found)
                elif value.how in COMPILERS:
                    if not any((k.arg or "static").startswith("static") for k in keywords):
                        self._mark({value.func}, range(8), found)

    def _mark(
        self, values: Iterable[Value], places: Iterable[int], found: dict[FunctionNode, set[int]]
    ) -> None:
        for value in values:
            for target in targets_of(self.evaluator, value):
                positional = positional_parameters(target.function.node)
                # A keyword of a partial is not traced, and no positional argument can follow it.
                given = next(
                    (i for i, p in enumerate(positional) if p.arg in target.given),
                    len(positional),
                )
                found.setdefault(target.function.node, set()).update(
                    p + target.skip for p in places if p + target.skip < given
                )


def _computed_from(node: ast.expr) -> Sequence[ast.expr]:
    """Return the parts whose kinds decide on an expression: its operands, items or alternatives."""
    match node:
        case ast.UnaryOp(operand=part):
            return [part]
        case ast.BinOp(left=left, right=right):
            return [left, right]
        case ast.Compare(ops=ops, left=left, comparators=others):
            # The result of an identity or membership test is a bool.
            is_bool = all(isinstance(op, ast.Is | ast.IsNot | ast.In | ast.NotIn) for op in ops)
            return [ast.Constant(True)] if is_bool else [left, *others]
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
            return parts
        case ast.Dict(values=parts):
            return parts
    return alternatives(node)


def _unpacked(value: ast.expr, path: Iterable[int]) -> ast.expr:
    """Return the part of a value that a target at a path of nested tuples gets."""
    for step in path:
        if not isinstance(value, ast.Tuple | ast.List) or not 0 <= step < len(value.elts):
            break
        value = value.elts[step]
    return value
