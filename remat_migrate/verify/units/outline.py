"""Split a module into units, other bindings, and code that only runs.

Each piece keeps its meaning as text: the syntax tree without positions, docstrings and idle
statements, with the conditions around it. Two pieces are equal when these texts are.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from ...text import SourceFile, Span
from .meaning import (
    FunctionDefinition,
    Under,
    blocks_of,
    bound_names,
    content_of,
    dotted_name,
    header_of,
    is_function,
    is_idle,
    is_main_test,
    may_be_callable,
    meaning_of,
    mentions_of,
    single_targets,
    statements_in,
)

# `from m import *` is the binding `* m`.
STAR = "*"


@dataclass(frozen=True, slots=True)
class Piece:
    """One definition, binding or statement.

    Attributes:
        name: its qualified name; "" for a statement that binds nothing.
        line: the line of its `def`, or of the statement.
        span: its characters, decorators included.
        content: its meaning, with the conditions around it.
        mentions: the names of the module that it reads, and their attributes: `jax.checkpoint`.
        attributes: the attributes that it reads from any object.
        node: the statement.
        is_import: whether an import statement binds it.
    """

    name: str
    line: int
    span: Span
    content: str
    mentions: frozenset[str]
    attributes: frozenset[str]
    node: ast.stmt
    is_import: bool = False


@dataclass(slots=True)
class ClassOutline:
    """A class.

    Attributes:
        header: its decorators and bases.
        methods: the short names of its units.
        functions: the short names of the functions that its body defines.
        attributes: its other attributes, by short name; "" for other statements.
        bases: the names of its bases.
    """

    header: list[Piece] = field(default_factory=list)
    methods: list[str] = field(default_factory=list)
    functions: set[str] = field(default_factory=set)
    attributes: dict[str, list[Piece]] = field(default_factory=dict)
    bases: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Outline:
    """The pieces of a module.

    Attributes:
        units: functions, methods, and names bound to possible callables, by qualified name.
        bindings: imports, constants, and values that may not be functions of the module, by name;
            `a.b` for `import a.b`, `* a` for `from a import *`.
        classes: by qualified name.
        code: statements that run at import and bind nothing.
        script: code under `if __name__ == "__main__"`.
    """

    units: dict[str, list[Piece]] = field(default_factory=dict)
    bindings: dict[str, list[Piece]] = field(default_factory=dict)
    classes: dict[str, ClassOutline] = field(default_factory=dict)
    code: list[Piece] = field(default_factory=list)
    script: list[Piece] = field(default_factory=list)

    @property
    def names(self) -> set[str]:
        """The names that the module defines, except through star imports."""
        found = {name.partition(".")[0] for name in (*self.units, *self.bindings, *self.classes)}
        return {name for name in found if not name.startswith(STAR)}

    @property
    def unit_pieces(self) -> Iterator[Piece]:
        """The pieces of units and classes."""
        for pieces in self.units.values():
            yield from pieces
        for found in self.classes.values():
            yield from found.header
            for pieces in found.attributes.values():
                yield from pieces


def outline(text: str) -> Outline:
    """Outline a module.

    Raises:
        SyntaxError: this interpreter cannot parse the text.
    """
    source = SourceFile(Path(), text)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree = ast.parse(text)
        except (ValueError, RecursionError, MemoryError) as error:
            raise SyntaxError(str(error)) from error
    return _Reader(source, tree).outline


class _Reader:
    """Walks the statements of a module that are outside of functions.

    The methods take the qualified name of the class around a statement as `owner`, "" for none.
    """

    def __init__(self, source: SourceFile, tree: ast.Module) -> None:
        self._source = source
        self.outline = Outline()
        self._functions = _defined_functions(tree.body)
        self._block(tree.body, Under(), "")

    def _block(self, body: list[ast.stmt], under: Under, owner: str) -> None:
        for node in body:
            self._statement(node, under, owner)

    def _statement(self, node: ast.stmt, under: Under, owner: str) -> None:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self._unit(owner, node.name, node, under)
            case ast.ClassDef():
                self._class(node, under, owner)
            case ast.Assign(value=value) | ast.AnnAssign(value=ast.expr() as value):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for target, part in single_targets(targets, value):
                    self._assignment(target, part, node, under, owner)
            case ast.If(test=test) if not owner and is_main_test(test):
                self.outline.script.append(self._piece("", node, under, ast.Module(node.body, [])))
                self._block(node.orelse, under.deeper(node, "orelse"), owner)
            case _ if is_idle(node):
                pass
            case _ if blocks := list(blocks_of(node)):
                if not owner:
                    self._header(node, under)
                for label, block in blocks:
                    self._block(block, under.deeper(node, label), owner)
            case _:
                self._binding(node, under, owner)

    def _binding(self, node: ast.stmt, under: Under, owner: str) -> None:
        """Read a statement without blocks that is no plain assignment."""
        match node:
            case _ if owner:
                named = isinstance(node, ast.AnnAssign) and dotted_name(node.target)
                self._add(self.outline.classes[owner].attributes, named or "", node, under)
            case ast.Import() | ast.ImportFrom():
                self._import(node, under)
            case ast.AugAssign(target=target) | ast.AnnAssign(target=target):
                if root := dotted_name(target).partition(".")[0]:
                    self._add(self.outline.bindings, root, node, under)
            case _:
                names = bound_names([node]) or self._handed_on(node)
                for name in names:
                    self._add(self.outline.bindings, name, node, under)
                if not names:
                    self.outline.code.append(self._piece("", node, under))

    def _header(self, node: ast.stmt, under: Under) -> None:
        """Read a compound statement without its blocks."""
        header = header_of(node)
        for name in bound_names(ast.iter_child_nodes(header)):
            self._add(self.outline.bindings, name, node, under, header)
        if not any(statements_in(block) for _, block in blocks_of(node)):
            self.outline.code.append(self._piece("", node, under))

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
                piece = self._piece(name, node, under)
                content = f"{under.content}import {meaning}"
                self.outline.bindings.setdefault(key, []).append(
                    replace(piece, content=content, is_import=True)
                )

    def _assignment(
        self, target: ast.expr, value: ast.expr, node: ast.stmt, under: Under, owner: str
    ) -> None:
        """Read the assignment of a value to one target."""
        name = dotted_name(target)
        parts = meaning_of(value, getattr(node, "annotation", None))
        functions = self._functions
        root, _, attribute = name.rpartition(".")
        if owner:
            functions = functions | self.outline.classes[owner].functions
        elif root in self.outline.classes:
            # `Model.block = jax.checkpoint(Model.block)`
            owner, name = root, attribute
        if owner:
            if name and is_function(value, functions):
                self._unit(owner, name, node, under, parts)
            else:
                self._add(self.outline.classes[owner].attributes, name, node, under, parts)
        elif isinstance(target, ast.Name):
            if may_be_callable(value):
                self._add(self.outline.units, name, node, under, parts)
            if is_function(value, functions):
                self._functions.add(name)
            else:
                self._add(self.outline.bindings, name, node, under, parts)
        elif self._is_own(root := name.partition(".")[0]):
            # `SETTINGS["concrete"] = True`
            self._add(self.outline.bindings, root, node, under)
        else:
            self.outline.code.append(self._piece("", node, under))

    def _handed_on(self, node: ast.stmt) -> set[str]:
        """Return the names of the module that a call may change: `OPTIONS.update(rate=0.1)`."""
        if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
            return set()
        call = node.value
        holder = call.func.value if isinstance(call.func, ast.Attribute) else None
        given = [holder, *call.args, *(keyword.value for keyword in call.keywords)]
        roots = {dotted_name(part).partition(".")[0] for part in given if part is not None}
        return {name for name in roots if self._is_own(name)}

    def _is_own(self, name: str) -> bool:
        """Return whether the module has assigned a value to a name, rather than imported it."""
        bound = self.outline.bindings.get(name, ())
        return name in self.outline.units or any(not piece.is_import for piece in bound)

    def _class(self, node: ast.ClassDef, under: Under, owner: str) -> None:
        qualname = f"{owner}.{node.name}" if owner else node.name
        found = self.outline.classes.setdefault(qualname, ClassOutline())
        header = ast.ClassDef(**{f: getattr(node, f) for f in node._fields if f != "body"}, body=[])
        found.header.append(self._piece(qualname, node, under, header))
        found.bases |= {name for base in node.bases if (name := dotted_name(base))}
        found.functions = _defined_functions(node.body)
        self._block(node.body, under, qualname)
        self._functions |= {f"{qualname}.{name}" for name in found.methods}

    # -- pieces

    def _unit(
        self, owner: str, name: str, node: ast.stmt, under: Under, meaning: ast.AST | None = None
    ) -> None:
        if owner:
            self.outline.classes[owner].methods.append(name)
            name = f"{owner}.{name}"
        self._add(self.outline.units, name, node, under, meaning)

    def _add(
        self,
        to: dict[str, list[Piece]],
        name: str,
        node: ast.stmt,
        under: Under,
        meaning: ast.AST | None = None,
    ) -> None:
        to.setdefault(name, []).append(self._piece(name, node, under, meaning))

    def _piece(
        self, name: str, node: ast.stmt, under: Under, meaning: ast.AST | None = None
    ) -> Piece:
        meaning = meaning or node
        mentions, attributes = mentions_of(meaning)
        return Piece(
            name,
            node.lineno,
            self._source.full_span(node),
            under.content + content_of(meaning),
            mentions | under.mentions,
            attributes,
            node,
        )


def _defined_functions(body: list[ast.stmt]) -> set[str]:
    return {node.name for node in statements_in(body) if isinstance(node, FunctionDefinition)}
