"""The interpreter: what an expression denotes, and what calling it runs.

Names are followed through imports, assignments, calls, and classes. An expression may be a call,
whose result is what another expression denotes, and so on, in cycles, too: `Evaluator.ask` answers
such questions.

`self` may be an instance of any subclass. If the class is known, as in `nn.remat(DropBlock)`, its
own method resolution order decides. If not, every override in the project counts, and classes
outside the project may override methods that the project's classes leave open.
"""

from __future__ import annotations

import ast
import builtins
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from ...errors import BoundReached
from ...libraries.apis import (
    KNOWN_PACKAGES,
    PARTS_OF_OBJECT,
    SAME_CALL,
    SAME_CONTENTS,
    SAME_OBJECT,
    TRACED_BODIES,
    TRANSPARENT,
    ApiTable,
    public_name,
)
from ...libraries.transforms import TransformTable
from ..fixed_point import FixedPoint
from ..names.module import Binding, FunctionNode, Module, last_name, once, parameters
from .bind import (
    api_of,
    bind_call,
    default_of,
    first_parameter,
    positional_parameters,
    subject_of,
    with_partials,
)
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
    leading_arguments,
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
            if isinstance(base, External) and (api := self.apis.find(f"{base.name}.{node.id}")):
                return frozenset((External(api.name),))
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
        case Applied(target=Parameter() | None) if _may_be_class(ev, callee):
            return frozenset((Instance(callee),)) if _is_called(module, node) else NOTHING
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


def _may_be_class(ev: Evaluator, applied: Applied) -> bool:
    """Return whether an application takes classes: `nn.remat(get_block(name))`."""
    node = applied.node
    values = ev.values(applied.module, node.func if isinstance(node, ast.Call) else node)
    apis = [api_of(ev.apis, value) for value in values]
    return any(api is not None and api.wraps_classes for api in apis)


def _is_called(module: Module, node: ast.Call) -> bool:
    """Return whether the result of a call is called: `block(8)(x)`, possibly through a name."""
    parent = module.parent(node)
    if isinstance(parent, ast.Call):
        return parent.func is node
    if not isinstance(parent, ast.Assign):
        return False
    targets = {ast.unparse(target) for target in parent.targets}
    return any(
        isinstance(n, ast.Call)
        and isinstance(n.func, ast.Name | ast.Attribute)
        and ast.unparse(n.func) in targets
        for n in ast.walk(module.enclosing_function(node) or module.tree)
    )


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
        """Return what may run when an expression is called.

        Args:
            module: the module.
            node: the expression.
            receiver: the class of the first argument of the method that contains the expression.
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


# Calls that return one of their arguments, or a container of them.
_HOLDING = frozenset(
    {"partial", "getattr", "get", "staticmethod", "dict", "SimpleNamespace", "MappingProxyType"}
)


def interesting_names(module: Module, evaluator: Evaluator) -> frozenset[str]:
    """Return the identifiers that may name an Api in a module.

    Those that another module gives to an Api are among them, whether or not this one imports it.
    """
    passed = {name for _, name in evaluator.passed}
    known = evaluator.apis.last_names | evaluator.aliases | passed
    if (module, known) not in evaluator.names:
        evaluator.names[module, known] = with_aliases(module, known)
    return evaluator.names[module, known]


def with_aliases(module: Module, names: Iterable[str]) -> frozenset[str]:
    """Return some identifiers, and those that a module may give to what they name."""
    aliases = _find_aliases(module)
    found = set(names)
    left = list(found)
    while left:
        new = aliases.get(left.pop(), set()) - found
        found |= new
        left += new
    return frozenset(found)


@once
def _find_aliases(module: Module) -> dict[str, set[str]]:
    """Return the names whose values mention an identifier."""
    found: dict[str, set[str]] = defaultdict(set)
    for node in module.nodes:
        for name, value in _aliases_at(node):
            for part in ast.walk(value):
                word = part.value if isinstance(part, ast.Constant) else last_name(part)
                if isinstance(word, str):
                    found[word].add(name)
        if isinstance(node, ast.alias) and node.asname is not None:
            found[node.name.rpartition(".")[2]].add(node.asname)
    return dict(found)


def _aliases_at(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Yield the names that a node binds, each with what its value is one or a part of."""
    match node:
        case ast.Assign(targets=targets, value=value) if _alias_like(value):
            yield from ((name, value) for target in targets for name in _bound_names(target))
        case ast.AnnAssign(target=target, value=ast.expr() as value) if _alias_like(value):
            yield from ((name, value) for name in _bound_names(target))
        case ast.NamedExpr(target=target, value=value) if _alias_like(value):
            yield target.id, value
        case ast.Call(func=ast.Attribute(attr="SimpleNamespace") | ast.Name("SimpleNamespace")):
            yield from ((k.arg, k.value) for k in node.keywords if k.arg is not None)
        case ast.For() | ast.AsyncFor() | ast.comprehension():
            yield from ((name, node.iter) for name in _bound_names(node.target))
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
            for parameter in parameters(node):
                if (default := default_of(node, parameter)) is not None:
                    yield parameter.arg, default


def _bound_names(target: ast.expr) -> Iterator[str]:
    for part in ast.walk(target):
        if isinstance(getattr(part, "ctx", None), ast.Store) and (name := last_name(part)):
            yield name


def _alias_like(value: ast.expr) -> bool:
    match value:
        case ast.Name() | ast.Attribute() | ast.IfExp() | ast.BoolOp() | ast.Subscript():
            return True
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name in _HOLDING
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Dict(values=parts):
            return any(_alias_like(part) for part in parts)
    return False


# -- arguments that a transformation declares static, such as `jax.jit(f, static_argnames="mode")`,
# which hashes them

_OPTIONS = (
    *("static_argnums", "static_broadcasted_argnums", "nondiff_argnums"),
    *("static_argnames", "nondiff_argnames"),
)


def static_passed(
    evaluator: Evaluator, value: Value, call: ast.Call
) -> Iterator[tuple[ast.expr, str, bool]]:
    """Yield what a call passes for arguments that a transformation must not trace.

    Args:
        evaluator: evaluates the options.
        value: what is called: a function with transformations around it.
        call: the call.

    Yields:
        The argument, the option and its transformation, and whether the option certainly names it.
    """
    partials: list[ast.Call] = []
    bound = 0
    for layer in layers(value):
        match layer:
            case Partial(call=partial):
                partials.append(partial)
            case Bound():
                bound = 1
            case Wrapped(how=how, node=ast.Call(keywords=options)) if how.startswith("jax."):
                args, keywords = with_partials(call.args, call.keywords, partials)
                for option in options:
                    if option.arg in _OPTIONS:
                        reason = f"`{option.arg}` of {how}"
                        listed = listed_items(evaluator, layer.module, option.value)
                        named = _named(value, listed, args, keywords, bound)
                        if named is None:
                            passed = [*args, *(k.value for k in keywords)]
                            yield from ((arg, f"perhaps {reason}", False) for arg in passed)
                        else:
                            yield from ((arg, reason, True) for arg in named)


def _named(
    value: Value,
    listed: list[object] | None,
    args: list[ast.expr],
    keywords: list[ast.keyword],
    bound: int,
) -> list[ast.expr] | None:
    """Return the arguments that indices or names select; None if they are not known.

    `bound` leading parameters are not passed.
    """
    function = underlying(value)
    if listed is None or not isinstance(function, Function):
        return None
    names = [p.arg for p in positional_parameters(function.node)]
    passed = bind_call(function.node, args, keywords, bound).by_name
    selected = [
        names[item] if isinstance(item, int) and -len(names) <= item < len(names) else item
        for item in listed
    ]
    return [passed[name] for name in selected if isinstance(name, str) and name in passed]


def listed_items(
    evaluator: Evaluator, module: Module, node: ast.expr, depth: int = 3
) -> list[object] | None:
    """Return the indices or names that an option lists; None if they are not known."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        items = listed_items(evaluator, module, node.operand, 0)
        return items and [-item for item in items if isinstance(item, int)]
    match list(evaluator.values(module, node)):
        case [Constant(value=None)]:
            return []
        case [Constant(value=int() | str() as item)] if not isinstance(item, bool):
            return [item]
        case [Container() as container] if depth and not isinstance(container.node, ast.Dict):
            parts = [listed_items(evaluator, *place, depth - 1) for place in elements(container)]
            known = [part for part in parts if part is not None]
            return [item for part in known for item in part] if known == parts else None
    return None


def gradient_places(evaluator: Evaluator, wrapped: Wrapped) -> list[int]:
    """Return the `argnums` of `jax.grad(f, argnums=...)`; the first argument unless known."""
    call = wrapped.node if isinstance(wrapped.node, ast.Call) else ast.Call(wrapped.node, [], [])
    options = [*call.args[1:2], *(k.value for k in call.keywords if k.arg == "argnums")]
    listed = listed_items(evaluator, wrapped.module, options[-1]) if options else None
    return [item for item in listed or () if isinstance(item, int)] or [0]
