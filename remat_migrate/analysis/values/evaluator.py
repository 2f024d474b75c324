"""What an expression denotes: names are followed through imports, assignments, calls, and
classes.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Collection, Iterator

from ...libraries.apis import KNOWN_PACKAGES, SAME_CALL, TRANSPARENT, ApiTable, public_name
from ..fixed_point import FixedPoint
from ..names.module import Module, Place
from ..names.scopes import Binding, FunctionNode
from .application import api_of
from .calls import apply_decorator, called, returned_expressions
from .classes import bases_in_order, class_attribute
from .containers import any_item, elements, items, keys, literal_index, looked_up
from .evaluation import Evaluation, Question
from .haiku_transforms import unpacked
from .parameter_values import parameter_values
from .values import (
    NOTHING,
    Applied,
    Bound,
    Class,
    Constant,
    Container,
    External,
    Function,
    Instance,
    ModuleValue,
    Value,
    Values,
    Wrapped,
    union,
)

# What has more values, or a name that more statements bind, is not known.
_MAX_VALUES = 64
_MAX_BINDINGS = 256


class Evaluator(Evaluation):
    """Evaluates expressions of a project's modules to sets of symbolic values."""

    def __init__(self, apis: ApiTable, find_module: Callable[[str, Module], Module | None]) -> None:
        super().__init__(apis, find_module)
        self._answers = FixedPoint[Question, Collection[Value]](self._answer, NOTHING)
        # What has too many values while a cycle is open has too many in the end.
        self._too_many: set[Question] = set()

    def forget(self) -> None:
        """Drop what was found, because the family has grown."""
        self._answers.forget()
        self._too_many.clear()
        self.reads.clear()
        self.held.clear()

    def ask(self, question: Question) -> Collection[Value]:
        """Answer a question; questions may depend on each other in cycles."""
        return self._answers.answer(question)

    @property
    def is_guess(self) -> bool:
        """Whether something is not known yet that was asked for the answer being computed."""
        return self._answers.guessed

    def _answer(self, question: Question) -> Collection[Value]:
        match question:
            case Function():
                expressions = returned_expressions(question.node)
                return union(self.values(question.module, expr) for expr in expressions)
            case Class():
                return bases_in_order(self, question)
            case External():
                return self._installed(question)
            case Module():
                return tuple(
                    v for star in question.star_imports for v in self.import_base(star, question)
                )
            case module, str() as name:
                return self._member(module, name)
            case module, ast.FunctionDef() | ast.AsyncFunctionDef() as node:
                return self._definition(module, node)
            case module, node:
                found = self._evaluate(module, node)
                if len(found) > _MAX_VALUES:
                    self._too_many.add(question)
                return NOTHING if question in self._too_many else found

    def note_passed_api(self, function: FunctionNode, name: str, value: Value) -> None:
        """Note that an Api is passed for a parameter of a function."""
        found = self.passed.setdefault((function, name), set())
        if value not in found:
            found.add(value)
            self.forget()

    def dotted(self, name: str, importer: Module) -> Values:
        """Return what a dotted name imported in `importer` denotes."""
        api = self.apis.find(name)
        if api is not None:
            return frozenset((External(api.name),))
        head = name.partition(".")[0]
        if head in KNOWN_PACKAGES:
            return frozenset((External(name),))
        module = self.find_module(name, importer)
        if module is not None:
            return frozenset((ModuleValue(module),))
        parent, _, last = name.rpartition(".")
        if parent:
            found: set[Value] = set()
            for value in self.dotted(parent, importer):
                if isinstance(value, External):
                    found |= self.dotted_external(f"{value.name}.{last}")
                else:
                    found |= self.attribute(value, last)
            return frozenset(found)
        return frozenset((External(name),))

    def installed_definition(self, outside: External) -> Values:
        """Return the function or class behind an external name, if its package's source is found.

        JAX, Flax, and the like stay names: tables say what matters about them.
        """
        name = outside.name
        if name.partition(".")[0] in (*KNOWN_PACKAGES, "builtins") or "." not in name:
            return NOTHING
        return frozenset(self.ask(outside))

    def _installed(self, outside: External) -> Values:
        package, _, last = outside.name.rpartition(".")
        module = self.find_installed(package)
        if module is None:
            return NOTHING
        return frozenset(v for v in self.member(module, last) if isinstance(v, Class | Function))

    def dotted_external(self, name: str) -> Values:
        """Return an external name, as an Api if it is one, else by its public name."""
        api = self.apis.find(name)
        return frozenset((External(api.name if api else public_name(name)),))

    def member(self, module: Module, name: str) -> Values:
        """Return what a module-level name denotes, including submodules and `import *`."""
        return frozenset(self.ask((module, name)))

    def _member(self, module: Module, name: str) -> Values:
        api = self.apis.find(f"{module.name}.{name}")
        if api is not None:
            return frozenset((External(api.name),))
        found = self._bindings(module, module.exported(name))
        if not found and module.is_package:
            inner = self.find_module(f"{module.name}.{name}", module)
            if inner is not None:
                return frozenset((ModuleValue(inner),))
        return found or union(self.attribute(base, name) for base in self.ask(module))

    def import_base(self, node: ast.ImportFrom, module: Module) -> Values:
        """Return the module or package that `from base import name` imports from."""
        if not node.level:
            return self.dotted(node.module or "", module)
        parts = module.name.split(".")
        drop = node.level - (1 if module.is_package else 0)
        base = parts[: len(parts) - drop] if drop else parts
        return self.dotted(".".join([*base, *([node.module] if node.module else [])]), module)

    def imports_api(self, module: Module, node: ast.ImportFrom, alias: ast.alias) -> bool:
        """Return whether a name imported from a module of the project is an Api or a partial of
        one.
        """
        head = (node.module or "").partition(".")[0]
        if not node.level and head in KNOWN_PACKAGES:
            return False
        for base in self.import_base(node, module):
            for value in self.attribute(base, alias.name):
                if self.holds_api(value):
                    return True
        return False

    def holds_api(self, value: Value) -> bool:
        """Return whether a value is an Api, a partial of one, or a container of such values."""
        if isinstance(value, Container):
            return any(
                api_of(self.apis, element) is not None
                for module, part in elements(value)
                for element in self.values(module, part)
            )
        return api_of(self.apis, value) is not None

    def _import(self, binding: Binding, module: Module) -> Values:
        alias = binding.node
        assert isinstance(alias, ast.alias)
        if isinstance(binding.statement, ast.ImportFrom):
            found: set[Value] = set()
            for base in self.import_base(binding.statement, module):
                if isinstance(base, External):
                    found |= self.dotted_external(f"{base.name}.{alias.name}")
                else:
                    found |= self.attribute(base, alias.name)
            return frozenset(found)
        if alias.asname is None:
            return self.dotted(alias.name.partition(".")[0], module)
        return self.dotted(alias.name, module)

    def _bindings(self, module: Module, bindings: Collection[Binding]) -> Values:
        if len(bindings) > _MAX_BINDINGS:
            return NOTHING
        return union(self.binding(module, binding) for binding in bindings)

    def binding(self, module: Module, binding: Binding) -> Values:
        """Return what one binding gives its name."""
        node = binding.node
        match binding.kind:
            case "assign" | "augment" | "element" as kind:
                assert binding.value is not None
                evaluate = self._iterated if kind == "element" else self.values
                values = evaluate(module, binding.value)
                for step in binding.path:
                    values = self._step(values, step)
                return values
            case "def":
                assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
                return self.definition(module, node)
            case "class":
                assert isinstance(node, ast.ClassDef)
                return self._class(module, node)
            case "import":
                return self._import(binding, module)
            case "parameter":
                assert isinstance(node, ast.arg)
                assert isinstance(binding.scope.node, FunctionNode)
                return parameter_values(self, module, binding.scope.node, node)
        return NOTHING

    def _step(self, values: Values, step: int) -> Values:
        if step < 0:
            return NOTHING
        found: set[Value] = set()
        for value in values:
            found |= unpacked(value, step)
            if isinstance(value, Container):
                for module, part in items(value, step):
                    found |= self.values(module, part)
        return frozenset(found)

    def _iterated(self, module: Module, iterable: ast.expr) -> Values:
        """Return the values that a loop over `iterable` sees, including tuples made by zip and
        enumerate.
        """
        if isinstance(iterable, ast.Call) and isinstance(iterable.func, ast.Name):
            name = iterable.func.id
            if name in ("zip", "enumerate") and not module.reaching(iterable.func):
                return frozenset((Container(module, iterable),))
            if name in ("reversed", "list", "tuple", "sorted") and iterable.args:
                if not module.reaching(iterable.func):
                    return self._iterated(module, iterable.args[0])
        parts: Callable[[Container], Iterator[Place]] = keys
        match iterable:
            case ast.Call(func=ast.Attribute(attr="items"), args=[]):
                return frozenset((Container(module, iterable),))
            case ast.Call(func=ast.Attribute(attr="values", value=mapping), args=[]):
                iterable, parts = mapping, elements
        return union(
            self.values(owner, part)
            for value in self.values(module, iterable)
            if isinstance(value, Container)
            for owner, part in parts(value)
        )

    def _class(self, module: Module, node: ast.ClassDef) -> Values:
        values: Values = frozenset((Class(module, node),))
        for decorator in reversed(node.decorator_list):
            values = self._decorated(module, decorator, values, keep_unknown=True)
        return values

    def definition(self, module: Module, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Values:
        """Return what a `def` binds its name to: the function with its decorators applied."""
        return frozenset(self.ask((module, node)))

    def _definition(self, module: Module, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Values:
        api = self.apis.find(module.qualified_name(node))
        if api is not None:
            return frozenset((External(api.name),))
        values: Values = frozenset((Function(module, node),))
        for decorator in reversed(node.decorator_list):
            values = self._decorated(module, decorator, values)
        return values

    def _decorated(
        self, module: Module, decorator: ast.expr, inner: Values, *, keep_unknown: bool = False
    ) -> Values:
        found: set[Value] = set()
        callee = self.values(module, decorator)
        if isinstance(decorator, ast.Call):
            factories = {
                v.name for v in self.values(module, decorator.func) if isinstance(v, External)
            }
            if factories & TRANSPARENT:
                return inner
            for name in factories & SAME_CALL:
                # `@jax.jit(static_argnums=1)`: the factory form of newer releases.
                return frozenset(Wrapped(name, v, module, decorator) for v in inner)
        for value in callee:
            if isinstance(value, External) and (
                value.name in TRANSPARENT or value.name.startswith("builtins.")
            ):
                if value.name == "builtins.property":
                    return NOTHING
                return inner
            for target in inner:
                found |= apply_decorator(self, value, module, decorator, target)
        if keep_unknown:
            # A decorated class is still called and inspected as the class.
            applied = {v for v in found if isinstance(v, Applied)}
            return frozenset(applied) or inner
        return frozenset(found) or frozenset(Wrapped("?", v, module, decorator) for v in inner)

    def values(self, module: Module, node: ast.expr) -> Values:
        """Return what an expression may denote; empty when nothing is known."""
        return frozenset(self.ask((module, node)))

    def is_partial(self, module: Module, call: ast.Call) -> bool:
        """Return whether a call may be one of `functools.partial`."""
        return External("functools.partial") in self.values(module, call.func)

    def _evaluate(self, module: Module, node: ast.expr) -> Values:
        match node:
            case ast.Name():
                return self._name(module, node)
            case ast.Attribute():
                bases = self.values(module, node.value)
                return union(self.attribute(base, node.attr) for base in bases)
            case ast.Call():
                return self._call(module, node)
            case ast.Lambda():
                return frozenset((Function(module, node),))
            case ast.IfExp():
                return self.values(module, node.body) | self.values(module, node.orelse)
            case ast.BoolOp():
                return union(self.values(module, value) for value in node.values)
            case ast.NamedExpr() | ast.Starred() | ast.Await():
                return self.values(module, node.value)
            case ast.Constant():
                return frozenset((Constant(node.value),))
            case ast.List() | ast.Tuple() | ast.Set() | ast.Dict():
                return frozenset((Container(module, node),))
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                return frozenset((Container(module, node),))
            case ast.Subscript():
                return self._subscript(module, node)
            case ast.BinOp(op=ast.BitOr()):
                # A union of two dicts: either may hold the value.
                sides = self.values(module, node.left) | self.values(module, node.right)
                return frozenset(v for v in sides if isinstance(v, Container))
        return NOTHING

    def _name(self, module: Module, node: ast.Name) -> Values:
        bindings = module.reaching(node)
        if bindings:
            return self._bindings(module, bindings)
        may_be_api = node.id in self.apis.last_names
        for base in self.ask(module):
            if isinstance(base, ModuleValue):
                found = self.member(base.module, node.id)
                if found:
                    return found
            elif isinstance(base, External) and may_be_api:
                for value in self.dotted_external(f"{base.name}.{node.id}"):
                    if isinstance(value, External) and self.apis.find(value.name):
                        return frozenset((value,))
        if hasattr(builtins, node.id):
            return frozenset((External(f"builtins.{node.id}"),))
        return NOTHING

    def attribute(self, base: Value, name: str) -> Values:
        """Return what `base.name` denotes."""
        match base:
            case External():
                return self.dotted_external(f"{base.name}.{name}")
            case ModuleValue():
                return self.member(base.module, name)
            case Class():
                return class_attribute(self, base, name, None)
            case Instance(cls=Class() as cls):
                return class_attribute(self, cls, name, base)
            case Instance(cls=External() as outside):
                return frozenset((Bound(External(f"{outside.name}.{name}"), base),))
            case Applied(target=Class() as cls):
                return class_attribute(self, cls, name, None)
            case Container(module=owner, node=ast.Call(func=maker)):
                if External("types.SimpleNamespace") not in self.values(owner, maker):
                    return NOTHING
                return union(self.values(module, part) for module, part in items(base, name))
            case Instance(cls=Applied() | Wrapped()):
                return frozenset((Bound(External(f"flax.linen.Module.{name}"), base),))
        return NOTHING

    def _subscript(self, module: Module, node: ast.Subscript) -> Values:
        index = literal_index(node.slice)
        found: list[Values] = []
        for value in self.values(module, node.value):
            match value:
                case Container(module=owner, node=ast.List() | ast.Dict() as literal) if (
                    index is None and literal is not node.value
                ):
                    # Many reads may be of the same container.
                    found.append(self.values(owner, any_item(literal)))
                case Container():
                    parts = list(elements(value) if index is None else items(value, index))
                    found += [self.values(owner, part) for owner, part in parts]
        return union(found)

    def _call(self, module: Module, node: ast.Call) -> Values:
        found = [self.values(module, expr) for expr in looked_up(node)]
        found += [called(self, callee, module, node) for callee in self.values(module, node.func)]
        return union(found)
