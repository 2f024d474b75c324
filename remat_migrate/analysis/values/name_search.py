"""The expressions that may denote a value, found by the words it can be reached under.

A value travels under names: the name it is assigned to, the function that returns it, the loop that
iterates over it. Only expressions with one of these words are evaluated, which are few, and only
where the value may have arrived.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence

from ..names.mentions import find_mentions
from ..names.module import Module
from ..names.scopes import Definition, FunctionNode, parameters
from .callees import layers
from .calls import returned
from .containers import elements
from .evaluator import Evaluator
from .values import (
    Applied,
    Bound,
    Class,
    Constant,
    Container,
    External,
    Function,
    ModuleValue,
    Partial,
    Result,
    Value,
    Wrapped,
)

_EXPRESSIONS = ast.Name | ast.Attribute | ast.Call | ast.Subscript
_CALLED = "__call__"
# A value with more is looked at in each search.
_MOST_ORIGINS = 8

# A word, and the module if it is a local name of a function there.
_LocalWord = tuple[str, bool]


class NameSearch:
    """The expressions of some modules that may denote a value.

    Attributes:
        words: the names and attributes under which it can be reached.
        exported: those that other modules may see; the rest are local names of functions.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        modules: Sequence[Module],
        words: Iterable[tuple[str, Module | None]],
        places: Iterable[tuple[Module, ast.AST]] = (),
        matches: Callable[[Value], bool] = lambda value: False,
        *,
        definition: tuple[Module, ast.AST] | None = None,
        by_name: bool = True,
        origins: Iterable[ast.AST] | None = None,
    ) -> None:
        """Start from `words` and `places`: the names under which the value is made, and where.

        A word comes with the module in which it is a local name, or None.

        `matches` tells whether something is the value or holds it; `definition` is the value's
        definition. With `by_name`, a function that merely has one of the words as its name may be
        the value or return it. With `origins`, what is made by a checkpoint or is a function
        matches only if one of these applications or functions made it.
        """
        self._by_name = by_name
        self._origins = None if origins is None else set(origins)
        self._defining_nodes: set[ast.AST] = set(_defining(*definition)) if definition else set()
        self._evaluator = evaluator
        self._matches = matches
        self._places = tuple(places)
        self._modules: list[Module] = []
        self.words: set[str] = set()
        self.exported: set[str] = set()
        self._waiting: list[tuple[str, Module | None]] = []
        self._known: dict[tuple[str, Module | None], None] = {}
        self._found: dict[Module, dict[ast.expr, None]] = {}
        self.extend(modules, words)

    def extend(
        self, modules: Sequence[Module], words: Iterable[tuple[str, Module | None]] = ()
    ) -> None:
        """Search further modules, and for further words."""
        known = list(self._known)
        self._modules += modules
        new: dict[Module, dict[ast.expr, None]] = {module: {} for module in modules}
        self._found |= new
        for module, place in self._places:
            if module in new:
                self._add_expression(module, place)
        for word, within in known:
            for module in modules if within is None else {within} & new.keys():
                self._search_word(module, word)
        for word, within in words:
            self._add_word(word, within)
        while self._waiting:
            word, within = self._waiting.pop()
            for module in self._modules if within is None else (within,):
                self._search_word(module, word)

    def expressions(self, module: Module) -> list[ast.expr]:
        """Return the names, attributes, calls, and subscripts to look at, by place."""
        return sorted(self._found[module], key=_place)

    def _add_word(self, word: str, within: Module | None = None) -> None:
        """Follow a word: in all modules, or in the one where it is a local name."""
        if word and not {(word, None), (word, within)} & self._known.keys():
            self._known[word, within] = None
            self.words.add(word)
            if within is None:
                self.exported.add(word)
            self._waiting.append((word, within))

    def _search_word(self, module: Module, word: str) -> None:
        mentions = find_mentions(module)
        for node in self._names(module, word):
            self._add_expression(module, node)
        for attribute in mentions.attributes.get(word, ()):
            self._add_expression(module, attribute)
        for other in mentions.renamed.get(word, ()):
            self._add_word(other)
        if _CALLED in self.words:
            for name in sorted(self.words) if word == _CALLED else (word,):
                for cls in mentions.classes.get(name, ()):
                    self._instances(module, cls)

    def _names(self, module: Module, word: str) -> Iterable[ast.Name]:
        """Return the reads of a name that may denote the value."""
        if self._origins is None:
            return find_mentions(module).names.get(word, ())
        known = _names_by_origin(self._evaluator, module, word)
        places: dict[ast.Name, int] = {}
        for origin in (None, *self._origins, *self._defining_nodes):
            places |= known.get(origin, {})
        return sorted(places, key=places.__getitem__)

    def _instances(self, module: Module, cls: ast.ClassDef) -> None:
        """In a class whose instances are called by that word, follow the first parameter of the
        methods.
        """
        names = find_mentions(module).names
        for method in cls.body:
            if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef):
                for first in parameters(method)[:1]:
                    for name in names.get(first.arg, ()):
                        if method.lineno <= name.lineno <= (method.end_lineno or 0):
                            self._add_expression(module, name)

    def _add_expression(self, module: Module, node: ast.AST) -> None:
        """Add an expression, and those that contain it, as far as they may denote the value."""
        found = self._found[module]
        child = node
        while True:
            if isinstance(child, _EXPRESSIONS):
                if child in found:
                    return
                found[child] = None
                if not any(map(self._may_denote, self._evaluator.values(module, child))):
                    if not _is_looped_over(module, child):
                        return
            parent = module.parent(child)
            if parent is None:
                return
            makers = _defining_nodes(module, parent)
            self._defining_nodes |= makers
            for word, is_local in (
                *_names_of(module, makers),
                *_words_of_position(module, parent, child),
            ):
                self._add_word(word, module if is_local else None)
            if isinstance(parent, ast.stmt):
                return
            child = parent

    def _may_denote(self, value: Value) -> bool:
        """Return whether a value is the one searched for, holds it, or returns it when called."""
        match value:
            case Function(node=ast.Lambda()):
                return any(map(self._matches, (value, *returned(self._evaluator, value))))
            case Function(node=node) | Class(node=node) | Bound(func=Function(node=node)):
                named = self._by_name and getattr(node, "name", None) in self.words
                return named or node in self._defining_nodes or self._matches(value)
            case Container():
                return True
            case Partial(func=inner) | Wrapped(func=inner):
                return self._may_denote(inner)
            case Applied(target=inner) if inner is not None and not self._matches(value):
                return self._may_denote(inner)
            case Bound(receiver=receiver) if self._matches(receiver):
                return True  # `model.apply`
        return self._matches(value)


def _names_by_origin(
    evaluator: Evaluator, module: Module, word: str
) -> dict[ast.AST | None, dict[ast.Name, int]]:
    """Return the reads of a name by what makes their values, numbered in order.

    A name may be bound again and again, and each search asks for what one of the bindings made.
    """
    known = evaluator.reads.get((module, word))
    if known is None:
        known = evaluator.reads[module, word] = {}
        for number, node in enumerate(find_mentions(module).names.get(word, ())):
            values = evaluator.values(module, node)
            holder = module.parent(node)
            if isinstance(holder, ast.Subscript) and holder.value is node:
                if all(isinstance(value, Container) for value in values):
                    values = evaluator.values(module, holder)  # what it holds is read here alone
            origins = {origin for value in values for origin in _origins_of(value)}
            for origin in (None,) if _is_looped_over(module, node) else origins:
                known.setdefault(origin, {})[node] = number
    return known


def held_by_origin(evaluator: Evaluator, container: Container) -> dict[ast.AST | None, set[Value]]:
    """Return what a container holds, by what makes it."""
    known = evaluator.held.get(container)
    if known is None:
        known = {}
        for module, part in elements(container):
            for value in evaluator.values(module, part):
                for origin in _origins_of(value):
                    known.setdefault(origin, set()).add(value)
        evaluator.held[container] = known
    return known


def _origins_of(value: Value) -> set[ast.AST | None]:
    """Return the applications and functions that make a value; None if something else may."""
    found: set[ast.AST | None] = set()
    for layer in layers(value):
        match layer:
            case Applied(node=node) | Function(node=ast.FunctionDef() as node):
                found.add(node)
            case Function(node=ast.AsyncFunctionDef() as node):
                found.add(node)
            case Partial() | Wrapped() | External() | Constant() | ModuleValue() | Result():
                pass
            case _:
                return {None}
    return found if len(found) <= _MOST_ORIGINS else {None}


def _words_of_position(module: Module, parent: ast.AST, child: ast.AST) -> Iterator[_LocalWord]:
    """Yield the words that a part of `parent` gets from its position, except names of
    definitions.
    """
    match parent:
        case ast.Assign(targets=targets):
            for target in targets:
                yield from _target_words(module, target)
        case ast.AnnAssign(target=target) | ast.AugAssign(target=target):
            yield from _target_words(module, target)
        case ast.NamedExpr(target=target) | ast.comprehension(target=target):
            yield from _target_words(module, target)
        case ast.For(target=target) | ast.AsyncFor(target=target):
            yield from _target_words(module, target)
        case ast.withitem(optional_vars=ast.expr() as target):
            yield from _target_words(module, target)
        case ast.arg(arg=name):
            yield name, True
        case ast.arguments():
            for parameter in (*parent.posonlyargs, *parent.args, *parent.kwonlyargs):
                yield parameter.arg, True
        case ast.Call(func=ast.Attribute(value=owner, attr=("append" | "insert" | "extend"))):
            yield from _target_words(module, owner)


def _names_of(module: Module, makers: Iterable[ast.AST]) -> Iterator[_LocalWord]:
    for maker in makers:
        if isinstance(maker, Definition):
            yield from defined(module, maker)


def defined(module: Module, node: Definition) -> Iterator[_LocalWord]:
    """Yield the name of a definition; for `__call__` and the like, also that of its class."""
    scope = module.scope_at(node)
    yield node.name, scope.is_function and node.name not in scope.global_names
    if isinstance(scope.node, ast.ClassDef) and node.name.startswith("__"):
        yield from defined(module, scope.node)


def _defining_nodes(module: Module, node: ast.AST) -> set[ast.AST]:
    """Return the definitions whose name denotes a part of `node`, or returns it when called.

    For what a function returns, that is the function, and for `__call__` and the like its class.
    """
    if isinstance(node, Definition):
        return {node}
    if not isinstance(node, ast.Return | ast.Yield | ast.YieldFrom):
        return set()
    function = module.enclosing_function(node)
    return set() if function is None else set(_defining(module, function))


def _defining(module: Module, node: ast.AST) -> Iterator[ast.AST]:
    """Yield a definition; for `__call__` and the like, also its class."""
    if isinstance(node, Definition):
        yield node
    if isinstance(node, FunctionNode):
        cls = module.enclosing_class(node)
        if cls is not None and getattr(node, "name", "").startswith("__"):
            yield cls


def _target_words(module: Module, target: ast.expr) -> Iterator[_LocalWord]:
    match target:
        case ast.Name(id=name):
            scope = module.scope_at(target)
            outer = {*scope.global_names, *scope.nonlocal_names}
            yield name, scope.is_function and name not in outer
            if isinstance(scope.node, ast.ClassDef) and name.startswith("__"):
                yield from defined(module, scope.node)
        case ast.Attribute(attr=name):
            yield name, False
        case ast.Subscript(value=inner) | ast.Starred(value=inner):
            yield from _target_words(module, inner)
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            for part in parts:
                yield from _target_words(module, part)


def _is_looped_over(module: Module, node: ast.expr) -> bool:
    """Return whether a loop iterates over a call, or over one that contains it:
    `enumerate(blocks)`.
    """
    child: ast.AST = node
    while isinstance(parent := module.parent(child), ast.Call | ast.Attribute):
        child = parent
    loops = isinstance(parent, ast.For | ast.AsyncFor | ast.comprehension)
    return loops and getattr(parent, "iter", None) is child


def _place(node: ast.expr) -> tuple[int, int, int, int]:
    return node.lineno, node.col_offset, -(node.end_lineno or 0), -(node.end_col_offset or 0)
