"""The identifiers that may name an Api in a module: the names of the Apis, and aliases."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator

from ..names.module import Module, last_name, once
from ..names.scopes import parameters
from .bind import default_of
from .evaluator import Evaluator

# Calls that return one of their arguments, or a container of them.
_HOLDING = frozenset(
    {"partial", "getattr", "get", "staticmethod", "dict", "SimpleNamespace", "MappingProxyType"}
)


def interesting_names(module: Module, evaluator: Evaluator) -> frozenset[str]:
    """Return the identifiers that may name an Api in a module.

    Those that another module gives to an Api are among them, whether or not this one imports it.
    """
    passed = {name for _, name in evaluator.passed}
    known = evaluator.apis.last_names | evaluator.aliases | passed
    if (module, known) not in evaluator.names:
        evaluator.names[module, known] = with_aliases(module, known)
    return evaluator.names[module, known]


def with_aliases(module: Module, names: Iterable[str]) -> frozenset[str]:
    """Return some identifiers, and those that a module may give to what they name."""
    aliases = _find_aliases(module)
    found = set(names)
    left = list(found)
    while left:
        new = aliases.get(left.pop(), set()) - found
        found |= new
        left += new
    return frozenset(found)


@once
def _find_aliases(module: Module) -> dict[str, set[str]]:
    """Return the names whose values mention an identifier."""
    found: dict[str, set[str]] = defaultdict(set)
    for node in module.nodes:
        for name, value in _aliases_at(node):
            for part in ast.walk(value):
                word = part.value if isinstance(part, ast.Constant) else last_name(part)
                if isinstance(word, str):
                    found[word].add(name)
        if isinstance(node, ast.alias) and node.asname is not None:
            found[node.name.rpartition(".")[2]].add(node.asname)
    return dict(found)


def _aliases_at(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Yield the names that a node binds, each with what its value is one or a part of."""
    match node:
        case ast.Assign(targets=targets, value=value) if _alias_like(value):
            yield from ((name, value) for target in targets for name in _bound_names(target))
        case ast.AnnAssign(target=target, value=ast.expr() as value) if _alias_like(value):
            yield from ((name, value) for name in _bound_names(target))
        case ast.NamedExpr(target=target, value=value) if _alias_like(value):
            yield target.id, value
        case ast.Call(func=ast.Attribute(attr="SimpleNamespace") | ast.Name("SimpleNamespace")):
            yield from ((k.arg, k.value) for k in node.keywords if k.arg is not None)
        case ast.For() | ast.AsyncFor() | ast.comprehension():
            yield from ((name, node.iter) for name in _bound_names(node.target))
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
            for parameter in parameters(node):
                if (default := default_of(node, parameter)) is not None:
                    yield parameter.arg, default


def _bound_names(target: ast.expr) -> Iterator[str]:
    for part in ast.walk(target):
        if isinstance(getattr(part, "ctx", None), ast.Store) and (name := last_name(part)):
            yield name


def _alias_like(value: ast.expr) -> bool:
    match value:
        case ast.Name() | ast.Attribute() | ast.IfExp() | ast.BoolOp() | ast.Subscript():
            return True
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name in _HOLDING
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Dict(values=parts):
            return any(_alias_like(part) for part in parts)
    return False
