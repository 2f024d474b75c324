"""Finds the imports and reads of `jax.ad_checkpoint.checkpoint` and `.remat` for RMT103."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from remat_migrate.api import Module, Project, Site
from remat_migrate.api.code import (
    Constant,
    External,
    Span,
    find_mentions,
    import_of,
)
from remat_migrate.api.sites import positional_options, sites_of

PACKAGE = External("jax.ad_checkpoint")
JAX = External("jax")
REMOVED = ("checkpoint", "remat")

# Imports that load `jax.ad_checkpoint`.
_LOADING = ("jax.ad_checkpoint", "jax.experimental.pallas.ops.tpu")

_CATCH_NO_NAME = frozenset({"ImportError", "ModuleNotFoundError", "AttributeError"})


@dataclass(frozen=True, eq=False, slots=True)
class Use:
    """One import or read of a removed name.

    Attributes:
        name: the removed name.
        node: the import statement, or the expression that reads the name.
        span: what to report.
        alias: the imported name.
        package: the expression before the dot, which refers to `jax.ad_checkpoint`.
        certain: whether it cannot be anything else.
        reason: why there is no fix.
    """

    name: str
    node: ast.expr | ast.ImportFrom
    span: Span
    alias: ast.alias | None = None
    package: ast.expr | None = None
    certain: bool = True
    reason: str = ""


def find_uses(module: Module, project: Project) -> list[Use]:
    """Return the uses of the removed names in a module, in no particular order."""
    uses = list(_uses(module, project))
    positional = {name for name in REMOVED if _has_positional_options(module, project, name, uses)}
    # `checkpoint(f, False)` means `prevent_cse=False` here but `concrete=False` in `jax`.
    reason = "it is called with positional options; name them first (RMT104)"
    return [
        replace(use, reason=use.reason or reason) if use.name in positional else use for use in uses
    ]


def _has_positional_options(module: Module, project: Project, name: str, uses: list[Use]) -> bool:
    return any(use.name == name for use in uses) and any(
        passed.definition.name.startswith(f"{PACKAGE.name}.")
        for site in sites_with_name(module, project, name)
        for passed in positional_options(site, project)
    )


def _uses(module: Module, project: Project) -> Iterator[Use]:
    is_named = any(name in module.source.text for name in REMOVED)
    for node in module.nodes if is_named else ():
        match node:
            case ast.ImportFrom(names=names) if any(alias.name in REMOVED for alias in names):
                if PACKAGE in project.evaluator.import_base(node, module):
                    # `from .ad_checkpoint import checkpoint` appears in JAX itself.
                    reason = "it is a relative import" if node.level else ""
                    for alias in names:
                        if alias.name in REMOVED:
                            yield Use(alias.name, node, module.span(alias), alias, reason=reason)
            case (
                ast.Attribute(ctx=ast.Load(), value=package, attr=name)
                | ast.Call(
                    func=ast.Name(id="getattr"),
                    args=[package, ast.Constant(value=str(name)), *_],
                )
            ) if name in REMOVED:
                yield from _read(module, project, Use(name, node, module.span(node), None, package))


def sites_with_name(module: Module, project: Project, name: str) -> tuple[Site, ...]:
    """Return the sites of a removed name in a module, and in modules that import it from there."""
    found, api = project.once(_sites_by_name), f"{PACKAGE.name}.{name}"
    return (*found[api, module], *found[api, None])


def _sites_by_name(project: Project) -> defaultdict[tuple[str, Module | None], list[Site]]:
    """Return the sites of removed names by Api, and by module if that takes it from `jax`."""
    found: defaultdict[tuple[str, Module | None], list[Site]] = defaultdict(list)
    for site in sites_of(project):
        if site.definition.removed_in is not None:
            imported = import_of(site.module, site.reference)
            direct = "ad_checkpoint" in site.module.source.text and not (
                isinstance(imported, ast.ImportFrom)
                and {JAX, PACKAGE}.isdisjoint(project.evaluator.import_base(imported, site.module))
            )
            found[site.api, site.module if direct else None].append(site)
    return found


def reads_without_import(module: Module, project: Project) -> list[ast.Attribute]:
    """Return the reads of `jax.ad_checkpoint` in a module where nothing imports it: neither the
    module nor another one in its package, in one that it imports, or in one that imports it.
    """
    if "ad_checkpoint" not in module.source.text:
        return []
    reads = [
        node
        for node in find_mentions(module).attributes.get("ad_checkpoint", ())
        if getattr(module.parent(node), "attr", None) not in REMOVED
        and project.values(module, node.value) == {JAX}
        and not is_caught(module, node)
    ]
    package, imported = _imported_names(module)
    is_loaded = reads and any(
        other in (package, *_packages(imported)) or package in _packages(names)
        for other, names in project.once(_loaders)
    )
    return [] if is_loaded else reads


def _loaders(project: Project) -> list[tuple[str, set[str]]]:
    """Return the package and the imports of each module that imports `jax.ad_checkpoint`."""
    found = map(_imported_names, project.mentioning(_LOADING))
    return [
        (package, names)
        for package, names in found
        if any(f"{name}.".startswith(_LOADING) for name in names)
    ]


def _imported_names(module: Module) -> tuple[str, set[str]]:
    """Return the package of a module, and all that it imports as dotted names."""
    names = {
        f"{node.module}.{alias.name}" if isinstance(node, ast.ImportFrom) else alias.name
        for node in find_mentions(module).imports
        for alias in node.names
    }
    return module.name.partition(".")[0], names


def _packages(names: Iterable[str]) -> set[str]:
    return {name.partition(".")[0] for name in names}


def is_caught(module: Module, node: ast.AST) -> bool:
    """Return whether a `try` around a node handles a JAX version that lacks the name."""
    for around in module.ancestors(node):
        if isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            return False
        if isinstance(around, ast.Try):
            if any(_catches(handler.type) for handler in around.handlers):
                return True
    return False


def _catches(caught: ast.expr | None) -> bool:
    if isinstance(caught, ast.Tuple):
        return any(_catches(part) for part in caught.elts)
    return caught is None or (isinstance(caught, ast.Name) and caught.id in _CATCH_NO_NAME)


def _read(module: Module, project: Project, use: Use) -> Iterator[Use]:
    assert use.package is not None
    values = project.values(module, use.package)
    if PACKAGE not in values:
        return
    # `jax.ad_checkpoint if new else jax`, `except ImportError: ad_checkpoint = None`
    if values - {PACKAGE, JAX, Constant(None)}:
        reason = "the name may refer to another module; use `jax` where the name is bound"
        use = replace(use, certain=False, reason=reason)
    yield use
