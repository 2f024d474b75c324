"""The interpreter: what an expression denotes.

Names are followed through imports, assignments, calls, and classes. An expression may be a call,
whose result is what another expression denotes, and so on, in cycles, too: `Evaluator.ask` answers
such questions.
"""

from __future__ import annotations

import ast
import builtins
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from ...errors import BoundReached
from ...libraries.apis import (
    KNOWN_PACKAGES,
    PARTS_OF_OBJECT,
    SAME_CALL,
    SAME_CONTENTS,
    SAME_OBJECT,
    TRANSPARENT,
    ApiTable,
    public_name,
)
from ...libraries.transforms import TransformTable
from ..fixed_point import FixedPoint
from ..names.module import Module, last_name
from ..names.scopes import Binding, FunctionNode, parameters
from .bind import api_of, bind_call, default_of, first_parameter, subject_of
from .containers import any_item, elements, items, keys, literal_index, looked_up, looped
from .declarations import class_annotations, is_decorated, self_assignments
from .values import (
    APPLY,
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
    Parameter,
    Partial,
    Result,
    Value,
    Values,
    Wrapped,
    alternatives,
    around,
    layers,
    makes_pair,
    order,
    transformed,
    underlying,
    union,
    unpacked,
)

# What a function returns, the resolution order of a class, the definition behind an external name,
# what a module imports everything from, a name of a module, and what a `def` or an expression
# denotes.
Question = (
    Function
    | Class
    | External
    | Module
    | tuple[Module, str | ast.FunctionDef | ast.AsyncFunctionDef | ast.expr]
)
Substitution = Mapping[tuple[FunctionNode, str], Values]
# What has more values, or a name that more statements bind, is not known.
_MAX_VALUES = 64
_MAX_BINDINGS = 256
_SEQUENCES = frozenset({"list", "tuple", "List", "Tuple", "Sequence"})
# Resolution orders of longer and longer chains take quadratic time and memory.
_MOST_BASES = 200


class Evaluator:
    """Evaluates expressions of a project's modules to sets of symbolic values.

    Attributes:
        apis: the checkpoint family.
        transforms: the functions that differentiate and that loop.
        find_module: returns the project's module for a dotted name in an importing module.
        find_installed: returns an installed module by its dotted name.
        passed: the Apis that are passed for parameters of the project's functions.
        aliases: other names that files of the project give to Apis, for others to import.
        reads: the reads of names by origin, see `sites.name_search`.
        names, contents: answers cached for `api_names` and `contents`.
    """

    def __init__(self, apis: ApiTable, find_module: Callable[[str, Module], Module | None]) -> None:
        self.apis = apis
        self.transforms = TransformTable()
        self.find_module = find_module
        self.find_installed: Callable[[str], Module | None] = lambda name: None
        self.passed: dict[tuple[FunctionNode, str], set[Value]] = {}
        self.aliases: set[str] = set()
        self.reads: dict[tuple[Module, str], dict[ast.AST | None, dict[ast.Name, int]]] = {}
        self.names: dict[object, frozenset[str]] = {}
        self.contents: dict[FunctionNode, object] = {}
        self._answers = FixedPoint[Question, Collection[Value]](self._answer, NOTHING)
        # What has too many values while a cycle is open has too many in the end.
        self._too_many: set[Question] = set()

    def forget(self) -> None:
        """Drop what was found, because the family has grown."""
        self._answers.forget()
        self._too_many.clear()
        self.reads.clear()

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

    def _installed(self, outside: External) -> Values:
        """Return the function or class behind an external name, if its package's source is found.

        JAX, Flax, and the like stay names: tables say what matters about them.
        """
        package, _, last = outside.name.rpartition(".")
        if not package or package.partition(".")[0] in (*KNOWN_PACKAGES, "builtins"):
            return NOTHING
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
            case "element":
                assert binding.value is not None
                return self._iterated(module, binding.value, binding.path)
            case "assign" | "augment":
                assert binding.value is not None
                values = self.values(module, binding.value)
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

    def _iterated(self, module: Module, iterable: ast.expr, path: tuple[int, ...]) -> Values:
        """Return the values of a variable that a loop over `iterable` unpacks by `path`."""
        part = looped(module, iterable, path)
        if part.kind == "position":
            return NOTHING
        match part.source:
            # An element is a tuple, see `items`.
            case ast.Call(func=ast.Name(id="zip" | "enumerate") as func) if not path:
                if not module.reaching(func):
                    return frozenset((Container(module, part.source),))
            case ast.Call(func=ast.Attribute(attr="items"), args=[]) if not path:
                return frozenset((Container(module, part.source),))
        if declared := self._declared_elements(module, part.source):
            return declared
        parts = elements if part.kind == "value" else keys
        values = union(
            self.values(owner, element)
            for value in self.values(module, part.source)
            if isinstance(value, Container)
            for owner, element in parts(value)
        )
        for step in part.path:
            values = self._step(values, step)
        return values

    def _declared_elements(self, module: Module, node: ast.expr) -> Values:
        """Return the elements of a field that a class declares as a list of objects."""
        found: set[Value] = set()
        for owner, annotation in declarations_of(self, module, node):
            match annotation:
                case ast.Subscript(value=of, slice=inner) if last_name(of) in _SEQUENCES:
                    part = inner.elts[0] if isinstance(inner, ast.Tuple) else inner
                    found |= annotated_values(self, owner.module, part)
        return frozenset(found)

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
        for value in self.values(module, decorator):
            if value == External("builtins.property"):
                return NOTHING
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
            case ast.Constant():
                return frozenset((Constant(node.value),))
            case (
                ast.List() | ast.Tuple() | ast.Set() | ast.Dict()
                | ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp()
            ):  # fmt: skip
                return frozenset((Container(module, node),))
            case ast.Subscript():
                return self._subscript(module, node)
            case ast.BinOp(op=ast.BitOr()):
                # A union of two dicts: either may hold the value.
                sides = self.values(module, node.left) | self.values(module, node.right)
                return frozenset(v for v in sides if isinstance(v, Container))
        return union(self.values(module, part) for part in alternatives(node))

    def _name(self, module: Module, node: ast.Name) -> Values:
        bindings = module.reaching(node)
        if bindings:
            return self._bindings(module, bindings)
        for base in self.ask(module):  # `import *`
            if isinstance(base, ModuleValue) and (found := self.member(base.module, node.id)):
                return found
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


# -- parameters


def parameter_values(
    ev: Evaluator, module: Module, function: FunctionNode, node: ast.arg
) -> Values:
    """Return what is known about the value of a parameter."""
    found: set[Value] = {Parameter(module, function, node.arg)}
    found |= ev.passed.get((function, node.arg), set())
    cls = module.enclosing_class(function)
    first = first_parameter(function)
    if cls is not None and node is first and not isinstance(function, ast.Lambda):
        names = {d.id for d in function.decorator_list if isinstance(d, ast.Name)}
        if "classmethod" in names or function.name in ("__new__", "__init_subclass__"):
            return frozenset((Class(module, cls, exact=False),))
        if "staticmethod" not in names:
            return frozenset((Instance(Class(module, cls, exact=False)),))
    if node.annotation is not None:
        found |= annotated_values(ev, module, node.annotation)
    default = default_of(function, node)
    if default is not None:
        found |= ev.values(module, default)
    return frozenset(found)


def annotated_values(ev: Evaluator, module: Module, annotation: ast.expr) -> Values:
    """Return instances of the project's classes, or of layers, that an annotation names."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        name = annotation.value
        return _instances(ev.member(module, name)) if name.isidentifier() else NOTHING
    if isinstance(annotation, ast.BinOp):
        return annotated_values(ev, module, annotation.left) | annotated_values(
            ev, module, annotation.right
        )
    if isinstance(annotation, ast.Subscript):
        base = ev.values(module, annotation.value)
        if any(isinstance(v, External) and v.name.endswith("Optional") for v in base):
            return annotated_values(ev, module, annotation.slice)
        return NOTHING
    return _instances(ev.values(module, annotation))


def _instances(values: Values) -> Values:
    """Return instances of some classes, or of their subclasses."""
    library = {v for v in values if isinstance(v, External) and v.name.startswith("equinox.nn.")}
    classes = {replace(v, exact=False) for v in values if isinstance(v, Class)}
    return frozenset(map(Instance, library | classes))


# -- classes


def class_chain(ev: Evaluator, cls: Class) -> Sequence[Value]:
    """Return a class and its bases in method resolution order (C3); external bases as External.

    Raises:
        BoundReached: it has too many bases.
    """
    exact = replace(cls, exact=True)
    return (exact, *ev.ask(exact))


def project_bases(ev: Evaluator, cls: Class) -> list[Class]:
    """Return a class and its bases in the project, in method resolution order."""
    return [base for base in class_chain(ev, cls) if isinstance(base, Class)]


def declarations_of(
    ev: Evaluator, module: Module, node: ast.expr
) -> Iterator[tuple[Class, ast.expr]]:
    """Yield the annotations of a field such as `self.block_cls`, each with its class."""
    if not isinstance(node, ast.Attribute):
        return
    for value in ev.values(module, node.value):
        if isinstance(value, Instance) and isinstance(value.cls, Class):
            for owner in project_bases(ev, value.cls):
                if (annotation := class_annotations(owner.node).get(node.attr)) is not None:
                    yield owner, annotation


def bases_in_order(ev: Evaluator, cls: Class) -> tuple[Value, ...]:
    """Return the bases of a class in method resolution order, as `class_chain` does."""
    bases = _bases(ev, cls)
    orders = [class_chain(ev, b) if isinstance(b, Class) else (b,) for b in bases]
    found = tuple(v for v in _merged([*orders, bases]) if v != cls)
    if len(found) > _MOST_BASES:
        raise BoundReached(f"a class inherits from more than {_MOST_BASES} others")
    return found


def _bases(ev: Evaluator, cls: Class) -> list[Value]:
    """Return the bases of a class; for a base that is checkpointed or otherwise lifted, the class
    itself.
    """
    found: dict[Value, None] = {}
    for base in cls.node.bases:
        inner = base.value if isinstance(base, ast.Subscript) else base
        # More than one only if a name has several bindings.
        for value in map(underlying, sorted(ev.values(cls.module, inner), key=order)):
            if isinstance(value, Class):
                found[replace(value, exact=True)] = None
            elif isinstance(value, External):
                found.update(dict.fromkeys(ev.ask(value) or (value,)))
    return list(found)


def _merged(orders: Sequence[Sequence[Value]]) -> Sequence[Value]:
    """Merge the orders of some bases by C3; if they contradict one another, return one after the
    other.
    """
    left = [[*reversed(each)] for each in orders]
    # How many orders have a class behind their first.
    behind = Counter(v for each in left for v in each[:-1])
    found: list[Value] = []
    while left := [each for each in left if each]:
        first = next((each[-1] for each in left if not behind[each[-1]]), None)
        if first is None:
            return tuple(dict.fromkeys(v for each in orders for v in each))
        found.append(first)
        for each in left:
            if each[-1] == first:
                each.pop()
                behind.subtract(each[-1:])
    return found


def class_attribute(ev: Evaluator, cls: Class, name: str, receiver: Instance | None) -> Values:
    """Return what an attribute of a class, or of its instance `receiver`, denotes."""
    return attribute_in(ev, class_chain(ev, cls), cls, name, receiver)


def attribute_in(
    ev: Evaluator, chain: Iterable[Value], cls: Class, name: str, receiver: Instance | None
) -> Values:
    """Return the same, looked up in `chain`: the resolution order of `cls` or the rest of it."""
    for owner in chain:
        if isinstance(owner, Class):
            if found := _own_attribute(ev, owner, cls, name, receiver):
                return found
    if receiver is not None and name in APPLY:
        # For a Flax module, `model.apply(variables, x)` calls `__call__(x)`.
        return frozenset((Bound(External(f"flax.linen.Module.{name}"), receiver),))
    return NOTHING


def _own_attribute(
    ev: Evaluator, owner: Class, cls: Class, name: str, receiver: Instance | None
) -> Values:
    """Return what an attribute that `owner`, of the bases of `cls`, defines itself denotes."""
    flow = owner.module.flow(owner.module.scope_of(owner.node))
    found = set(union(_member(ev, owner.module, b, cls, receiver) for b in flow.exit.get(name, ())))
    if receiver is not None:
        for expr in self_assignments(owner.node).get(name, ()):
            found |= ev.values(owner.module, expr)
        annotation = class_annotations(owner.node).get(name)
        if annotation is not None:
            found |= annotated_values(ev, owner.module, annotation)
    return frozenset(found)


def _member(
    ev: Evaluator, module: Module, binding: Binding, cls: Class, receiver: Instance | None
) -> Values:
    """Return what a binding in a class body gives the class or its instance."""
    if is_decorated(binding.node, "property", "cached_property"):
        if receiver is not None and isinstance(binding.node, ast.FunctionDef):
            return returned(ev, Function(module, binding.node))
        return NOTHING
    values = ev.binding(module, binding)
    if is_decorated(binding.node, "staticmethod") or _is_kept_function(binding):
        return values
    bound_to = cls if is_decorated(binding.node, "classmethod") else receiver
    if bound_to is None:
        return values
    methods = {v for v in values if isinstance(v, Function | Applied | Wrapped)}
    return (values - methods) | {Bound(method, bound_to) for method in methods}


def _is_kept_function(binding: Binding) -> bool:
    """Return whether a class holds a function that is no method: of a field, or made static."""
    match binding.value:
        case ast.Call(func=ast.Name(id="staticmethod")):
            return True
    return isinstance(binding.node, ast.AnnAssign)


# -- calls


@lru_cache(maxsize=4096)
def _parts_of(node: ast.expr) -> ast.Tuple:
    """Return a tuple of an object's parts, each of which is called like the object."""
    return ast.Tuple([node] * 4, ast.Load())


def called(ev: Evaluator, callee: Value, module: Module, node: ast.Call) -> Values:
    """Return what calling `callee` with the arguments of `node` returns."""
    if api_of(ev.apis, callee) is not None:
        return _applied(ev, callee, module, node)
    match callee:
        case External(name):
            found = _called_builtin(ev, name, module, node)
            return _called_external(ev, callee, module, node) if found is None else found
        case Result(name) if name in TRANSPARENT and node.args:
            return ev.values(module, node.args[0])  # `jax.named_scope("block")(f)`
        case Class() | Applied() | Wrapped() if _is_class(callee):
            # A wrapped Flax class makes instances whose calls are wrapped.
            return frozenset((Instance(callee),))
        case Partial(func=inner, call=given):
            return _called_partial(ev, inner, given, module, node)
        case Wrapped(how="jax.jit" | "?", func=inner):
            return called(ev, inner, module, node)
        case Function():
            return _returned_to(ev, callee, module, node, skip=0)
        case Bound(func=Function() as function):
            return _returned_to(ev, function, module, node, skip=1)
    return NOTHING


def _called_builtin(ev: Evaluator, name: str, module: Module, node: ast.Call) -> Values | None:
    """Return what a function of Python returns; None for others."""
    match name:
        case "functools.partial":
            inner = ev.values(module, node.args[0]) if node.args else NOTHING
            return around(node, inner, lambda f: Partial(f, module, node))
        case "builtins.getattr":
            return _getattr(ev, module, node)
        case "importlib.import_module":
            match node.args:
                case [ast.Constant(value=str(dotted))] if not dotted.startswith("."):
                    return ev.dotted(dotted, module)
            return NOTHING
        case "builtins.super" if not node.args:
            return _super(ev, module, node)
        case "builtins.dict" | "types.SimpleNamespace":
            return frozenset((Container(module, node),))
    if name in SAME_CONTENTS:
        return ev.values(module, node.args[0]) if node.args else NOTHING
    return None


def _called_external(ev: Evaluator, callee: External, module: Module, node: ast.Call) -> Values:
    """Return what a function or class of a library returns."""
    name = callee.name
    if name in SAME_CALL:
        if not node.args:
            return frozenset((Partial(callee, module, node, by_functools=False),))
        inner = ev.values(module, node.args[0])
        return around(node, inner, lambda f: Wrapped(name, f, module, node))
    if makes_pair(name) and node.args:
        if pair := transformed(name, module, node, ev.values(module, node.args[0])):
            return pair
    if name in PARTS_OF_OBJECT and node.args:
        return frozenset((Container(module, _parts_of(node.args[0])),))
    if name in SAME_OBJECT:
        objects = [v for arg in node.args for v in ev.values(module, arg) if _is_object(v)]
        if objects:
            return frozenset(objects)
    is_class = name.rpartition(".")[2][:1].isupper()
    return frozenset((Instance(callee) if is_class else Result(name),))


def _is_object(value: Value) -> bool:
    return isinstance(value, Instance | Parameter)


def _is_class(value: Value | None) -> bool:
    """Return whether a value is a class, wrapped or not."""
    match value:
        case Class():
            return True
        case Applied(target=External(name)):
            return name.rpartition(".")[2][:1].isupper()
        case Applied(target=inner) | Wrapped(func=inner):
            return _is_class(inner)
    return False


def _getattr(ev: Evaluator, module: Module, node: ast.Call) -> Values:
    match node.args:
        case [base, ast.Constant(value=str(name)), *_]:
            return union(ev.attribute(value, name) for value in ev.values(module, base))
    return NOTHING


def _applied(ev: Evaluator, callee: Value, module: Module, node: ast.Call) -> Values:
    subject = subject_of(ev.apis, callee, module, node)
    if subject is None:
        return frozenset((Partial(callee, module, node, by_functools=False),))
    targets = ev.values(*subject)
    if not targets:
        return NOTHING if ev.is_guess else frozenset((Applied(module, node, None),))
    return around(node, targets, lambda target: Applied(module, node, target))


def _called_partial(
    ev: Evaluator, inner: Value, given: ast.Call, module: Module, node: ast.Call
) -> Values:
    if isinstance(inner, Function):
        merged = ast.Call(
            given.func, [*given.args[1:], *node.args], [*given.keywords, *node.keywords]
        )
        return _returned_to(ev, inner, module, merged, skip=0)
    return called(ev, inner, module, node)


def _returned_to(
    ev: Evaluator, function: Function, module: Module, node: ast.Call, *, skip: int
) -> Values:
    found = returned(ev, function)
    if not any(_mentions(value, function.node) for value in found):
        return found
    bound = bind_call(function.node, node.args, node.keywords, skip)
    swap = {(function.node, name): ev.values(module, expr) for name, expr in bound.by_name.items()}
    return union(substitute(value, swap) for value in found)


def returned(ev: Evaluator, function: Function) -> Values:
    """Return what a function may return, in terms of its parameters."""
    return frozenset(ev.ask(function))


def substitute(value: Value, swap: Substitution) -> Values:
    """Return a value with parameters replaced by arguments."""
    own = frozenset((value,))
    match value:
        case Parameter(function=function, name=name):
            return swap.get((function, name), own)
        case Applied(node=node, target=inner) if inner is not None:
            targets = substitute(inner, swap)
            return around(node, targets, lambda target: replace(value, target=target)) or own
        case Wrapped(func=inner, node=node) | Partial(func=inner, call=node):
            functions = substitute(inner, swap)
            return around(node, functions, lambda function: replace(value, func=function))
    return own


def apply_decorator(
    ev: Evaluator, callee: Value, module: Module, node: ast.expr, argument: Value
) -> Values:
    """Return the result of calling `callee` with one value, as a decorator does."""
    if api_of(ev.apis, callee) is not None:
        return frozenset((Applied(module, node, argument),))
    match callee:
        # `@jax.jit(static_argnums=1)` and `@jax.named_scope("block")` are factories.
        case External(name) | Partial(func=External(name)) | Result(name):
            if name in TRANSPARENT or name.startswith("builtins."):
                return frozenset((argument,))
            if pair := transformed(name, module, node, frozenset((argument,))):
                return pair
            how = name if name in SAME_CALL else "?"
            return frozenset((Wrapped(how, argument, module, node),))
        case Function(node=function):
            first = next(iter(parameters(function)), None)
            found = returned(ev, callee)
            if first is not None and any(_mentions(v, function) for v in found):
                swap = {(function, first.arg): frozenset((argument,))}
                return union(substitute(value, swap) for value in found)
    return frozenset((Wrapped("?", argument, module, node),))


def _mentions(value: Value, function: FunctionNode) -> bool:
    return any(isinstance(one, Parameter) and one.function is function for one in layers(value))


def returned_expressions(node: FunctionNode) -> Iterator[ast.expr]:
    """Yield the expressions that a function returns, without those of nested functions."""
    if isinstance(node, ast.Lambda):
        yield node.body
        return
    stack: list[ast.AST] = list(node.body)
    while stack:
        inner = stack.pop()
        if isinstance(inner, FunctionNode | ast.ClassDef):
            continue
        if isinstance(inner, ast.Return) and inner.value is not None:
            yield inner.value
        # Expressions contain no statements, except in lambdas.
        stack += [child for child in ast.iter_child_nodes(inner) if not isinstance(child, ast.expr)]


def _super(ev: Evaluator, module: Module, node: ast.Call) -> Values:
    function = module.enclosing_function(node)
    cls = module.enclosing_class(function) if function is not None else None
    bases = cls.bases if cls is not None else ()
    values = union(ev.values(module, base) for base in bases)
    return frozenset(Instance(v) for v in values if isinstance(v, Class | External))
