"""The search for the expressions that may denote a function, or what a site makes."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from ..names.mentions import find_mentions
from ..names.module import Module
from ..names.scopes import Definition, FunctionNode, parameters
from ..values.bind import call_order
from ..values.callees import targets_of
from ..values.containers import elements
from ..values.evaluator import Evaluator, class_attribute, class_chain, returned
from ..values.values import (
    Applied,
    Bound,
    Class,
    Constant,
    Container,
    External,
    Function,
    Instance,
    ModuleValue,
    Parameter,
    Partial,
    Result,
    Value,
    Wrapped,
    layers,
    underlying,
)
from .site import Site

_EXPRESSIONS = ast.Name | ast.Attribute | ast.Call | ast.Subscript
# Displays and comprehensions hold their parts; a string and the result of a test do not.
CONTAINERS = (
    ast.List | ast.Tuple | ast.Set | ast.Dict
    | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
)  # fmt: skip
_WITHOUT_PARTS = ast.JoinedStr | ast.Compare
_CALLED = "__call__"
# With more names, the uses of a function are not known.
MOST_NAMES = 60
# A value with more is looked at in each search.
_MOST_ORIGINS = 8

# A word, and the module if it is a local name of a function there.
_LocalWord = tuple[str, bool]


class Target:
    """A callable whose calls are searched for.

    Attributes:
        module: the module that makes it.
        place: the expression or definition that makes it.
        site: the site, if a site makes it; otherwise it is a function.
        functions: the functions that calling it runs.
        name: the name of the method or function, if it has one.
        overridden: the methods that it overrides, if it is a method.
        passed: the parameters of the project's functions that receive it, with the modules of these
            functions.
    """

    def __init__(self, evaluator: Evaluator, origin: Site | Function) -> None:
        self.evaluator = evaluator
        self.site = origin if isinstance(origin, Site) else None
        self.application = self.site.application if self.site is not None else None
        self.module = origin.module
        self.place = origin.reference if isinstance(origin, Site) else origin.node
        self.passed: dict[tuple[FunctionNode, str], Module] = {}
        self._matched: dict[tuple[Value | None, int], bool] = {}
        self.name = ""
        self.overridden: set[ast.AST] = set()
        if isinstance(origin, Function):
            self.functions = {origin.node}
            self.name = getattr(origin.node, "name", "")
            self.overridden = set(self._overridden())
        else:
            self.functions = {
                t.function.node for v in self._applied(origin) for t in targets_of(evaluator, v)
            }

    def _applied(self, site: Site) -> Iterator[Value]:
        if site.application is None:
            return
        if site.form.startswith("decorator"):
            assert site.subject is not None
            node = site.subject[1]
            if isinstance(node, ast.ClassDef):
                yield Applied(site.module, site.application, Class(site.module, node))
            elif isinstance(node, FunctionNode):
                yield Applied(site.module, site.application, Function(site.module, node))
            return
        yield from self.evaluator.values(site.module, site.application)

    @property
    def definition(self) -> tuple[Module, ast.AST] | None:
        """The definition whose name is bound to it."""
        if self.site is None:
            return self.module, self.place
        subject = self.site.subject
        return subject if subject is not None and isinstance(subject[1], Definition) else None

    def words(self) -> Iterator[tuple[str, Module | None]]:
        """Yield the names known to be bound to it: of definitions and of parameters."""
        if self.definition is not None and isinstance(self.definition[1], Definition):
            module, node = self.definition
            assert isinstance(node, Definition)
            for word, is_local in _defined_words(module, node):
                yield word, module if is_local else None
        for (_, name), module in self.passed.items():
            yield name, module

    def places(self) -> Iterator[tuple[Module, ast.AST]]:
        """Yield the places that make it."""
        if self.application is not None:
            yield self.module, self.application
        if not isinstance(self.place, Definition):
            yield self.module, self.place

    @property
    def origins(self) -> set[ast.AST]:
        """The application, or the functions: one of them made it, unless nothing shows what did."""
        if self.site is None:
            return {*self.functions}
        return set() if self.application is None else {self.application}

    def _overridden(self) -> Iterator[ast.AST]:
        """Yield the methods that it overrides, by whose names it may be called."""
        function = self.place if self.site is None else None
        cls = self.module.enclosing_class(function) if isinstance(function, FunctionNode) else None
        for base in class_chain(self.evaluator, Class(self.module, cls)) if cls is not None else ():
            for statement in base.node.body if isinstance(base, Class) else ():
                if getattr(statement, "name", "") == self.name:
                    yield statement

    @property
    def is_method(self) -> bool:
        """Whether it is a method, which may be called by the name of a method that it overrides."""
        function = self.place if self.site is None else None
        return isinstance(function, FunctionNode) and bool(self.module.enclosing_class(function))

    def matches(self, value: Value | None) -> bool:
        """Return whether calling a value runs it; for a site's function, through the site's
        checkpoint.
        """
        key = value, len(self.passed)
        if key not in self._matched:
            self._matched[key] = self._matches(value)
        return self._matched[key]

    def _matches(self, value: Value | None) -> bool:
        match value:
            case Applied(node=node, target=inner):
                return node is self.application or self.matches(inner)
            case Function(node=node):
                return self.site is None and node in self.functions
            case Class():
                return self._makes(value)
            case Bound(func=inner, receiver=Instance(cls=Class(exact=False))) if (
                getattr(underlying(inner), "node", None) in self.overridden
            ):
                return True  # of an object that may belong to its class
            case Wrapped(func=inner) | Partial(func=inner) | Bound(func=inner):
                return self.matches(inner)
            case Instance(cls=Applied() | Wrapped() | Instance() as inner):
                return self.matches(inner)
            case Instance(cls=Class()) if self.site is not None or self.name == "__call__":
                return any(
                    self.matches(v)
                    for v in self.evaluator.attribute(value, "__call__")
                    if isinstance(v, Bound)
                    and (self.site is None or isinstance(v.func, Applied | Wrapped))
                )
            case Parameter(function=function, name=name):
                return (function, name) in self.passed
        return False

    def _makes(self, cls: Class) -> bool:
        """Return whether a class is called through its `__init__`, or its instances through
        `__call__`.
        """
        if self.site is not None or self.name not in ("__init__", "__call__"):
            return False
        found = class_attribute(self.evaluator, cls, self.name, None)
        return any(self.matches(value) for value in found if not isinstance(value, Class))

    def holds(self, value: Value) -> bool:
        """Return whether a container has it as an element."""
        if not isinstance(value, Container):
            return False
        held = (v for place in elements(value) for v in self.evaluator.values(*place))
        return any(map(self.matches, held))

    def is_like(self, value: Value) -> bool:
        """Return whether a value is called like its function: with the same positions."""
        nodes = {t.function.node for t in targets_of(self.evaluator, value)}
        if not nodes:
            return False
        orders = {call_order(node) for node in self.functions}
        return nodes <= self.functions or (
            len(orders) == 1 and all(call_order(node) in orders for node in nodes)
        )


class NameSearch:
    """The expressions of some modules that may denote the target, found by the words it has.

    A value travels under names: the name it is assigned to, the function that returns it, the loop
    that iterates over it. Only expressions with one of these words are evaluated, which are few,
    and only where the value may have arrived.

    Attributes:
        words: the names under which it can be reached, and the attributes: `.name`.
        exported: those that other modules may see, without the dot; the rest are local names of
            functions.
    """

    def __init__(self, target: Target, modules: Sequence[Module]) -> None:
        self._target = target
        self._evaluator = target.evaluator
        self._defining_nodes: set[ast.AST] = set()
        if target.definition is not None:
            self._defining_nodes.update(_defining(*target.definition))
        self._defining_nodes |= target.overridden
        self._modules: list[Module] = []
        self.words: set[str] = set()
        self.exported: set[str] = set()
        self._waiting: list[tuple[str, Module | None]] = []
        self._known: dict[tuple[str, Module | None], None] = {}
        self._found: dict[Module, dict[ast.expr, bool]] = {}
        self._looking_into: set[Container] = set()
        self.extend(modules)
        for word, within in target.words():
            self._add_word(word, within)
        self._search_waiting()

    def extend(self, modules: Sequence[Module]) -> None:
        """Search further modules."""
        known = list(self._known)
        self._modules += modules
        new: dict[Module, dict[ast.expr, bool]] = {module: {} for module in modules}
        self._found |= new
        for module, place in self._target.places():
            if module in new:
                self._add_expression(module, place)
        for word, within in known:
            for module in modules if within is None else {within} & new.keys():
                self._search_word(module, word)
        self._search_waiting()

    def _search_waiting(self) -> None:
        while self._waiting and not self.is_wide:
            word, within = self._waiting.pop()
            for module in self._modules if within is None else (within,):
                self._search_word(module, word)

    @property
    def is_wide(self) -> bool:
        """Whether it has too many names to search for, such as all that a decorator decorates."""
        return len(self.exported) > MOST_NAMES

    def expressions(self, module: Module) -> list[ast.expr]:
        """Return the names, attributes, calls, and subscripts to look at, by place."""
        return sorted(self._found[module], key=_extent)

    def _add_word(self, word: str, within: Module | None = None) -> None:
        """Follow a word: in all modules, or in the one where it is a local name."""
        name = word.lstrip(".")
        if name and not {(name, None), (word, None), (word, within)} & self._known.keys():
            self._known[word, within] = None
            self.words.add(word)
            if within is None:
                self.exported.add(name)
            self._waiting.append((word, within))

    def _search_word(self, module: Module, word: str) -> None:
        mentions = find_mentions(module)
        for attribute in mentions.attributes.get(word.lstrip("."), ()):
            self._add_expression(module, attribute)
        if word.startswith("."):
            return
        for node in self._names(module, word):
            self._add_expression(module, node)
        for other in mentions.renamed.get(word, ()):
            self._add_word(other)
        if _CALLED in self.words:
            for name in sorted(self.words) if word == _CALLED else (word,):
                for cls in mentions.classes.get(name, ()):
                    self._instances(module, cls)

    def _names(self, module: Module, word: str) -> Iterable[ast.Name]:
        """Return the reads of a name that may denote the value."""
        known = _names_by_origin(self._evaluator, module, word)
        places: dict[ast.Name, int] = {}
        # One name has few origins, and what leads to the value has many nodes.
        near = known.keys() & self._defining_nodes
        for origin in (None, *self._target.origins, *near):
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
            if isinstance(child, _WITHOUT_PARTS):
                return
            if isinstance(child, _EXPRESSIONS | CONTAINERS):
                if found.get(child):
                    return
                values = self._evaluator.values(module, child)
                found[child] = any(map(self._may_denote, values)) or is_looped_over(module, child)
                if not found[child]:
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
                return any(map(self._is_target, (value, *returned(self._evaluator, value))))
            case Function(node=node) | Class(node=node) | Bound(func=Function(node=node)):
                return node in self._defining_nodes or self._is_target(value)
            case Container():
                return self._may_hold(value)
            case Partial(func=inner) | Wrapped(func=inner):
                return self._may_denote(inner)
            case Applied(target=inner) if inner is not None and not self._is_target(value):
                return self._may_denote(inner)
            case Bound(receiver=receiver) if self._is_target(receiver):
                return True  # `model.apply`
        return self._is_target(value)

    def _may_hold(self, container: Container) -> bool:
        """Return whether an element may denote the value, or what is one is not known."""
        if container in self._looking_into:
            return False
        self._looking_into.add(container)
        parts = list(elements(container))
        held = (v for place in parts for v in self._evaluator.values(*place))
        may_hold = not parts or any(map(self._may_denote, held))
        self._looking_into.remove(container)
        return may_hold

    def _is_target(self, value: Value) -> bool:
        return self._target.matches(value) or self._target.holds(value)


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
            for origin in (None,) if is_looped_over(module, node) else origins:
                known.setdefault(origin, {})[node] = number
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


def words_of(module: Module, node: ast.AST) -> Iterator[_LocalWord]:
    """Yield the words for a definition, or for the value of an expression from its position."""
    if isinstance(node, Definition):
        yield from _defined_words(module, node)
        return
    child = node
    for parent in module.ancestors(node):
        yield from _names_of(module, _defining_nodes(module, parent))
        yield from _words_of_position(module, parent, child)
        if not isinstance(parent, ast.IfExp | ast.BoolOp | ast.NamedExpr):
            return
        child = parent


def _words_of_position(module: Module, parent: ast.AST, child: ast.AST) -> Iterator[_LocalWord]:
    """Yield the words that a part of `parent` gets from its position, except names of
    definitions.
    """
    match parent:
        case ast.Assign(targets=targets):
            for target in targets:
                yield from _target_words(module, target)
        case (
            ast.AnnAssign(target=target) | ast.AugAssign(target=target)
            | ast.NamedExpr(target=target) | ast.comprehension(target=target)
            | ast.For(target=target) | ast.AsyncFor(target=target)
            | ast.withitem(optional_vars=ast.expr() as target)
        ):  # fmt: skip
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
            yield from _defined_words(module, maker)


def _defined_words(module: Module, node: Definition) -> Iterator[_LocalWord]:
    """Yield the name of a definition; for `__call__` and the like, also that of its class."""
    scope = module.scope_at(node)
    yield node.name, scope.is_function and node.name not in scope.global_names
    if isinstance(scope.node, ast.ClassDef) and node.name.startswith("__"):
        yield from _defined_words(module, scope.node)


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
                yield from _defined_words(module, scope.node)
        case ast.Attribute(attr=name):
            yield f".{name}", False
        case ast.Subscript(value=inner) | ast.Starred(value=inner):
            yield from _target_words(module, inner)
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            for part in parts:
                yield from _target_words(module, part)


def is_looped_over(module: Module, node: ast.expr) -> bool:
    """Return whether a loop iterates over a call, or over one that contains it:
    `enumerate(blocks)`.
    """
    child: ast.AST = node
    while isinstance(parent := module.parent(child), ast.Call | ast.Attribute):
        child = parent
    loops = isinstance(parent, ast.For | ast.AsyncFor | ast.comprehension)
    return loops and getattr(parent, "iter", None) is child


def _extent(node: ast.expr) -> tuple[int, int, int, int]:
    return node.lineno, node.col_offset, -(node.end_lineno or 0), -(node.end_col_offset or 0)
