"""The source code of a checkpoint: its Api and options around a function, or as a decorator."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from ..analysis import Module, Project
from ..analysis.sites.references import Reference, reference_to
from ..codemod.changes import Change


@dataclass(frozen=True, slots=True)
class CheckpointCode:
    """A checkpoint as it is written at one place.

    Attributes:
        api: the Api, such as `jax.checkpoint`.
        options: its options, as `name=value`.
        changes: the import that it needs, if it needs a new one.
    """

    api: str
    options: tuple[str, ...] = ()
    changes: tuple[Change, ...] = ()

    def around(self, function: str) -> str:
        """Return `jax.checkpoint(function, policy=p)`."""
        return f"{self.api}({', '.join([function, *self.options])})"

    def decorator(self, project: Project, module: Module, at: ast.expr | ast.stmt) -> Reference:
        """Return the decorator without `@`, a partial if there are options, and its import."""
        if not self.options:
            return Reference(self.api, self.changes)
        partial = reference_to(module, project, "functools.partial", at)
        text = f"{partial.text}({', '.join([self.api, *self.options])})"
        return Reference(text, (*self.changes, *partial.changes))
