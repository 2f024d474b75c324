"""The project's own wrappers: functions that pass a function and options on to an Api.

    def my_remat(f, concrete=False):
        return jax.checkpoint(f, concrete=concrete)

A wrapper that passes its first argument on is an Api of the project; its calls are sites.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from ...libraries.apis import Api
from ..names.module import Module
from ..names.scopes import FunctionNode, parameters
from ..values.application import api_of, without_partials
from ..values.bind import bind_call, default_of, positional_parameters
from ..values.evaluator import Evaluator
from ..values.values import External, Function, Partial
from .forms import decorates


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
        if not isinstance(node, ast.Call):
            continue
        given = [(k.arg, k.value) for k in node.keywords if k.arg in ("concrete", None)]
        # By position, as in `jax.checkpoint(f, concrete)`.
        given += [
            ("concrete", arg)
            for arg in node.args[1:]
            if isinstance(arg, ast.Name) and arg.id == "concrete"
        ]
        if any(k.arg == "concrete" and forwarded(module, k.value) is None for k in node.keywords):
            continue  # what callers pass for other options has no effect until this is gone
        for option_name, value in given:
            option = forwarded(module, value)
            if option is not None and option_name is None:
                if option.parameter is not option.function.args.kwarg:
                    continue
                if _edits_options(option):
                    continue  # what callers pass is not what the Api gets
            if option is None or module.enclosing_class(option.function) is not None:
                continue
            for callee in evaluator.values(module, node.func):
                api = api_of(evaluator.apis, callee)
                name = module.qualified_name(option.function)
                if api is None or isinstance(callee, Partial) or evaluator.apis.find(name):
                    continue
                subject = _forwarded_subject(module, node, api, option.function)
                if subject is not None:
                    yield _wrapper(name, api, option.function, subject, node)


def forwarding_callee(function: FunctionNode) -> ast.expr | None:
    """Return what `def remat(*args, **kwargs)` calls with all its arguments, if it does nothing
    else.
    """
    a = function.args
    if isinstance(function, ast.Lambda) or a.vararg is None or a.args or a.posonlyargs:
        return None
    *documented, last = function.body
    if any(not isinstance(s, ast.Expr | ast.Import | ast.ImportFrom) for s in documented):
        return None
    match last:
        case ast.Return(value=ast.Call(func=func, args=[ast.Starred(value=ast.Name(id=name))])):
            return func if name == a.vararg.arg else None
    return None


def find_forwarding_wrappers(module: Module, evaluator: Evaluator) -> Iterator[Api]:
    """Yield the functions of a module that pass all arguments on to an Api of the same name."""
    for node in module.nodes:
        if not isinstance(node, ast.FunctionDef) or node.name not in evaluator.apis.last_names:
            continue
        func = forwarding_callee(node)
        name = module.qualified_name(node)
        if func is None or module.enclosing_class(node) or evaluator.apis.find(name):
            continue
        values = evaluator.values(module, func)
        apis = [found for v in values if (found := api_of(evaluator.apis, v)) is not None]
        if apis:
            api = min(apis, key=lambda found: found.name)
            yield replace(
                api,
                name=name,
                removed_in=None,
                sometimes=len(apis) < len(values),
            )


def _edits_options(options: Forwarded) -> bool:
    """Return whether a function may add `concrete` to its `**kwargs`, or needs it there."""
    name = options.parameter.arg
    module = options.module
    for node in ast.walk(options.function):
        if not isinstance(node, ast.Name) or node.id != name:
            continue
        match module.parent(node):
            case ast.keyword(arg=None):
                pass
            case ast.Subscript(slice=ast.Constant(value=str(key))) if key != "concrete":
                pass
            case ast.Compare():
                pass
            case ast.Attribute() as method:
                match module.parent(method):
                    case ast.Call(args=[ast.Constant(value=str(key)), *_]) if key != "concrete":
                        pass
                    case _:
                        return True
            case _:
                return True
    return False


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


@dataclass(frozen=True, eq=False, slots=True)
class Passed:
    """A call that passes, or may pass, a value for a parameter of a function.

    Attributes:
        module: the module.
        call: the call of the function, or of another one that receives the function and the keyword
            together (`lift(wrapper, target, concrete=False)`).
        value: what is passed.
        keyword: the keyword; None if it is passed by position.
    """

    module: Module
    call: ast.Call
    value: ast.expr
    keyword: ast.keyword | None


def passed_for(
    modules: Iterable[Module], evaluator: Evaluator, option: Forwarded
) -> Iterator[Passed]:
    """Yield what calls in the given modules pass for a parameter."""
    name = option.parameter.arg
    for module in modules:
        for call in module.nodes:
            if not isinstance(call, ast.Call):
                continue
            called = _is_function(module, call.func, evaluator, option)
            given = not called and any(
                _is_function(module, arg, evaluator, option) for arg in call.args
            )
            if not called and not given:
                continue
            for keyword in call.keywords:
                if keyword.arg == name:
                    yield Passed(module, call, keyword.value, keyword)
            if called:
                bound = bind_call(option.function, call.args, call.keywords)
                if name in bound.by_position:
                    yield Passed(module, call, bound.by_name[name], None)


def escaping(module: Module, evaluator: Evaluator, option: Forwarded) -> ast.expr | None:
    """Return a use of a function as a value that does not pass the keyword along with it."""
    name, wanted = option.parameter.arg, option.function.name
    for node in module.nodes:
        if not isinstance(node, ast.Name | ast.Attribute) or not isinstance(node.ctx, ast.Load):
            continue
        if getattr(node, "id", getattr(node, "attr", None)) != wanted:
            continue
        if not _is_function(module, node, evaluator, option):
            continue
        holder = module.parent(node)
        if isinstance(holder, ast.Call) and (
            holder.func is node or any(k.arg == name for k in holder.keywords)
        ):
            continue
        if not decorates(module, node):  # which passes the function alone
            return node
    return None


def _is_function(module: Module, node: ast.expr, evaluator: Evaluator, option: Forwarded) -> bool:
    if not isinstance(node, ast.Name | ast.Attribute | ast.Call):
        return False
    qualified = option.module.qualified_name(option.function)
    for value in evaluator.values(module, node):
        match without_partials(value):
            case Function(node=function) if function is option.function:
                return True
            case External(name) if name == qualified:
                return True
    return False
