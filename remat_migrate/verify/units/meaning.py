"""The meaning of a piece of a syntax tree: its content as text, and the names it reads or binds."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Set
from typing import NamedTuple

from ...analysis.names.scopes import parameters

FunctionDefinition = ast.FunctionDef | ast.AsyncFunctionDef
# How a string was quoted and whether a name is read: neither changes the meaning.
_MEANINGLESS = frozenset({"ctx", "kind", "type_comment", "type_ignores"})
_BLOCKS = frozenset({"body", "orelse", "finalbody", "handlers", "cases"})


def content_of(node: ast.AST) -> str:
    """Return a tree as text."""
    # Not recursive: a sum may have a thousand terms.
    parts: list[str] = []
    stack: list[object] = [node]
    while stack:
        item = stack.pop()
        if isinstance(item, ast.AST):
            parts.append(type(item).__name__)
            for name in reversed(item._fields):
                if name not in _MEANINGLESS:
                    stack.append(getattr(item, name, None))
        elif isinstance(item, list):
            kept = [part for part in item if not is_idle(part)]
            parts.append(f"[{len(kept)}")
            stack += reversed(kept)
        else:
            parts.append(repr(item))
    return " ".join(parts)


def is_idle(node: object) -> bool:
    """Return whether a statement does nothing: a docstring, `...`, `pass`."""
    return isinstance(node, ast.Pass) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    )


def mentions_of(node: ast.AST) -> tuple[frozenset[str], frozenset[str]]:
    """Return the names of the module that a piece reads, as `a`, `a.b`, and all attributes."""
    names: set[str] = set()
    attributes: set[str] = set()
    stack: list[tuple[ast.AST, frozenset[str]]] = [(node, frozenset())]
    while stack:
        item, local = stack.pop()
        match item:
            case ast.Name(id=name):
                if name not in local:
                    names.add(name)
                continue
            case ast.Attribute(attr=attribute):
                attributes.add(attribute)
                dotted = dotted_name(item)
                if dotted and dotted.partition(".")[0] not in local:
                    names.add(dotted)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                body = item.body if isinstance(item.body, list) else [item.body]
                inner = local | bound_names(body) | {p.arg for p in parameters(item)}
                stack += ((part, inner) for part in body)
                stack += (
                    (part, local)
                    for part in ast.iter_child_nodes(item)
                    if not any(part is inside for inside in body)
                )
                continue
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                local = local | bound_names([g.target for g in item.generators])
        stack += ((part, local) for part in ast.iter_child_nodes(item))
    return frozenset(names), frozenset(attributes)


def dotted_name(node: ast.AST) -> str:
    """Return `a.b.c` for an attribute, `a` for an element `a[0].b`, "" for other expressions."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute | ast.Subscript):
        if isinstance(node, ast.Attribute):
            parts.append(node.attr)
        else:
            parts.clear()
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([node.id, *reversed(parts)])


def bound_names(nodes: Iterable[ast.AST]) -> frozenset[str]:
    """Return the names that nodes bind in their own scope, not within inner functions."""
    bound: set[str] = set()
    elsewhere: set[str] = set()
    stack = list(nodes)
    while stack:
        match item := stack.pop():
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                bound.add(name)
                continue
            case ast.ClassDef(name=name):
                bound.add(name)
                continue
            case ast.Lambda():
                continue
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                bound |= {n.target.id for n in ast.walk(item) if isinstance(n, ast.NamedExpr)}
                continue
            case ast.Name(id=name) if not isinstance(item.ctx, ast.Load):
                bound.add(name)
            case ast.Import() | ast.ImportFrom():
                bound |= {alias.asname or alias.name.partition(".")[0] for alias in item.names}
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
                bound.add(name)
            case ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
                bound.add(name)
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                elsewhere |= set(names)
        stack += ast.iter_child_nodes(item)
    return frozenset(bound - elsewhere)


def meaning_of(value: ast.expr, annotation: ast.expr | None) -> ast.AST:
    """Return a node for an assignment without its target."""
    return ast.Tuple([value, annotation]) if annotation else ast.Expr(value)


def single_targets(
    targets: Iterable[ast.expr], value: ast.expr
) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield the targets of an assignment with their values: `f, g = a, b` is two assignments."""
    for target in targets:
        if not isinstance(target, ast.Tuple | ast.List):
            yield target, value
            continue
        values = value.elts if isinstance(value, ast.Tuple | ast.List) else []
        plain = not any(isinstance(part, ast.Starred) for part in (*target.elts, *values))
        for index, part in enumerate(target.elts):
            part = part.value if isinstance(part, ast.Starred) else part
            matched = plain and len(values) == len(target.elts)
            yield from single_targets([part], values[index] if matched else value)


def may_be_callable(value: ast.expr) -> bool:
    """Return whether a value may be callable."""
    return any(isinstance(n, ast.Call | ast.Lambda | ast.Name) for n in ast.walk(value))


def is_function(value: ast.expr, functions: Set[str]) -> bool:
    """Return whether a value is a lambda, or made from a function: `wrap(function)`."""
    if isinstance(value, ast.Lambda):
        return True
    if not isinstance(value, ast.Call):
        return False
    given = [*value.args, *(keyword.value for keyword in value.keywords)]
    if isinstance(value.func, ast.Call):  # partial(jax.checkpoint, ...)(function)
        given.append(value.func)
    return any(
        is_function(part, functions)
        or (isinstance(part, ast.Name | ast.Attribute) and dotted_name(part) in functions)
        for part in given
    )


# -- compound statements


def is_main_test(test: ast.expr) -> bool:
    """Return whether a condition is or implies `__name__ == "__main__"`."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return any(is_main_test(value) for value in test.values)
    if not (isinstance(test, ast.Compare) and len(test.ops) == 1):
        return False
    sides = {content_of(test.left), content_of(test.comparators[0])}
    return isinstance(test.ops[0], ast.Eq) and sides == _MAIN


_MAIN = {content_of(ast.Name("__name__")), content_of(ast.Constant("__main__"))}


def blocks_of(node: ast.stmt) -> Iterator[tuple[str, list[ast.stmt]]]:
    """Yield the blocks of a compound statement, each with a label."""
    for name in ("body", "orelse", "finalbody"):
        if isinstance(block := getattr(node, name, None), list):
            yield name, block
    for handler in getattr(node, "handlers", []):
        yield f"except {content_of(handler.type) if handler.type else ''}", handler.body
    for case in getattr(node, "cases", []):
        guard = content_of(case.guard) if case.guard else ""
        yield f"case {content_of(case.pattern)} {guard}", case.body


def header_of(node: ast.stmt) -> ast.AST:
    """Return a compound statement without its blocks."""
    header = type(node)()
    for name in node._fields:
        setattr(header, name, [] if name in _BLOCKS else getattr(node, name))
    return header


class Under(NamedTuple):
    """The compound statements around a statement.

    Attributes:
        content: their meaning.
        mentions: the names of the module that they read.
    """

    content: str = ""
    mentions: frozenset[str] = frozenset()

    def deeper(self, node: ast.stmt, label: str) -> Under:
        """Return the same for a statement in a block of a compound statement."""
        header = header_of(node)
        return Under(
            f"{self.content}{content_of(header)} {label}: ",
            self.mentions | mentions_of(header)[0],
        )


def statements_in(body: Iterable[ast.stmt]) -> list[ast.stmt]:
    """Return the statements of a block, except idle ones, with compound statements flattened."""
    found: list[ast.stmt] = []
    for node in body:
        inside = (
            [] if isinstance(node, ast.ClassDef | FunctionDefinition) else list(blocks_of(node))
        )
        if inside:
            for _, block in inside:
                found += statements_in(block)
        elif not is_idle(node):
            found.append(node)
    return found
