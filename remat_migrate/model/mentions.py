"""Where a module reads each name and attribute, found in one walk."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from .module import Module, once


@dataclass(frozen=True, slots=True)
class Mentions:
    """The names that a module reads, and what gives things other names.

    Attributes:
        names: the reads of each name.
        attributes: the reads of each attribute, of whatever object.
        renamed: `import name as other`.
        assigned: the assignments to one target.
    """

    names: dict[str, list[ast.Name]] = field(default_factory=dict)
    attributes: dict[str, list[ast.Attribute]] = field(default_factory=dict)
    renamed: list[ast.alias] = field(default_factory=list)
    assigned: list[ast.Assign] = field(default_factory=list)


@once
def find_mentions(module: Module) -> Mentions:
    """The mentions of a module, in no particular order."""
    found = Mentions()
    names, attributes = found.names, found.attributes
    for node in module.nodes:
        kind = node.__class__
        if kind is ast.Name:
            assert isinstance(node, ast.Name)
            if node.ctx.__class__ is ast.Load:
                names.setdefault(node.id, []).append(node)
        elif kind is ast.Attribute:
            assert isinstance(node, ast.Attribute)
            if node.ctx.__class__ is ast.Load:
                attributes.setdefault(node.attr, []).append(node)
        elif kind is ast.alias:
            assert isinstance(node, ast.alias)
            if node.asname is not None:
                found.renamed.append(node)
        elif kind is ast.Assign:
            assert isinstance(node, ast.Assign)
            if len(node.targets) == 1:
                found.assigned.append(node)
    return found
