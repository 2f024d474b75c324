"""Split a module into units, other values, and code that only runs.

Each piece keeps its meaning as text: the syntax tree without positions, docstrings and idle
statements, with the conditions around it. Two pieces are equal when these texts are.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from ...analysis.names.module import parameters
from ...text import SourceFile, Span

# `from m import *` is the value `* m`.
STAR = "*"


@dataclass(frozen=True, slots=True)
class Piece:
    """One definition, binding or statement.

    Attributes:
        line: the line of its `def`, or of the statement.
        span: its characters, decorators included.
        content: its meaning, with the conditions around it.
        mentions: the names of the module that it reads, and their attributes: `jax.checkpoint`.
        attributes: the attributes that it reads from any object.
        node: the statement.
        is_import: whether an import statement binds it.
    """

    line: int
    span: Span
    content: str
    mentions: frozenset[str]
    attributes: frozenset[str]
    node: ast.stmt
    is_import: bool = False


Pieces = dict[str, list[Piece]]


@dataclass
class Outline:
    """The pieces of a module, by qualified name.

    Attributes:
        units: functions, methods, and names bound to possible callables.
        values: imports, constants, attributes of classes, and other values that may not be
            functions of the module; `a.b` for `import a.b`, `* a` for `from a import *`, `A.` for
            other statements in the body of a class.
        classes: the decorators and bases of classes.
        bases: the names of the bases of each class.
        code: statements that bind nothing, and what is under `if __name__ == "__main__"`.
    """

    units: Pieces = field(default_factory=dict)
    values: Pieces = field(default_factory=dict)
    classes: Pieces = field(default_factory=dict)
    bases: dict[str, set[str]] = field(default_factory=dict)
    code: list[Piece] = field(default_factory=list)

    @property
    def names(self) -> set[str]:
        """The names that the module defines, except through star imports."""
        found = {name.partition(".")[0] for name in (*self.units, *self.values, *self.classes)}
        return {name for name in found if not name.startswith(STAR)}

    @functools.cached_property
    def attributes(self) -> Pieces:
        """The values that are attributes of classes."""
        return {name: each for name, each in self.values.items() if owner_of(name) in self.classes}

    @property
    def unit_pieces(self) -> Iterator[Piece]:
        """The pieces of units and classes."""
        for group in (self.units, self.classes, self.attributes):
            for pieces in group.values():
                yield from pieces


def owner_of(name: str) -> str:
    """Return the class of a method or an attribute by their qualified names; "" for others."""
    return name.rpartition(".")[0]


def outline(text: str) -> Outline:
    """Outline a module.

    Raises:
        SourceError: this interpreter cannot parse the text.
    """
    source = SourceFile(Path(), text)
    return _Reader(source, source.parse()).outline


class _Reader:
    """Walks the statements of a module that are outside of functions.

    The methods take the qualified name of the class around a statement as `owner`, "" for none.
    """

    def __init__(self, source: SourceFile, tree: ast.Module) -> None:
        self._source = source
        self.outline = Outline()
        # The functions that can be named in the module, and in the classes around a statement.
        self._functions = _defined_functions(tree.body)
        self._inner: set[str] = set()
        self._block(tree.body, Under(), "")

    def _block(self, body: list[ast.stmt], under: Under, owner: str) -> None:
        for node in body:
            self._statement(node, under, owner)

    def _statement(self, node: ast.stmt, under: Under, owner: str) -> None:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self._add(self.outline.units, _inside(owner, node.name), node, under)
            case ast.ClassDef():
                self._class(node, under, _inside(owner, node.name))
            case ast.Assign(value=value) | ast.AnnAssign(value=ast.expr() as value):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for target, part in single_targets(targets, value):
                    self._assignment(target, part, node, under, owner)
            case ast.If(test=test) if not owner and is_main_test(test):
                body = ast.Module(node.body, [])
                self.outline.code.append(self._piece(node, under, body))
                self._block(node.orelse, under.deeper(node, "orelse"), owner)
            case _ if is_idle(node):
                pass
            case _ if blocks := list(blocks_of(node)):
                if not owner:
                    self._header(node, under)
                for label, block in blocks:
                    self._block(block, under.deeper(node, label), owner)
            case ast.Import() | ast.ImportFrom() if not owner:
                self._import(node, under)
            case _:
                names = self._changed_by(node, owner)
                for name in names:
                    self._add(self.outline.values, name, node, under)
                if not names:
                    self.outline.code.append(self._piece(node, under))

    def _header(self, node: ast.stmt, under: Under) -> None:
        """Read a compound statement without its blocks."""
        header = header_of(node)
        for name in _bound_names(ast.iter_child_nodes(header)):
            self._add(self.outline.values, name, node, under, header)
        if not any(statements_in(block) for _, block in blocks_of(node)):
            self.outline.code.append(self._piece(node, under))

    def _changed_by(self, node: ast.stmt, owner: str) -> Set[str]:
        """Return the names that a statement without blocks binds or may change in place.

        A call may change what it is given: `OPTIONS.update(rate=0.1)`.
        """
        match node:
            case _ if owner:
                named = isinstance(node, ast.AnnAssign) and dotted_name(node.target)
                return {_inside(owner, named or "")}
            case ast.AugAssign(target=target) | ast.AnnAssign(target=target):
                return {dotted_name(target).partition(".")[0]} - {""}
            case ast.Expr(ast.Call() as call):
                holder = call.func.value if isinstance(call.func, ast.Attribute) else None
                given = [holder, *call.args, *(keyword.value for keyword in call.keywords)]
                roots = {dotted_name(part).partition(".")[0] for part in given if part is not None}
                return _bound_names([node]) or set(filter(self._is_own, roots))
        return _bound_names([node])

    def _import(self, node: ast.Import | ast.ImportFrom, under: Under) -> None:
        origin = "." * node.level + (node.module or "") if isinstance(node, ast.ImportFrom) else ""
        for alias in node.names:
            if isinstance(node, ast.ImportFrom):
                bound = {alias.asname or alias.name: f"{origin} {alias.name}"}
            elif alias.asname:
                bound = {alias.asname: alias.name}
            else:
                top = alias.name.partition(".")[0]
                bound = {top: top, alias.name: alias.name}
            for name, meaning in bound.items():
                key = f"{STAR} {origin}" if name == STAR else name
                content = f"{under.content}import {meaning}"
                piece = replace(self._piece(node, under), content=content, is_import=True)
                self.outline.values.setdefault(key, []).append(piece)

    def _assignment(
        self, target: ast.expr, value: ast.expr, node: ast.stmt, under: Under, owner: str
    ) -> None:
        """Read the assignment of a value to one target."""
        found = self.outline
        name = dotted_name(target)
        meaning = meaning_of(value, getattr(node, "annotation", None))
        is_made = is_function(value, self._functions | self._inner)
        if owner or owner_of(name) in found.classes:  # `Model.block = jax.checkpoint(Model.block)`
            is_unit = bool(name) and is_made
            name = _inside(owner, name) if owner else name
            self._add(found.units if is_unit else found.values, name, node, under, meaning)
        elif isinstance(target, ast.Name):
            if may_be_callable(value):
                self._add(found.units, name, node, under, meaning)
            if is_made:
                self._functions.add(name)
            else:
                self._add(found.values, name, node, under, meaning)
        elif self._is_own(root := name.partition(".")[0]):
            # `SETTINGS["concrete"] = True`
            self._add(found.values, root, node, under)
        else:
            found.code.append(self._piece(node, under))

    def _is_own(self, name: str) -> bool:
        """Return whether the module has assigned a value to a name, rather than imported it."""
        bound = self.outline.values.get(name, ())
        return name in self.outline.units or any(not piece.is_import for piece in bound)

    def _class(self, node: ast.ClassDef, under: Under, name: str) -> None:
        header = ast.ClassDef(**{f: getattr(node, f) for f in node._fields if f != "body"}, body=[])
        self._add(self.outline.classes, name, node, under, header)
        bases = self.outline.bases.setdefault(name, set())
        bases |= {base for each in node.bases if (base := dotted_name(each))}
        around, self._inner = self._inner, _defined_functions(node.body)
        self._block(node.body, under, name)
        self._inner = around
        self._functions |= {unit for unit in self.outline.units if owner_of(unit) == name}

    def _add(
        self, to: Pieces, name: str, node: ast.stmt, under: Under, meaning: ast.AST | None = None
    ) -> None:
        to.setdefault(name, []).append(self._piece(node, under, meaning))

    def _piece(self, node: ast.stmt, under: Under, meaning: ast.AST | None = None) -> Piece:
        meaning = meaning or node
        mentions, attributes = mentions_of(meaning)
        return Piece(
            node.lineno,
            self._source.full_span(node),
            under.content + content_of(meaning),
            mentions | under.mentions,
            attributes,
            node,
        )


def _inside(owner: str, name: str) -> str:
    return f"{owner}.{name}" if owner else name


def _defined_functions(body: list[ast.stmt]) -> set[str]:
    return {node.name for node in statements_in(body) if isinstance(node, FunctionDefinition)}


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
                inner = local | _bound_names(body) | {p.arg for p in parameters(item)}
                stack += ((part, inner) for part in body)
                stack += (
                    (part, local)
                    for part in ast.iter_child_nodes(item)
                    if not any(part is inside for inside in body)
                )
                continue
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                local = local | _bound_names([g.target for g in item.generators])
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


def _bound_names(nodes: Iterable[ast.AST]) -> frozenset[str]:
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
