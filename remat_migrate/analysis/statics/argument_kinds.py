"""Whether an argument is a Python value, an array, or unknown."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from ...libraries.apis import COMPILERS, DIFFERENTIATE
from ...libraries.library_arguments import STATIC_ATTRIBUTES, STATIC_BUILTINS
from ...libraries.library_needs import has_static_result
from ..names.module import Module, Place
from ..names.scopes import FunctionNode
from ..needs.static_layers import gradient_places
from ..project import Project
from ..sites.calls import passed_for
from ..values.bind import default_of, positional_parameters
from ..values.callees import bodies_of, targets_of
from ..values.containers import looped
from ..values.declarations import (
    Kind,
    annotation_kind,
    class_annotations,
    default_kind,
    join,
    self_assignments,
)
from ..values.evaluator import project_bases, returned_expressions
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


def argument_kind(project: Project, module: Module, node: ast.expr, depth: int = _DEPTH) -> Kind:
    """Return the kind of an expression, following names, callers and classes for a few steps."""
    return project.once(_kind, module, node, depth) if depth > 0 else "unknown"


def _kind(project: Project, module: Module, node: ast.expr, depth: int) -> Kind:
    match node:
        case ast.Constant(value=float()):
            return "unknown"  # it may be passed for an argument that is differentiated
        case ast.Constant() | ast.Lambda() | ast.JoinedStr() | ast.UnaryOp(op=ast.Not()):
            return "python"
        case ast.Attribute():
            return _attribute(project, module, node, depth)
        case ast.Subscript():
            return _subscript(project, module, node, depth)
        case ast.Name():
            return _name(project, module, node, depth)
        case ast.Call():
            return _call(project, module, node, depth)
    return _joined(project, module, _computed_from(node), depth)


def _joined(project: Project, module: Module, nodes: Iterable[ast.expr], depth: int) -> Kind:
    return join([argument_kind(project, module, node, depth) for node in nodes])


def _objects(project: Project, module: Module, node: ast.expr) -> Kind:
    """Return "python" for functions, classes, dtypes and constants."""
    values = project.evaluator.values(module, node)
    if values and all(
        isinstance(v, Function | Class | External | Bound | Partial | Wrapped | Constant)
        for v in values
    ):
        return "python"
    return "unknown"


def _attribute(project: Project, module: Module, node: ast.Attribute, depth: int) -> Kind:
    if node.attr in STATIC_ATTRIBUTES:
        return "python"
    if _objects(project, module, node) == "python":
        return "python"
    for value in project.evaluator.values(module, node.value):
        if isinstance(value, Instance) and isinstance(value.cls, Class):
            kinds: list[Kind] = []
            for owner in project_bases(project.evaluator, value.cls):
                annotation = class_annotations(owner.node).get(node.attr)
                if annotation is not None:
                    # A float of a module or configuration is not traced.
                    is_float = ast.unparse(annotation) == "float"
                    return "python" if is_float else annotation_kind(annotation)
                for expr in self_assignments(owner.node).get(node.attr, ()):
                    kinds.append(argument_kind(project, owner.module, expr, depth - 1))
            if kinds:
                return join(kinds)
    return "unknown"


def _subscript(project: Project, module: Module, node: ast.Subscript, depth: int) -> Kind:
    values = project.evaluator.values(module, node)
    if values and all(isinstance(v, Constant) for v in values):
        return "python"
    return argument_kind(project, module, node.value, depth - 1)


def _name(project: Project, module: Module, node: ast.Name, depth: int) -> Kind:
    kinds: list[Kind] = []
    bindings = module.reaching(node)
    if len(bindings) > _MOST_BINDINGS:
        return "unknown"
    for binding in bindings:
        match binding.kind:
            case "assign" | "augment":
                assert binding.value is not None
                value = _unpacked(binding.value, binding.path)
                kinds.append(argument_kind(project, module, value, depth - 1))
            case "element":
                assert binding.value is not None
                kinds.append(_element(project, module, binding.value, binding.path, depth))
            case "parameter":
                assert isinstance(binding.node, ast.arg)
                assert isinstance(binding.scope.node, FunctionNode)
                kinds.append(
                    project.once(
                        parameter_kind, module, binding.scope.node, binding.node, depth - 1
                    )
                )
            case "def" | "class" | "import":
                kinds.append(_objects(project, module, node))
            case _:
                kinds.append("unknown")
    return join(kinds)


def _element(
    project: Project, module: Module, iterable: ast.expr, path: tuple[int, ...], depth: int
) -> Kind:
    part = looped(module, iterable, path)
    match part.source:
        case ast.Call(func=ast.Name(id="range")):
            return "python"
    if part.kind == "position":
        return "python"
    return join(
        [
            argument_kind(project, value.module, _unpacked(item, part.path), depth - 1)
            for value in project.evaluator.values(module, part.source)
            if isinstance(value, Container) and isinstance(value.node, ast.List | ast.Tuple)
            for item in value.node.elts
        ]
    )


def _call(project: Project, module: Module, node: ast.Call, depth: int) -> Kind:
    values = project.evaluator.values(module, node.func)
    if values or not isinstance(node.func, ast.Attribute):
        return join([_result(project, module, node, value, depth) for value in values])
    match node.func.attr:
        case "startswith" | "endswith" | "lower" | "upper" | "item":
            return "python"
        case "get":
            return "unknown"
    return argument_kind(project, module, node.func.value, depth - 1)


def _result(project: Project, module: Module, node: ast.Call, callee: Value, depth: int) -> Kind:
    """Return the kind of the result of a call, given one of the values that it may call."""
    match callee:
        case External(name) if name.removeprefix("builtins.") in _PYTHON_BUILTINS:
            return "python"
        case External(name) if name.startswith("builtins."):
            return _joined(project, module, node.args, depth - 1)
        case External(name) if name in _NUMPY_SCALARS or has_static_result(name):
            return "python"
        case External(name) if name.startswith(_ARRAYS):
            return "array"
        case External(name) if name.startswith(("os.", "math.")):
            return "python"
        case Function(module=owner, node=function):
            if not any(isinstance(n, ast.Yield) for n in ast.walk(function)):
                return _joined(project, owner, returned_expressions(function), depth - 2)
    return "unknown"


# -- parameters


def parameter_kind(
    project: Project, module: Module, function: FunctionNode, node: ast.arg, depth: int = _DEPTH
) -> Kind:
    """Return the kind of a parameter by its annotation, default, gradients and callers."""
    kind = annotation_kind(node.annotation)
    if kind != "unknown":
        return kind
    default = default_of(function, node)
    kind = default_kind(default)
    if isinstance(default, ast.Name) and depth > 0:
        kind = argument_kind(project, module, default, depth - 1)
    if kind != "unknown":
        return kind
    places = project.once(_differentiated, module).get(function, ())
    if any(node in positional_parameters(function)[p : p + 1] for p in places):
        return "array"
    if depth <= 0:
        return "unknown"
    passed = passed_for(project, Parameter(module, function, node.arg)).places
    return join([argument_kind(project, *place, depth - 1) for place in passed])


def origins_of(
    project: Project, module: Module, node: ast.expr, depth: int = _DEPTH
) -> dict[Place, None]:
    """Return an expression, or for a parameter its default and what the callers pass for it."""
    return project.once(_origins, module, node, depth)


def _origins(project: Project, module: Module, node: ast.expr, depth: int) -> dict[Place, None]:
    bindings = module.reaching(node) if isinstance(node, ast.Name) else frozenset()
    own = [b for b in bindings if b.kind == "parameter"] if depth > 0 else []
    found: dict[Place, None] = {}
    if not own or len(own) < len(bindings):
        found[module, node] = None
    for binding in own:
        assert isinstance(binding.scope.node, FunctionNode)
        passed = passed_for(project, Parameter(module, binding.scope.node, binding.name))
        if passed.default is not None:
            found[passed.default] = None
        for place in passed.places:
            found |= origins_of(project, *place, depth - 1)
    return found


# -- what is differentiated


def _differentiated(project: Project, module: Module) -> dict[FunctionNode, set[int]]:
    """Return the positions of differentiated or traced arguments by function."""
    found: dict[FunctionNode, set[int]] = {}
    for node in module.nodes:
        if isinstance(node, ast.Call) and node.args:
            for body in bodies_of(project.evaluator, module, node):
                _mark(project, project.values(module, body), range(8), found)
            # Also through a function of the project that returns `jax.grad(f)`.
            _mark_transformed(project, project.values(module, node), found)
        elif isinstance(node, ast.FunctionDef) and node.decorator_list:
            _mark_transformed(project, project.evaluator.definition(module, node), found)
    return found


def _mark_transformed(
    project: Project, values: Values, found: dict[FunctionNode, set[int]]
) -> None:
    """Mark the arguments of `jax.grad(f)`, and of `jax.jit(f)` if none is static."""
    for value in values:
        if isinstance(value, Wrapped):
            keywords = value.node.keywords if isinstance(value.node, ast.Call) else []
            if value.how in DIFFERENTIATE:
                _mark(project, {value.func}, gradient_places(project.evaluator, value), found)
            elif value.how in COMPILERS:
                if not any((k.arg or "static").startswith("static") for k in keywords):
                    _mark(project, {value.func}, range(8), found)


def _mark(
    project: Project,
    values: Iterable[Value],
    places: Iterable[int],
    found: dict[FunctionNode, set[int]],
) -> None:
    for value in values:
        for target in targets_of(project.evaluator, value):
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
