"""Hazards: operations of a function that a checkpoint around it changes.

`jax.checkpoint` traces the function: values that it stores elsewhere are leaked tracers, it draws
numbers from `numpy.random` only once, and it can only return arrays.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator

from ...analysis import Module, Project
from ...analysis.names.module import FunctionNode, body_nodes, parameters
from ...analysis.needs.needs import changes_in_place
from ...analysis.statics.arguments import argument_kind
from ...analysis.values.evaluator import returned_expressions, targets_of
from ...analysis.values.values import Class, External, Function, Value, underlying
from ...libraries.callbacks import CALLBACKS
from ..refusal import Refused

# Methods of writers and loggers, as statements.
_SENDING = frozenset({"write", "log", "put", "send"})
_DRAWN = ("numpy.random.", "random.", "time.", "secrets.", "uuid.", "datetime.")
_READING = frozenset({"builtins.input", "builtins.open", "builtins.next"})
# Packages whose functions call nothing back but what `CALLBACKS` names, and the standard library.
_PURE_PACKAGES = sys.stdlib_module_names | {
    *("builtins", "jax", "jaxlib", "numpy", "scipy", "flax", "haiku", "equinox", "optax", "chex"),
    *("einops", "jaxtyping", "jmp", "ml_dtypes", "distrax", "diffrax", "lineax", "optimistix"),
    *("brainstate", "haliax", "jraph", "e3nn_jax", "typing_extensions"),
}
# How far a name is followed to determine its kind: not to all callers.
_KIND_DEPTH = 1


def check_hazards(project: Project, function: Function, *, own_arguments: bool = False) -> None:
    """Raise Refused if a function, or one that it calls, has a hazard.

    Args:
        project: the project.
        function: the function to wrap.
        own_arguments: whether it may change its arguments, as the body of a loop may.
    """
    _check(project, function, set(), own_arguments)
    for expr in returned_expressions(function.node):
        _check_returned(project, function, expr)


def _check(
    project: Project,
    function: Function,
    seen: set[FunctionNode],
    own_arguments: bool = False,
) -> None:
    module, node = function.module, function.node
    if node in seen:
        return
    seen.add(node)
    if isinstance(node, ast.AsyncFunctionDef):
        raise Refused("an asynchronous function cannot be checkpointed", module, node)
    for decorator in getattr(node, "decorator_list", ()):
        _check_decorator(project, function, decorator, seen)
    for inner in body_nodes(node):
        reason = _hazard(project, function, inner, own_arguments)
        if reason is not None:
            raise Refused(reason, module, inner)
        if isinstance(inner, ast.Call):
            for value in project.values(module, inner.func):
                for target in targets_of(project.evaluator, value):
                    _check(project, target.function, seen)


def _check_decorator(
    project: Project, function: Function, decorator: ast.expr, seen: set[FunctionNode]
) -> None:
    """Raise Refused if a decorator may do more than JAX and the usual libraries do."""
    module = function.module
    made_by = decorator.func if isinstance(decorator, ast.Call) else decorator
    values = project.values(module, made_by)
    for value in values:
        own = underlying(value)
        if isinstance(own, Function):
            inner = (n for n in ast.walk(own.node) if isinstance(n, FunctionNode))
            for each in inner:
                _check(project, Function(own.module, each), seen)
    if not values or any(map(_is_foreign, values)):
        reason = f"what `{module.segment(made_by)}` adds to it is unknown"
        raise Refused(reason, module, decorator)


def _is_foreign(value: Value) -> bool:
    """Return whether a value is of a package that may call back to Python."""
    match underlying(value):
        case External(name):
            return name.partition(".")[0] not in _PURE_PACKAGES
        case Function() | Class():
            return False
    return True


def _hazard(project: Project, function: Function, node: ast.AST, own_arguments: bool) -> str | None:
    module = function.module
    for owner in _changed_by(node):
        if not _is_fresh(function, owner, own_arguments):
            return f"it changes `{module.segment(owner)}` from outside, which leaks tracers"
    match node:
        case ast.Yield() | ast.YieldFrom() | ast.Await():
            return "it is a generator, which cannot be checkpointed"
        case ast.Global(names=names) | ast.Nonlocal(names=names):
            return f"it assigns `{names[0]}` of an outer scope, which leaks a tracer"
        case ast.Expr(ast.Call(func=ast.Attribute(attr=attr, value=receiver))) if (
            attr in _SENDING and not _is_fresh(function, receiver, own_arguments)
        ):
            return f"it calls `.{attr}()` on an object from outside, which may leak tracers"
        case ast.Call():
            return _library_hazard(project, module, node)
        case ast.Name(ctx=ast.Load()) | ast.Attribute(ctx=ast.Load()):
            for value in project.values(module, node):
                if isinstance(value, External) and value.name in CALLBACKS:
                    effect = "would run once more, when the checkpoint recomputes"
                    if value.name.endswith(".io_callback"):
                        effect = "has effects, which JAX rejects in a differentiated checkpoint"
                    return f"`{value.name}` {effect}"
    return None


def _changed_by(node: ast.AST) -> Iterator[ast.expr]:
    """Yield the objects that a node changes in place."""
    yield from (owner for owner, _ in changes_in_place(node))
    if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
        yield node.value


def _library_hazard(project: Project, module: Module, node: ast.Call) -> str | None:
    for value in project.values(module, node.func):
        if not isinstance(value, External):
            continue
        if _is_foreign(value):
            return f"what `{value.name}` does is unknown; a callback in it would run once more"
        if value.name.startswith(_DRAWN):
            return f"`{value.name}` runs only once, when the checkpoint traces the function"
        if value.name in _READING:
            name = value.name.removeprefix("builtins.")
            return f"`{name}` runs only once, when the checkpoint traces the function"
        if value.name == "builtins.isinstance" and len(node.args) == 2:
            for part in ast.walk(node.args[1]):
                if isinstance(part, ast.Name | ast.Attribute):
                    if External("numpy.ndarray") in project.values(module, part):
                        return "it tests for `numpy.ndarray`, which a traced array is not"
    return None


_NEW_OBJECTS = (
    *(ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp),
    *(ast.Call, ast.BinOp, ast.Constant),
)


def _is_fresh(function: Function, node: ast.expr, own_arguments: bool) -> bool:
    """Return whether the function itself creates every object that an expression may be."""
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    if not isinstance(node, ast.Name):
        return isinstance(node, ast.Call)
    module = function.module
    own = parameters(function.node) if own_arguments else []
    if module.enclosing_class(function.node) is not None:
        own = own[1:]
    bindings = module.reaching(node)
    return bool(bindings) and all(
        binding.node in own
        or (
            function.node in (binding.scope.node, *module.ancestors(binding.scope.node))
            and binding.kind in ("assign", "augment")
            and not binding.path
            and isinstance(binding.value, _NEW_OBJECTS)
        )
        for binding in bindings
    )


def _check_returned(project: Project, function: Function, expr: ast.expr) -> None:
    match expr:
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Dict(values=parts):
            for part in parts:
                _check_returned(project, function, part)
            return
        case ast.Constant(value=None):
            return
    module = function.module
    if isinstance(expr, ast.GeneratorExp) or (
        argument_kind(project, module, expr, _KIND_DEPTH) == "python"
    ):
        reason = f"it returns `{module.segment(expr)}`: a checkpoint can only return arrays"
        raise Refused(reason, module, expr)
