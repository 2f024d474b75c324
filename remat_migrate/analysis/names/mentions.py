"""Where a module reads each name and attribute, found in one walk."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field

from .module import Module, once


@dataclass(frozen=True, slots=True)
class Mentions:
    """The names that a module reads, and where it renames things.

    Attributes:
        names: the reads of each name.
        attributes: the reads of each attribute of any object.
        written: the assignments to, and deletions of, each attribute.
        renamed: the aliases of a name, by its last part: `import name as other`.
        assigned: the assignments with one target.
        classes: the classes by name.
        imports: the import statements.
        deleted: the names that are deleted.
    """

    names: dict[str, list[ast.Name]] = field(default_factory=dict)
    attributes: dict[str, list[ast.Attribute]] = field(default_factory=dict)
    written: dict[str, list[ast.Attribute]] = field(default_factory=dict)
    renamed: dict[str, list[str]] = field(default_factory=dict)
    assigned: list[ast.Assign] = field(default_factory=list)
    classes: dict[str, list[ast.ClassDef]] = field(default_factory=dict)
    imports: list[ast.Import | ast.ImportFrom] = field(default_factory=list)
    deleted: set[str] = field(default_factory=set)

    def reads(self, name: str) -> list[ast.Name | ast.Attribute]:
        """Return the reads of a name, and of attributes with that name."""
        return [*self.names.get(name, ()), *self.attributes.get(name, ())]

    def mention(self, names: Iterable[str]) -> bool:
        """Return whether the module reads or renames one of some names."""
        return any(
            name in self.names or name in self.attributes or name in self.renamed for name in names
        )


def last_name(node: ast.AST) -> str:
    """Return a name, or the last part of a dotted name; "" for other expressions."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def has_side_effects(node: ast.AST) -> bool:
    """Return whether evaluating an expression may do more than compute a value."""
    effects = ast.Call | ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom
    value = node.value if isinstance(node, ast.keyword) else node
    if isinstance(value, ast.Lambda):
        return False
    return any(isinstance(inner, effects) for inner in ast.walk(value))


@once
def find_mentions(module: Module) -> Mentions:
    """Return the mentions in a module, in no particular order."""
    found = Mentions()
    names, attributes = found.names, found.attributes
    for node in module.nodes:
        kind = node.__class__
        if kind is ast.Name:
            assert isinstance(node, ast.Name)
            if node.ctx.__class__ is ast.Load:
                names.setdefault(node.id, []).append(node)
            elif node.ctx.__class__ is ast.Del:
                found.deleted.add(node.id)
        elif kind is ast.Attribute:
            assert isinstance(node, ast.Attribute)
            by_name = attributes if node.ctx.__class__ is ast.Load else found.written
            by_name.setdefault(node.attr, []).append(node)
        elif kind is ast.alias:
            assert isinstance(node, ast.alias)
            if node.asname is not None:
                last = node.name.rpartition(".")[2]
                found.renamed.setdefault(last, []).append(node.asname)
        elif kind is ast.Assign:
            assert isinstance(node, ast.Assign)
            if len(node.targets) == 1:
                found.assigned.append(node)
        elif kind is ast.ClassDef:
            assert isinstance(node, ast.ClassDef)
            found.classes.setdefault(node.name, []).append(node)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found.imports.append(node)
    return found


def reads_of(module: Module, name: str, bound: ast.AST) -> list[ast.Name]:
    """Return where a module reads the binding of a name that has the node `bound`."""
    return [
        read
        for read in find_mentions(module).names.get(name, ())
        if any(binding.node is bound for binding in module.reaching(read))
    ]
