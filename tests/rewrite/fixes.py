"""The fixes of placement by name, made on one file."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

from remat_migrate.analysis import Module, Project
from remat_migrate.analysis.loading import load_project
from remat_migrate.analysis.names.module import FunctionNode
from remat_migrate.analysis.sites.find_sites import sites_in
from remat_migrate.analysis.sites.site import Site
from remat_migrate.analysis.values.evaluator import bodies_of, targets_of
from remat_migrate.analysis.values.values import Function
from remat_migrate.codemod.changes import Change
from remat_migrate.rewrite.placement import (
    move_to_stages,
    remove_site,
    set_option,
    wrap_body,
    wrap_call,
)
from remat_migrate.rule import Fix, Safety
from remat_migrate.settings import Settings
from remat_migrate.text import apply_edits

Fixer = Callable[[Project, Module], list[Change]]


def opened(path: Path) -> tuple[Project, Module]:
    """A project of one file."""
    project = load_project(Settings(root=path.parent), [path], (), [path])
    module = project.module(path)
    assert module is not None
    return project, module


def rewritten(path: Path, fixer: Fixer) -> str:
    """The text of a file after a fix; it must parse."""
    project, module = opened(path)
    fix = Fix("", Safety.UNSAFE, tuple(fixer(project, module)))
    assert fix.written[1] is None
    assert fix.paths == {path}
    edits = fix.edits
    text = apply_edits(module.source.text, edits)
    ast.parse(text)
    return text


def moved(project: Project, module: Module) -> list[Change]:
    """The only checkpoint of a file goes from the whole to the stages."""
    (site,) = sites_in(project, module)
    return move_to_stages(project, site, wrapped_function(project, site))


def off(last: bool = False) -> Fixer:
    """The first or last checkpoint of a file is taken off."""
    at = -1 if last else 0
    return lambda project, module: remove_site(project, sites_in(project, module)[at])


def option(name: str, value: object) -> Fixer:
    """The first checkpoint of a file gets an option."""
    return lambda project, module: set_option(project, sites_in(project, module)[0], name, value)


def body(project: Project, module: Module) -> list[Change]:
    """The body of the first loop of JAX gets a checkpoint."""
    for call in calls(module):
        for loop_body in bodies_of(project.evaluator, module, call)[:1]:
            return wrap_body(project, module, call, loop_body)
    raise AssertionError("no loop")


def call_of(name: str, **how: object) -> Fixer:
    """The first call of a name gets a checkpoint."""

    def fixer(project: Project, module: Module) -> list[Change]:
        call = next(c for c in calls(module) if ast.unparse(c.func) == name)
        return wrap_call(project, module, call, **how)  # type: ignore[arg-type]

    return fixer


def calls(module: Module) -> Iterator[ast.Call]:
    """The calls of a module in order of place."""
    found = [n for n in module.nodes if isinstance(n, ast.Call)]
    return iter(sorted(found, key=lambda n: (n.lineno, n.col_offset, -(n.end_col_offset or 0))))


def wrapped_function(project: Project, site: Site) -> Function:
    """What a site wraps."""
    assert site.subject is not None
    module, node = site.subject
    if isinstance(node, FunctionNode):
        return Function(module, node)
    assert isinstance(node, ast.expr)
    for value in project.values(module, node):
        for target in targets_of(project.evaluator, value):
            return target.function
    raise AssertionError("not seen")


FIXES: dict[str, Fixer] = {
    "assigned": moved,
    "chain": moved,
    "equinox_layers": moved,
    "flags": moved,
    "flax_blocks": moved,
    "flax_setup": moved,
    "haiku_blocks": moved,
    "inner_loop": moved,
    "last_stage": off(last=True),
    "layers": moved,
    "merged_back": option("prevent_cse", True),
    "method": moved,
    "pyramid": moved,
    "reduced": moved,
    "scan_bare": body,
    "scan_lambda": body,
    "scan_whole": moved,
}
