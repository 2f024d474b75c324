"""Fixes for the uses of `jax.ad_checkpoint.checkpoint` and `.remat` that RMT103 reports.

An import takes the name from `jax` and keeps its local name. A read of the attribute becomes
`jax.checkpoint`. If no use of `jax.ad_checkpoint` remains in the file, its import is removed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from remat_migrate.api import Fix, Module, Project, Safety
from remat_migrate.api.changes import (
    Change,
    Code,
    Insert,
    MoveNames,
    Remove,
    Rename,
    Replace,
    ReplaceStatement,
    Rewrite,
)
from remat_migrate.api.code import (
    has_side_effects,
    import_of,
    is_used_elsewhere,
    layout_of,
    reference_to,
)

from .ad_checkpoint_uses import JAX, PACKAGE, REMOVED, Use

_OWN_IMPORT = re.compile(
    r"^\s*(import\s+jax\.ad_checkpoint\b(?!\s+as)|from\s+jax(\.ad_checkpoint)?\s+import\b)", re.M
)
_KEEP = re.compile(r"#\s*noqa\b", re.IGNORECASE)


class Fixer:
    """Builds the fixes for the uses in one module.

    Args:
        module: the module.
        project: the project.
        uses: all uses in the module.
        fixable: the uses that can be edited.
    """

    def __init__(
        self, module: Module, project: Project, uses: Sequence[Use], fixable: Sequence[Use]
    ) -> None:
        self.module = module
        self.project = project
        self.layout = layout_of(module.source)
        self.is_needed = partial(is_used_elsewhere, project, module)
        self.uses = uses
        self.fixable = [use for use in fixable if not use.reason]

    def fixes(self) -> Mapping[Use, Fix]:
        """Return the fix of each use that has one."""
        found = dict(self._choices())
        statements: dict[ast.ImportFrom, list[Use]] = {}
        reads: list[Use] = []
        for use in self.fixable:
            if use not in found:
                if isinstance(use.node, ast.ImportFrom):
                    statements.setdefault(use.node, []).append(use)
                else:
                    reads.append(use)
        for statement, names in statements.items():
            fix = self._moved(statement, names)
            found |= dict.fromkeys(names, fix)
        found |= dict(self._reads(reads))
        return {use: self._with_naming(fix, found) for use, fix in found.items()}

    def _with_naming(self, fix: Fix, found: Mapping[Use, Fix]) -> Fix:
        """Return a fix that also names the positional options of the calls of its uses."""
        changes = set(fix.changes)
        naming = [
            change
            for use, other in found.items()
            if use.naming and not changes.isdisjoint(other.changes)
            for fixed in use.naming
            for change in fixed.changes
        ]
        if not naming:
            return fix
        title = f"{fix.title} and pass options by keyword"
        return replace(fix, title=title, changes=tuple(dict.fromkeys([*fix.changes, *naming])))

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

    def _choices(self) -> Iterator[tuple[Use, Fix]]:
        for holder in dict.fromkeys(self._holder(use) for use in self.fixable):
            arms = _arms(holder)
            if arms is None or not isinstance(holder, ast.stmt):
                continue
            one, other = arms
            if [self._meaning(s) for s in one] != [self._meaning(s) for s in other]:
                continue
            inside = [use for use in self.uses if holder in self.module.ancestors(use.node)]
            changed = {self.module.statement(use.node) for use in inside}
            new = [arm for arm in arms if changed.isdisjoint(arm)]
            if not new or any(use not in self.fixable for use in inside):
                continue
            kept = tuple(Code(self.module.segment(statement)) for statement in new[0])
            change = ReplaceStatement(self.module, holder, kept)
            fix = Fix("import from `jax` only", Safety.SAFE, (change,))
            yield from ((use, fix) for use in inside)

    def _holder(self, use: Use) -> ast.AST | None:
        holder = self.module.parent(self.module.statement(use.node))
        return self.module.parent(holder) if isinstance(holder, ast.ExceptHandler) else holder

    def _meaning(self, node: object) -> object:
        """Return a value that is equal for two statements that are equivalent after the fix."""
        if isinstance(node, ast.expr):
            names = self.project.qualified(self.module, node)
            if len(names) == 1:
                [name] = names
                return name.replace(f"{PACKAGE.name}.", "jax.")
        if isinstance(node, ast.ImportFrom) and not node.level:
            removed = node.module == PACKAGE.name and all(a.name in REMOVED for a in node.names)
            names_as = frozenset((alias.name, alias.asname or alias.name) for alias in node.names)
            return "jax" if removed else node.module, names_as
        if isinstance(node, ast.AST):
            fields = tuple(self._meaning(value) for _, value in ast.iter_fields(node))
            return type(node), fields
        if isinstance(node, list):
            return tuple(self._meaning(part) for part in node)
        return node

    def _reads(self, uses: Sequence[Use]) -> Iterator[tuple[Use, Fix]]:
        changes = {use: self._rewritten(use) for use in uses}
        spare, plain = self._spare_imports(uses)
        # The import can only be removed together with all reads that need it.
        joint: list[Change] = [*(Remove(self.module, a, self.is_needed) for a in spare), *plain]
        sharing = [use for use in uses if self._by_submodule(use)] if joint else []
        for use in sharing:
            joint += changes[use]
        for use in uses:
            made = joint if use in sharing else changes[use]
            yield use, Fix(f"use `jax.{use.name}`", Safety.SAFE, tuple(dict.fromkeys(made)))

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

    def _spare_imports(self, uses: Sequence[Use]) -> tuple[list[ast.alias], list[Rename]]:
        """Return the unused imports of `jax.ad_checkpoint`: those to remove, those to shorten."""
        packages = {use.package for use in uses}
        for node in self.module.nodes:
            if isinstance(node, ast.Attribute) and node.attr == "ad_checkpoint":
                if node not in packages and PACKAGE in self.project.values(self.module, node):
                    return [], []
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                # An annotation, or the target of `mock.patch`.
                if re.fullmatch(r"[\w.\[\], ]*\bjax\.ad_checkpoint\b[\w.\[\], ]*", node.value):
                    return [], []
        if not any(self._by_submodule(use) for use in uses) or self._needed_elsewhere():
            return [], []
        spare: list[ast.alias] = []
        plain: list[Rename] = []
        for node in self.module.nodes:
            if not isinstance(node, ast.Import) or self._is_guarded(node):
                continue
            for alias in node.names:
                if alias.name == PACKAGE.name and alias.asname is None:
                    if self._binds_jax_too(node, alias) or self._is_jax_unread():
                        spare.append(alias)
                    else:
                        plain.append(Rename(self.module, alias, JAX.name))
        return spare, plain

    def _needed_elsewhere(self) -> bool:
        """Return whether another module reads `jax.ad_checkpoint` without importing it."""
        for path in self.project.files.mentioning(("jax.ad_checkpoint.",)):
            if path != self.module.source.path:
                text = self.project.files.read(path).text
                if not _OWN_IMPORT.search(text):
                    return True
        return False

    def _is_guarded(self, node: ast.Import) -> bool:
        """Return whether an import is in a `try`, or marked as intentional by a comment."""
        if any(isinstance(around, ast.Try) for around in self.module.ancestors(node)):
            return True
        end = self.module.span(node).end
        comments = self.layout.comments_in(end, self.layout.line_end(end))
        return any(_KEEP.search(comment.text) for comment in comments)

    def _binds_jax_too(self, node: ast.Import, alias: ast.alias) -> bool:
        """Return whether an import in the same block binds `jax` before the name is used."""
        suite = next(
            value
            for _, value in ast.iter_fields(self.module.parent(node) or self.module.tree)
            if isinstance(value, list) and node in value
        )
        for other in suite:
            if not isinstance(other, ast.Import):
                continue
            for found in other.names:
                bound = found.asname or found.name.partition(".")[0]
                if bound != "jax" or found.name == PACKAGE.name or found is alias:
                    continue
                low, high = node.lineno, other.lineno
                if not any(
                    isinstance(n, ast.Name) and n.id == "jax" and low < n.lineno < high
                    for n in self.module.nodes
                ):
                    return True
        return False

    def _is_jax_unread(self) -> bool:
        """Return whether nothing reads the name `jax`."""
        reads = (isinstance(node, ast.Name) and node.id == "jax" for node in self.module.nodes)
        return not any(reads) and not self.is_needed("jax")


def _without_package(node: Any, writing: object) -> Any:
    from remat_migrate.api.nodes import without_middle

    return without_middle(node)


def _arms(node: ast.AST | None) -> tuple[list[ast.stmt], list[ast.stmt]] | None:
    """Return the two branches of a `try` or an `if`."""
    match node:
        case ast.Try(body=body, handlers=[handler], orelse=[], finalbody=[]):
            return body, handler.body
        case ast.If(body=body, orelse=[first, *rest]) if not has_side_effects(node.test):
            return None if isinstance(first, ast.If) else (body, [first, *rest])
    return None
