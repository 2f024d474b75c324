"""Each `concrete=` of a module: where it is, its value, and the applications that use it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ...libraries.apis import Api
from ...text import Span
from ..names.mentions import last_name
from ..names.module import Module, once
from ..names.scopes import FunctionNode
from ..project import Project
from ..values.application import api_of, argument_calls
from ..values.evaluator import class_chain
from ..values.values import Class, Constant, Function, Instance, Value, layers
from .find_sites import options_in, sites_in, sites_of, sites_with
from .site import Option, Site, own_call
from .wrappers import forwarded


@dataclass(frozen=True, eq=False, slots=True)
class ConcreteUse:
    """One `concrete=` in the source.

    Attributes:
        option: the option.
        definition: an Api that it is passed to.
        sites: the applications that it reaches.
        value: True or False; None if it is computed. Without a `reason`, it is then what a caller
            passes for a parameter.
        span: the characters to report.
        reason: why it cannot be fixed, or "".
        site: where to report it: a site that takes its options from a file whose findings are not
            reported; None to report it where it is.
    """

    option: Option
    definition: Api
    sites: tuple[Site, ...]
    value: bool | None
    span: Span
    reason: str = ""
    site: Site | None = None

    @property
    def module(self) -> Module:
        """The module that contains it."""
        return self.option.module


def concrete_uses(project: Project, module: Module) -> Iterator[ConcreteUse]:
    """Yield each `concrete=` in a module once, in order of place.

    Then those in files whose findings are not reported, if an application in the module uses them.
    """
    found: dict[ast.expr, tuple[Option, Api]] = {}
    elsewhere: dict[ast.expr, tuple[Option, Site]] = {}
    for site in _sites_around(project, module):
        option = site.arguments.get("concrete")
        if option is None or not site.definition.concrete:
            continue
        # By position in the order of old releases: RMT104 reports and migrates it.
        if option.position is not None and site.definition.old_positional:
            continue
        if option.module is module:
            found.setdefault(option.value, (option, site.definition))
        elif site.module is module and option.module.source.path not in project.reported:
            elsewhere.setdefault(option.value, (option, site))
    for option, definition in sorted(found.values(), key=lambda f: _span(f[0])):
        yield concrete_use(project, option, definition)
    for option, site in sorted(elsewhere.values(), key=lambda f: f[1].span):
        yield replace(concrete_use(project, option, site.definition), site=site)
    around = [site.arguments.get("concrete") for site in _sites_around(project, module)]
    used = {option.value for option in around if option is not None}
    for node, value in _mentions(module):
        reached = _may_reach(project, module, node, value) if value not in used else None
        if reached is not None:
            yield _loose_use(module, node, value, reached)


def _loose_use(
    module: Module, node: ast.keyword | ast.expr, value: ast.expr, site: Site
) -> ConcreteUse:
    holder = module.parent(node)
    call = holder if isinstance(holder, ast.Call | ast.Dict) else ast.Dict([], [])
    keyword = node if isinstance(node, ast.keyword) else None
    option = Option("concrete", value, module, call, keyword)
    constant = bool(value.value) if isinstance(value, ast.Constant) else None
    reason = (
        f"it may reach `{site.api}` in line {site.module.source.position(site.span.start)[0]}"
        f"{'' if site.module is module else ' of ' + site.module.source.path.name}"
        f"{', which unpacks its options' if _unpacks(site) else ''}: remove it, and name the"
        " arguments that must be concrete in `static_argnums`"
    )
    return ConcreteUse(option, site.definition, (), constant, module.span(node), reason)


@once
def _mentions(module: Module) -> list[tuple[ast.keyword | ast.expr, ast.expr]]:
    """Return each `concrete` that is passed, or put into a dict, with its value."""
    found: list[tuple[ast.keyword | ast.expr, ast.expr]] = []
    for node in module.nodes if "concrete" in module.source.text else ():
        match node:
            case ast.keyword(arg="concrete", value=value):
                found.append((node, value))
            case ast.Dict(keys=keys, values=values):
                pairs = zip(keys, values, strict=True)
                found += ((k, v) for k, v in pairs if k is not None and _is_key(k))
            case (
                ast.Call(func=ast.Attribute(attr="setdefault" | "__setitem__"), args=[key, value])
                | ast.Tuple(elts=[key, value], ctx=ast.Load())  # `dict([("concrete", True)])`
                | ast.Assign(targets=[ast.Subscript(slice=key)], value=value)
            ) if _is_key(key):
                found.append((key, value))
            case (
                ast.AnnAssign(target=ast.Name("concrete") as field, value=ast.Constant() as value)
                | ast.Assign(targets=[ast.Name("concrete") as field], value=ast.Constant() as value)
            ) if isinstance(module.parent(node), ast.ClassDef):
                found.append((field, value))  # `**settings._asdict()`
    return found


def _is_key(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == "concrete"


def _may_reach(
    project: Project, module: Module, node: ast.keyword | ast.expr, value: ast.expr
) -> Site | None:
    """Return an application that may use a `concrete` though none is seen to: it is passed to code
    of the project that takes any options, or to a dict, and an application unpacks options.
    """
    every = project.once(_unpacking)
    here = next((site for site in every if site.module is module), None)
    call = module.parent(node)
    if not isinstance(node, ast.keyword) or not isinstance(call, ast.Call):
        is_bool = isinstance(value, ast.Constant) and isinstance(value.value, bool)
        return here or (next(iter(every), None) if is_bool else None)
    if last_name(call.func) == "update" or last_name(call.func).lower().endswith("dict"):
        return here or next(iter(every), None)
    others = [keyword.value for keyword in call.keywords if keyword is not node]
    for part in (call.func, *call.args, *others):
        callees = project.values(module, part)
        apis = [api_of(project.apis, callee) for callee in callees]
        if any(apis):
            return next((s for s in sites_in(project, module) if s.definition in apis), None)
        if any(_takes_options(project, layer) for callee in callees for layer in layers(callee)):
            return here or next(iter(every), None)
    return None


def _takes_options(project: Project, value: Value) -> bool:
    """Return whether a function, or a method of a class, has a parameter such as `**options`."""
    nodes: list[ast.AST] = [value.node] if isinstance(value, Function) else []
    if isinstance(cls := value.cls if isinstance(value, Instance) else value, Class):
        for base in class_chain(project.evaluator, cls):
            nodes += base.node.body if isinstance(base, Class) else ()
    return any(isinstance(node, FunctionNode) and node.args.kwarg is not None for node in nodes)


def _unpacking(project: Project) -> list[Site]:
    """Return the applications that unpack options."""
    return [site for site in sites_of(project) if site.definition.concrete and _unpacks(site)]


def _unpacks(site: Site) -> bool:
    own = own_call(site.module, site.application, site.callee)
    calls = argument_calls(site.callee, site.module, own)
    return any(keyword.arg is None for _, call, _ in calls for keyword in call.keywords)


def _sites_around(project: Project, module: Module) -> Iterator[Site]:
    """Yield the sites of the module, and of modules that unpack a dict from it."""
    yield from sites_in(project, module)
    yield from (site for _, site in options_in(project, module))


def _span(option: Option) -> Span:
    if option.keyword is not None:
        return option.module.span(option.keyword)
    if isinstance(option.call, ast.Dict):
        for key, value in zip(option.call.keys, option.call.values, strict=True):
            if value is option.value and key is not None:
                return Span(option.module.span(key).start, option.module.span(value).end)
    return option.module.span(option.value)


def concrete_use(project: Project, option: Option, definition: Api) -> ConcreteUse:
    """Return what is known about one `concrete` option, and the applications that it reaches."""
    sites = tuple(s for s in sites_with(project, option) if s.application is not None)
    value, reason = _value(project, option)
    return ConcreteUse(option, definition, sites, value, _span(option), reason)


def _value(project: Project, option: Option) -> tuple[bool | None, str]:
    if isinstance(option.value, ast.Constant):
        return bool(option.value.value), ""
    if forwarded(option.module, option.value) is not None:
        return None, ""
    text = option.module.segment(option.value)
    values = project.values(option.module, option.value)
    if values and all(isinstance(v, Constant) and v.value is True for v in values):
        return True, ""
    if values and all(isinstance(v, Constant) and not v.value for v in values):
        return False, ""
    return None, (
        f"whether `{text}` is true is not known here: where it is, name the arguments that Python"
        " needs in `static_argnums`; then take the option out"
    )
