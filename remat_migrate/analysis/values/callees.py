"""The function that calling a value runs in the end, the arguments bound already, what the fields
of new objects are, and what a method call may run.

`self` may be an instance of any subclass. If the class is known, as in `nn.remat(DropBlock)`, its
own method resolution order decides. If not, every override in the project counts, and classes
outside the project may override methods that the project's classes leave open.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from ...libraries.apis import TRACED_BODIES
from ..names.module import Module, last_name, once
from .bind import bind_call, with_partials
from .declarations import is_decorated, self_assignments
from .evaluator import Evaluator, attribute_in, class_chain, project_bases
from .values import (
    APPLY,
    NOTHING,
    Applied,
    Bound,
    Class,
    External,
    Function,
    Instance,
    Partial,
    Value,
    Values,
    Wrapped,
    layers,
    leading_arguments,
    underlying,
)


@dataclass(frozen=True, slots=True)
class Target:
    """A function that a checkpoint wraps, as it is called.

    Attributes:
        function: the function or method.
        owner: the class whose instance is called, or whose method.
        skip: how many leading parameters the caller does not pass: `self`, arguments of partials.
        given: the parameters that partials pass by keyword.
    """

    function: Function
    owner: Class | None = None
    skip: int = 0
    given: frozenset[str] = frozenset()


def targets_of(evaluator: Evaluator, value: Value | None) -> Iterator[Target]:
    """Yield the functions that calling `value` runs; for a class, its `__call__`."""
    skip = 0
    given: frozenset[str] = frozenset()
    while isinstance(value, Applied | Wrapped | Partial):  # there may be many
        if isinstance(value, Partial):
            skip += len(value.call.args) - 1
            given |= {k.arg for k in value.call.keywords if k.arg is not None}
        value = value.target if isinstance(value, Applied) else value.func
    for target in _targets_of(evaluator, value):
        if skip or given:
            target = replace(target, skip=target.skip + skip, given=target.given | given)
        yield target


def _targets_of(evaluator: Evaluator, value: Value | None) -> Iterator[Target]:
    match value:
        case Function(module=module, node=node):
            cls = module.enclosing_class(node)
            yield Target(value, Class(module, cls, exact=False) if cls is not None else None)
        case Bound(func=inner, receiver=receiver):
            for target in targets_of(evaluator, inner):
                owner = class_of(receiver) if target.owner is not None else None
                yield replace(target, owner=owner or target.owner, skip=target.skip + 1)
        case Class():
            for found in evaluator.attribute(Instance(value), "__call__"):
                for target in targets_of(evaluator, found):
                    yield Target(target.function, value, target.skip)
        case Instance(cls=Class() as cls):
            yield from targets_of(evaluator, cls)
        case Instance(cls=Applied(target=inner) | Wrapped(func=inner)):
            yield from targets_of(evaluator, inner)


def applied_module(value: Value) -> tuple[Instance, int] | None:
    """Return what a call of `apply` or `init` runs, and how many arguments precede its own.

    For a Flax module that is `__call__`, for `haiku.transform(f)` it is `f`.
    """
    match value:
        case Bound(func=External(name), receiver=Instance() as model):
            method = name.rpartition(".")[2]
            if method in APPLY:
                return model, leading_arguments(method, model)
    return None


def bodies_of(evaluator: Evaluator, module: Module, call: ast.Call) -> list[ast.expr]:
    """Return the arguments of a call of a JAX loop that are its bodies; none for other calls."""
    values = evaluator.values(module, call.func)
    names = (v.name for v in values if isinstance(v, External) and v.name in TRACED_BODIES)
    positions = TRACED_BODIES.get(next(names, ""), ())
    return [body for position in positions for body in call.args[position : position + 1]]


def is_pytree(evaluator: Evaluator, cls: Class) -> bool:
    """Return whether instances of a class can be arguments of a JAX function.

    Decided by its bases (NamedTuple, Equinox, Flax struct and nnx) and by its registration.
    """
    for owner in class_chain(evaluator, cls):
        if isinstance(owner, External):
            if owner.name in _PYTREE_BASES or owner.name.rpartition(".")[2] == "Pytree":
                return True
            if owner.name.partition(".")[0] not in _NO_PYTREE_BASES:
                return True  # unknown base: leave it as it is
            continue
        if not isinstance(owner, Class):
            continue
        for decorator in owner.node.decorator_list:
            callee = decorator.func if isinstance(decorator, ast.Call) else decorator
            for value in evaluator.values(owner.module, callee):
                if isinstance(value, External) and value.name in _PYTREE_DECORATORS:
                    return True
        if owner.node.name in _registered(owner.module):
            return True
    return False


@once
def _registered(module: Module) -> frozenset[str]:
    """Return the names that a module passes to functions such as `register_pytree_node`."""
    return frozenset(
        argument.id
        for node in module.nodes
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        if node.func.attr.startswith("register_")
        for argument in node.args
        if isinstance(argument, ast.Name)
    )


def is_frozen(evaluator: Evaluator, cls: Class) -> bool:
    """Return whether instances of a class are values: immutable, and equal only if they are the
    same.
    """
    bases = class_chain(evaluator, cls)
    return any(isinstance(base, External) and base.name.startswith("enum.") for base in bases)


_PYTREE_BASES = frozenset(
    {
        "typing.NamedTuple", "equinox.Module", "flax.struct.PyTreeNode", "flax.nnx.Module",
        "flax.nnx.Object", "flax.nnx.Pytree",
    }
)  # fmt: skip
# Packages whose base classes do not make pytrees: to JAX, a subclass of `dict` is as opaque as an
# object.
_NO_PYTREE_BASES = frozenset({"builtins", "flax", "haiku", "typing", "abc"})
_PYTREE_DECORATORS = frozenset(
    {
        "flax.struct.dataclass", "chex.dataclass", "jax.tree_util.register_pytree_node_class",
        "jax.tree_util.register_dataclass", "jax.tree_util.register_static",
        "jax_dataclasses.pytree_dataclass", "simple_pytree.dataclass", "functools.partial",
    }
)  # fmt: skip


def class_of(value: Value) -> Class | None:
    """Return the class of an instance, or a class itself, if it is the project's."""
    cls = value.cls if isinstance(value, Instance) else value
    return cls if isinstance(cls, Class) else None


def receiver_of(value: Value | None) -> Class | None:
    """Return the class of the object that a method is bound to."""
    bound = (layer.receiver for layer in layers(value) if isinstance(layer, Bound))
    return next((cls for cls in map(class_of, bound) if cls is not None), None)


def skipped(value: Value | None) -> int:
    """Return how many leading parameters are bound already (`self`)."""
    return int(any(isinstance(layer, Bound) for layer in layers(value)))


def partial_calls(value: Value | None) -> Iterator[ast.Call]:
    """Return the calls of `functools.partial` on the way to the function, outermost first."""
    return (layer.call for layer in layers(value) if isinstance(layer, Partial))


def full_arguments(value: Value | None, node: ast.Call) -> tuple[list[ast.expr], list[ast.keyword]]:
    """Return the arguments of a call together with those of partials on the way."""
    return with_partials(node.args, node.keywords, partial_calls(value))


# `equinox.field(static=True)`, `flax.struct.field(pytree_node=False)`, and the metadata of a
# dataclass field that `jax.tree_util.register_dataclass` reads.
_STATIC = frozenset({("static", True), ("pytree_node", False)})


def field_value(
    evaluator: Evaluator, cls: Class, call: ast.Call, key: str | int
) -> ast.expr | None:
    """Return what a call of a class gives a field, or the field's default; None if that is not
    clear.
    """
    fields: dict[str, ast.expr | None] = {}
    for owner in project_bases(evaluator, cls):
        for method in owner.node.body:
            if isinstance(method, ast.FunctionDef) and method.name == "__init__":
                assigned = self_assignments(owner.node).get(str(key), ())
                bound = bind_call(method, call.args, call.keywords, 1)
                if bound.unclear or len(assigned) != 1 or not isinstance(assigned[0], ast.Name):
                    return None
                return bound.by_name.get(assigned[0].id)
        fields = {**_declared(owner.node), **fields}
    names = list(fields)
    name = names[key] if isinstance(key, int) and 0 <= key < len(names) else str(key)
    spread = any(isinstance(arg, ast.Starred) for arg in call.args)
    if name not in fields or spread or any(k.arg is None for k in call.keywords):
        return None
    given = dict(zip(names, call.args, strict=False))
    given |= {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg is not None}
    return given.get(name, fields[name])


def _declared(cls: ast.ClassDef) -> dict[str, ast.expr | None]:
    """Return the fields in a class body, with their defaults."""
    found: dict[str, ast.expr | None] = {}
    for statement in cls.body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.Call(keywords=keywords)):
                found[name] = next((k.value for k in keywords if k.arg == "default"), None)
            case ast.AnnAssign(target=ast.Name(id=name), value=value):
                found[name] = value
    return found


def is_static_field(evaluator: Evaluator, cls: Class, name: str) -> bool:
    """Return whether a field of a pytree is declared as one that JAX does not trace."""
    return is_pytree(evaluator, cls) and any(
        is_declared_static(statement)
        for owner in project_bases(evaluator, cls)
        for statement in owner.node.body
        if isinstance(statement, ast.AnnAssign) and last_name(statement.target) == name
    )


def is_declared_static(field: ast.AnnAssign) -> bool:
    """Return whether a field is declared static."""
    if not isinstance(field.value, ast.Call):
        return False
    return any(
        (key, value.value) in _STATIC
        for part in ast.walk(field.value)
        for key, value in _pairs(part)
        if isinstance(value, ast.Constant)
    )


def _pairs(node: ast.AST) -> Iterator[tuple[object, ast.expr]]:
    match node:
        case ast.keyword(arg=str(key), value=value):
            yield key, value
        case ast.Dict():
            for name, value in zip(node.keys, node.values, strict=True):
                if isinstance(name, ast.Constant):
                    yield name.value, value


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
