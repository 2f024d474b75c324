"""`concrete` that may be an option of a checkpoint, though no application is seen to use it.

It is passed to the project's own code, which passes `**options` on; or it is put into a dict that
is unpacked somewhere.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from ...libraries.apis import Api
from ..names.module import Module, once
from ..names.scopes import Definition, FunctionNode
from ..project import Project
from ..values.application import api_of, argument_calls
from ..values.callees import layers
from ..values.evaluator import class_chain
from ..values.values import Class, Function, Instance, Value
from .find_sites import sites_in, sites_of
from .site import Site, own_call


@dataclass(frozen=True, eq=False, slots=True)
class LooseOption:
    """A `concrete` that may reach a checkpoint.

    Attributes:
        node: the keyword, or the key of the dict.
        value: its value.
        site: an application that it may reach.
    """

    node: ast.keyword | ast.expr
    value: ast.expr
    site: Site


def loose_options(project: Project, module: Module) -> Iterator[LooseOption]:
    """Yield each `concrete` in a module that may reach an application that unpacks options.

    Those that an application is known to use are among them.
    """
    for node, value, holder in _mentions(module):
        if isinstance(holder, ast.Call) and isinstance(node, ast.keyword):
            site = _Reach(project).called(module, holder)
        else:
            site = None
        if site is None and (isinstance(node, ast.expr) or _makes_dict(holder)):
            site = _unpacking(project, module, value)
        if site is not None:
            yield LooseOption(node, value, site)


@once
def _mentions(module: Module) -> list[tuple[ast.keyword | ast.expr, ast.expr, ast.AST]]:
    """Return the keywords and keys `concrete`, with their values and what holds them."""
    found: list[tuple[ast.keyword | ast.expr, ast.expr, ast.AST]] = []
    for node in module.nodes:
        match node:
            case ast.Call(keywords=keywords, args=args):
                found += ((k, k.value, node) for k in keywords if k.arg == "concrete")
                match node:
                    case ast.Call(func=ast.Attribute(attr="setdefault" | "__setitem__")):
                        if len(args) == 2 and _is_key(args[0]):
                            found.append((args[0], args[1], node))
            case ast.Dict(keys=keys, values=values):
                pairs = zip(keys, values, strict=True)
                found += ((k, v, node) for k, v in pairs if k is not None and _is_key(k))
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    if isinstance(target, ast.Subscript) and _is_key(target.slice):
                        found.append((target, value, node))
            case ast.ClassDef(body=body):  # `**settings._asdict()`
                for statement in body:
                    match statement:
                        case (
                            ast.AnnAssign(target=ast.Name("concrete") as name, value=default)
                            | ast.Assign(targets=[ast.Name("concrete") as name], value=default)
                        ) if isinstance(default, ast.Constant):
                            found.append((name, default, node))
            case ast.Tuple(elts=[key, value], ctx=ast.Load()) if _is_key(key):
                found.append((key, value, node))  # `dict([("concrete", True)])`
            case ast.List(elts=[*keys], ctx=ast.Load()):
                found += ((k, k, node) for k in keys if _is_key(k))
    return found


def _is_key(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == "concrete"


def _makes_dict(call: ast.AST) -> bool:
    """Return whether a call may make or change a dict: `dict(...)`, `options.update(...)`."""
    match call:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name == "update" or name.lower().endswith("dict")
    return False


def unpacks(site: Site) -> bool:
    """Return whether an application unpacks options, known or not."""
    own = own_call(site.module, site.application, site.callee)
    calls = argument_calls(site.callee, site.module, own)
    return any(k.arg is None for _, call, _ in calls for k in call.keywords)


def _unpacking(project: Project, module: Module, value: ast.expr) -> Site | None:
    """Return an application that may unpack a dict with the option."""
    here = next(filter(unpacks, sites_in(project, module)), None)
    if here is None and isinstance(value, ast.Constant) and isinstance(value.value, bool):
        return project.once(_first_unpacking)
    return here


def _first_unpacking(project: Project) -> Site | None:
    return next((s for s in sites_of(project) if s.definition.concrete and unpacks(s)), None)


class _Reach:
    """Finds the application to which a call of the project's own code passes options on."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._seen: set[ast.AST] = set()

    def called(self, module: Module, call: ast.Call) -> Site | None:
        """Return an application that may get the keywords of a call."""
        given = [k.value for k in call.keywords if k.arg != "concrete"]
        for expression in (call.func, *call.args, *given):
            for value in self._project.values(module, expression):
                site = self._of(value)
                api = api_of(self._project.apis, value)
                if site is None and api is not None and not self._defines(module, api):
                    site = self._named(module, expression)
                if site is not None:
                    return site
        return None

    def _defines(self, importer: Module, api: Api) -> bool:
        """Return whether the project is the library itself: what it does is seen elsewhere."""
        package = api.name.rpartition(".")[0]
        return self._project.evaluator.find_module(package, importer) is not None

    def _named(self, module: Module, node: ast.expr) -> Site | None:
        """Return the site at which an expression, or a function that it calls, names an Api."""
        places = [(module, inside) for inside in ast.walk(node)]
        for _, inside in tuple(places):
            if isinstance(inside, ast.Call):
                for value in self._project.values(module, inside.func):
                    if isinstance(value, Function):
                        places += ((value.module, part) for part in ast.walk(value.node))
        for owner, part in places:
            for site in sites_in(self._project, owner) if isinstance(part, ast.expr) else ():
                if site.reference is part:
                    return site
        return None

    def _of(self, value: Value | None) -> Site | None:
        """Return an application in the code that calling a value may run."""
        for layer in layers(value):
            if isinstance(layer, Function):
                return self._within(layer.module, layer.node)
            cls = layer.cls if isinstance(layer, Instance) else layer
            if isinstance(cls, Class):
                for base in class_chain(self._project.evaluator, cls):
                    if isinstance(base, Class):
                        found = self._within(base.module, base.node)
                        if found is not None:
                            return found
        return None

    def _within(self, module: Module, definition: FunctionNode | Definition) -> Site | None:
        """Return an application that unpacks options in a definition, or in code that it calls."""
        if definition in self._seen:
            return None
        self._seen.add(definition)
        nodes = set(ast.walk(definition))
        for site in sites_in(self._project, module):
            if site.reference in nodes and site.definition.concrete and unpacks(site):
                return site
        for node in module.nodes:
            if node in nodes and isinstance(node, ast.Call):
                if any(keyword.arg is None for keyword in node.keywords):
                    found = self.called(module, node)
                    if found is not None:
                        return found
        return None
