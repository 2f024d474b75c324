"""Elements of containers that are written out: literals, comprehensions, `append`, `zip`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .module import Module
from .values import Container

Part = tuple[Module, ast.expr]


def elements(container: Container) -> Iterator[Part]:
    """The expressions of which every element is one; nothing when they cannot be seen."""
    module, node = container.module, container.node
    match node:
        case ast.List() | ast.Tuple() | ast.Set():
            for part in node.elts:
                yield module, part.value if isinstance(part, ast.Starred) else part
            if isinstance(node, ast.List):
                yield from _appended(module, node)
        case ast.ListComp() | ast.SetComp() | ast.GeneratorExp():
            yield module, node.elt
        case ast.Dict():
            for value in node.values:
                yield module, value
        case ast.DictComp():
            yield module, node.value
        case ast.Call():
            # zip, enumerate: tuples of the elements of the arguments, see `items`.
            for keyword in node.keywords:
                yield module, keyword.value


def items(container: Container, index: object) -> Iterator[Part]:
    """The expressions that `container[index]` may be."""
    module, node = container.module, container.node
    match node:
        case ast.List() | ast.Tuple() if isinstance(index, int):
            if any(isinstance(part, ast.Starred) for part in node.elts):
                yield from elements(container)
            elif -len(node.elts) <= index < len(node.elts):
                yield module, node.elts[index]
            elif isinstance(node, ast.List):
                yield from _appended(module, node)
        case ast.Dict():
            for key, value in zip(node.keys, node.values, strict=True):
                if key is None or not isinstance(key, ast.Constant) or key.value == index:
                    yield module, value
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


def _of(module: Module, iterable: ast.expr) -> Iterator[Part]:
    """`iterable[0]`, as an expression of its own that evaluates to any element."""
    subscript = ast.Subscript(iterable, ast.Name("_", ast.Load()), ast.Load())
    yield module, subscript


def _appended(module: Module, literal: ast.List) -> Iterator[Part]:
    """What `.append`, `.insert` and `+=` add to the list that a literal starts."""
    holder = module.parent(literal)
    if isinstance(holder, ast.Assign) and len(holder.targets) == 1:
        target = holder.targets[0]
    elif isinstance(holder, ast.AnnAssign):
        target = holder.target
    else:
        return
    if isinstance(target, ast.Name):
        within: ast.AST = module.scope_at(literal).node
    elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
        function = module.enclosing_function(literal)
        cls = module.enclosing_class(function) if function is not None else None
        within = cls or module.tree
    else:
        return
    shown = ast.dump(target).replace("Store()", "Load()")
    for node in ast.walk(within):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in ("append", "insert") and ast.dump(node.func.value) == shown:
                if node.args:
                    yield module, node.args[-1]
