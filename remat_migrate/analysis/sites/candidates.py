"""The functions and classes that a parameter or a field may hold.

A decorator factory checkpoints what it decorates, a registry what is registered, a Flax module the
class in one of its fields. The functions are found where they are passed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..names.module import Module, Place
from ..names.scopes import FunctionNode
from ..project import Project
from ..values.callees import targets_of, underlying
from ..values.classes import class_annotations
from ..values.evaluator import class_chain
from ..values.values import Class, Constant, Function, Instance, Parameter, Value
from .calls import passed_for

_MAX_DEPTH = 6


def candidates(
    project: Project, module: Module, node: ast.expr
) -> tuple[list[Value], tuple[Module, ast.expr | FunctionNode] | None]:
    """Return the functions and classes that `node` may hold, and a place that passes something
    unknown.

    Parameters are resolved to the arguments of the project's calls, fields to their defaults and to
    the arguments of constructor calls. If there are no values, nothing in the project passes any.
    """
    resolver = _Resolver(project)
    resolver.add(module, node, _MAX_DEPTH)
    return list(resolver.values), resolver.unknown


class _Resolver:
    """Follows parameters and fields to the values that are passed for them.

    Attributes:
        values: what was found, none of it a parameter.
        unknown: a place where something unknown is passed.
    """

    def __init__(self, project: Project) -> None:
        self.project = project
        self.values: dict[Value, None] = {}
        self.unknown: tuple[Module, ast.expr | FunctionNode] | None = None
        self._seen: set[tuple[ast.AST, str]] = set()

    def add(self, module: Module, node: ast.expr, depth: int) -> None:
        """Add what an expression may hold."""
        values = self.project.values(module, node)
        fields = list(self._fields(module, node))
        if depth <= 0 or not (values or fields):
            self._note_unknown(module, node)
            return
        for value in values:
            if isinstance(value, Parameter):
                self._add_parameter(value, module, node, depth)
            elif any(targets_of(self.project.evaluator, value)):
                self.values[value] = None
            elif value != Constant(None):  # the default of an optional argument
                self._note_unknown(module, node)
        for cls, name in fields:
            self._add_field(cls, name, depth)

    def _note_unknown(self, module: Module, node: ast.expr | FunctionNode) -> None:
        self.unknown = self.unknown or (module, node)

    def _is_new(self, holder: ast.AST, name: str) -> bool:
        new = (holder, name) not in self._seen
        self._seen.add((holder, name))
        return new

    def _add_parameter(
        self, parameter: Parameter, module: Module, read: ast.expr, depth: int
    ) -> None:
        if not self._is_new(parameter.function, parameter.name):
            return
        passed = passed_for(self.project, parameter)
        for owner, node in passed.places:
            self.add(owner, node, depth - 1)
        for owner, definition in passed.definitions:
            if isinstance(definition, ast.ClassDef):
                self.values[Class(owner, definition)] = None
            else:
                self.values[Function(owner, definition)] = None
        if passed.unknown is not None:
            self._note_unknown(*passed.unknown)
        elif not passed.places and not passed.definitions:
            self._note_unknown(module, read)

    def _fields(self, module: Module, node: ast.expr) -> Iterator[tuple[Class, str]]:
        """Return the annotated field that `node` reads: `self.block_cls` of a Flax module."""
        if not isinstance(node, ast.Attribute):
            return
        for value in self.project.values(module, node.value):
            if isinstance(value, Instance) and isinstance(value.cls, Class):
                for owner in class_chain(self.project.evaluator, value.cls):
                    if isinstance(owner, Class) and node.attr in class_annotations(owner.node):
                        yield owner, node.attr
                        break

    def _add_field(self, cls: Class, name: str, depth: int) -> None:
        if self._is_new(cls.node, name):
            for module, node in (
                *self._defaults(cls, name),
                *self._constructor_arguments(cls, name),
            ):
                self.add(module, node, depth - 1)

    def _family(self, cls: Class) -> list[Class]:
        return [cls, *self.project.evaluator.subclasses.get(cls.node, ())]

    def _defaults(self, cls: Class, name: str) -> Iterator[Place]:
        """Yield the values of a field in the bodies of a class and its subclasses."""
        for holder in self._family(cls):
            for statement in holder.node.body:
                match statement:
                    case (
                        ast.AnnAssign(target=ast.Name(id=field), value=ast.expr() as default)
                        | ast.Assign(targets=[ast.Name(id=field)], value=default)
                    ) if field == name:
                        yield holder.module, default

    def _constructor_arguments(self, cls: Class, name: str) -> Iterator[Place]:
        """Yield what calls pass for a field: constructors, and any call with a keyword of that
        name.

        A partial of the class, `clone`, `replace`, and a settings object pass the keyword on.
        """
        family = {c.node: c for c in self._family(cls)}
        mentioning = self.project.mentioning(sorted({name, *(n.name for n in family)}))
        for module in dict.fromkeys([*(c.module for c in family.values()), *mentioning]):
            for node in module.nodes:
                if isinstance(node, ast.Dict):
                    for key, value in zip(node.keys, node.values, strict=True):
                        if isinstance(key, ast.Constant) and key.value == name:
                            yield module, value
                if not isinstance(node, ast.Call):
                    continue
                called = self.project.values(module, node.func)
                callees = {underlying(value) for value in called}
                own = [c for n, c in family.items() if Class(c.module, n) in callees]
                if own and (index := self._field_order(own[0]).index(name)) < len(node.args):
                    yield module, node.args[index]
                elif own or not callees or not all(isinstance(m, Class) for m in callees):
                    yield from ((module, k.value) for k in node.keywords if k.arg == name)

    def _field_order(self, cls: Class) -> list[str]:
        """Return the fields of a dataclass in the order of its constructor."""
        chain = [c for c in class_chain(self.project.evaluator, cls) if isinstance(c, Class)]
        names = [n for c in reversed(chain) for n in class_annotations(c.node)]
        return list(dict.fromkeys(names))
