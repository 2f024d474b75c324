"""The project's own wrappers: functions that pass a function and options on to an Api.

    def my_remat(f, concrete=False):
        return jax.checkpoint(f, concrete=concrete)

A wrapper that passes its first argument on is an Api of the project; its calls are sites.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ...libraries.apis import Api
from ..names.module import Module
from ..names.scopes import FunctionNode, parameters
from ..project import Project
from ..values.application import api_of
from ..values.bind import bind_call, default_of, positional_parameters
from ..values.evaluator import Evaluator
from ..values.values import Function, Partial
from .calls import uses_of
from .find_sites import sites_of
from .site import Option


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
                if api is not None and not isinstance(callee, Partial):
                    subject = _forwarded_subject(module, node, api, option.function)
                    if subject is not None:
                        yield _wrapper(name, api, option.function, subject, node)


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
    return any(
        isinstance(node, ast.Name)
        and node.id == options.parameter.arg
        and not isinstance(options.module.parent(node), ast.keyword)
        for node in ast.walk(options.function)
    )


def _forwarded_subject(
    module: Module, call: ast.Call, api: Api, function: ast.FunctionDef
) -> str | None:
    subject = call.args[0] if call.args else None
    for keyword in call.keywords:
        if keyword.arg == api.subject:
            subject = keyword.value
    option = forwarded(module, subject) if subject is not None else None
    return option.parameter.arg if option is not None and option.function is function else None


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
