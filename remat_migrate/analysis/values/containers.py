"""The elements of containers in the source: literals, comprehensions, `append`, `zip`."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from ..names.module import Binding, Module, Place, find_mentions, last_name
from .values import Container, alternatives


def elements(container: Container) -> Iterator[Place]:
    """Yield the expressions that the elements of a container may be; nothing if unknown."""
    module, node = container.module, container.node
    match node:
        case ast.List() | ast.Tuple() | ast.Set():
            for part in node.elts:
                spread = isinstance(part, ast.Starred)
                yield module, any_item(part.value) if spread else part  # type: ignore[attr-defined]
            if isinstance(node, ast.List):
                yield from _appended(module, node)
        case ast.ListComp() | ast.SetComp() | ast.GeneratorExp():
            yield module, node.elt
        case ast.Dict():
            for key, (owner, value) in _entries(module, node):
                yield owner, any_item(value) if key is None else value
        case ast.DictComp():
            yield module, node.value
        case ast.Call():
            yield from ((module, keyword.value) for keyword in node.keywords)


def items(container: Container, index: object) -> Iterator[Place]:
    """Yield the expressions that `container[index]` may be."""
    module, node = container.module, container.node
    match node:
        case ast.List() | ast.Tuple() if isinstance(index, int):
            added = list(_appended(module, node)) if isinstance(node, ast.List) else []
            if added or any(isinstance(part, ast.Starred) for part in node.elts):
                yield from elements(container)
            elif -len(node.elts) <= index < len(node.elts):
                yield module, node.elts[index]
        case ast.Dict():
            for key, place in _entries(module, node):
                if key is None:
                    yield module, _item(place[1], index)
                elif not isinstance(key, ast.Constant) or key.value == index:
                    yield place
        case ast.Call():
            yield from ((module, k.value) for k in node.keywords if k.arg == index)
            part = looped(module, node, (index,)) if isinstance(index, int) else None
            if part is not None and not part.path and part.kind in ("element", "value"):
                yield from _of(module, part.source)
        case _:
            yield from elements(container)


@dataclass(frozen=True, slots=True)
class Looped:
    """What a loop variable is: a part of the `source` that the loop iterates over.

    Attributes:
        kind: whether it is an element, or a value or key of a mapping, or a position.
        source: the container, without the `zip`, `enumerate`, `sorted`, or `.items()` around it.
        path: how the loop variable is unpacked from that part.
    """

    kind: Literal["element", "value", "key", "position"]
    source: ast.expr
    path: tuple[int, ...] = ()


def looped(module: Module, iterable: ast.expr, path: tuple[int, ...]) -> Looped:
    """Return what a variable is that a loop over `iterable` unpacks by `path`."""
    match iterable, path:
        case ast.Subscript(value=inner, slice=ast.Slice()), _:
            return looped(module, inner, path)
        case ast.Call(func=ast.Attribute(value=inner, attr="keys" | "values" as view), args=[]), _:
            return Looped("key" if view == "keys" else "value", inner, path)
        case ast.Call(func=ast.Attribute(value=inner, attr="items"), args=[]), (step, *rest):
            return Looped("key" if step == 0 else "value", inner, tuple(rest))
        case ast.Call(func=ast.Name(id=name) as func, args=[inner, *_]), _:
            if module.reaching(func):
                return Looped("element", iterable, path)  # a function of the project
            if name in _SAME_ELEMENTS:
                return looped(module, inner, path)
    match iterable, path:
        case ast.Call(func=ast.Name(id="enumerate"), args=[inner, *_]), (step, *rest):
            if step == 0:
                return Looped("position", inner)
            return looped(module, inner, tuple(rest))
        case ast.Call(func=ast.Name(id="zip"), args=parts), (step, *rest) if 0 <= step < len(parts):
            return looped(module, parts[step], tuple(rest))
    return Looped("element", iterable, path)


def sources(module: Module, node: ast.expr) -> Iterator[Binding]:
    """Yield the bindings from which an object comes, or what it is an item, attribute or element
    of.
    """
    seen: set[Binding] = set()
    waiting = [node]
    while waiting:
        match waiting.pop():
            case ast.Attribute(value=inner) | ast.Subscript(value=inner):
                waiting.append(inner)
            case ast.Call(func=ast.Attribute(value=inner, attr=attr)) if attr in _GETTERS:
                waiting.append(inner)
            case ast.Name() as name:
                new = module.reaching(name) - seen
                seen |= new
                for binding in new:
                    yield binding
                    if binding.kind == "assign" and binding.value is not None:
                        waiting.append(binding.value)
                    elif binding.kind == "element" and binding.value is not None:
                        part = looped(module, binding.value, binding.path)
                        if part.kind != "position":
                            waiting += getattr(part.source, "elts", [part.source])
            case other:
                waiting += alternatives(other)


_GETTERS = ("get", "pop", "setdefault", "values", "items")
_SAME_ELEMENTS = frozenset({"sorted", "list", "tuple", "reversed", "set", "iter"})


def literal_index(node: ast.expr) -> object:
    """Return the constant value of an index, including -1; None for other expressions."""
    match node:
        case ast.Constant(value=value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(value))):
            return -value
    return None


def keys(container: Container) -> Iterator[Place]:
    """Yield the expressions that a loop over the container sees."""
    if isinstance(container.node, ast.Dict):
        yield from ((container.module, key) for key in container.node.keys if key is not None)
    elif not isinstance(container.node, ast.DictComp | ast.Call):
        yield from elements(container)


def looked_up(call: ast.Call) -> list[ast.expr]:
    """Return the expressions that `mapping.get(key, default)` may return."""
    match call:
        case ast.Call(func=ast.Attribute(value=mapping, attr="get" | "pop"), args=[key, *default]):
            return [_item(mapping, key), *default]
    return []


def any_item(iterable: ast.expr) -> ast.expr:
    """Return an expression that evaluates to any element, always the same node."""
    return _item(iterable, None)


def _of(module: Module, iterable: ast.expr) -> Iterator[Place]:
    yield module, any_item(iterable)


@lru_cache(maxsize=65536)
def _item(iterable: ast.expr, index: object) -> ast.expr:
    """Return `iterable[index]` as an expression, `iterable[_]` for None; always the same node.

    Because the node is the same, evaluation detects cycles (`blocks.extend(blocks)`).
    """
    slot: ast.expr = ast.Name("_", ast.Load())
    if isinstance(index, ast.expr):
        slot = index
    elif isinstance(index, str | int):
        slot = ast.Constant(index)
    return ast.Subscript(iterable, slot, ast.Load())


@dataclass(frozen=True, slots=True)
class Stored:
    """What code puts into an object: a list, a dict, or one with attributes.

    Attributes:
        owner: the object.
        key: the index, key, or name of the attribute, if there is one.
        value: what is stored.
        way: how: by assignment to an item or an attribute, or by a method that adds one value, or
            all of those in `value`.
    """

    owner: ast.expr
    key: ast.expr | None
    value: ast.expr
    way: Literal["item", "attribute", "added", "spread"]


@lru_cache(maxsize=4096)
def stores_in(within: ast.AST) -> Mapping[str, Sequence[Stored]]:
    """Return what a scope stores in objects, by the dump of how it reads each."""
    found: dict[str, list[Stored]] = {}
    for node in ast.walk(within):
        for one in _stores_at(node):
            found.setdefault(ast.dump(one.owner), []).append(one)
    return found


def stored_in(
    module: Module, within: ast.AST, name: ast.Name, bindings: Collection[Binding]
) -> Iterator[Stored]:
    """Yield what a scope stores in the object that one of some bindings gives a name."""
    stores = stores_in(within)
    for one in stores.get(ast.dump(name), ()) if stores else ():
        assert isinstance(one.owner, ast.Name)
        if not module.reaching(one.owner).isdisjoint(bindings):
            yield one


def _stores_at(node: ast.AST) -> Iterator[Stored]:
    match node:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                if isinstance(target, ast.Subscript):
                    yield Stored(target.value, target.slice, value, "item")
                elif isinstance(target, ast.Attribute):
                    yield Stored(target.value, ast.Constant(target.attr), value, "attribute")
        case ast.Call(func=ast.Attribute(value=owner, attr=attr), args=args):
            match attr, args:
                case (("append" | "appendleft" | "add" | "insert"), [*_, value]):
                    yield Stored(owner, None, value, "added")
                case "setdefault", [key, value]:
                    yield Stored(owner, key, value, "added")
                case (("extend" | "update"), _):
                    yield from (Stored(owner, None, value, "spread") for value in args)
                    yield from (
                        Stored(owner, ast.Constant(k.arg) if k.arg else None, k.value, "added")
                        for k in node.keywords
                    )


def is_changed(container: Container) -> bool:
    """Return whether a dict may get more entries: some use does more than unpack or index it."""
    module, node = container.module, container.node
    shown, within = _name_of(module, node)
    if within is None:
        return False
    target = _target_of(module, node)
    return target is not None and any(
        not _is_read(module, read)
        for read in find_mentions(module).reads(last_name(target))
        if ast.dump(read) == shown and within in module.ancestors(read)
    )


def _is_read(module: Module, node: ast.AST) -> bool:
    """Return whether an expression is `options` in `**options` or `options["name"]`."""
    match module.parent(node):
        case ast.keyword(arg=None) | ast.Subscript(ctx=ast.Load()):
            return True
    return False


def _appended(module: Module, literal: ast.List) -> Iterator[Place]:
    """Yield what is later added to the list that starts as a literal."""
    for one in _stored(module, literal):
        if one.way == "added":
            yield module, one.value
        elif one.way == "spread":
            yield from _of(module, one.value)


def _entries(module: Module, literal: ast.Dict) -> Iterator[tuple[ast.expr | None, Place]]:
    """Yield the values of a dict by key, those assigned later, too; for None, other dicts in it."""
    for key, value in zip(literal.keys, literal.values, strict=True):
        yield key, (module, value)
    for one in _stored(module, literal):
        if one.way == "item":
            yield one.key, (module, one.value)


def _stored(module: Module, literal: ast.expr) -> Sequence[Stored]:
    shown, within = _name_of(module, literal)
    return () if within is None else stores_in(within).get(shown, ())


def _target_of(module: Module, literal: ast.expr) -> ast.expr | None:
    """Return what a literal is assigned to, if that is one target."""
    match module.parent(literal):
        case ast.Assign(targets=[target]) | ast.AnnAssign(target=target):
            return target
    return None


def _name_of(module: Module, literal: ast.expr) -> tuple[str, ast.AST | None]:
    """Return the name that a literal is assigned to, as a dump of its read, and its scope."""
    target = _target_of(module, literal)
    if target is None:
        return "", None
    shown = ast.dump(target).replace("Store()", "Load()")
    if isinstance(target, ast.Name):
        return shown, module.scope_at(literal).node
    if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
        function = module.enclosing_function(literal)
        cls = module.enclosing_class(function) if function is not None else None
        return shown, cls or module.tree
    return "", None
