"""Classes: their bases in order of lookup, and what their attributes denote."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from .bind import positional_parameters
from .values import (
    Applied,
    Bound,
    Class,
    External,
    Function,
    Instance,
    Value,
    Values,
    Wrapped,
)

if TYPE_CHECKING:
    from .evaluate import Evaluator


def class_chain(ev: Evaluator, cls: Class) -> Iterator[Value]:
    """A class and its bases in order of lookup; external bases as External."""
    seen: set[Value] = set()
    queue: list[Value] = [cls]
    while queue:
        current = queue.pop(0)
        if current in seen:
            continue
        seen.add(current)
        yield current
        if isinstance(current, Class):
            for base in current.node.bases:
                inner = base.value if isinstance(base, ast.Subscript) else base
                for value in ev.values(current.module, inner):
                    if isinstance(value, Class):
                        queue.append(value)
                    elif isinstance(value, External):
                        queue += ev.opened(value) or (value,)


def class_attribute(ev: Evaluator, cls: Class, name: str, receiver: Instance | None) -> Values:
    """What an attribute of a class, or of its instance `receiver`, denotes."""
    found: set[Value] = set()
    for owner in class_chain(ev, cls):
        if not isinstance(owner, Class):
            continue
        scope = owner.module.scope_of(owner.node)
        flow = owner.module.flow(scope)
        bindings = flow.exit.get(name, frozenset())
        for binding in bindings:
            for value in ev.binding(owner.module, binding):
                callable_ = isinstance(value, Function | Applied | Wrapped)
                if callable_ and is_decorated(binding.node, "classmethod"):
                    found.add(Bound(value, cls))
                elif (
                    receiver is not None
                    and callable_
                    and not is_decorated(binding.node, "staticmethod")
                ):
                    found.add(Bound(value, receiver))
                else:
                    found.add(value)
        if receiver is not None:
            for holder in (owner, *ev.subclasses.get(owner.node, ())):
                for expr in self_assignments(holder.node).get(name, ()):
                    found |= ev.values(holder.module, expr)
            annotation = class_annotations(owner.node).get(name)
            if annotation is not None:
                found |= ev.annotated(owner.module, annotation)
        if found:
            return frozenset(found)
    if receiver is not None and name in ("apply", "init", "init_with_output", "lazy_init"):
        # Of a Flax module: `model.apply(variables, x)` calls `__call__(x)`.
        return frozenset((Bound(External(f"flax.linen.Module.{name}"), receiver),))
    return frozenset()


def is_decorated(node: ast.AST, name: str) -> bool:
    """Whether a function has a decorator that is a plain name."""
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and any(
        isinstance(d, ast.Name) and d.id == name for d in node.decorator_list
    )


@lru_cache(maxsize=4096)
def self_assignments(node: ast.ClassDef) -> Mapping[str, tuple[ast.expr, ...]]:
    """What the methods of a class assign to attributes of their first parameter."""
    found: dict[str, tuple[ast.expr, ...]] = {}
    for method in node.body:
        if not isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        first = next(iter(positional_parameters(method)), None)
        if first is None:
            continue
        for inner in ast.walk(method):
            targets: list[ast.expr] = []
            if isinstance(inner, ast.Assign):
                targets = inner.targets
            elif isinstance(inner, ast.AnnAssign) and inner.value is not None:
                targets = [inner.target]
            for target in targets:
                if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
                    if target.value.id == first.arg:
                        assert isinstance(inner, ast.Assign | ast.AnnAssign)
                        assert inner.value is not None
                        found[target.attr] = (*found.get(target.attr, ()), inner.value)
    return found


@lru_cache(maxsize=4096)
def class_annotations(node: ast.ClassDef) -> Mapping[str, ast.expr]:
    """The annotated fields in a class body."""
    return {
        s.target.id: s.annotation
        for s in node.body
        if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)
    }
