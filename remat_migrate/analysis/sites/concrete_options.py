"""Each `concrete=` of a module: where it is, its value, and the applications that use it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ...libraries.apis import Api
from ...text import Span
from ..names.module import Module
from ..project import Project
from ..values.values import Constant
from .find_sites import options_in, sites_in
from .loose_options import LooseOption, loose_options, unpacks
from .site import Option, Site
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
    for loose in loose_options(project, module):
        if loose.value not in used:
            yield _loose_use(module, loose)


def _loose_use(module: Module, loose: LooseOption) -> ConcreteUse:
    site, holder = loose.site, module.parent(loose.node)
    keyword = loose.node if isinstance(loose.node, ast.keyword) else None
    call = holder if isinstance(holder, ast.Call | ast.Dict) else ast.Dict([], [])
    option = Option("concrete", loose.value, module, call, keyword)
    value = bool(loose.value.value) if isinstance(loose.value, ast.Constant) else None
    reason = (
        f"it may reach `{site.api}` in line {site.module.source.position(site.span.start)[0]}"
        f"{'' if site.module is module else ' of ' + site.module.source.path.name}"
        f"{', which unpacks its options' if unpacks(site) else ''}: remove it, and name the"
        " arguments that must be concrete in `static_argnums`"
    )
    return ConcreteUse(option, site.definition, (), value, module.span(loose.node), reason)


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
    sites = tuple(_applications(project, option))
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


def _applications(project: Project, option: Option) -> Iterator[Site]:
    """Return the applications that an option reaches, in all files of the project."""
    modules = dict.fromkeys(project.modules.values())
    names = holder_names(option)
    if names:
        modules.update(dict.fromkeys(project.mentioning(sorted(names))))
    for module in modules:
        yield from _by_option(project, module).get(option.value, ())


def _by_option(project: Project, module: Module) -> dict[ast.expr, list[Site]]:
    """Group the applications of a module by the value that they pass for `concrete`."""
    known = project.once(_known_by_option)
    if module not in known:
        found = known[module] = {}
        for site in sites_in(project, module):
            own = site.arguments.get("concrete")
            if own is not None and site.application is not None:
                found.setdefault(own.value, []).append(site)
    return known[module]


def _known_by_option(project: Project) -> dict[Module, dict[ast.expr, list[Site]]]:
    return {}


def holder_names(option: Option) -> set[str]:
    """Return the names that the partial or dict with an option is assigned to."""
    found: set[str] = set()
    for around in option.module.ancestors(option.call):
        match around:
            case ast.Assign(targets=targets):
                found |= {getattr(t, "id", getattr(t, "attr", "")) for t in targets}
            case ast.AnnAssign(target=ast.Name(id=name) | ast.Attribute(attr=name)):
                found.add(name)
    return {n for n in found if len(n) > 1}
