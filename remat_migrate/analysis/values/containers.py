"""The elements of containers in the source: literals, comprehensions, `append`, `zip`."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
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
            entries = _entries(module, node)
            yield from entries.by_key.get(index, ())
            yield from entries.unknown
            yield from ((module, _item(mapping, index)) for mapping in entries.spread)
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
class _Entries:
    """The values in a dict: by their keys, with keys that are not constants, and from mappings."""

    by_key: dict[object, list[Place]] = field(default_factory=dict)
    unknown: list[Place] = field(default_factory=list)
    spread: list[ast.expr] = field(default_factory=list)


@once
def _known_entries(module: Module) -> dict[ast.Dict, _Entries]:
    return {}


def _entries(module: Module, literal: ast.Dict) -> _Entries:
    known = _known_entries(module)
    if literal not in known:
        found = known[literal] = _Entries()
        written = zip(literal.keys, ((module, value) for value in literal.values), strict=True)
        for key, place in (*written, *stored(module, literal)):
            if key is None:
                found.spread.append(place[1])
            elif isinstance(key, ast.Constant):
                found.by_key.setdefault(key.value, []).append(place)
            else:
                found.unknown.append(place)
    return known[literal]


@dataclass(frozen=True, slots=True)
class _Added:
    """What a scope adds to lists and dicts, by the dump of how it reads them.

    `changed` are those that it may change in other ways: whoever gets one as an argument, too.
    """

    parts: dict[str, list[Place]] = field(default_factory=dict)
    entries: dict[str, list[tuple[ast.expr, Place]]] = field(default_factory=dict)
    changed: set[str] = field(default_factory=set)


@once
def _known_additions(module: Module) -> dict[ast.AST, _Added]:
    return {}


def _added(module: Module, within: ast.AST) -> _Added:
    """Return what `.append`, `.insert`, `.extend`, and `mapping[key] = value` add in a scope."""
    known = _known_additions(module)
    if within in known:
        return known[within]
    found = known[within] = _Added()
    for node in ast.walk(within):
        match node:
            case ast.Call(func=ast.Attribute(value=owner, attr="append" | "insert"), args=[*_, it]):
                found.parts.setdefault(ast.dump(owner), []).append((module, it))
            case ast.Call(func=ast.Attribute(value=owner, attr="extend"), args=[more, *_]):
                found.parts.setdefault(ast.dump(owner), []).extend(_of(module, more))
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    if isinstance(target, ast.Subscript):
                        entries = found.entries.setdefault(ast.dump(target.value), [])
                        entries.append((target.slice, (module, value)))
            case ast.Delete(targets=targets):
                parts = [part.value for part in targets if isinstance(part, ast.Subscript)]
                found.changed.update(map(ast.dump, parts))
        if isinstance(node, ast.Call):
            found.changed.update(ast.dump(part) for part in _changed_by(node))
    return found


# What reads a dict without changing it.
_READS = frozenset({"get", "items", "keys", "values", "copy", "dict", "print", "len"})


def _changed_by(call: ast.Call) -> Iterator[ast.expr]:
    """Yield the objects that a call may change."""
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name) if name in _READS:
            return
        case ast.Attribute(value=owner):
            yield owner
    yield from (arg for arg in call.args if isinstance(arg, ast.Name | ast.Attribute))


def is_changed(container: Container) -> bool:
    """Return whether a dict may get or lose entries after the expression that makes it."""
    shown, within = _name_of(container.module, container.node)
    if within is None:
        return False
    added = _added(container.module, within)
    return bool(added.entries.get(shown)) or shown in added.changed


def appended(module: Module, literal: ast.List) -> Sequence[Place]:
    """Return what is later added to the list that starts as a literal."""
    shown, within = _name_of(module, literal)
    return () if within is None else _added(module, within).parts.get(shown, ())


def stored(module: Module, literal: ast.Dict) -> Sequence[tuple[ast.expr, Place]]:
    """Return what is later added, by key, to the dict that starts as a literal."""
    shown, within = _name_of(module, literal)
    return () if within is None else _added(module, within).entries.get(shown, ())


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
