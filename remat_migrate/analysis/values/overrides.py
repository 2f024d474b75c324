"""What a method call may run: overrides in subclasses, including those that are not in the project.

`self` may be an instance of any subclass. If the class is known, as in `nn.remat(DropBlock)`, its
own method resolution order decides. If not, every override in the project counts, and classes
outside the project may override methods that the project's classes leave open.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ..names.module import Module
from .callees import class_of
from .declarations import is_decorated
from .evaluator import Evaluator, attribute_in, class_chain
from .values import (
    NOTHING,
    Applied,
    Bound,
    Class,
    Function,
    Instance,
    Partial,
    Value,
    Values,
    Wrapped,
    underlying,
)


@dataclass(frozen=True, slots=True)
class Callees:
    """What an expression may denote if methods may be overridden.

    Attributes:
        values: what is found; abstract methods are left out.
        others: whether classes outside the project may override what is found.
        abstract: whether only an abstract method is found.
    """

    values: Values = NOTHING
    others: bool = False
    abstract: bool = False

    def around(self, wrap: Callable[[Value], Value]) -> Callees:
        """Return the same with something around each value."""
        return replace(self, values=frozenset(map(wrap, self.values)))


class Overrides:
    """Looks methods up in the class of an object.

    `subclasses_of` returns the subclasses of a class; without it, only the class itself counts.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        subclasses_of: Callable[[Class], Sequence[Class]] = lambda cls: (),
    ) -> None:
        self.evaluator = evaluator
        self.subclasses_of = subclasses_of
        self._known: dict[tuple[Value, str], Callees] = {}

    def callees(self, module: Module, node: ast.expr, receiver: Class | None = None) -> Callees:
        """Return what calling an expression may run.

        Args:
            module: the module.
            node: the expression.
            receiver: the class of the first argument of the method around it.
        """
        found = self._values(module, node, receiver)
        called = [self._called(value) for value in found.values]
        return _joined([replace(found, values=NOTHING), *called])

    def _called(self, value: Value) -> Callees:
        """Return a value with `__call__` in place of an instance that may belong to a subclass."""
        match value:
            case Instance(cls=Class(exact=False)):
                return self._attribute_or(value, value, "__call__")
        return _beneath(value, self._called)

    def _values(self, module: Module, node: ast.expr, receiver: Class | None) -> Callees:
        match node:
            case ast.Name():
                bindings = module.reaching(node)
                assigned = [b.value for b in bindings if b.kind == "assign" and not b.path]
                attributes = [v for v in assigned if isinstance(v, ast.Attribute)]
                if bindings and len(attributes) == len(bindings):
                    # `forward = self.forward`
                    return _joined([self._values(module, v, receiver) for v in attributes])
            case ast.Attribute(value=ast.Call(func=ast.Name(id="super")) as call):
                return self._after(module, call, node.attr, receiver)
            case ast.Attribute():
                bases = self._objects(module, node.value, receiver)
                if any(class_of(base) is not None for base in bases):
                    return _joined([self.attribute(base, node.attr) for base in bases])
        return _joined([self._with_overrides(v) for v in self.evaluator.values(module, node)])

    def _objects(self, module: Module, node: ast.expr, receiver: Class | None) -> Values:
        """Return what an expression denotes on which an attribute is looked up."""
        if isinstance(node, ast.Attribute):
            return self._values(module, node, receiver).values
        values = self.evaluator.values(module, node)
        if receiver is not None and isinstance(node, ast.Name) and len(values) == 1:
            # Other parameters than `self` and `cls` denote themselves, too.
            if all(binding.kind == "parameter" for binding in module.reaching(node)):
                return frozenset(_of_class(v, receiver) if class_of(v) else v for v in values)
        return values

    def _with_overrides(self, value: Value) -> Callees:
        """Return a value together with the overrides of the method in it."""
        match value:
            case Bound(func=func, receiver=receiver):
                cls, function = class_of(receiver), underlying(func)
                name = getattr(function.node, "name", "") if isinstance(function, Function) else ""
                if cls is not None and not cls.exact and name:
                    return self._attribute_or(value, receiver, name)
        return _beneath(value, self._with_overrides)

    def _attribute_or(self, value: Value, base: Value, name: str) -> Callees:
        """Return what `base.name` may denote; `value` if nothing is found."""
        found = self.attribute(base, name)
        return found if found.values or found.abstract else Callees(frozenset((value,)))

    def attribute(self, base: Value, name: str) -> Callees:
        """Return what `base.name` may denote."""
        cls = class_of(base)
        if cls is None or cls.exact:
            return Callees(self.evaluator.attribute(base, name))
        key = (base, name)
        if key not in self._known:
            self._known[key] = Callees()
            self._known[key] = self._looked_up(base, cls, name)
        return self._known[key]

    def _looked_up(self, base: Value, cls: Class, name: str) -> Callees:
        own = set(class_chain(self.evaluator, cls))
        found: set[Value] = set()
        abstract = False
        for candidate in (replace(cls, exact=True), *self.subclasses_of(cls)):
            for value in self.evaluator.attribute(_of_class(base, candidate), name):
                function = underlying(value)
                if isinstance(function, Function) and is_abstract(self.evaluator, function):
                    abstract = True
                    continue
                if isinstance(value, Bound):
                    value = replace(value, receiver=_of_class(base, _holder(function, cls, own)))
                found.add(value)
        methods = any(isinstance(underlying(v), Function) for v in found)
        others = (methods or abstract) and _is_open(self.evaluator, cls, name, found)
        return Callees(frozenset(found), others, abstract and not found)

    def _after(self, module: Module, call: ast.Call, name: str, receiver: Class | None) -> Callees:
        """Return what `super().name` may denote: the next in the resolution order of the object's
        class.
        """
        methods = (f for f in module.ancestors(call) if isinstance(f, ast.FunctionDef))
        classes = ((f, cls) for f in methods if (cls := module.enclosing_class(f)) is not None)
        function, node = next(classes, (call, None))
        if node is None or call.args:
            return Callees()
        own = Class(module, node)
        if receiver is None or own not in class_chain(self.evaluator, receiver):
            receiver = replace(own, exact=False)
        bound = None if is_decorated(function, "classmethod") else Instance(receiver)
        found: set[Value] = set()
        for candidate in (receiver, *(() if receiver.exact else self.subclasses_of(receiver))):
            chain = class_chain(self.evaluator, candidate)
            rest = chain[chain.index(own) + 1 :]
            found |= attribute_in(self.evaluator, rest, receiver, name, bound)
        return Callees(frozenset(found))


def _beneath(value: Value, find: Callable[[Value], Callees]) -> Callees:
    """Apply `find` to what a checkpoint, transformation, or partial wraps; keep other values."""
    match value:
        case Applied(target=inner) if inner is not None:
            return find(inner).around(lambda v: replace(value, target=v))
        case Wrapped(func=inner) | Partial(func=inner):
            return find(inner).around(lambda v: replace(value, func=v))
    return Callees(frozenset((value,)))


def is_abstract(evaluator: Evaluator, function: Function) -> bool:
    """Return whether a method only stands for its overrides."""
    node = function.node
    if isinstance(node, ast.Lambda):
        return False
    for decorator in node.decorator_list:
        name = getattr(decorator, "attr", getattr(decorator, "id", ""))
        if name.startswith("abstract"):
            return True
    if function.module.enclosing_class(node) is None:
        return False
    body = node.body
    if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        body = body[1:]  # a docstring, or `...`
    return all(isinstance(s, ast.Pass) or _raises_not_implemented(s) for s in body)


def _raises_not_implemented(statement: ast.stmt) -> bool:
    if not isinstance(statement, ast.Raise):
        return False
    raised = statement.exc.func if isinstance(statement.exc, ast.Call) else statement.exc
    return isinstance(raised, ast.Name) and raised.id in ("NotImplementedError", "NotImplemented")


def _is_open(evaluator: Evaluator, cls: Class, name: str, found: set[Value]) -> bool:
    """Return whether a class outside the project may inherit from `cls` and override a method."""
    if cls.node.name.startswith("_") or (name.startswith("__") and not name.endswith("__")):
        return False
    return cls.module.enclosing_function(cls.node) is None


def _of_class(base: Value, cls: Class) -> Value:
    """Return `base`, an instance or a class, with another class."""
    return Instance(cls) if isinstance(base, Instance) else cls


def _holder(function: Value | None, cls: Class, own: set[Value]) -> Class:
    """Return the class whose instances a method may be bound to, found for `cls`.

    That is `cls` itself, unless a subclass or a mixin of one defines the method.
    """
    if isinstance(function, Function):
        node = function.module.enclosing_class(function.node)
        if node is not None and Class(function.module, node) not in own:
            return Class(function.module, node, exact=False)
    return cls


def _joined(parts: list[Callees]) -> Callees:
    return Callees(
        frozenset().union(*(p.values for p in parts)),
        any(p.others for p in parts),
        any(p.abstract for p in parts),
    )
