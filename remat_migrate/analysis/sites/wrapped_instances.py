"""Sites that wrap an instance of a Flax linen module, or a bound method, instead of a class."""

from __future__ import annotations

import ast

from ..project import Project
from .framework_modules import ModuleKind, makers, module_kind
from .site import Site


def wrapped_instance(project: Project, site: Site) -> ModuleKind | None:
    """Return the instance or bound method that a site wraps, if its Api does not accept one."""
    if site.definition.modules != "linen" or site.definition.takes_instances:
        return None
    if site.subject is None or not isinstance(site.subject[1], ast.expr):
        return None
    module, subject = site.subject
    assert isinstance(subject, ast.expr)
    kind = module_kind(project, module, subject)
    if kind is None or kind.framework != "linen":
        return None
    if kind.form == "instance":
        return kind if makers(project, module, subject) else None
    if kind.form == "method" and not _may_pass_module(project, site):
        return kind
    return None


def _may_pass_module(project: Project, site: Site) -> bool:
    """Return whether a call of a bound method may pass a module first, which Flax then lifts."""
    module = site.module
    outer = module.parent(site.application) if site.application is not None else None
    if not isinstance(outer, ast.Call) or outer.func is not site.application:
        return True  # the calls are unknown
    if not outer.args:
        return True
    first = outer.args[0]
    if isinstance(first, ast.Starred) or module_kind(project, module, first) is not None:
        return True
    values = project.values(module, first)
    return isinstance(first, ast.Name) and first.id in ("mdl", "module", "scope") and bool(values)
