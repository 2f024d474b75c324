"""What a piece of a syntax tree means: its content as a text, what it reads, what it may be."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Set
from typing import NamedTuple

from ...analysis.names.scopes import parameters

FunctionDefinition = ast.FunctionDef | ast.AsyncFunctionDef
# Of a string it is how it was quoted, of a name whether it is read: neither changes a meaning.
_MEANINGLESS = frozenset({"ctx", "kind", "type_comment", "type_ignores"})
_IDENTIFIERS = frozenset({"name", "id", "attr"})
_BLOCKS = frozenset({"body", "orelse", "finalbody", "handlers", "cases"})


def content_of(node: ast.AST, anonymous: frozenset[str] = frozenset()) -> str:
    """A tree as text, without recursion: sums may have a thousand terms.

    Identifiers in `anonymous` are all written alike.
    """
    parts: list[str] = []
    stack: list[object] = [node]
    while stack:
        item = stack.pop()
        if isinstance(item, ast.AST):
            parts.append(type(item).__name__)
            for name in reversed(item._fields):
                if name not in _MEANINGLESS:
                    value = getattr(item, name, None)
                    hidden = name in _IDENTIFIERS and value in anonymous
                    stack.append("\0" if hidden else value)
        elif isinstance(item, list):
            kept = [part for part in item if not is_idle(part)]
            parts.append(f"[{len(kept)}")
            stack += reversed(kept)
        else:
            parts.append(repr(item))
    return " ".join(parts)


def is_idle(node: object) -> bool:
    """Whether a statement does nothing: a docstring, `...`, `pass`."""
    return isinstance(node, ast.Pass) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    )


def mentions_of(node: ast.AST) -> tuple[frozenset[str], frozenset[str]]:
    """The module's names that a piece reads, with their attributes; all attributes it has."""
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
    """`a.b.c` for names and attributes of names; of an element, its container; else empty."""
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
    """The names that `nodes` bind in their own scope: not those of functions within them.

    As `Scope.bound` of the model, but of any nodes, however deep they are.
    """
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


def roots(targets: Iterable[ast.expr]) -> Iterator[str]:
    """The names whose values assigning to `targets` changes: `a` of `a`, `a.b` and `a[0]`."""
    for target in targets:
        if root := dotted_name(target).partition(".")[0]:
            yield root


def meaning_of(value: ast.expr, annotation: ast.expr | None) -> ast.AST:
    """What an assignment means, whatever its target: `f, g = a, b` are two."""
    return ast.Tuple([value, annotation]) if annotation else ast.Expr(value)


def single_targets(
    targets: Iterable[ast.expr], value: ast.expr
) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The single targets of an assignment with their values, as far as they can be told apart."""
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


# -- what a value may be


def may_be_callable(value: ast.expr) -> bool:
    """Whether a value may be something to call; only running the module tells whether it is."""
    return any(isinstance(n, ast.Call | ast.Lambda | ast.Name) for n in ast.walk(value))


def is_function(value: ast.expr, functions: Set[str]) -> bool:
    """Whether a value is made from a function of the module: a lambda, `wrap(function)`."""
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
    """Whether a condition holds only where the module is the program."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return any(is_main_test(value) for value in test.values)
    if not (isinstance(test, ast.Compare) and len(test.ops) == 1):
        return False
    sides = {content_of(test.left), content_of(test.comparators[0])}
    return isinstance(test.ops[0], ast.Eq) and sides == _MAIN


_MAIN = {content_of(ast.Name("__name__")), content_of(ast.Constant("__main__"))}


def blocks_of(node: ast.stmt) -> Iterator[tuple[str, list[ast.stmt]]]:
    """The blocks of a compound statement that may hold definitions, each with what selects it."""
    for name in ("body", "orelse", "finalbody"):
        if isinstance(block := getattr(node, name, None), list):
            yield name, block
    for handler in getattr(node, "handlers", []):
        yield f"except {content_of(handler.type) if handler.type else ''}", handler.body
    for case in getattr(node, "cases", []):
        guard = content_of(case.guard) if case.guard else ""
        yield f"case {content_of(case.pattern)} {guard}", case.body


def header_parts(node: ast.stmt) -> list[ast.AST]:
    """What stands before the colon of a compound statement."""
    return [
        part
        for name, value in ast.iter_fields(node)
        if name not in _BLOCKS
        for part in (value if isinstance(value, list) else [value])
        if isinstance(part, ast.AST)
    ]


def header_of(node: ast.stmt) -> ast.AST:
    """A compound statement without its blocks."""
    header = type(node)()
    for name in node._fields:
        setattr(header, name, [] if name in _BLOCKS else getattr(node, name))
    return header


class Under(NamedTuple):
    """The compound statements that a statement stands in.

    Attributes:
        content: what they mean.
        mentions: the names of the module that decide whether it is run.
    """

    content: str = ""
    mentions: frozenset[str] = frozenset()

    def deeper(self, node: ast.stmt, label: str) -> Under:
        """The same for a statement in the block `label` of a compound statement."""
        header = header_of(node)
        return Under(
            f"{self.content}{content_of(header)} {label}: ",
            self.mentions | mentions_of(header)[0],
        )


def statements_in(body: Iterable[ast.stmt]) -> list[ast.stmt]:
    """The statements of a block that do something, those of the blocks within it instead of it."""
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
