"""Fixes for the uses of `jax.ad_checkpoint.checkpoint` and `.remat` that RMT103 reports.

An import takes the name from `jax` and keeps its local name. A read of the attribute becomes
`jax.checkpoint`. A module that is never imported is imported.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from remat_migrate.api import Fix, Module, Project, Safety
from remat_migrate.api.changes import AddImport, Change, Code, Insert, MoveNames, Replace, Rewrite
from remat_migrate.api.code import import_of, is_used_elsewhere, reference_to

from .ad_checkpoint_uses import JAX, PACKAGE, Use


class Fixer:
    """Builds the fixes for the uses in one module.

    Args:
        module: the module.
        project: the project.
        fixable: the uses that can be edited.
    """

    def __init__(self, module: Module, project: Project, fixable: Sequence[Use]) -> None:
        self.module = module
        self.project = project
        self.is_needed = partial(is_used_elsewhere, project, module)
        self.fixable = [use for use in fixable if not use.reason]

    def fixes(self) -> Mapping[Use, Fix]:
        """Return the fix of each use that has one."""
        found: dict[Use, Fix] = {}
        statements: dict[ast.ImportFrom, list[Use]] = {}
        for use in self.fixable:
            if isinstance(use.node, ast.ImportFrom):
                statements.setdefault(use.node, []).append(use)
            else:
                found[use] = Fix(f"use `jax.{use.name}`", Safety.SAFE, self._rewritten(use))
        for statement, names in statements.items():
            fix = self._moved(statement, names)
            found |= dict.fromkeys(names, fix)
        return found

    def _moved(self, statement: ast.ImportFrom, uses: Sequence[Use]) -> Fix:
        names = " and ".join(f"`{use.name}`" for use in uses)
        moved = [use.alias for use in uses if use.alias is not None]
        change: Change
        if statement.names[0].name == "*":
            listed = ", ".join(use.name for use in uses)
            change = Insert(self.module, statement, (Code(f"from jax import {listed}"),))
        else:
            change = MoveNames(self.module, statement, tuple(moved), JAX.name)
        return Fix(f"import {names} from `jax`", Safety.SAFE, (change,))

    def _rewritten(self, use: Use) -> tuple[Change, ...]:
        """Return the replacement of one read, and the changes that import what it needs."""
        package, node = use.package, use.node
        assert package is not None
        assert isinstance(node, ast.expr)
        if isinstance(package, ast.Attribute) and self._by_submodule(use):
            # Keeps the spelling of `jax`, whose import stays in use.
            if isinstance(node, ast.Attribute):
                return (Rewrite(self.module, node, _without_package),)
            text = f"{self.module.segment(package.value)}.{use.name}"
            return (Replace(self.module, node, Code(text), self.is_needed),)
        beside = import_of(self.module, package)
        if beside is not None and not isinstance(beside, ast.Import | ast.ImportFrom):
            beside = None
        written = reference_to(self.module, self.project, f"jax.{use.name}", node, beside=beside)
        return Replace(self.module, node, Code(written.text), self.is_needed), *written.changes

    def _by_submodule(self, use: Use) -> bool:
        """Return whether the package is written as an attribute of `jax`."""
        package = use.package
        return isinstance(package, ast.Attribute) and self.project.values(
            self.module, package.value
        ) == {JAX}


def import_fix(module: Module, package: ast.Attribute) -> Fix:
    """Return the fix that imports `jax.ad_checkpoint` where `jax` is imported."""
    text = f"import {PACKAGE.name}"
    statement = import_of(module, package)
    if statement is None or not isinstance(package.value, ast.Name) or package.value.id != "jax":
        return Fix.manual(f"add `{text}`")
    change: Change = Insert(module, statement, (Code(text),))
    if statement in module.tree.body:
        change = AddImport(module, module.tree, text)
    return Fix(f"add `{text}`", Safety.SAFE, (change,))


def _without_package(node: Any, writing: object) -> Any:
    from remat_migrate.api.nodes import without_middle

    return without_middle(node)
