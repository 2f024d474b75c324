"""Fixes for the uses of `jax.ad_checkpoint.checkpoint` and `.remat` that RMT103 reports.

An import takes the name from `jax` and keeps its local name. A read of the attribute becomes
`jax.checkpoint`. A module that is never imported is imported.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from functools import partial

from remat_migrate.api import Fix, Module, Project, Safety
from remat_migrate.api.changes import AddImport, Change, Code, Insert, MoveNames, Replace
from remat_migrate.api.code import import_of, is_used_elsewhere, reference_to

from .ad_checkpoint_uses import JAX, PACKAGE, Use


def fixes_of(module: Module, project: Project, uses: Iterable[Use]) -> Mapping[Use, Fix]:
    """Return the fixes of uses that can be edited; names of one import are moved together."""
    found: dict[Use, Fix] = {}
    imports: dict[ast.ImportFrom, list[Use]] = {}
    for use in uses:
        if isinstance(use.node, ast.ImportFrom):
            imports.setdefault(use.node, []).append(use)
        else:
            changes = _rewritten(module, project, use.node, use)
            found[use] = Fix(f"use `jax.{use.name}`", Safety.SAFE, changes)
    for statement, together in imports.items():
        names = " and ".join(f"`{use.name}`" for use in together)
        moved = tuple(use.alias for use in together if use.alias is not None)
        change = MoveNames(module, statement, moved, JAX.name)
        fix = Fix(f"import {names} from `jax`", Safety.SAFE, (change,))
        found |= dict.fromkeys(together, fix)
    return found


def _rewritten(module: Module, project: Project, node: ast.expr, use: Use) -> tuple[Change, ...]:
    """Return the replacement of one read, and the changes that import what it needs."""
    assert use.package is not None
    beside = import_of(module, use.package)
    if not isinstance(beside, ast.Import | ast.ImportFrom):
        beside = None
    written = reference_to(module, project, f"jax.{use.name}", node, beside=beside)
    is_needed = partial(is_used_elsewhere, project, module)
    return Replace(module, node, Code(written.text), is_needed), *written.changes


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
