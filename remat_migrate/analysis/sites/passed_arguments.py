"""What the project's calls pass for a parameter of one of its functions."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from ..names.mentions import find_mentions
from ..names.module import Module, Place
from ..names.scopes import FunctionNode
from ..project import Project
from ..values.bind import default_of, first_parameter
from ..values.classes import class_annotations, self_assignments
from ..values.evaluator import Evaluator, class_attribute
from ..values.values import (
    Bound,
    Class,
    Constant,
    Function,
    Parameter,
    Value,
    Values,
    union,
)
from .calls import passed_for, uses_of

# How many calls a value is followed back through.
_DEPTH = 4


@dataclass(eq=False, slots=True)
class PassedArguments:
    """The arguments of the calls in a project's modules, found on first use."""

    project: Project

    def resolved(self, value: Value, depth: int = 0) -> Values:
        """Return a value; for a parameter, what callers pass."""
        if not isinstance(value, Parameter) or depth > _DEPTH:
            return frozenset((value,))
        found = union(
            self.resolved(inner, depth + 1)
            for module, expr in passed_for(self.project, value, loaded=True).places
            for inner in self.project.values(module, expr)
        )
        return found or frozenset((value,))

    def numbers(
        self, module: Module, node: ast.expr | None, via: frozenset[ast.Call] = frozenset()
    ) -> set[int] | None:
        """Return the integers that an expression may be, as `constants` does."""
        values = [constant.value for constant in self.constants(module, node, via) or ()]
        numbers = {v for v in values if isinstance(v, int) and not isinstance(v, bool)}
        return numbers if values and len(numbers) == len(values) else None

    def constants(
        self,
        module: Module,
        node: ast.expr | None,
        via: frozenset[ast.Call] = frozenset(),
        depth: int = 0,
    ) -> set[Constant] | None:
        """Return the constants that an expression may be in this project; None if more is possible.

        If one of the calls of a function is in `via`, only those in `via` count.
        """
        match node:
            case ast.Constant(value=value):
                return {Constant(value)}
            case _ if node is None or module.parent(node) is None:
                return None  # of another module, through a partial
            case ast.IfExp(body=one, orelse=other):
                return self._all(((module, one), (module, other)), via, depth)
            case ast.Name() if depth <= _DEPTH:
                return self._named(module, node, via, depth)
            case ast.Attribute(value=ast.Name(id=own), attr=name) if depth <= _DEPTH:
                return self._stored(module, node, own, name, via, depth)
        return None

    def _all(
        self, found: tuple[Place, ...], via: frozenset[ast.Call], depth: int
    ) -> set[Constant] | None:
        constants: set[Constant] = set()
        for module, node in found:
            more = self.constants(module, node, via, depth + 1)
            if more is None:
                return None
            constants |= more
        return constants if found else None

    def _named(
        self, module: Module, node: ast.Name, via: frozenset[ast.Call], depth: int
    ) -> set[Constant] | None:
        sources: list[Place] = []
        for binding in module.reaching(node):
            if binding.kind == "assign" and binding.value is not None and not binding.path:
                sources.append((module, binding.value))
            elif binding.kind == "parameter" and isinstance(binding.node, ast.arg):
                function = binding.scope.node
                assert isinstance(function, FunctionNode)
                given = self._received(module, function, binding.node, via)
                if given is None:
                    return None
                sources += given
            else:
                return None
        return self._all(tuple(sources), via, depth)

    def _received(
        self,
        module: Module,
        function: FunctionNode,
        parameter: ast.arg,
        via: frozenset[ast.Call],
    ) -> list[Place] | None:
        """Return what a parameter receives, by default or from calls; None if a call cannot be
        bound.
        """
        calls = uses_of(self.project, Function(module, function), loaded=True).passing
        calls = [call for call in calls if call.node in via] or calls
        found: list[Place] = []
        for call in calls:
            bound = call.bound_to(function)
            if bound.unclear:
                return None
            value = bound.by_name.get(parameter.arg)
            if value is not None:
                found.append((call.module_of(value), value))
        default = default_of(function, parameter)
        if default is not None and not 0 < len(calls) == len(found):
            found.append((module, default))
        return found

    def _stored(
        self,
        module: Module,
        node: ast.Attribute,
        own: str,
        name: str,
        via: frozenset[ast.Call],
        depth: int,
    ) -> set[Constant] | None:
        """Return what an attribute of `self` may be: assigned by methods, or passed to
        constructors.
        """
        function = module.enclosing_function(node)
        while function is not None and module.enclosing_class(function) is None:
            function = module.enclosing_function(function)
        cls = module.enclosing_class(function) if function is not None else None
        if function is None or cls is None:
            return None
        first = first_parameter(function)
        if first is None or first.arg != own:
            return None
        sources = [(module, value) for value in self_assignments(cls).get(name, ())]
        if not sources and name in class_annotations(cls):
            for owner, call in self._constructions(module, cls):
                if _spreads(call):
                    return None
                sources += [(owner, k.value) for k in call.keywords if k.arg == name]
            sources += [
                (module, statement.value)
                for statement in cls.body
                if isinstance(statement, ast.AnnAssign)
                and isinstance(statement.target, ast.Name)
                and statement.target.id == name
                and statement.value is not None
            ]
        return self._all(tuple(sources), via, depth)

    def _constructions(
        self, module: Module, cls: ast.ClassDef
    ) -> Iterator[tuple[Module, ast.Call]]:
        for owner in dict.fromkeys((module, *self.project.modules.values())):
            for node in find_mentions(owner).reads(cls.name):
                call = owner.parent(node)
                if isinstance(call, ast.Call) and call.func is node:
                    yield owner, call


def apply_functions(project: Project) -> Values:
    """Return what a project passes for `apply_fn=`; nothing if that is not always known."""
    arguments, found = project.once(PassedArguments), set[Value]()
    for module in project.mentioning(["apply_fn"]):
        for node in module.nodes:
            if not isinstance(node, ast.keyword) or node.arg != "apply_fn":
                continue
            values = project.values(module, node.value)
            if not values and isinstance(node.value, ast.Attribute):
                # `model.apply` of a parameter
                owners = union(map(arguments.resolved, project.values(module, node.value.value)))
                attr = node.value.attr
                values = union(project.evaluator.attribute(owner, attr) for owner in owners)
            if not values:
                return frozenset()
            found |= values
    return frozenset(found)


def called_function(evaluator: Evaluator, value: Value) -> Iterator[tuple[Function, int]]:
    """Yield the project's function that calling a value runs first, and how many parameters are
    bound.
    """
    match value:
        case Function():
            yield value, 0
        case Bound(func=Function() as function):
            yield function, 1
        case Class():
            for found in class_attribute(evaluator, value, "__init__", None):
                if isinstance(found, Function):
                    yield found, 1


def _spreads(call: ast.Call) -> bool:
    return any(isinstance(arg, ast.Starred) for arg in call.args) or any(
        keyword.arg is None for keyword in call.keywords
    )
