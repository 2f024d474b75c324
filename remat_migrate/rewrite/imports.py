"""Writes a qualified name so that no other fix removes the import that it needs."""

from __future__ import annotations

import ast

from ..analysis import Module, Project
from ..analysis.names.mentions import find_mentions
from ..analysis.sites.references import Reference, reference_to
from ..codemod.changes import Require


def written(project: Project, module: Module, qualified: str, at: ast.expr | ast.stmt) -> Reference:
    """Return how to write `qualified` in place of `at`.

    If it uses an existing import, the changes require it: a fix that removes the import conflicts
    with this one, and has to wait.
    """
    found = reference_to(module, project, qualified, at)
    if found.changes:
        return found
    name = found.text.partition(".")[0]
    required = tuple(
        Require(module, alias)
        for node in find_mentions(module).imports
        for alias in node.names
        if (alias.asname or alias.name.partition(".")[0]) == name
    )
    return Reference(found.text, required)
