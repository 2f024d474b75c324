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
from ..values.bind import bind_call, first_parameter
from ..values.callees import targets_of, underlying
from ..values.classes import class_annotations, class_chain
from ..values.name_search import NameSearch, defined
from ..values.values import Bound, Class, Constant, Function, Instance, Parameter, Value

_MAX_DEPTH = 6


def candidates(
    project: Project, module: Module, node: ast.expr
) -> tuple[list[Value], Place | None]:
    """Return the functions and classes that `node` may hold, and a place that passes something
    unknown.

    Parameters are resolved to the arguments of the project's calls, fields to their defaults and to
    the arguments of constructor calls. If there are no values, nothing in the project passes any.
    """
    resolver = _Resolver(project)
    resolver.add(module, node, _MAX_DEPTH)
    return list(resolver.values), resolver.unknown


def references_of(
    project: Project, module: Module, function: FunctionNode
) -> Iterator[tuple[Module, ast.expr, int]]:
    """Yield the expressions that evaluate to a function, and how many parameters are bound."""
    return _Resolver(project).references(module, function)


class _Resolver:
    """Follows parameters and fields to the values that are passed for them.

    Attributes:
        values: what was found, none of it a parameter.
        unknown: a place where something unknown is passed.
    """

    def __init__(self, project: Project) -> None:
        self.project = project
        self.values: dict[Value, None] = {}
        self.unknown: Place | None = None
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

    def _note_unknown(self, module: Module, node: ast.expr) -> None:
        self.unknown = self.unknown or (module, node)

    def _is_new(self, holder: ast.AST, name: str) -> bool:
        new = (holder, name) not in self._seen
        self._seen.add((holder, name))
        return new

    def _add_parameter(
        self, parameter: Parameter, module: Module, read: ast.expr, depth: int
    ) -> None:
        function = parameter.function
        if not self._is_new(function, parameter.name):
            return
        first = first_parameter(function)
        passed = False
        for owner, node, bound in self.references(parameter.module, function):
            parent = owner.parent(node)
            match parent:
                case ast.Call(func=func) if func is node:
                    given = bind_call(function, parent.args, parent.keywords, bound)
                    if given.unclear:
                        self._note_unknown(owner, parent)
                    if parameter.name in given.by_name:
                        passed = True
                        self.add(owner, given.by_name[parameter.name], depth - 1)
                case ast.FunctionDef() | ast.ClassDef() if node in parent.decorator_list:
                    passed = True
                    # What another decorator below returns for the definition is not followed.
                    is_first = first is not None and first.arg == parameter.name
                    if not is_first or parent.decorator_list[-1] is not node:
                        self._note_unknown(owner, node)
                    if isinstance(parent, ast.ClassDef):
                        self.values[Class(owner, parent)] = None
                    else:
                        self.values[Function(owner, parent)] = None
                case ast.Return() | ast.Assign() | ast.AnnAssign() | ast.NamedExpr():
                    pass  # the name that it gets is followed
                case ast.Attribute():
                    pass
                case _:
                    self._note_unknown(owner, node)
        if not passed:
            self._note_unknown(module, read)

    def references(
        self, own: Module, function: FunctionNode
    ) -> Iterator[tuple[Module, ast.expr, int]]:
        """Yield the expressions that evaluate to a function, and how many parameters are bound."""
        evaluator = self.project.evaluator
        named = () if isinstance(function, ast.Lambda) else defined(own, function)
        words = [(word, own if local else None) for word, local in named]
        modules = {own: None}
        search = NameSearch(evaluator, [own], words, [(own, function)])
        while True:
            exported = sorted(word for word in search.exported if not word.startswith("__"))
            more = [m for m in self.project.mentioning(exported) if m not in modules]
            if not more:
                break
            modules |= dict.fromkeys(more)
            search.extend(more)
        for module in modules:
            for node in search.expressions(module):
                for value in evaluator.values(module, node):
                    bound = self._bound_parameters(value, function)
                    if bound is not None:
                        yield module, node, bound
                        break

    def _bound_parameters(self, value: Value, function: FunctionNode) -> int | None:
        """Return how many parameters of `function` are bound in `value`; None if it is another
        function.
        """
        match value:
            case Function(node=node) if node is function:
                return 0
            case Bound(func=Function(node=node)) if node is function:
                return 1
            case Class() if getattr(function, "name", "") == "__init__":
                for base in class_chain(self.project.evaluator, value):
                    if isinstance(base, Class) and function in base.node.body:
                        return 1
        return None

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
