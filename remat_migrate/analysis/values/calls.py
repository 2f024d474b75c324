"""The value of a call: applications, partials, instances, and what functions return."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache, partial

from ...libraries.apis import PARTS_OF_OBJECT, SAME_CALL, SAME_OBJECT, TRANSPARENT
from ..names.module import Module
from ..names.scopes import FunctionNode, parameters
from .application import api_of, subject_of
from .bind import bind_call
from .evaluation import Evaluation, Substitution
from .haiku_transforms import transformed
from .values import (
    NOTHING,
    Applied,
    Bound,
    Class,
    Container,
    External,
    Function,
    Instance,
    Parameter,
    Partial,
    Result,
    Value,
    Values,
    Wrapped,
    around,
    union,
)


@lru_cache(maxsize=4096)
def _parts_of(node: ast.expr) -> ast.Tuple:
    """Return a tuple of an object's parts, each of which is called like the object."""
    return ast.Tuple([node] * 4, ast.Load())


def called(ev: Evaluation, callee: Value, module: Module, node: ast.Call) -> Values:
    """Return what calling `callee` with the arguments of `node` returns."""
    if api_of(ev.apis, callee) is not None:
        return _applied(ev, callee, module, node)
    match callee:
        case External("functools.partial"):
            if not node.args:
                return NOTHING
            inner = ev.values(module, node.args[0])
            return around(node, inner, lambda f: Partial(f, module, node))
        case External("builtins.getattr"):
            return _getattr(ev, module, node)
        case External("importlib.import_module"):
            match node.args:
                case [ast.Constant(value=str(name))] if not name.startswith("."):
                    return ev.dotted(name, module)
            return NOTHING
        case External("builtins.list" | "builtins.tuple" | "builtins.reversed"):
            return ev.values(module, node.args[0]) if node.args else NOTHING
        case External("builtins.super") if not node.args:
            return _super(ev, module, node)
        case External("builtins.staticmethod" | "types.MappingProxyType") if node.args:
            return ev.values(module, node.args[0])
        case External("builtins.dict" | "types.SimpleNamespace"):
            return frozenset((Container(module, node),))
        case External(name) if name in SAME_CALL:
            if not node.args:
                return frozenset((Partial(callee, module, node, by_functools=False),))
            inner = ev.values(module, node.args[0])
            return around(node, inner, lambda f: Wrapped(name, f, module, node))
        case External(name) if node.args and (
            pair := transformed(name, module, node, ev.values(module, node.args[0]))
        ):
            return pair
        case Result(name) if name in TRANSPARENT and node.args:
            return ev.values(module, node.args[0])  # `jax.named_scope("block")(f)`
        case External(name) if name in PARTS_OF_OBJECT and node.args:
            return frozenset((Container(module, _parts_of(node.args[0])),))
        case External(name) if name in SAME_OBJECT and (
            same := [v for arg in node.args for v in ev.values(module, arg) if _is_object(v)]
        ):
            return frozenset(same)
        case External(name):
            if name.rpartition(".")[2][:1].isupper():
                return frozenset((Instance(callee),))
            return frozenset((Result(name),))
        case Class() | Applied() | Wrapped() if _is_class(callee):
            # A wrapped Flax class makes instances whose calls are wrapped.
            return frozenset((Instance(callee),))
        case Applied(target=Parameter() | None) if _may_be_class(ev, callee):
            return frozenset((Instance(callee),)) if _is_called(module, node) else NOTHING
        case Partial(func=inner, call=given):
            return _called_partial(ev, inner, given, module, node)
        case Wrapped(how="jax.jit" | "?", func=inner):
            return called(ev, inner, module, node)
        case Function():
            return _returned_to(ev, callee, module, node, skip=0)
        case Bound(func=Function() as function):
            return _returned_to(ev, function, module, node, skip=1)
    return NOTHING


def _is_object(value: Value) -> bool:
    return isinstance(value, Instance | Parameter)


def _is_class(value: Value | None) -> bool:
    """Return whether a value is a class, wrapped or not."""
    match value:
        case Class() | Applied(target=External()):
            return True
        case Applied(target=inner) | Wrapped(func=inner):
            return _is_class(inner)
    return False


def _may_be_class(ev: Evaluation, applied: Applied) -> bool:
    """Return whether an application takes classes: `nn.remat(get_block(name))`."""
    node = applied.node
    values = ev.values(applied.module, node.func if isinstance(node, ast.Call) else node)
    apis = [api_of(ev.apis, value) for value in values]
    return any(api is not None and api.wraps_classes for api in apis)


def _is_called(module: Module, node: ast.Call) -> bool:
    """Return whether the result of a call is called: `block(8)(x)`, possibly through a name."""
    parent = module.parent(node)
    if isinstance(parent, ast.Call):
        return parent.func is node
    if not isinstance(parent, ast.Assign):
        return False
    targets = {ast.unparse(target) for target in parent.targets}
    return any(
        isinstance(n, ast.Call)
        and isinstance(n.func, ast.Name | ast.Attribute)
        and ast.unparse(n.func) in targets
        for n in ast.walk(module.enclosing_function(node) or module.tree)
    )


def _getattr(ev: Evaluation, module: Module, node: ast.Call) -> Values:
    match node.args:
        case [base, ast.Constant(value=str(name)), *_]:
            return union(ev.attribute(value, name) for value in ev.values(module, base))
    return NOTHING


def _applied(ev: Evaluation, callee: Value, module: Module, node: ast.Call) -> Values:
    subject = subject_of(ev.apis, callee, module, node)
    if subject is None:
        return frozenset((Partial(callee, module, node, by_functools=False),))
    targets = ev.values(*subject)
    if not targets:
        return NOTHING if ev.is_guess else frozenset((Applied(module, node, None),))
    return around(node, targets, lambda target: Applied(module, node, target))


def _called_partial(
    ev: Evaluation, inner: Value, given: ast.Call, module: Module, node: ast.Call
) -> Values:
    if isinstance(inner, External) and inner.name in SAME_CALL and node.args:
        return called(ev, inner, module, node)
    if isinstance(inner, Function):
        merged = ast.Call(
            given.func, [*given.args[1:], *node.args], [*given.keywords, *node.keywords]
        )
        return _returned_to(ev, inner, module, merged, skip=0)
    return called(ev, inner, module, node)


def _returned_to(
    ev: Evaluation, function: Function, module: Module, node: ast.Call, *, skip: int
) -> Values:
    found = returned(ev, function)
    if not any(_mentions(value, function.node) for value in found):
        return found
    bound = bind_call(function.node, node.args, node.keywords, skip)
    swap = {(function.node, name): ev.values(module, expr) for name, expr in bound.by_name.items()}
    return substitute(ev, found, swap)


def returned(ev: Evaluation, function: Function) -> Values:
    """Return what a function may return, in terms of its parameters."""
    return frozenset(ev.ask(function))


def substitute(ev: Evaluation, values: Values, swap: Substitution) -> Values:
    """Return `values` with parameters replaced by arguments."""
    found: set[Value] = set()
    for value in values:
        match value:
            case Parameter(function=function, name=name):
                found |= swap.get((function, name), frozenset((value,)))
            case Applied(target=target) if target is not None:
                inner = substitute(ev, frozenset((target,)), swap)
                found |= around(value.node, inner, partial(_with_target, value)) or {value}
            case Wrapped(func=func, node=node) | Partial(func=func, call=node):
                inner = substitute(ev, frozenset((func,)), swap)
                found |= around(node, inner, partial(_with_function, value))
            case _:
                found.add(value)
    return frozenset(found)


def _with_target(applied: Applied, target: Value) -> Applied:
    return replace(applied, target=target)


def _with_function(value: Wrapped | Partial, function: Value) -> Wrapped | Partial:
    return replace(value, func=function)


def apply_decorator(
    ev: Evaluation, callee: Value, module: Module, node: ast.expr, argument: Value
) -> Values:
    """Return the result of calling `callee` with one value, as a decorator does."""
    if api_of(ev.apis, callee) is not None:
        return frozenset((Applied(module, node, argument),))
    match callee:
        case External(name) | Partial(func=External(name)):
            if name in TRANSPARENT:
                return frozenset((argument,))
            if pair := transformed(name, module, node, frozenset((argument,))):
                return pair
            how = name if name in SAME_CALL else "?"
            return frozenset((Wrapped(how, argument, module, node),))
        case Function(node=function):
            first = next(iter(parameters(function)), None)
            found = returned(ev, callee)
            if first is not None and any(_mentions(v, function) for v in found):
                return substitute(ev, found, {(function, first.arg): frozenset((argument,))})
    return frozenset((Wrapped("?", argument, module, node),))


def _mentions(value: Value | None, function: FunctionNode) -> bool:
    match value:
        case Parameter(function=owner):
            return owner is function
        case Applied(target=inner):
            return _mentions(inner, function)
        case Wrapped(func=inner) | Partial(func=inner):
            return _mentions(inner, function)
    return False


def returned_expressions(node: FunctionNode) -> Iterator[ast.expr]:
    """Yield the expressions that a function returns, without those of nested functions."""
    if isinstance(node, ast.Lambda):
        yield node.body
        return
    stack: list[ast.AST] = list(node.body)
    while stack:
        inner = stack.pop()
        if isinstance(inner, FunctionNode | ast.ClassDef):
            continue
        if isinstance(inner, ast.Return) and inner.value is not None:
            yield inner.value
        # Expressions contain no statements, except in lambdas.
        stack += [child for child in ast.iter_child_nodes(inner) if not isinstance(child, ast.expr)]


def _super(ev: Evaluation, module: Module, node: ast.Call) -> Values:
    function = module.enclosing_function(node)
    cls = module.enclosing_class(function) if function is not None else None
    bases = cls.bases if cls is not None else ()
    values = union(ev.values(module, base) for base in bases)
    return frozenset(Instance(v) for v in values if isinstance(v, Class | External))
