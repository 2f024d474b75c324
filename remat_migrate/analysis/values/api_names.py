"""The identifiers that may name an Api in a module: the names of the Apis, and aliases."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from ..names.mentions import find_mentions
from ..names.module import Module, once
from .bind import positional_parameters
from .evaluator import Evaluator
from .values import ModuleValue


def interesting_names(module: Module, evaluator: Evaluator) -> frozenset[str]:
    """Return the identifiers that may name an Api in a module."""
    known = evaluator.apis.last_names | evaluator.aliases
    key = (module, known, frozenset(evaluator.passed))
    if key not in evaluator.names:
        starred = _starred(module, evaluator)
        found = dict.fromkeys(starred, frozenset[str]())
        growing = True
        while growing:  # more than once where modules import everything from one another
            growing = False
            for one in reversed(starred):
                names = _names_in(one, evaluator, found)
                growing = growing or (len(starred) > 1 and names != found[one])
                found[one] = names
        for one, names in found.items():
            evaluator.names[one, *key[1:]] = names
    return evaluator.names[key]


def _starred(module: Module, evaluator: Evaluator) -> list[Module]:
    """Return a module and those that it imports with `*`, directly or through others."""
    found = {module: None}
    left = [module]
    while left:
        for base in _star_bases(left.pop(), evaluator):
            if base not in found:
                found[base] = None
                left.append(base)
    return list(found)


def _star_bases(module: Module, evaluator: Evaluator) -> Iterator[Module]:
    for node in _find_naming(module).imports:
        if node.names[0].name == "*":
            for base in evaluator.import_base(node, module):
                if isinstance(base, ModuleValue):
                    yield base.module


def _names_in(
    module: Module, evaluator: Evaluator, known: dict[Module, frozenset[str]]
) -> frozenset[str]:
    """Return the identifiers of one module; `known` holds those of the modules that it imports
    from.
    """
    names = set(evaluator.apis.last_names) | {name for _, name in evaluator.passed}
    naming = _find_naming(module)
    # `ops.save` and `getattr(ops, "save")`, where another module defines `save`.
    names |= {word for word in evaluator.aliases if word in find_mentions(module).attributes}
    names |= evaluator.aliases & naming.texts
    for base in _star_bases(module, evaluator):
        # Names imported in this way are not among those that the module binds.
        given = known[base]
        names |= given if base.star_imports else given & base.scope_of(base.tree).bound
    for node in naming.imports:
        if node.names[0].name != "*":
            _imported_names(module, node, evaluator, names)
    called: dict[str, list[str]] = defaultdict(list)
    for name, mentioned in naming.aliases:
        for word in mentioned:
            called[word].append(name)
    left = list(names)
    while left:
        more = {name for name in called.pop(left.pop(), ()) if name not in names}
        names |= more
        left += more
    return frozenset(names)


# Calls that return one of their arguments, or a container of them.
_HOLDING = frozenset(
    {"partial", "getattr", "get", "staticmethod", "dict", "SimpleNamespace", "MappingProxyType"}
)


@dataclass(frozen=True, slots=True)
class _Naming:
    """Where a module names things.

    Attributes:
        imports: the `from` imports.
        aliases: other names, each with the identifiers by which the value may be known.
        texts: the attributes that `getattr` reads.
    """

    imports: tuple[ast.ImportFrom, ...]
    aliases: tuple[tuple[str, frozenset[str]], ...]
    texts: frozenset[str]


@once
def _find_naming(module: Module) -> _Naming:
    imports: list[ast.ImportFrom] = []
    aliases: list[tuple[str, ast.expr]] = []
    texts: set[str] = set()
    for node in module.nodes:
        match node:
            case ast.ImportFrom():
                imports.append(node)
            case ast.Assign(targets=targets, value=value) if _alias_like(value):
                aliases += ((name, value) for target in targets for name in _bound_names(target))
            case ast.AnnAssign(value=ast.expr() as value) if _alias_like(value):
                aliases += ((name, value) for name in _bound_names(node.target))
            case ast.NamedExpr() if _alias_like(node.value):
                aliases.append((node.target.id, node.value))
            case ast.Call(func=ast.Name("getattr"), args=[_, ast.Constant(value=str(name)), *_]):
                texts.add(name)
            case ast.Call(func=ast.Attribute(attr="SimpleNamespace") | ast.Name("SimpleNamespace")):
                aliases += ((k.arg, k.value) for k in node.keywords if k.arg is not None)
            case ast.For() | ast.AsyncFor() | ast.comprehension():
                aliases += ((name, node.iter) for name in _bound_names(node.target))
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                a = node.args
                positional = positional_parameters(node)
                defaults = positional[len(positional) - len(a.defaults) :]
                for parameter, default in zip(defaults, a.defaults, strict=True):
                    aliases.append((parameter.arg, default))
                for parameter, kw_default in zip(a.kwonlyargs, a.kw_defaults, strict=True):
                    if kw_default is not None:
                        aliases.append((parameter.arg, kw_default))
    known = tuple((name, _identifiers(value)) for name, value in aliases)
    return _Naming(tuple(imports), known, frozenset(texts))


def _identifiers(value: ast.expr) -> frozenset[str]:
    found = (_identifier(node) for node in ast.walk(value))
    return frozenset(name for name in found if name is not None)


def _bound_names(target: ast.expr) -> Iterator[str]:
    match target:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            yield name
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            for part in parts:
                yield from _bound_names(part)
        case ast.Starred(value=part):
            yield from _bound_names(part)


def _imported_names(
    module: Module, node: ast.ImportFrom, evaluator: Evaluator, names: set[str]
) -> None:
    for alias in node.names:
        if alias.name in evaluator.apis.last_names or (
            alias.name in evaluator.aliases and evaluator.imports_api(module, node, alias)
        ):
            names.add(alias.asname or alias.name)


def _identifier(node: ast.AST) -> str | None:
    match node:
        case ast.Name():
            return node.id
        case ast.Attribute():
            return node.attr
        case ast.Constant(value=str(text)):
            return text
    return None


def _alias_like(value: ast.expr) -> bool:
    match value:
        case ast.Name() | ast.Attribute() | ast.IfExp() | ast.BoolOp() | ast.Subscript():
            return True
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name in _HOLDING
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Dict(values=parts):
            return any(_alias_like(part) for part in parts)
    return False
