"""The possible values of a string expression: constants, f-strings, configuration, arguments."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ..names.mentions import find_mentions
from ..names.module import Module
from ..names.scopes import Binding, FunctionNode
from ..project import Project
from ..values.bind import bind_call, default_of, positional_parameters
from ..values.containers import elements
from ..values.values import Class, Constant, Container, ModuleValue

_MOST = 64
# Limits on the expressions examined per question and the length of a string: names that are
# concatenated from names grow exponentially.
_MOST_STEPS = 5_000
_LONGEST = 10_000
_ANY = ".*"
Place = tuple[Module, ast.Constant]


@dataclass(frozen=True, slots=True)
class Text:
    """The possible values of a string expression.

    Attributes:
        exact: the known values.
        patterns: regular expressions for partly known values: `layer_.*` for `f"layer_{i}"`.
        open: whether it may have other values.
        places: the literals of exact values, if each is a single literal.
    """

    exact: frozenset[str] = frozenset()
    patterns: frozenset[str] = frozenset()
    open: bool = False
    places: tuple[Place, ...] = field(default=(), compare=False)

    @property
    def only(self) -> str | None:
        """The value, if there is only one."""
        if len(self.exact) == 1 and not self.patterns and not self.open:
            return next(iter(self.exact))
        return None

    def matches(self, name: str) -> bool:
        """Return whether it may be `name`, as far as is known."""
        return name in self.exact or any(re.fullmatch(p, name) for p in self.patterns)

    def __or__(self, other: Text) -> Text:
        return Text(
            self.exact | other.exact,
            self.patterns | other.patterns,
            self.open or other.open,
            self.places + other.places,
        )


NONE, OPEN = Text(), Text(open=True)


def union(texts: Iterable[Text]) -> Text:
    """Return the union of several."""
    found = NONE
    for text in texts:
        found |= text
    return found


def sole_literal(text: Text, name: str) -> tuple[Module, ast.Constant] | None:
    """Return the only literal that holds a string, if it is plain: no prefix, escape, or
    concatenation.
    """
    places = {node: module for module, node in text.places if node.value == name}
    if len(places) != 1:
        return None
    [(node, module)] = places.items()
    segment = module.segment(node)
    if len(segment) != len(name) + 2 or segment[1:-1] != name:
        return None  # a prefix, an escape, or several quotes
    return module, node


class Texts:
    """Resolves expressions of a project's modules to strings."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._running: set[ast.AST] = set()
        self._steps = 0

    def of(self, module: Module, node: ast.expr) -> Text:
        """Return the possible values of an expression."""
        self._steps = self._steps + 1 if self._running else 0
        if node in self._running or len(self._running) > _MOST or self._steps > _MOST_STEPS:
            return OPEN
        self._running.add(node)
        try:
            found = self._of(module, node)
        finally:
            self._running.discard(node)
        return found if len(found.exact) + len(found.patterns) <= _MOST else OPEN

    def _of(self, module: Module, node: ast.expr) -> Text:
        match node:
            case ast.Constant(value=str(text)):
                return Text(frozenset((text,)), places=((module, node),))
            case ast.Constant(value=int() | float() as number):
                return Text(frozenset((str(number),)))
            case ast.Constant():
                return NONE  # None names nothing
            case ast.JoinedStr(values=parts):
                return _joined([self._part(module, part) for part in parts])
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return _joined([self.of(module, left), self.of(module, right)])
            case ast.IfExp(body=one, orelse=other):
                return self.of(module, one) | self.of(module, other)
            case ast.BoolOp(values=values):
                return union(self.of(module, value) for value in values)
            case ast.NamedExpr(value=value):
                return self.of(module, value)
            case ast.Name():
                return self._name(module, node)
            case ast.Attribute():
                return self._attribute(module, node)
            case ast.Subscript():
                return self._constants(module, node) | OPEN
        return OPEN

    def _part(self, module: Module, part: ast.expr) -> Text:
        if not isinstance(part, ast.FormattedValue):
            return self.of(module, part)
        if part.format_spec is not None or part.conversion not in (-1, ord("s")):
            return OPEN
        return self.of(module, part.value)

    def _name(self, module: Module, node: ast.Name) -> Text:
        bindings = module.reaching(node)
        if not bindings:
            return self._constants(module, node)
        return union(self._binding(module, node, binding) for binding in bindings)

    def _binding(self, module: Module, node: ast.Name, binding: Binding) -> Text:
        match binding.kind:
            case "assign" if binding.value is not None and not binding.path:
                return self.of(module, binding.value)
            case "parameter":
                assert isinstance(binding.node, ast.arg)
                assert isinstance(binding.scope.node, FunctionNode)
                return self._parameter(module, binding.scope.node, binding.node)
            case "import":
                found = self._constants(module, node)
                return found if found.exact else OPEN
            case "element" if binding.value is not None and not binding.path:
                return self._element(module, binding.value)
        return OPEN

    def _element(self, module: Module, iterable: ast.expr) -> Text:
        """Return the possible elements of a literal that a loop iterates over."""
        found = NONE
        values = self._project.values(module, iterable)
        for value in values:
            if not isinstance(value, Container) or isinstance(value.node, ast.Dict | ast.Call):
                return OPEN
            found |= union(self.of(owner, part) for owner, part in elements(value))
        return found if values else OPEN

    def _attribute(self, module: Module, node: ast.Attribute) -> Text:
        values = self._project.values(module, node.value)
        if node.attr == "value" and values and all(isinstance(v, Constant) for v in values):
            return self._constants(module, node.value)  # of an enumeration
        found = self._constants(module, node)
        # A field of an instance can be assigned anywhere; an attribute of a class or module is
        # fixed.
        fixed = bool(values) and all(isinstance(v, Class | ModuleValue) for v in values)
        return found if found.exact and fixed else found | OPEN

    def _constants(self, module: Module, node: ast.expr) -> Text:
        values = self._project.values(module, node)
        texts = {v.value for v in values if isinstance(v, Constant) and isinstance(v.value, str)}
        other = any(
            not isinstance(v, Constant) or not isinstance(v.value, str | None) for v in values
        )
        return Text(frozenset(texts), open=other or not values)

    def _parameter(self, module: Module, function: FunctionNode, parameter: ast.arg) -> Text:
        """Return what the project's calls of a function pass for a parameter, including its
        default.
        """
        default = default_of(function, parameter)
        if isinstance(function, ast.Lambda) or parameter in (
            function.args.vararg,
            function.args.kwarg,
        ):
            return OPEN
        found = self.of(module, default) if default is not None else NONE
        for owner, reference in _references(self._project, function.name):
            call = owner.parent(reference)
            if not isinstance(call, ast.Call) or call.func is not reference:
                return found | OPEN
            found |= self._passed(module, owner, call, function, parameter)
            if found.open:
                return found
        return found

    def _passed(
        self,
        module: Module,
        owner: Module,
        call: ast.Call,
        function: FunctionNode,
        parameter: ast.arg,
    ) -> Text:
        method = module.enclosing_class(function) is not None
        skip = 1 if method and isinstance(call.func, ast.Attribute) else 0
        bound = bind_call(function, call.args, call.keywords, skip)
        value = bound.by_name.get(parameter.arg)
        if value is not None:
            return self.of(owner, value)
        needed = default_of(function, parameter) is None
        if bound.unclear or (needed and parameter in positional_parameters(function)):
            return OPEN
        return NONE


def _joined(parts: list[Text]) -> Text:
    """Concatenate texts; an unknown part matches anything."""
    made: list[tuple[str, bool]] = [("", True)]
    for part in parts:
        choices = [(re.escape(text), True) for text in part.exact]
        choices += [(pattern, False) for pattern in part.patterns]
        if part.open or not choices:
            choices.append((_ANY, False))
        made = [(one + two, a and b) for one, a in made for two, b in choices]
        if len(made) > _MOST or any(len(text) > _LONGEST for text, _ in made):
            return OPEN
    exact = frozenset(re.sub(r"\\(.)", r"\1", text) for text, whole in made if whole)
    patterns = {text for text, whole in made if not whole}
    bare = any(not text.replace(_ANY, "") for text in patterns)
    return Text(exact, frozenset(p for p in patterns if p.replace(_ANY, "")), open=bare)


def _references(project: Project, name: str) -> Iterator[tuple[Module, ast.expr]]:
    """Yield the reads of names and attributes called `name` in the project."""
    for module in project.mentioning((name,)):
        mentions = find_mentions(module)
        for node in (*mentions.names.get(name, ()), *mentions.attributes.get(name, ())):
            yield module, node
