"""Classes: their method resolution order, and what their attributes denote."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from ...errors import BoundReached
from ..names.scopes import Binding
from .bind import first_parameter
from .calls import returned
from .evaluation import Evaluation
from .haiku_transforms import APPLY
from .parameter_values import annotated_values
from .values import Applied, Bound, Class, External, Function, Instance, Value, Values, Wrapped

# Resolution orders of longer and longer chains take quadratic time and memory.
_MOST_BASES = 200


def class_chain(ev: Evaluation, cls: Class) -> Sequence[Value]:
    """Return a class and its bases in method resolution order (C3); external bases as External.

    Raises:
        BoundReached: it has too many bases.
    """
    exact = replace(cls, exact=True)
    return (exact, *ev.ask(exact))


def bases_in_order(ev: Evaluation, cls: Class) -> tuple[Value, ...]:
    """Return the bases of a class in method resolution order, as `class_chain` does."""
    bases = _bases(ev, cls)
    orders = [class_chain(ev, b) if isinstance(b, Class) else (b,) for b in bases]
    order = tuple(v for v in _merged([*orders, bases]) if v != cls)
    if len(order) > _MOST_BASES:
        raise BoundReached(f"a class inherits from more than {_MOST_BASES} others")
    return order


def _bases(ev: Evaluation, cls: Class) -> list[Value]:
    """Return the bases of a class; for a base that is checkpointed or otherwise lifted, the class
    itself.
    """
    found: dict[Value, None] = {}
    for base in cls.node.bases:
        inner = base.value if isinstance(base, ast.Subscript) else base
        # More than one only if a name has several bindings.
        for value in sorted(map(_lifted, ev.values(cls.module, inner)), key=_place):
            if isinstance(value, Class):
                found[replace(value, exact=True)] = None
            elif isinstance(value, External):
                found.update(dict.fromkeys(ev.installed_definition(value) or (value,)))
    return list(found)


def _lifted(value: Value) -> Value:
    while isinstance(value, Applied | Wrapped):
        if (inner := value.target if isinstance(value, Applied) else value.func) is None:
            break
        value = inner
    return value


def _place(value: Value) -> tuple[str, int]:
    if isinstance(value, Class):
        return str(value.module.source.path), value.node.lineno
    return getattr(value, "name", ""), 0


def _merged(orders: Sequence[Sequence[Value]]) -> Iterator[Value]:
    """Merge the orders of some bases by C3; if they contradict one another, return the first."""
    # How many orders have a class behind their first; those behind `at` are left.
    behind = Counter(v for order in orders for v in order[1:])
    left, at = [order for order in orders if order], [0] * len(orders)
    done: set[Value] = set()
    while left:
        heads = [order[i] for order, i in zip(left, at, strict=False)]
        first = next((head for head in heads if not behind[head]), heads[0])
        yield first
        done.add(first)
        rest: list[tuple[Sequence[Value], int]] = []
        for order, i in zip(left, at, strict=False):
            while i < len(order) and order[i] in done:
                i += 1
                if i < len(order):
                    behind[order[i]] -= 1
            if i < len(order):
                rest.append((order, i))
        left, at = [order for order, _ in rest], [i for _, i in rest]


def class_attribute(ev: Evaluation, cls: Class, name: str, receiver: Instance | None) -> Values:
    """Return what an attribute of a class, or of its instance `receiver`, denotes."""
    return attribute_in(ev, class_chain(ev, cls), cls, name, receiver)


def attribute_in(
    ev: Evaluation, chain: Iterable[Value], cls: Class, name: str, receiver: Instance | None
) -> Values:
    """Return the same, looked up in `chain`: the resolution order of `cls` or the rest of it."""
    found: set[Value] = set()
    for owner in chain:
        if not isinstance(owner, Class):
            continue
        scope = owner.module.scope_of(owner.node)
        flow = owner.module.flow(scope)
        for binding in flow.exit.get(name, ()):
            if is_decorated(binding.node, "property", "cached_property"):
                if receiver is not None and isinstance(binding.node, ast.FunctionDef):
                    found |= returned(ev, Function(owner.module, binding.node))
                continue
            bound_to: Value | None = receiver
            if is_decorated(binding.node, "classmethod"):
                bound_to = cls
            elif is_decorated(binding.node, "staticmethod") or _is_held(binding):
                bound_to = None
            for value in ev.binding(owner.module, binding):
                is_method = isinstance(value, Function | Applied | Wrapped)
                found.add(Bound(value, bound_to) if is_method and bound_to else value)
        if receiver is not None:
            for holder in (owner, *ev.subclasses.get(owner.node, ())):
                for expr in self_assignments(holder.node).get(name, ()):
                    found |= ev.values(holder.module, expr)
            annotation = class_annotations(owner.node).get(name)
            if annotation is not None:
                found |= annotated_values(ev, owner.module, annotation)
        if found:
            return frozenset(found)
    if receiver is not None and name in APPLY:
        # For a Flax module, `model.apply(variables, x)` calls `__call__(x)`.
        return frozenset((Bound(External(f"flax.linen.Module.{name}"), receiver),))
    return frozenset()


def _is_held(binding: Binding) -> bool:
    """Return whether a class holds a function that is no method: of a field, or made static."""
    match binding.value:
        case ast.Call(func=ast.Name(id="staticmethod")):
            return True
    return isinstance(binding.node, ast.AnnAssign)


def is_decorated(node: ast.AST, *names: str) -> bool:
    """Return whether a function has a decorator of one of some names."""
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and any(
        getattr(d, "id", getattr(d, "attr", "")) in names for d in node.decorator_list
    )


@lru_cache(maxsize=4096)
def self_assignments(node: ast.ClassDef) -> Mapping[str, tuple[ast.expr, ...]]:
    """Return what the methods of a class assign to attributes of their first parameter."""
    found: dict[str, tuple[ast.expr, ...]] = {}
    for method in node.body:
        if not isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        first = first_parameter(method)
        if first is None:
            continue
        for inner in ast.walk(method):
            targets: list[ast.expr]
            match inner:
                case ast.Assign(targets=targets, value=value):
                    pass
                case ast.AnnAssign(value=ast.expr() as value):
                    targets = [inner.target]
                case _:
                    continue
            for target in targets:
                match target:
                    case ast.Attribute(value=ast.Name(id=name), attr=attr) if name == first.arg:
                        found[attr] = (*found.get(attr, ()), value)
    return found


@lru_cache(maxsize=4096)
def class_annotations(node: ast.ClassDef) -> Mapping[str, ast.expr]:
    """Return the annotated fields in a class body."""
    return {
        s.target.id: s.annotation
        for s in node.body
        if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)
    }
