"""What a parameter of one of the project's functions may be, by what the calls of it pass."""

from __future__ import annotations

import ast

from ..names.expected_failures import in_test
from ..names.module import Module, Place
from ..names.scopes import Definition, FunctionNode
from ..project import Project
from ..values.callees import targets_of
from ..values.declarations import class_annotations, self_assignments
from ..values.evaluator import declarations_of
from ..values.values import (
    Class,
    Constant,
    Function,
    Instance,
    Parameter,
    Value,
    Values,
    union,
)
from .calls import passed_for

# How many calls a value is followed back through.
_DEPTH = 4
# A parameter that more calls pass may be anything.
_MOST_PLACES = 16


def resolved(project: Project, value: Value) -> Values:
    """Return a value; for a parameter, what callers pass."""
    return project.once(_resolved, value, 0)


def _resolved(project: Project, value: Value, depth: int) -> Values:
    own = frozenset((value,))
    if not isinstance(value, Parameter) or depth > _DEPTH:
        return own
    places = passed_for(project, value, loaded=True).places
    passed = [project.values(*place) for place in (places if len(places) <= _MOST_PLACES else ())]
    return union(project.once(_resolved, each, depth + 1) for each in union(passed)) or own


def numbers(project: Project, module: Module, node: ast.expr | None) -> set[int] | None:
    """Return the integers that an expression may be, as `constants` does."""
    values = [constant.value for constant in constants(project, module, node) or ()]
    found = {v for v in values if isinstance(v, int) and not isinstance(v, bool)}
    return found if values and len(found) == len(values) else None


def constants(
    project: Project, module: Module, node: ast.expr | None, depth: int = 0
) -> set[Constant] | None:
    """Return the constants that an expression may be in this project; None if more is possible."""
    places: list[Place] | None = None
    match node:
        case ast.Constant(value=value):
            return {Constant(value)}
        case _ if node is None or depth > _DEPTH or module.parent(node) is None:
            return None  # without a parent, it is of another module, through a partial
        case ast.IfExp(body=one, orelse=other):
            places = [(module, one), (module, other)]
        case ast.Name():
            places = _named(project, module, node)
        case ast.Attribute():
            places = _stored(project, module, node)
    found = [constants(project, *place, depth + 1) for place in places or ()]
    known = [one for one in found if one is not None]
    return set().union(*known) if found and len(known) == len(found) else None


def _named(project: Project, module: Module, node: ast.Name) -> list[Place] | None:
    found: list[Place] = []
    for binding in module.reaching(node):
        if binding.kind == "assign" and binding.value is not None and not binding.path:
            found.append((module, binding.value))
        elif binding.kind == "parameter" and isinstance(binding.node, ast.arg):
            function = binding.scope.node
            assert isinstance(function, FunctionNode)
            passed = passed_for(project, Parameter(module, function, binding.name), loaded=True)
            if passed.unclear:
                return None
            outside_tests = [place for place in passed.places if not in_test(*place)]
            found += outside_tests
            if passed.default is not None and (passed.defaulted or not outside_tests):
                found.append(passed.default)
        else:
            return None
    return found


def _stored(project: Project, module: Module, node: ast.Attribute) -> list[Place] | None:
    """Return what the methods of a class assign to an attribute of its instances."""
    found: list[Place] = []
    for value in project.values(module, node.value):
        if not isinstance(value, Instance) or not isinstance(value.cls, Class):
            return None
        stored = self_assignments(value.cls.node).get(node.attr, ())
        if not stored or node.attr in class_annotations(value.cls.node):
            return None
        found += ((value.cls.module, expression) for expression in stored)
    return found


def attributes_of(project: Project, module: Module, node: ast.Attribute) -> Values:
    """Return what an attribute denotes, of a parameter by what callers pass."""
    owners = union(resolved(project, value) for value in project.values(module, node.value))
    return union(project.evaluator.attribute(owner, node.attr) for owner in owners)


def apply_functions(project: Project) -> Values:
    """Return what a project passes for `apply_fn=`; nothing if that is not always known."""
    found: set[Value] = set()
    for module in project.mentioning(["apply_fn"]):
        for node in module.nodes:
            if not isinstance(node, ast.keyword) or node.arg != "apply_fn":
                continue
            values = project.values(module, node.value)
            if not values and isinstance(node.value, ast.Attribute):
                # `model.apply` of a parameter
                values = attributes_of(project, module, node.value)
            if not values:
                return frozenset()
            found |= values
    return frozenset(found)


def candidates(
    project: Project, module: Module, node: ast.expr
) -> tuple[list[Value], tuple[Module, ast.expr | FunctionNode] | None]:
    """Return the functions and classes that `node` may hold, and a place that passes something
    unknown.

    A decorator factory checkpoints what it decorates, a registry what is registered: parameters
    stand for what callers pass, everywhere in the project. If there are no values, nothing in the
    project passes any.
    """
    found: dict[Value, None] = {}
    unknown: list[tuple[Module, ast.expr | FunctionNode]] = []
    seen: set[Parameter] = set()
    waiting: list[Place] = [(module, node)]
    while waiting:
        place = waiting.pop(0)
        values = project.values(*place)
        if not values or is_field(project, *place):
            unknown.append(place)
        for value in values:
            if isinstance(value, Parameter) and value not in seen:
                seen.add(value)
                passed = passed_for(project, value)
                waiting += passed.places
                found |= {_defined(*definition): None for definition in passed.definitions}
                if passed.unknown is not None:
                    unknown.append(passed.unknown)
                elif not passed.places and not passed.definitions:
                    unknown.append(place)
            elif any(targets_of(project.evaluator, value)):
                found[value] = None
            elif not isinstance(value, Parameter) and value != Constant(None):
                unknown.append(place)  # None is the default of an optional argument
    return list(found), next(iter(unknown), None)


def is_field(project: Project, module: Module, node: ast.expr) -> bool:
    """Return whether an expression is a field of an object, set by callers: `self.block_cls`."""
    return any(True for _ in declarations_of(project.evaluator, module, node))


def _defined(module: Module, node: Definition) -> Value:
    return Class(module, node) if isinstance(node, ast.ClassDef) else Function(module, node)
