"""The elements of containers in the source: literals, comprehensions, `append`, `zip`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from ..names.module import Module, Place, once
from .values import Container


def elements(container: Container) -> Iterator[Place]:
    """Yield the expressions of which each element is one; nothing if they are unknown."""
    module, node = container.module, container.node
    match node:
        case ast.List() | ast.Tuple() | ast.Set():
            for part in node.elts:
                if isinstance(part, ast.Starred):
                    yield from _of(module, part.value)
                else:
                    yield module, part
            if isinstance(node, ast.List):
                yield from appended(module, node)
        case ast.ListComp() | ast.SetComp() | ast.GeneratorExp():
            yield module, node.elt
        case ast.Dict():
            for key, value in zip(node.keys, node.values, strict=True):
                if key is None:
                    yield from _of(module, value)
                else:
                    yield module, value
            yield from (part for _, part in stored(module, node))
        case ast.DictComp():
            yield module, node.value
        case ast.Call():
            # zip, enumerate, and items produce tuples, see `items`.
            for keyword in node.keywords:
                yield module, keyword.value


def items(container: Container, index: object) -> Iterator[Place]:
    """Yield the expressions that `container[index]` may be."""
    module, node = container.module, container.node
    match node:
        case ast.List() | ast.Tuple() if isinstance(index, int):
            added = list(appended(module, node)) if isinstance(node, ast.List) else []
            if added or any(isinstance(part, ast.Starred) for part in node.elts):
                yield from elements(container)
            elif -len(node.elts) <= index < len(node.elts):
                yield module, node.elts[index]
        case ast.Dict():
            for key, value in zip(node.keys, node.values, strict=True):
                if key is None:
                    yield module, _item(value, index)
                elif not isinstance(key, ast.Constant) or key.value == index:
                    yield module, value
            for key, part in stored(module, node):
                if not isinstance(key, ast.Constant) or key.value == index:
                    yield part
        case ast.Call(func=ast.Attribute(value=mapping, attr="items"), args=[]):
            if index == 1:
                yield from _of(module, mapping)
        case ast.Call(func=ast.Name(id="enumerate"), args=[first, *_]):
            if index == 1:
                yield from _of(module, first)
        case ast.Call(func=ast.Name(id="zip")):
            if isinstance(index, int) and index < len(node.args):
                yield from _of(module, node.args[index])
        case ast.Call():
            for keyword in node.keywords:
                if keyword.arg == index:
                    yield module, keyword.value
        case _:
            yield from elements(container)


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


def _of(module: Module, iterable: ast.expr) -> Iterator[Place]:
    """Return an expression that evaluates to any element."""
    yield module, _item(iterable, None)


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


def stored_items(container: Container) -> Iterator[tuple[str, ast.expr]]:
    """Return the values that `options["name"] = value` later adds to a dict."""
    if isinstance(container.node, ast.Dict):
        for key, (_, value) in stored(container.module, container.node):
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                yield key.value, value


@dataclass(slots=True)
class _Added:
    """What is later added to the lists and dicts of a module, found once for each."""

    parts: dict[ast.List, tuple[Place, ...]] = field(default_factory=dict)
    entries: dict[ast.Dict, tuple[tuple[ast.expr, Place], ...]] = field(default_factory=dict)


@once
def _added(module: Module) -> _Added:
    return _Added()


def appended(module: Module, literal: ast.List) -> tuple[Place, ...]:
    """Return what is later added to the list that starts as a literal."""
    known = _added(module).parts
    if literal not in known:
        known[literal] = tuple(_appended(module, literal))
    return known[literal]


def stored(module: Module, literal: ast.Dict) -> tuple[tuple[ast.expr, Place], ...]:
    """Return what is later added, by key, to the dict that starts as a literal."""
    known = _added(module).entries
    if literal not in known:
        known[literal] = tuple(_stored(module, literal))
    return known[literal]


def _appended(module: Module, literal: ast.List) -> Iterator[Place]:
    """Yield what `.append`, `.insert`, and `.extend` add to the list that starts as a literal."""
    shown, within = _name_of(module, literal)
    for node in ast.walk(within) if within is not None else ():
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            if node.func.attr in ("append", "insert", "extend"):
                if ast.dump(node.func.value) == shown:
                    if node.func.attr == "extend":
                        yield from _of(module, node.args[0])
                    else:
                        yield module, node.args[-1]


def _stored(module: Module, literal: ast.Dict) -> Iterator[tuple[ast.expr, Place]]:
    """Yield what `mapping[key] = value` adds to the dict that starts as a literal, by key."""
    shown, within = _name_of(module, literal)
    for node in ast.walk(within) if within is not None else ():
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Subscript) and ast.dump(target.value) == shown:
                    yield target.slice, (module, node.value)


def _name_of(module: Module, literal: ast.expr) -> tuple[str, ast.AST | None]:
    """Return the name that a literal is assigned to, as a dump of its read, and its scope."""
    holder = module.parent(literal)
    if isinstance(holder, ast.Assign) and len(holder.targets) == 1:
        target = holder.targets[0]
    elif isinstance(holder, ast.AnnAssign):
        target = holder.target
    else:
        return "", None
    shown = ast.dump(target).replace("Store()", "Load()")
    if isinstance(target, ast.Name):
        return shown, module.scope_at(literal).node
    if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
        function = module.enclosing_function(literal)
        cls = module.enclosing_class(function) if function is not None else None
        return shown, cls or module.tree
    return "", None
