"""The options of applications: each `concrete=`, options that are passed by position in the order
of old releases, and the project's own wrappers, which pass a function and options on to an Api.

    def my_remat(f, concrete=False):
        return jax.checkpoint(f, concrete=concrete)

A wrapper that passes its first argument on is an Api of the project; its calls are sites.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from ...libraries.apis import APIS, Api
from ...text import Span
from ..names.module import FunctionNode, Module, last_name, once, parameters, reads_of
from ..project import Project
from ..values.bind import (
    api_of,
    argument_calls,
    bind_call,
    default_of,
    positional_parameters,
    subject_of,
)
from ..values.evaluator import Evaluator, class_chain
from ..values.values import Class, External, Function, Instance, Partial, Value, layers
from .calls import uses_of
from .find_sites import options_in, sites_in, sites_of, sites_with
from .site import Option, Site, own_call


@dataclass(frozen=True, eq=False, slots=True)
class Forwarded:
    """An option whose value is a parameter of an enclosing function."""

    module: Module
    function: ast.FunctionDef
    parameter: ast.arg

    @property
    def default(self) -> ast.expr | None:
        """The parameter's default."""
        return default_of(self.function, self.parameter)


def forwarded(module: Module, value: ast.expr) -> Forwarded | None:
    """Return the parameter that an expression passes on, if it does nothing else."""
    if not isinstance(value, ast.Name):
        return None
    bindings = module.reaching(value)
    if len(bindings) != 1:
        return None
    binding = next(iter(bindings))
    function = binding.scope.node
    if binding.kind != "parameter" or not isinstance(function, ast.FunctionDef):
        return None
    assert isinstance(binding.node, ast.arg)
    return Forwarded(module, function, binding.node)


def find_wrappers(module: Module, evaluator: Evaluator) -> Iterator[Api]:
    """Yield the wrappers in a module around an Api that take a function and `concrete`."""
    for node in module.nodes:
        for option in _forwarded_options(module, node) if isinstance(node, ast.Call) else ():
            assert isinstance(node, ast.Call)
            name = module.qualified_name(option.function)
            if module.enclosing_class(option.function) is not None or evaluator.apis.find(name):
                continue
            for callee in evaluator.values(module, node.func):
                api = api_of(evaluator.apis, callee)
                place = subject_of(evaluator.apis, callee, module, node)
                subject = forwarded(*place) if place and not isinstance(callee, Partial) else None
                if api and subject is not None and subject.function is option.function:
                    yield _wrapper(name, api, option.function, subject.parameter.arg, node)


def _forwarded_options(module: Module, call: ast.Call) -> Iterator[Forwarded]:
    """Yield the parameters that a call passes on for `concrete`, or with it: `**kwargs`."""
    values = [keyword.value for keyword in call.keywords if keyword.arg == "concrete"]
    if any(forwarded(module, value) is None for value in values):
        return  # what callers pass for other options has no effect until this is gone
    # By position, as in `jax.checkpoint(f, concrete)`.
    values += [arg for arg in call.args[1:] if isinstance(arg, ast.Name) and arg.id == "concrete"]
    unpacked = [keyword.value for keyword in call.keywords if keyword.arg is None]
    for value in (*values, *unpacked):
        option = forwarded(module, value)
        if option is not None and value in unpacked:
            if option.parameter is not option.function.args.kwarg or _edits_options(option):
                continue  # what callers pass is not what the Api gets
        if option is not None:
            yield option


def _edits_options(options: Forwarded) -> bool:
    """Return whether a function does more with its `**kwargs` than to pass them on."""
    module, parameter = options.module, options.parameter
    reads = reads_of(module, parameter.arg, parameter)
    return any(not isinstance(module.parent(read), ast.keyword) for read in reads)


def _wrapper(name: str, api: Api, function: ast.FunctionDef, subject: str, call: ast.Call) -> Api:
    a = function.args
    positional = tuple(p.arg for p in positional_parameters(function))
    names = {p.arg for p in parameters(function)}
    open_ended = a.kwarg is not None and any(
        k.arg is None and isinstance(k.value, ast.Name) and k.value.id == a.kwarg.arg
        for k in call.keywords
    )
    takes = "static_argnums" in names or open_ended
    return replace(
        api,
        name=name,
        subject=subject,
        positional=positional if subject in positional else (subject,),
        old_positional=(),
        static_option="static_argnums" if takes else None,
        factory=False,
        removed_in=None,
    )


def note_passed_apis(module: Module, reference: ast.expr, evaluator: Evaluator) -> bool:
    """Note an Api that is passed to a function of the project: `build(jax.checkpoint)`.

    Returns whether this was new.
    """
    holder = module.argument_holder(reference)
    if not isinstance(holder, ast.Call) or holder.func is reference:
        return False
    noted = False
    for callee in evaluator.values(module, holder.func):
        if not isinstance(callee, Function):
            continue
        bound = bind_call(callee.node, holder.args, holder.keywords)
        for name, expr in bound.by_name.items():
            if expr is reference:
                for value in evaluator.values(module, reference):
                    if api_of(evaluator.apis, value) is not None:
                        evaluator.note_passed_api(callee.node, name, value)
                        noted = True
    return noted


def passed_options(
    project: Project, option: Forwarded
) -> tuple[list[Option], tuple[Module, ast.expr | FunctionNode] | None]:
    """Return what callers pass for a parameter, and a use of the function that hides callers."""
    name, function = option.parameter.arg, option.function
    qualified = option.module.qualified_name(function)
    passed: list[Option] = []
    hiding: list[tuple[Module, ast.expr | FunctionNode]] = []
    values: list[tuple[Module, ast.expr | FunctionNode]]
    if project.apis.find(qualified) is not None:  # its calls are sites
        sites = [site for site in sites_of(project) if site.api == qualified]
        unused = [s for s in sites if s.application is None and s.form != "partial"]
        values = [(site.module, site.reference) for site in unused]
        passed += (site.arguments[name] for site in sites if name in site.arguments)
    else:
        uses = uses_of(project, Function(option.module, function))
        values = [(escape.module, escape.node) for escape in uses.unseen]
        for call in uses.passing:
            bound = call.bound_to(function)
            if bound.unclear:
                hiding.append((call.module, call.node))
            if (value := bound.by_name.get(name)) is not None:
                keyword = next((k for k in call.arguments[1] if k.value is value), None)
                passed.append(Option(name, value, call.module_of(value), call.node, keyword))
    for module, node in values:
        holder = module.parent(node)
        # `lift(wrapper, target, concrete=False)` passes both on.
        keywords = holder.keywords if isinstance(holder, ast.Call) else ()
        if keyword := next((k for k in keywords if k.arg == name), None):
            assert isinstance(holder, ast.Call)
            passed.append(Option(name, keyword.value, module, holder, keyword))
        else:
            hiding.append((module, node))
    return passed, next(iter(hiding), None)


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
    found: dict[ast.expr, tuple[Option, Site]] = {}
    for site in _sites_around(project, module):
        option = site.arguments.get("concrete")
        if option is None or not site.definition.concrete:
            continue
        # By position in the order of old releases: RMT104 reports and migrates it.
        if option.position is not None and site.definition.old_positional:
            continue
        is_reported = option.module.source.path in project.reported
        if option.module is module or (site.module is module and not is_reported):
            found.setdefault(option.value, (option, site))
    for option, site in sorted(found.values(), key=lambda f: _order(module, *f)):
        use = concrete_use(project, option, site.definition)
        yield use if option.module is module else replace(use, site=site)
    around = [site.arguments.get("concrete") for site in _sites_around(project, module)]
    used = {option.value for option in around if option is not None}
    for node, value in _mentions(module):
        reached = _may_reach(project, module, node, value) if value not in used else None
        if reached is not None:
            yield _loose_use(module, node, value, reached)


def _order(module: Module, option: Option, site: Site) -> tuple[bool, Span]:
    is_elsewhere = option.module is not module
    return is_elsewhere, site.span if is_elsewhere else _span(option)


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
    value, reason = _value(option)
    return ConcreteUse(option, definition, sites, value, _span(option), reason)


def _value(option: Option) -> tuple[bool | None, str]:
    if isinstance(option.value, ast.Constant):
        return bool(option.value.value), ""
    if forwarded(option.module, option.value) is not None:
        return None, ""
    text = option.module.segment(option.value)
    return None, (
        f"whether `{text}` is true is not known here: where it is, name the arguments that Python"
        " needs in `static_argnums`; then take the option out"
    )


@dataclass(frozen=True, eq=False, slots=True)
class PositionalOptions:
    """The options that one call passes by position.

    Attributes:
        site: a site that the call leads to.
        module: the module of the call.
        call: a call of the Api, or of `functools.partial` with the Api.
        definition: the Api.
        options: the name and value of each; the name is None for an excess argument.
        reason: why the call must not be changed.
        confidence: how certain it is that the Api is called.
    """

    site: Site
    module: Module
    call: ast.Call
    definition: Api
    options: tuple[tuple[str | None, ast.expr], ...]
    reason: str = ""
    confidence: Literal["high", "medium"] = "high"


def positional_options(site: Site, project: Project) -> Iterator[PositionalOptions]:
    """Yield the positional options of the calls that lead to a site, those of partials first."""
    api = site.definition
    # A wrapper of the project has its own signature.
    if not api.old_positional or api.name not in APIS:
        return
    doubt = _doubt(site, project)
    if doubt is None:
        return
    own = own_call(site.module, site.application, site.callee)
    position = 0
    for owner, call, args in argument_calls(site.callee, site.module, own):
        options: list[tuple[str | None, ast.expr]] = []
        reason = doubt
        for arg in args:
            if isinstance(arg, ast.Starred):
                if position and not _is_variadic_parameter(owner, arg):
                    reason = f"the options in `{owner.segment(arg)}` must be named by hand"
                break
            if position:
                order = api.old_positional
                options.append((order[position] if position < len(order) else None, arg))
            position += 1
        else:
            reason = _conflict(call, options) or doubt
        if options or reason != doubt:
            confidence: Literal["high", "medium"] = "medium" if doubt or not options else "high"
            yield PositionalOptions(site, owner, call, api, tuple(options), reason, confidence)


def shared_with_partial(passed: PositionalOptions, project: Project) -> bool:
    """Return whether another call on the way to a site also passes options by position."""
    return passed.call in project.once(_shared_calls)


def _shared_calls(project: Project) -> set[ast.Call]:
    every = (list(positional_options(site, project)) for site in sites_of(project))
    return {passed.call for calls in every if len(calls) > 1 for passed in calls}


def _doubt(site: Site, project: Project) -> str | None:
    """Return why the call may call another function, or None to leave it alone."""
    reason = "" if site.certain else "another function may be called here"
    for value in project.values(site.module, site.reference):
        other = api_of(project.apis, value)
        if other is None and isinstance(value, External):
            return None  # `checkpoint` of JAX or of PyTorch, depending on a setting
        if other is not None and other.old_positional != site.definition.old_positional:
            reason = "the name may refer to functions that take options in different orders"
    return reason


def _is_variadic_parameter(module: Module, arg: ast.Starred) -> bool:
    """Return whether a wrapper passes on its own `*args`, which may always be empty."""
    if not isinstance(arg.value, ast.Name):
        return False
    bindings = module.reaching(arg.value)
    return bool(bindings) and all(
        isinstance(binding.scope.node, FunctionNode)
        and binding.node is binding.scope.node.args.vararg
        for binding in bindings
    )


def _conflict(call: ast.Call, options: list[tuple[str | None, ast.expr]]) -> str:
    keywords = {keyword.arg for keyword in call.keywords}
    for name, _ in options:
        if name is None:
            return "no jax release accepts this many arguments"
        if name in keywords:
            return f"`{name}` is passed twice"
    return ""
