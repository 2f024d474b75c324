"""Where a module takes `checkpoint` or `remat` from `jax.ad_checkpoint`: what RMT103 finds."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

from remat_migrate.analysis import Module, Project, Site
from remat_migrate.analysis.sites.references import is_used_elsewhere
from remat_migrate.analysis.sites.site import sites_in, sites_of
from remat_migrate.analysis.values.values import Constant, External
from remat_migrate.rule import Fix
from remat_migrate.text import Span

from .positional_option import Passed, migration, passed_by_position

PACKAGE = External("jax.ad_checkpoint")
JAX = External("jax")
GONE = ("checkpoint", "remat")

_PATCHES = frozenset({"patch", "object", "setattr", "delattr"})
_CATCH_NO_NAME = frozenset({"ImportError", "ModuleNotFoundError", "AttributeError"})


@dataclass(frozen=True, eq=False, slots=True)
class Use:
    """A place that takes a gone name.

    Attributes:
        name: the gone name.
        node: the import statement, or the expression that reads the name.
        span: the place to report.
        alias: the imported name, or the `*` that is to give it.
        package: the expression before the dot, which denotes `jax.ad_checkpoint`.
        certain: whether nothing else can be meant.
        reason: why there is no fix.
        naming: the fixes that name options passed by position, of which `jax` has another order.
    """

    name: str
    node: ast.expr | ast.ImportFrom
    span: Span
    alias: ast.alias | None = None
    package: ast.expr | None = None
    certain: bool = True
    reason: str = ""
    naming: tuple[Fix, ...] = ()


def find_uses(module: Module, project: Project) -> list[Use]:
    """The places of a module that take a gone name, in no order."""
    uses = list(_uses(module, project))
    if not uses:
        return []
    # `checkpoint(f, False)` says `prevent_cse=False` here, `concrete=False` in the order of `jax`.
    waiting = {
        passed.call: passed
        for site in sites_in(project, module)
        for passed in passed_by_position(site, project)
        if passed.definition.name.startswith(f"{PACKAGE.name}.")
    }
    if not waiting:
        return uses
    direct = {use.node for use in uses}
    return [_with_naming(use, list(waiting.values()), direct, project) for use in uses]


def _with_naming(
    use: Use, waiting: list[Passed], direct: set[ast.expr | ast.ImportFrom], project: Project
) -> Use:
    """A use with what names the options of the calls that it leads to."""
    calls = [passed for passed in waiting if passed.site.reference is use.node] or [
        passed
        for passed in waiting
        if passed.definition.name == f"{PACKAGE.name}.{use.name}"
        and passed.site.reference not in direct
    ]
    naming: list[Fix] = []
    for passed in calls:
        fix, _, _ = migration(passed, project)
        if not fix.changes:
            reason = "options are passed to it by position: name them first (RMT104)"
            return replace(use, reason=use.reason or reason)
        naming.append(fix)
    return replace(use, naming=tuple(naming))


def _uses(module: Module, project: Project) -> Iterator[Use]:
    for node in module.nodes:
        match node:
            case ast.ImportFrom(names=names) if any(n.name in (*GONE, "*") for n in names):
                if PACKAGE in project.evaluator.import_base(node, module):
                    yield from _imported(module, project, node)
            case ast.Attribute(attr=name, value=package) if name in GONE:
                use = Use(name, node, module.span(node), package=package)
                if isinstance(node.ctx, ast.Load):
                    yield from _read(module, project, use)
                elif PACKAGE in project.values(module, package):
                    reason = f"it is assigned to: assign to `jax.{name}`, if that is meant"
                    yield replace(use, reason=reason)
            case ast.Call(args=[package, ast.Constant(value=name), *_]) if name in GONE:
                if External("builtins.getattr") in project.values(module, node.func):
                    use = Use(str(name), node, module.span(node), package=package)
                    yield from _read(module, project, use)
                elif _patches(node) and PACKAGE in project.values(module, package):
                    yield _patched(module, node.args[1], str(name))
            case ast.Call(args=[ast.Constant(value=str(path)) as target, *_]) if _patches(node):
                package_name, _, name = path.rpartition(".")
                if package_name == PACKAGE.name and name in GONE:
                    yield _patched(module, target, name)


_SITES: WeakKeyDictionary[Project, dict[tuple[str, Module | None], tuple[Site, ...]]]
_SITES = WeakKeyDictionary()


def sites_with_name(module: Module, project: Project, name: str) -> tuple[Site, ...]:
    """The checkpoints made with a gone name: those of a module, and those that import it from a
    module that has it."""
    if project not in _SITES:
        found: dict[tuple[str, Module | None], list[Site]] = {}
        for site in sites_of(project):
            if site.definition.gone_in is not None:
                has_it = "ad_checkpoint" in site.module.source.text
                found.setdefault((site.api, site.module if has_it else None), []).append(site)
        _SITES[project] = {key: tuple(sites) for key, sites in found.items()}
    api = f"{PACKAGE.name}.{name}"
    return tuple(site for at in (module, None) for site in _SITES[project].get((api, at), ()))


def is_caught(module: Module, use: Use) -> bool:
    """Whether the code has another way for a JAX that lacks the name: a `try` around it."""
    for around in module.ancestors(use.node):
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


def _imported(module: Module, project: Project, node: ast.ImportFrom) -> Iterator[Use]:
    # `from .ad_checkpoint import checkpoint` is written in JAX itself.
    reason = "it is imported from a neighbour within the package" if node.level else ""
    for alias in node.names:
        if alias.name in GONE:
            yield Use(alias.name, node, module.span(alias), alias, reason=reason)
        elif node in module.star_imports:
            for name in GONE:
                if _comes_by_star(module, project, name):
                    yield Use(name, node, module.span(alias), alias, reason=reason)


def _comes_by_star(module: Module, project: Project, name: str) -> bool:
    """Whether a module, or another through it, reads a name that only `import *` can give."""
    if name in module.scope_of(module.tree).bound or any(
        JAX in project.evaluator.import_base(star, module) for star in module.star_imports
    ):
        return False
    return is_used_elsewhere(project, module, name) or any(
        isinstance(node, ast.Name) and node.id == name and not module.reaching(node)
        for node in module.nodes
    )


def _read(module: Module, project: Project, use: Use) -> Iterator[Use]:
    assert use.package is not None
    values = project.values(module, use.package)
    if PACKAGE not in values:
        return
    # `jax.ad_checkpoint if new else jax`, `except ImportError: ad_checkpoint = None`
    if values - {PACKAGE, JAX, Constant(None)}:
        reason = "something else may be meant, too: say `jax` where the name is bound"
        use = replace(use, certain=False, reason=reason)
    yield use


def _patches(node: ast.Call) -> bool:
    return getattr(node.func, "attr", getattr(node.func, "id", None)) in _PATCHES


def _patched(module: Module, node: ast.expr, name: str) -> Use:
    reason = f"it is patched: patch `jax.{name}`, if the code under test reads it there"
    return Use(name, node, module.span(node), reason=reason)
