"""Which expressions may hold a value, by the words that it can be reached under.

A value travels under names: the name it is assigned to, the function that returns it, the loop that
runs over it. Only expressions that have one of these words in them are evaluated, which are few,
and only where the value may have got to.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence

from .evaluate import Evaluator
from .mentions import find_mentions
from .module import Module
from .scopes import FunctionNode, parameters
from .values import Applied, Bound, Class, Container, Function, Partial, Value, Wrapped

_LOOKED_AT = ast.Name | ast.Attribute | ast.Call | ast.Subscript
_CALLED = "__call__"


class WordReach:
    """The expressions of some modules that may hold a value.

    Attributes:
        words: the names and attributes under which it can be reached.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        modules: Sequence[Module],
        words: Iterable[str],
        places: Iterable[tuple[Module, ast.AST]] = (),
        is_it: Callable[[Value], bool] = lambda value: False,
    ) -> None:
        """`words` and `places` are those under which, and where, the value is made.

        `is_it` tells what is the value, or holds it, from what is not.
        """
        self._evaluator = evaluator
        self._is_it = is_it
        self._modules = modules
        self.words: set[str] = set()
        self._waiting: list[str] = []
        self._found: dict[Module, dict[ast.expr, None]] = {module: {} for module in modules}
        for module, place in places:
            if module in self._found:
                self._climb(module, place)
        for word in words:
            self._reach(word)
        while self._waiting:
            word = self._waiting.pop()
            for module in self._modules:
                self._follow(module, word)

    def expressions(self, module: Module) -> list[ast.expr]:
        """The names, attributes, calls and subscripts to look at, by place."""
        return sorted(self._found[module], key=_place)

    def _reach(self, word: str) -> None:
        if word and word not in self.words:
            self.words.add(word)
            self._waiting.append(word)

    def _follow(self, module: Module, word: str) -> None:
        mentions = find_mentions(module)
        for node in (*mentions.names.get(word, ()), *mentions.attributes.get(word, ())):
            self._climb(module, node)
        for other in mentions.renamed.get(word, ()):
            self._reach(other)
        if _CALLED in self.words:
            for name in sorted(self.words) if word == _CALLED else (word,):
                for cls in mentions.classes.get(name, ()):
                    self._instances(module, cls)

    def _instances(self, module: Module, cls: ast.ClassDef) -> None:
        """In a class whose instances are called so, the first name of a method is the value."""
        names = find_mentions(module).names
        for method in cls.body:
            if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef):
                for first in parameters(method)[:1]:
                    for name in names.get(first.arg, ()):
                        if method.lineno <= name.lineno <= (method.end_lineno or 0):
                            self._climb(module, name)

    def _climb(self, module: Module, node: ast.AST) -> None:
        """An expression with what it is a part of, as far as that is known to be something."""
        found = self._found[module]
        child = node
        while True:
            if isinstance(child, _LOOKED_AT):
                if child in found:
                    return
                found[child] = None
            if isinstance(child, _LOOKED_AT):
                if not any(map(self._leads_on, self._evaluator.values(module, child))):
                    return
            parent = module.parent(child)
            if parent is None:
                return
            for word in _put(module, parent, child):
                self._reach(word)
            if isinstance(parent, ast.stmt):
                return
            child = parent

    def _leads_on(self, value: Value) -> bool:
        """Whether a value is the one that is looked for, holds it, or makes it when called."""
        match value:
            case Function(node=node) | Class(node=node) | Bound(func=Function(node=node)):
                return getattr(node, "name", None) in self.words or self._is_it(value)
            case Container():
                return True
            case Partial(func=inner) | Wrapped(func=inner):
                return self._leads_on(inner)
            case Applied(target=inner) if inner is not None and not self._is_it(value):
                return self._leads_on(inner)
            case Bound(receiver=receiver) if self._is_it(receiver):
                return True  # `model.apply`
        return self._is_it(value)


def _put(module: Module, parent: ast.AST, child: ast.AST) -> Iterator[str]:
    """The words under which a part of `parent` can be reached, because it stands there."""
    match parent:
        case ast.Assign(targets=targets):
            for target in targets:
                yield from _targets(target)
        case ast.AnnAssign(target=target) | ast.AugAssign(target=target):
            yield from _targets(target)
        case ast.NamedExpr(target=target) | ast.comprehension(target=target):
            yield from _targets(target)
        case ast.For(target=target) | ast.AsyncFor(target=target):
            yield from _targets(target)
        case ast.withitem(optional_vars=ast.expr() as target):
            yield from _targets(target)
        case ast.Return() | ast.Yield() | ast.YieldFrom():
            yield from _makers(module, parent)
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            yield parent.name
        case ast.arg(arg=name):
            yield name
        case ast.arguments():
            for parameter in (*parent.posonlyargs, *parent.args, *parent.kwonlyargs):
                yield parameter.arg
        case ast.Call(func=ast.Attribute(value=owner, attr=("append" | "insert" | "extend"))):
            yield from _targets(owner)


def _makers(module: Module, node: ast.AST) -> Iterator[str]:
    """What gives what a function returns: its name; its class for `__call__` and the like."""
    for around in module.ancestors(node):
        if isinstance(around, FunctionNode):
            name = getattr(around, "name", "")
            yield name
            cls = module.enclosing_class(around)
            if cls is not None and name.startswith("__"):
                yield cls.name
            return


def _targets(target: ast.expr) -> Iterator[str]:
    match target:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            yield name
        case ast.Subscript(value=inner) | ast.Starred(value=inner):
            yield from _targets(inner)
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            for part in parts:
                yield from _targets(part)


def _place(node: ast.expr) -> tuple[int, int, int, int]:
    return node.lineno, node.col_offset, -(node.end_lineno or 0), -(node.end_col_offset or 0)
