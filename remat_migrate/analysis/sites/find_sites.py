"""The sites of a module, and of a project, and whether each certainly applies a checkpoint."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from ...libraries.apis import Api
from ..names.module import Definition, Module, Place, once
from ..project import Project
from ..values.bind import api_of, argument_calls, subject_of
from ..values.containers import is_changed
from ..values.evaluator import Evaluator, interesting_names
from ..values.values import (
    NOTHING,
    Applied,
    Class,
    Constant,
    Container,
    Function,
    Parameter,
    Partial,
    Value,
    Values,
    alternatives,
    layers,
)
from .calls import overrides_of, passed_for
from .site import Option, Site, decorates, form_of, own_call


def find_sites(project: Project, module: Module) -> list[Site]:
    """Return the sites of a module in order of place."""
    evaluator = project.evaluator
    names = interesting_names(module, evaluator)
    found: list[Site] = []
    for name, node in _find_reads(module):
        if name not in names:
            continue
        values = evaluator.values(module, node)
        applying = [value for value in values if api_of(evaluator.apis, value) is not None]
        if applying:
            value = min(applying, key=lambda v: _rank(v, evaluator))
            found.append(_site(project, module, node, value))
    found.sort(key=lambda site: site.span)
    return found


@once
def _find_reads(module: Module) -> list[tuple[str, ast.expr]]:
    """Yield the expressions of a module that may name an Api, with the identifier that suggests
    it.
    """
    found: list[tuple[str, ast.expr]] = []
    for node in module.nodes:
        match node:
            case ast.Name(ctx=ast.Load(), id=name) | ast.Attribute(ctx=ast.Load(), attr=name):
                holder = module.parent(node)
                if isinstance(holder, ast.Attribute) and holder.attr.startswith("__"):
                    continue  # `remat.__name__` applies nothing
                found.append((name, node))
            case ast.Call(func=ast.Name(id="getattr"), args=[_, ast.Constant(value=str(name)), *_]):
                found.append((name, node))
            case (
                ast.Subscript(ctx=ast.Load(), value=ast.Name() | ast.Attribute() as holder)
                | ast.Call(
                    func=ast.Attribute(value=ast.Name() | ast.Attribute() as holder, attr="get")
                )
            ):
                name = holder.id if isinstance(holder, ast.Name) else holder.attr
                found.append((name, node))
    return found


def _rank(value: Value, evaluator: Evaluator) -> tuple[str, list[tuple[str, int, int]]]:
    """Return a reproducible sort key for values: by Api, then by the places of the partials."""
    api = api_of(evaluator.apis, value)
    places = []
    while isinstance(value, Partial):
        places.append(value.module.position(value.call))
        value = value.func
    return api.name if api else "", places


def _site(project: Project, module: Module, node: ast.expr, value: Value) -> Site:
    evaluator = project.evaluator
    api = api_of(evaluator.apis, value)
    assert api is not None
    parent = module.parent(node)
    callee, outer, how = value, node, ""
    if isinstance(parent, ast.Call) and parent.func is node:
        outer, how = parent, "applied"
        if subject_of(evaluator.apis, value, module, parent) is None:
            # A factory, or a call that unpacks its arguments.
            callee, how = Partial(value, module, parent, by_functools=False), "factory"
    elif (
        isinstance(parent, ast.Call)
        and parent.args[:1] == [node]
        and evaluator.is_partial(module, parent)
    ):
        callee, outer, how = Partial(value, module, parent), parent, "partial"
    form, application = form_of(module, outer, how)
    is_whole = how == "partial" or (how == "factory" and decorates(module, outer))
    subject = _subject(module, application, callee, evaluator)
    arguments, spread = _options(api, callee, module, application, evaluator)
    return Site(
        module=module,
        span=module.span(outer if is_whole else node),
        definition=api,
        form=form,
        reference=node,
        application=application,
        callee=callee,
        subject=subject,
        arguments=arguments,
        spread=spread,
        certain=is_certain(project, module, node),
        target=_target_text(subject),
        context=_context(module, node),
    )


def _subject(
    module: Module, application: ast.expr | None, callee: Value, evaluator: Evaluator
) -> tuple[Module, ast.expr | Definition] | None:
    if application is not None and decorates(module, application):
        holder = module.parent(application)
        assert isinstance(holder, Definition)
        return module, holder
    return subject_of(evaluator.apis, callee, module, own_call(module, application, callee))


def _options(
    api: Api,
    callee: Value,
    module: Module,
    application: ast.expr | None,
    evaluator: Evaluator,
) -> tuple[dict[str, Option], bool]:
    """Return the options by name, later ones first, and whether a `**` could not be followed."""
    found: dict[str, Option] = {}
    spread = False
    position = 0

    def add(option: Option) -> None:
        found[option.name] = replace(option, overrides=found.get(option.name))

    for owner, call, args in argument_calls(callee, module, own_call(module, application, callee)):
        offset = len(call.args) - len(args)
        for index, arg in enumerate(args):
            if isinstance(arg, ast.Starred):
                break
            order = api.jax_order
            if position < len(order) and position != api.subject_index:
                rest = order[position + 1 :]
                add(Option(order[position], arg, owner, call, None, offset + index, rest))
            position += 1
        for keyword in call.keywords:
            if keyword.arg is None:
                followed, complete = _spread_options(owner, keyword.value, evaluator)
                spread = spread or not complete
                for option in followed.values():
                    add(option)
            elif keyword.arg != api.subject:
                add(Option(keyword.arg, keyword.value, owner, call, keyword))
    return found, spread


def _spread_options(
    module: Module, node: ast.expr, evaluator: Evaluator
) -> tuple[dict[str, Option], bool]:
    """Return the entries of an unpacked dict, `**dict(a=1)` or `**OPTIONS`, and whether it has no
    others: none is added later. A dict that unpacks another one is not followed: an entry may hide
    one of that.
    """
    found: dict[str, Option] = {}
    values = evaluator.values(module, node)
    complete = bool(values)
    for value in values:
        match value:
            case Container(module=owner, node=ast.Dict() as holder) if None not in holder.keys:
                for key, entry in zip(holder.keys, holder.values, strict=True):
                    if isinstance(key, ast.Constant) and isinstance(key.value, str):
                        found[key.value] = Option(key.value, entry, owner, holder)
                    else:
                        complete = False
                complete = complete and not is_changed(value)
            case Container(module=owner, node=ast.Call(args=[], keywords=keywords) as holder) if (
                all(keyword.arg is not None for keyword in keywords)
            ):
                for keyword in keywords:
                    name = str(keyword.arg)
                    found[name] = Option(name, keyword.value, owner, holder, keyword)
                complete = complete and not is_changed(value)
            case _:
                complete = complete and value == Constant(None)  # `options or {}`
    return found, complete


def _target_text(
    subject: tuple[Module, ast.expr | Definition] | None,
) -> str | None:
    if subject is None:
        return None
    module, node = subject
    if isinstance(node, Definition):
        return node.name
    text = " ".join(module.segment(node).split())
    return text if len(text) <= 80 else text[:79] + "…"


def _context(module: Module, node: ast.AST) -> str:
    names = [
        around.name
        for around in module.ancestors(node)
        if isinstance(around, Definition)
        and not (isinstance(node, ast.expr) and node in around.decorator_list)
    ]
    return ".".join(reversed(names))


def sites_in(project: Project, module: Module) -> list[Site]:
    """Return the sites of one module."""
    return [] if module in project.without_sites else project.once(find_sites, module)


def sites_of(project: Project) -> list[Site]:
    """Return the sites of all files, by path and place; to ask once the project is loaded."""
    return project.once(_all_sites)


def _all_sites(project: Project) -> list[Site]:
    modules = [project.modules[path] for path in sorted(project.modules)]
    return [site for module in modules for site in sites_in(project, module)]


def options_in(project: Project, module: Module) -> Sequence[tuple[Option, Site]]:
    """Return the options in a module, each with a site that uses it, by path and place of those."""
    return project.once(_options_by_module).get(module, ())


def _options_by_module(project: Project) -> dict[Module, list[tuple[Option, Site]]]:
    found: dict[Module, list[tuple[Option, Site]]] = {}
    for site in sites_of(project):
        for option in site.arguments.values():
            found.setdefault(option.module, []).append((option, site))
    return found


def sites_with(project: Project, option: Option) -> list[Site]:
    """Return the sites that use an option."""
    shared = options_in(project, option.module)
    return list(dict.fromkeys(site for one, site in shared if one.value is option.value))


def wrapped_by(project: Project, site: Site) -> Values:
    """Return what a site wraps; nothing if that is not known."""
    if site.subject is None:
        return NOTHING
    module, node = site.subject
    if isinstance(node, ast.expr):
        return project.values(module, node)
    if isinstance(node, ast.ClassDef):
        return frozenset((Class(module, node),))
    found: Value = Function(module, node)
    for value in project.evaluator.definition(module, node):
        # Decorators below this one are part of what is wrapped.
        for layer in layers(value):
            if isinstance(layer, Applied) and layer.node is site.application:
                found = layer.target or found
    return frozenset((found,))


def is_certain(project: Project, module: Module, node: ast.expr) -> bool:
    """Return whether an expression denotes an Api, or a partial of one, on every path: `remat` in
    `remat(f)`.

        remat = jax.checkpoint if cfg.remat else no_remat

    Another function may not accept the options of an Api, or may use those that it gets.
    """
    seen: set[Parameter | Place] = set()
    waiting: list[Parameter | Place] = [(module, node)]
    while waiting:
        asked = waiting.pop()
        if asked in seen:
            continue
        seen.add(asked)
        parts = _passed(project, asked) if isinstance(asked, Parameter) else _parts(project, *asked)
        if parts is None:
            return False
        waiting += parts
    return True


def _parts(project: Project, module: Module, node: ast.expr) -> Sequence[Parameter | Place] | None:
    """Return what else must denote an Api for an expression to do so; None if it may denote
    something else, or if that is not known.
    """
    if isinstance(node, ast.Attribute):
        values = overrides_of(project).callees(module, node).values
    else:  # `remat` is None where it is not called
        values = project.values(module, node) - {Constant(None)}
    bindings = module.reaching(node) if isinstance(node, ast.Name) else frozenset()
    assigned = {b: b.value for b in bindings if b.kind == "assign" and b.value and not b.path}
    bound = [project.evaluator.binding(module, b) for b in bindings - assigned.keys()]
    every = values.union(*bound)
    passed = [value for value in every if isinstance(value, Parameter)]
    if not values or not all(bound) or not all(api_of(project.apis, v) for v in every - {*passed}):
        return None
    parts = [*assigned.values()] or alternatives(node)
    match node:
        case ast.Call() if project.evaluator.is_partial(module, node):
            parts = node.args[:1]
        case ast.Call(func=inner) | ast.Subscript(value=inner):
            # Options alone may be passed to an Api. What else is called, or looked up in a table,
            # is none.
            parts = [inner]
    return [*passed, *((module, part) for part in parts if not isinstance(part, ast.Constant))]


def _passed(project: Project, parameter: Parameter) -> Sequence[Parameter | Place] | None:
    """Return what is passed for a parameter; None if not all calls are known."""
    passed = passed_for(project, parameter)
    defaults = [passed.default] if passed.default is not None else []
    if passed.unknown is not None or passed.definitions or (passed.defaulted and not defaults):
        return None
    return [*passed.places, *defaults] if passed.places or passed.defaulted else None
