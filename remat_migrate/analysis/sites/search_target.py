"""The target of a search for calls: what a site makes, or a function of the project."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..names.module import Module
from ..names.scopes import Definition, FunctionNode
from ..values.bind import call_order
from ..values.callees import targets_of
from ..values.classes import class_attribute
from ..values.evaluator import Evaluator
from ..values.name_search import defined, held_by_origin
from ..values.values import (
    Applied,
    Bound,
    Class,
    Container,
    Function,
    Instance,
    Parameter,
    Partial,
    Value,
    Wrapped,
)
from .site import Site


class SearchTarget:
    """A callable whose calls are searched for.

    Attributes:
        module: the module that makes it.
        place: the expression or definition that makes it.
        site: the site, if a site makes it; otherwise it is a function.
        functions: the functions that calling it runs.
        name: the name of the method or function, if it has one.
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
        if isinstance(origin, Function):
            self.functions = {origin.node}
            self.name = getattr(origin.node, "name", "")
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
            for word, is_local in defined(module, node):
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
        held = held_by_origin(self.evaluator, value)
        return any(self.matches(v) for one in (None, *self.origins) for v in held.get(one, ()))

    def is_like(self, value: Value) -> bool:
        """Return whether a value is called like its function: with the same positions."""
        nodes = {t.function.node for t in targets_of(self.evaluator, value)}
        if not nodes:
            return False
        orders = {call_order(node) for node in self.functions}
        return nodes <= self.functions or (
            len(orders) == 1 and all(call_order(node) in orders for node in nodes)
        )
