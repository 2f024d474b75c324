"""Invalid arguments of policy factories, for RMT404."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from remat_migrate.api import Fix, Module, Project, Safety
from remat_migrate.api.changes import Code, NameArgument, Replace, Spread
from remat_migrate.api.code import External
from remat_migrate.api.policies import NamesParameter, Policy, given_to, origins

_UNHASHABLE = {"list", "set", "dict", "sorted"}
_BUILTINS = {"list", "set", "dict", "sorted", "tuple", "frozenset"}
_UNPACK = "pass the names as separate arguments"


@dataclass(frozen=True, eq=False, slots=True)
class Fault:
    """An expression that is not a policy, or does not make one.

    Attributes:
        node: what to report.
        message: what is wrong, and what happens because of it.
        fix: the fix, or the advice what to write instead.
        is_silent: whether nothing raises.
        reason: why there is no automatic fix.
    """

    node: ast.expr
    message: str
    fix: Fix | None = None
    is_silent: bool = False
    reason: str = ""


def argument_faults(
    project: Project, module: Module, call: ast.Call, policy: Policy
) -> Iterator[Fault]:
    """Yield what is wrong with the arguments of a call of a factory."""
    wrong = _wrong_arguments(module, call, policy)
    if wrong is not None:
        yield wrong
        return
    if policy.answer(project.jax_version(module.source.path)) is not None:
        return  # it ignores the names
    for names in policy.names:
        if names.star:
            for arg in call.args:
                yield from _collection_as_name(project, module, arg, policy)
        elif value := given_to(policy, call).get(names.name):
            yield from _string_as_names(project, module, value, names)
    yield from _saved_and_offloaded(project, module, call, policy)


def _collection_as_name(
    project: Project, module: Module, arg: ast.expr, policy: Policy
) -> Iterator[Fault]:
    """Yield a collection that is passed where a factory takes one name."""
    if isinstance(arg, ast.Starred):
        return
    kinds = {
        _kind(project, module, o.node) if o.only else None for o in origins(project, module, arg)
    }
    kind = kinds.pop() if len(kinds) == 1 else None
    if kind is None:
        return
    is_hashable = kind not in _UNHASHABLE
    effect = "silently matches no name" if is_hashable else "raises `TypeError`"
    message = f"`{policy.name}` takes names as separate arguments; a {kind} {effect}"
    if kind == "dict" or isinstance(arg, ast.GeneratorExp):
        fix = Fix.manual(_UNPACK)
    else:
        fix = Fix(_UNPACK, Safety.UNSAFE if is_hashable else Safety.SAFE, (Spread(module, arg),))
    yield Fault(arg, message, fix, is_silent=is_hashable)


def _kind(project: Project, module: Module, node: ast.AST) -> str | None:
    match node:
        case ast.List() | ast.ListComp():
            return "list"
        case ast.Tuple():
            return "tuple"
        case ast.Set() | ast.SetComp():
            return "set"
        case ast.Dict() | ast.DictComp():
            return "dict"
        case ast.GeneratorExp():
            return "generator"
        case ast.Call(func=ast.Name(id=name) as func) if name in _BUILTINS:
            if External(f"builtins.{name}") in project.values(module, func):
                return "list" if name == "sorted" else name
    return None


def _string_as_names(
    project: Project, module: Module, value: ast.expr, names: NamesParameter
) -> Iterator[Fault]:
    """Yield a string that is passed where a factory takes a list of names."""
    for origin in origins(project, module, value):
        match origin.node:
            case ast.Constant(value=str(text)) if origin.only and len(text) > 1:
                message = f"`{names.name}` takes a list of names; a string is split into letters"
                change = Replace(module, value, Code.of("[{name}]", name=value))
                fix = Fix("put it in a list", Safety.UNSAFE, (change,))
                yield Fault(value, message, fix, is_silent=True)
                return


def _saved_and_offloaded(
    project: Project, module: Module, call: ast.Call, policy: Policy
) -> Iterator[Fault]:
    """Yield the lists with names that another list of the call contains as well."""
    listed: dict[str, str] = {}
    given = given_to(policy, call)
    for names in policy.names:
        value = given.get(names.name)
        if names.star or value is None:
            continue
        for origin in origins(project, module, value):
            if not origin.only or not isinstance(origin.node, ast.List | ast.Tuple | ast.Set):
                continue
            for part in origin.node.elts:
                if not isinstance(part, ast.Constant) or not isinstance(part.value, str):
                    continue
                other = listed.setdefault(part.value, names.name)
                if other != names.name:
                    message = f"`{part.value}` is also in `{other}`, which raises `ValueError`"
                    yield Fault(value, message, Fix.manual("list it in one of them"))


def _wrong_arguments(module: Module, call: ast.Call, policy: Policy) -> Fault | None:
    """Return an argument that a factory does not accept, or one that is missing."""
    if any(isinstance(arg, ast.Starred) for arg in call.args):
        return None
    if any(keyword.arg is None for keyword in call.keywords):
        return None
    star = next((names for names in policy.names if names.star), None)
    accepted = (*policy.parameters, *policy.keyword_only)
    for keyword in call.keywords:
        assert keyword.arg is not None
        if keyword.arg not in accepted:
            fix = _signature(policy)
            if star is not None and keyword.arg == star.name and len(call.keywords) == 1:
                fix = _unpack(module, keyword)
            message = f"`{policy.name}` does not accept `{keyword.arg}=` and raises `TypeError`"
            return Fault(keyword.value, message, fix)
    if star is None and len(call.args) > len(policy.parameters):
        return _too_many_positional(module, call, policy)
    given = {*policy.parameters[: len(call.args)], *(k.arg for k in call.keywords)}
    missing = ", ".join(f"`{name}`" for name in accepted if name not in given)
    if missing:
        message = f"`{policy.name}` is called without {missing} and raises `TypeError`"
        return Fault(call, message, _signature(policy))
    return None


def _signature(policy: Policy) -> Fix:
    """Return the advice which arguments a factory accepts."""
    star = [f"*{names.name}" for names in policy.names if names.star]
    names = (*star, *policy.parameters, *policy.keyword_only)
    return Fix.manual(f"it takes {', '.join(f'`{name}`' for name in names)}")


def _unpack(module: Module, keyword: ast.keyword) -> Fix:
    plain = ast.List | ast.Tuple | ast.Set | ast.Name | ast.Attribute | ast.Call
    if not isinstance(keyword.value, plain):
        return Fix.manual(_UNPACK)
    return Fix(_UNPACK, Safety.SAFE, (Spread(module, keyword),))


def _too_many_positional(module: Module, call: ast.Call, policy: Policy) -> Fault:
    names = (*policy.parameters, *policy.keyword_only)
    count = len(policy.parameters)
    message = f"`{policy.name}` takes {count} positional arguments; more raise `TypeError`"
    excess = names[count : len(call.args)]
    passed = {keyword.arg for keyword in call.keywords}
    if not excess or len(call.args) > len(names) or passed & set(excess):
        return Fault(call, message, _signature(policy))
    changes = tuple(
        NameArgument(module, arg, name) for name, arg in zip(excess, call.args[count:], strict=True)
    )
    return Fault(call, message, Fix("pass them by keyword", Safety.SAFE, changes))
