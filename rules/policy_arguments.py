"""What is wrong with the arguments of a factory of policies: found for RMT404."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from remat_migrate.analysis import Module, Project
from remat_migrate.analysis.policies.known_policies import NamesParameter, Policy
from remat_migrate.analysis.policies.values import given_to, origins
from remat_migrate.analysis.values.values import External
from remat_migrate.codemod.changes import Change, Code, NameArgument, Replace, Spread
from remat_migrate.rule import Safety

# What is reported, the message, whether it is silent; the title, safety and changes of a fix; a
# reason.
Found = tuple[ast.expr, str, bool, str, Safety, tuple[Change, ...], str]

_UNHASHABLE = {"list", "set", "dict", "sorted"}
_BUILTINS = {"list", "set", "dict", "sorted", "tuple", "frozenset"}


def argument_faults(
    project: Project, module: Module, call: ast.Call, policy: Policy
) -> Iterator[Found]:
    """What is wrong with the arguments of a call of a factory."""
    wrong = _wrong_arguments(module, call, policy)
    if wrong is not None:
        yield wrong
        return
    if policy.answer(project.settings.jax_version) is not None:
        return  # it does not look at the names
    for names in policy.names:
        if names.star:
            for arg in call.args:
                found = _sequence_for_names(project, module, arg, policy)
                if found is not None:
                    yield found
        else:
            value = given_to(policy, call).get(names.name)
            if value is not None:
                found = _letters(project, module, value, names)
                if found is not None:
                    yield found
    yield from _twice(project, module, call, policy)


# -- names one by one


def _sequence_for_names(
    project: Project, module: Module, arg: ast.expr, policy: Policy
) -> Found | None:
    if isinstance(arg, ast.Starred):
        return None
    kinds = {
        _kind(project, module, o.node) if o.only else None for o in origins(project, module, arg)
    }
    kind = kinds.pop() if len(kinds) == 1 else None
    if kind is None:
        return None
    hashable = kind not in _UNHASHABLE
    shown = f"`{policy.name}` takes names one by one"
    if not hashable:
        message = f"{shown}: a {kind} raises TypeError"
    else:
        message = f"{shown}: a {kind} is no name of anything, and never matches"
    title = "give the names one by one"
    if kind == "dict" or isinstance(arg, ast.GeneratorExp):
        return arg, message, hashable, title, Safety.MANUAL, (), ""
    safety = Safety.UNSAFE if hashable else Safety.SAFE
    return arg, message, hashable, title, safety, (Spread(module, arg),), ""


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


# -- names in a sequence


def _letters(
    project: Project, module: Module, value: ast.expr, names: NamesParameter
) -> Found | None:
    for origin in origins(project, module, value):
        match origin.node:
            case ast.Constant(value=str(text)) if origin.only and len(text) > 1:
                message = f"`{names.name}` takes names in a list: of a string it takes the letters"
                change = Replace(module, value, Code.of("[{name}]", name=value))
                return value, message, True, "put it into a list", Safety.UNSAFE, (change,), ""
    return None


def _twice(project: Project, module: Module, call: ast.Call, policy: Policy) -> Iterator[Found]:
    """A name that is to be saved and to be offloaded."""
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
                    message = f"`{part.value}` is in `{other}`, too: that raises ValueError"
                    yield value, message, False, "", Safety.MANUAL, (), "name it in one of them"


# -- arguments that do not fit


def _wrong_arguments(module: Module, call: ast.Call, policy: Policy) -> Found | None:
    if any(isinstance(arg, ast.Starred) for arg in call.args):
        return None
    if any(keyword.arg is None for keyword in call.keywords):
        return None
    star = next((names for names in policy.names if names.star), None)
    takes = (*policy.parameters, *policy.keyword_only)
    for keyword in call.keywords:
        assert keyword.arg is not None
        if keyword.arg not in takes:
            message = f"`{policy.name}` takes no `{keyword.arg}=`: that raises TypeError"
            if star is not None and keyword.arg == star.name and len(call.keywords) == 1:
                return _starred(module, keyword, message)
            return keyword.value, message, False, "", Safety.MANUAL, (), _takes(policy)
    if star is None and len(call.args) > len(policy.parameters):
        return _by_position(module, call, policy)
    given = {*policy.parameters[: len(call.args)], *(k.arg for k in call.keywords)}
    missing = [name for name in takes if name not in given]
    if missing:
        lacking = ", ".join(f"`{name}`" for name in missing)
        message = f"`{policy.name}` is called without {lacking}: that raises TypeError"
        return call, message, False, "", Safety.MANUAL, (), _takes(policy)
    return None


def _takes(policy: Policy) -> str:
    star = [f"*{names.name}" for names in policy.names if names.star]
    return (
        f"it takes {', '.join(f'`{n}`' for n in (*star, *policy.parameters, *policy.keyword_only))}"
    )


def _starred(module: Module, keyword: ast.keyword, message: str) -> Found:
    title = "give the names one by one"
    plain = ast.List | ast.Tuple | ast.Set | ast.Name | ast.Attribute | ast.Call
    if not isinstance(keyword.value, plain):
        return keyword.value, message, False, title, Safety.MANUAL, (), ""
    return keyword.value, message, False, title, Safety.SAFE, (Spread(module, keyword),), ""


def _by_position(module: Module, call: ast.Call, policy: Policy) -> Found:
    """Arguments by position: those that a factory takes by keyword only are named."""
    names = (*policy.parameters, *policy.keyword_only)
    surplus = call.args[len(policy.parameters) :]
    message = f"`{policy.name}` takes {len(policy.parameters)} arguments by position: TypeError"
    if not policy.keyword_only:
        return call, message, False, "", Safety.MANUAL, (), _takes(policy)
    named_already = {keyword.arg for keyword in call.keywords}
    meant = names[len(policy.parameters) : len(call.args)]
    title = "pass them by keyword"
    if len(call.args) > len(names) or named_already & set(meant):
        return call, message, False, title, Safety.MANUAL, (), _takes(policy)
    changes = tuple(NameArgument(module, a, n) for n, a in zip(meant, surplus, strict=False))
    return call, message, False, title, Safety.SAFE, changes, ""
