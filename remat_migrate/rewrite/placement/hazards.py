"""What a function does that a checkpoint around it would change.

`jax.checkpoint` traces the function: what it stores elsewhere is a tracer that leaks, what it draws
from `numpy.random` is drawn once, and only arrays can be returned.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...analysis import Module, Project
from ...analysis.names.scopes import FunctionNode, parameters
from ...analysis.statics.argument_kinds import kinds_of
from ...analysis.values.callees import targets_of
from ...analysis.values.calls import returned_expressions
from ...analysis.values.values import Constant, External, Function, Instance, Value
from ..refusal import Refused

# Methods that change their receiver, where nobody takes what they return.
_CHANGING = frozenset(
    {
        "append", "extend", "insert", "add", "update", "setdefault", "pop", "popitem", "remove",
        "discard", "clear", "appendleft", "sort", "reverse", "write", "log", "put", "send",
    }
)  # fmt: skip
_DRAWN = ("numpy.random.", "random.", "time.", "secrets.", "uuid.", "datetime.")
_READING = frozenset({"builtins.input", "builtins.open", "builtins.next"})
_CALLBACKS = ("io_callback", "id_tap", "id_print", "host_callback.call")
_DEPTH = 4
# How far a name is followed to see what it is: not to all callers.
_KIND_DEPTH = 1


def check_hazards(project: Project, function: Function, *, own_arguments: bool = False) -> None:
    """Look for what a checkpoint around a function would change, in what it calls, too.

    Args:
        project: the project.
        function: what would be wrapped.
        own_arguments: whether its arguments are its own to change, as those of a loop's body are.

    Raises:
        Refused: there is something.
    """
    _check(project, function, set(), _DEPTH, own_arguments)
    for expr in returned_expressions(function.node):
        _check_returned(project, function, expr)


def _check(
    project: Project,
    function: Function,
    seen: set[FunctionNode],
    depth: int,
    own_arguments: bool = False,
) -> None:
    module, node = function.module, function.node
    if node in seen or depth == 0:
        return
    seen.add(node)
    if isinstance(node, ast.AsyncFunctionDef):
        raise Refused("an asynchronous function cannot be checkpointed", module, node)
    for inner in _inside(node):
        reason = _hazard(project, function, inner, own_arguments)
        if reason is not None:
            raise Refused(reason, module, inner)
        if isinstance(inner, ast.Call):
            for value in project.values(module, inner.func):
                for called in _called(project, value):
                    _check(project, called, seen, depth - 1)


def _called(project: Project, value: Value) -> Iterator[Function]:
    if isinstance(value, Instance | Function) or not isinstance(value, External):
        for target in targets_of(project.evaluator, value):
            yield target.function


def _inside(node: FunctionNode) -> Iterator[ast.AST]:
    """The nodes of a function's body, functions in it included."""
    for part in [node.body] if isinstance(node, ast.Lambda) else node.body:
        yield from ast.walk(part)


def _hazard(project: Project, function: Function, node: ast.AST, own_arguments: bool) -> str | None:
    module = function.module
    match node:
        case ast.Yield() | ast.YieldFrom() | ast.Await():
            return "it is a generator, which cannot be checkpointed"
        case ast.Global(names=names) | ast.Nonlocal(names=names):
            return f"it assigns `{names[0]}` from around it: under a checkpoint that is a tracer"
        case ast.Attribute(ctx=ast.Store() | ast.Del(), attr=attr) if not _is_fresh(
            function, node.value, own_arguments
        ):
            return f"it assigns to the attribute `{attr}`: under a checkpoint that is a tracer"
        case ast.Subscript(ctx=ast.Store() | ast.Del()) if not _is_fresh(
            function, node.value, own_arguments
        ):
            return "it stores values in a container from outside: under a checkpoint a tracer leaks"
        case ast.Call(func=ast.Attribute(attr=attr, value=receiver)) if (
            attr in _CHANGING
            and isinstance(module.parent(node), ast.Expr)
            and not _is_fresh(function, receiver, own_arguments)
        ):
            return f"it calls `.{attr}()` on what is not its own: under a checkpoint a tracer leaks"
        case ast.Call():
            return _library_hazard(project, module, node)
    return None


def _library_hazard(project: Project, module: Module, node: ast.Call) -> str | None:
    for value in project.values(module, node.func):
        if not isinstance(value, External):
            continue
        if value.name.startswith(_DRAWN):
            return f"`{value.name}` is called once for all calls under a checkpoint"
        if value.name in _READING:
            return f"`{value.name.removeprefix('builtins.')}` is called under a checkpoint"
        if value.name.endswith(_CALLBACKS):
            return f"`{value.name}` has effects, which a checkpoint does not take"
        if value.name == "builtins.isinstance" and len(node.args) == 2:
            for part in ast.walk(node.args[1]):
                if isinstance(part, ast.Name | ast.Attribute):
                    if External("numpy.ndarray") in project.values(module, part):
                        return "it asks for `numpy.ndarray`, which no traced array is"
    return None


def _is_fresh(function: Function, node: ast.expr, own_arguments: bool) -> bool:
    """Whether an object was made by the function itself: all that a name may be bound to."""
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    if isinstance(node, ast.Call):
        return True
    if not isinstance(node, ast.Name):
        return False
    module = function.module
    bindings = module.reaching(node)
    if not bindings:
        return False
    for binding in bindings:
        inside = binding.scope.node is function.node or any(
            around is function.node for around in module.ancestors(binding.scope.node)
        )
        if own_arguments and _is_argument(function, binding.node):
            continue
        if not inside or binding.kind not in ("assign", "augment") or binding.path:
            return False
        if not isinstance(
            binding.value,
            ast.List
            | ast.Dict
            | ast.Set
            | ast.ListComp
            | ast.DictComp
            | ast.SetComp
            | ast.Call
            | ast.BinOp
            | ast.Constant,
        ):
            return False
    return True


def _is_argument(function: Function, node: ast.AST) -> bool:
    own = parameters(function.node)
    if function.module.enclosing_class(function.node) is not None:
        own = own[1:]
    return any(node is parameter for parameter in own)


def _check_returned(project: Project, function: Function, expr: ast.expr) -> None:
    module = function.module
    parts = expr.elts if isinstance(expr, ast.Tuple | ast.List) else [expr]
    if isinstance(expr, ast.Dict):
        parts = expr.values
    for part in parts:
        if isinstance(part, ast.Tuple | ast.List | ast.Dict):
            _check_returned(project, function, part)
            continue
        if isinstance(part, ast.Constant) and part.value is None:
            continue
        if kinds_of(project).of(module, part, _KIND_DEPTH) == "python" or isinstance(
            part, ast.GeneratorExp
        ):
            raise Refused(
                f"it returns `{module.segment(part)}`, which is no array: a checkpoint returns"
                " arrays alone",
                module,
                part,
            )


def _is_python(project: Project, module: Module, node: ast.expr) -> bool:
    if isinstance(node, ast.GeneratorExp):
        return True
    values = project.values(module, node)
    if values and all(isinstance(v, Constant) and v.value is not None for v in values):
        return True
    return kinds_of(project).of(module, node, _KIND_DEPTH) == "python"
