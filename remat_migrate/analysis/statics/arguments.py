"""An argument of a checkpointed function: its declaration, its uses, and what the calls pass.

From these follows whether JAX can trace it, whether it may be a static argument, and whether it is
data of the computation or an option.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace

from ...libraries.apis import CALL_WITH, COMPILERS, DIFFERENTIATE
from ...libraries.library_arguments import (
    ARRAY_ATTRIBUTES,
    LAYER_MODULES,
    OF_ANYTHING,
    STATIC_ATTRIBUTES,
    STATIC_BUILTINS,
    TRACED_MODULES,
)
from ...libraries.library_needs import has_static_result, is_array_method
from ..names.module import (
    FunctionNode,
    Module,
    Place,
    last_name,
    own_nodes,
    parameters,
    reads_of,
)
from ..needs.needs import IDENTITY, MATCH, Key, Need, Needs, changes_in_place
from ..project import Project
from ..sites.calls import Call, Uses, overrides_of, passed_for
from ..values.bind import Arguments, bind_call, default_of, positional_parameters
from ..values.containers import elements, looped
from ..values.contents import contents_of
from ..values.declarations import (
    Kind,
    annotation_kind,
    class_annotations,
    default_kind,
    is_decorated,
    join,
    self_assignments,
)
from ..values.evaluator import (
    Overrides,
    Target,
    annotated_values,
    bodies_of,
    full_arguments,
    gradient_places,
    is_declared_static,
    is_frozen,
    is_pytree,
    is_static_field,
    project_bases,
    receiver_of,
    returned_expressions,
    skipped,
    targets_of,
)
from ..values.values import (
    NOTHING,
    Bound,
    Class,
    Constant,
    Container,
    External,
    Function,
    Instance,
    Parameter,
    Partial,
    Result,
    Value,
    Values,
    Wrapped,
    alternatives,
    underlying,
)

_NUMPY_SCALARS = frozenset(
    f"numpy.{name}"
    for name in (
        "bool_", "int8", "int16", "int32", "int64", "uint8", "uint32", "float16", "float32",
        "float64", "dtype", "prod",
    )
)  # fmt: skip
_PYTHON_BUILTINS = STATIC_BUILTINS | {"int", "bool", "str", "float", "range", "any", "all"}
_ARRAYS = ("jax.numpy.", "jax.random.", "jax.lax.", "jax.nn.", "numpy.", "jax.device_put")
_STEPS = 4
# Of one use of a name; an expression with more has no known values, either.
_MOST_BINDINGS = 256


def argument_kind(project: Project, module: Module, node: ast.expr, depth: int = _STEPS) -> Kind:
    """Return the kind of an expression, following names, callers and classes for a few steps."""
    return project.once(_kind, module, node, depth) if depth > 0 else "unknown"


def _kind(project: Project, module: Module, node: ast.expr, depth: int) -> Kind:
    match node:
        case ast.Constant(value=float()):
            return "unknown"  # it may be passed for an argument that is differentiated
        case ast.Constant() | ast.Lambda() | ast.JoinedStr() | ast.UnaryOp(op=ast.Not()):
            return "python"
        case ast.Attribute():
            return _attribute(project, module, node, depth)
        case ast.Subscript():
            return _subscript(project, module, node, depth)
        case ast.Name():
            return _name(project, module, node, depth)
        case ast.Call():
            return _call(project, module, node, depth)
    return _joined(project, module, _computed_from(node), depth)


def _joined(project: Project, module: Module, nodes: Iterable[ast.expr], depth: int) -> Kind:
    return join([argument_kind(project, module, node, depth) for node in nodes])


def _objects(project: Project, module: Module, node: ast.expr) -> Kind:
    """Return "python" for functions, classes, dtypes and constants."""
    values = project.evaluator.values(module, node)
    if values and all(
        isinstance(v, Function | Class | External | Bound | Partial | Wrapped | Constant)
        for v in values
    ):
        return "python"
    return "unknown"


def _attribute(project: Project, module: Module, node: ast.Attribute, depth: int) -> Kind:
    if node.attr in STATIC_ATTRIBUTES:
        return "python"
    if _objects(project, module, node) == "python":
        return "python"
    for value in project.evaluator.values(module, node.value):
        if isinstance(value, Instance) and isinstance(value.cls, Class):
            kinds: list[Kind] = []
            for owner in project_bases(project.evaluator, value.cls):
                annotation = class_annotations(owner.node).get(node.attr)
                if annotation is not None:
                    # A float of a module or configuration is not traced.
                    is_float = ast.unparse(annotation) == "float"
                    return "python" if is_float else annotation_kind(annotation)
                for expr in self_assignments(owner.node).get(node.attr, ()):
                    kinds.append(argument_kind(project, owner.module, expr, depth - 1))
            if kinds:
                return join(kinds)
    return "unknown"


def _subscript(project: Project, module: Module, node: ast.Subscript, depth: int) -> Kind:
    values = project.evaluator.values(module, node)
    if values and all(isinstance(v, Constant) for v in values):
        return "python"
    return argument_kind(project, module, node.value, depth - 1)


def _name(project: Project, module: Module, node: ast.Name, depth: int) -> Kind:
    kinds: list[Kind] = []
    bindings = module.reaching(node)
    if len(bindings) > _MOST_BINDINGS:
        return "unknown"
    for binding in bindings:
        match binding.kind:
            case "assign" | "augment":
                assert binding.value is not None
                value = _unpacked(binding.value, binding.path)
                kinds.append(argument_kind(project, module, value, depth - 1))
            case "element":
                assert binding.value is not None
                kinds.append(_element(project, module, binding.value, binding.path, depth))
            case "parameter":
                assert isinstance(binding.node, ast.arg)
                assert isinstance(binding.scope.node, FunctionNode)
                kinds.append(
                    project.once(parameter_kind, module, binding.scope.node, binding.node, depth)
                )
            case "def" | "class" | "import":
                kinds.append(_objects(project, module, node))
            case _:
                kinds.append("unknown")
    return join(kinds)


def _element(
    project: Project, module: Module, iterable: ast.expr, path: tuple[int, ...], depth: int
) -> Kind:
    part = looped(module, iterable, path)
    match part.source:
        case ast.Call(func=ast.Name(id="range")):
            return "python"
    if part.kind == "position":
        return "python"
    return join(
        [
            argument_kind(project, value.module, _unpacked(item, part.path), depth - 1)
            for value in project.evaluator.values(module, part.source)
            if isinstance(value, Container) and isinstance(value.node, ast.List | ast.Tuple)
            for item in value.node.elts
        ]
    )


def _call(project: Project, module: Module, node: ast.Call, depth: int) -> Kind:
    values = project.evaluator.values(module, node.func)
    if values or not isinstance(node.func, ast.Attribute):
        return join([_result(project, module, node, value, depth) for value in values])
    match node.func.attr:
        case "startswith" | "endswith" | "lower" | "upper" | "item":
            return "python"
        case "get":
            return "unknown"
    return argument_kind(project, module, node.func.value, depth - 1)


def _result(project: Project, module: Module, node: ast.Call, callee: Value, depth: int) -> Kind:
    """Return the kind of the result of a call, given one of the values that it may call."""
    match callee:
        case External(name) if name.removeprefix("builtins.") in _PYTHON_BUILTINS:
            return "python"
        case External(name) if name.startswith("builtins."):
            return _joined(project, module, node.args, depth - 1)
        case External(name) if name in _NUMPY_SCALARS or has_static_result(name):
            return "python"
        case External(name) if name.startswith(_ARRAYS):
            return "array"
        case External(name) if name.startswith(("os.", "math.")):
            return "python"
        case Function(module=owner, node=function):
            if not any(isinstance(n, ast.Yield) for n in ast.walk(function)):
                return _joined(project, owner, returned_expressions(function), depth - 2)
    return "unknown"


# -- parameters


def parameter_kind(
    project: Project, module: Module, function: FunctionNode, node: ast.arg, depth: int = _STEPS
) -> Kind:
    """Return the kind of a parameter by its annotation, default, gradients and callers."""
    kind = annotation_kind(node.annotation)
    if kind != "unknown":
        return kind
    default = default_of(function, node)
    kind = default_kind(default)
    if isinstance(default, ast.Name) and depth > 0:
        kind = argument_kind(project, module, default, depth - 1)
    if kind != "unknown":
        return kind
    places = project.once(_differentiated, module).get(function, ())
    if any(node in positional_parameters(function)[p : p + 1] for p in places):
        return "array"
    if depth <= 0:
        return "unknown"
    passed = passed_for(project, Parameter(module, function, node.arg)).places
    return join([argument_kind(project, *place, depth - 1) for place in passed])


def origins_of(
    project: Project, module: Module, node: ast.expr, depth: int = _STEPS
) -> dict[Place, None]:
    """Return an expression, or for a parameter its default and what the callers pass for it."""
    return project.once(_origins, module, node, depth)


def _origins(project: Project, module: Module, node: ast.expr, depth: int) -> dict[Place, None]:
    bindings = module.reaching(node) if isinstance(node, ast.Name) else frozenset()
    own = [b for b in bindings if b.kind == "parameter"] if depth > 0 else []
    found: dict[Place, None] = {}
    if not own or len(own) < len(bindings):
        found[module, node] = None
    for binding in own:
        assert isinstance(binding.scope.node, FunctionNode)
        passed = passed_for(project, Parameter(module, binding.scope.node, binding.name))
        if passed.default is not None:
            found[passed.default] = None
        for place in passed.places:
            found |= origins_of(project, *place, depth - 1)
    return found


# -- what is differentiated


def _differentiated(project: Project, module: Module) -> dict[FunctionNode, set[int]]:
    """Return the positions of differentiated or traced arguments by function."""
    found: dict[FunctionNode, set[int]] = {}
    for node in module.nodes:
        if isinstance(node, ast.Call) and node.args:
            for body in bodies_of(project.evaluator, module, node):
                _mark(project, project.values(module, body), range(8), found)
            # Also through a function of the project that returns `jax.grad(f)`.
            _mark_transformed(project, project.values(module, node), found)
        elif isinstance(node, ast.FunctionDef) and node.decorator_list:
            _mark_transformed(project, project.evaluator.definition(module, node), found)
    return found


def _mark_transformed(
    project: Project, values: Values, found: dict[FunctionNode, set[int]]
) -> None:
    """Mark the arguments of `jax.grad(f)`, and of `jax.jit(f)` if none is static."""
    for value in values:
        if isinstance(value, Wrapped):
            keywords = value.node.keywords if isinstance(value.node, ast.Call) else []
            if value.how in DIFFERENTIATE:
                _mark(project, {value.func}, gradient_places(project.evaluator, value), found)
            elif value.how in COMPILERS:
                if not any((k.arg or "static").startswith("static") for k in keywords):
                    _mark(project, {value.func}, range(8), found)


def _mark(
    project: Project,
    values: Iterable[Value],
    places: Iterable[int],
    found: dict[FunctionNode, set[int]],
) -> None:
    for value in values:
        for target in targets_of(project.evaluator, value):
            positional = positional_parameters(target.function.node)
            # A keyword of a partial is not traced, and no positional argument can follow it.
            given = next(
                (i for i, p in enumerate(positional) if p.arg in target.given),
                len(positional),
            )
            found.setdefault(target.function.node, set()).update(
                p + target.skip for p in places if p + target.skip < given
            )


def _computed_from(node: ast.expr) -> Sequence[ast.expr]:
    """Return the parts whose kinds decide on an expression: its operands, items or alternatives."""
    match node:
        case ast.UnaryOp(operand=part):
            return [part]
        case ast.BinOp(left=left, right=right):
            return [left, right]
        case ast.Compare(ops=ops, left=left, comparators=others):
            # The result of an identity or membership test is a bool.
            is_bool = all(isinstance(op, ast.Is | ast.IsNot | ast.In | ast.NotIn) for op in ops)
            return [ast.Constant(True)] if is_bool else [left, *others]
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
            return parts
        case ast.Dict(values=parts):
            return parts
    return alternatives(node)


def _unpacked(value: ast.expr, path: Iterable[int]) -> ast.expr:
    """Return the part of a value that a target at a path of nested tuples gets."""
    for step in path:
        if not isinstance(value, ast.Tuple | ast.List) or not 0 <= step < len(value.elts):
            break
        value = value.elts[step]
    return value


BoundCalls = tuple[tuple[Call, Arguments], ...]
Located = tuple[Module, ast.expr]

# How deep containers are looked into, how many calls data is followed into, and through how many
# callers it is followed back.
_DEPTH, _CALLS, _CALLERS = 6, 3, 4
# Types of which JAX rejects all values.
_OBJECTS = ("str", "bytes", "Callable")
# Functions that return such values.
_OBJECT_RESULTS = frozenset(
    f"builtins.{name}" for name in ("range", "slice", "set", "frozenset", "iter")
) | {"numpy.random.default_rng", "numpy.random.RandomState", "random.Random"}


def project_needs(project: Project) -> Needs:
    """Return the parameters that must be concrete if no subclass overrides a method."""
    return project.once(_needs, False)


def needs_with_overrides(project: Project) -> Needs:
    """Return the same if an object may be an instance of a subclass.

    This searches the project for subclasses, so fixes use it, but checks do not.
    """
    return project.once(_needs, True)


def _needs(project: Project, with_overrides: bool) -> Needs:
    return Needs(overrides_of(project) if with_overrides else Overrides(project.evaluator))


class _NumPyScalar:
    """The type of what a function of NumPy returns, which may equal a Python number."""


@dataclass(frozen=True, eq=False, slots=True)
class Argument:
    """A parameter of a checkpointed function, or one item of its `*args` or `**kwargs`.

    Attributes:
        project: the project.
        target: the function.
        parameter: the parameter.
        calls: the calls of the function, bound to its signature.
        index: the position in `*args` or the key in `**kwargs`.
    """

    project: Project
    target: Target
    parameter: ast.arg
    calls: BoundCalls = ()
    index: Key | None = None

    # -- declaration

    @property
    def name(self) -> str:
        """The parameter's name."""
        return self.parameter.arg

    @property
    def module(self) -> Module:
        """The module that defines the function."""
        return self.target.function.module

    @property
    def default(self) -> ast.expr | None:
        """The parameter's default."""
        return default_of(self.target.function.node, self.parameter)

    @property
    def defaults(self) -> list[Located]:
        """The default with its module, if there is one."""
        return [] if self.default is None else [(self.module, self.default)]

    @property
    def annotated_kind(self) -> Kind:
        """What the annotation says of the kind of value."""
        return annotation_kind(self.parameter.annotation)

    @property
    def annotated_instances(self) -> Values:
        """The instances of the project's classes that the annotation names."""
        if self.parameter.annotation is None:
            return NOTHING
        return annotated_values(self.project.evaluator, self.module, self.parameter.annotation)

    @property
    def is_variadic(self) -> bool:
        """Whether the parameter is `*args` or `**kwargs`, whose items are arguments."""
        signature = self.target.function.node.args
        return self.parameter in (signature.vararg, signature.kwarg)

    @property
    def is_self(self) -> bool:
        """Whether this is `self`, or the module that a lifted function takes first."""
        positional = positional_parameters(self.target.function.node)
        if self.target.owner is None or not positional or positional[0] is not self.parameter:
            return False
        return not is_decorated(self.target.function.node, "staticmethod")

    @property
    def is_primary(self) -> bool:
        """Whether this is the first argument after `self`, and the result depends on its value."""
        positional = positional_parameters(self.target.function.node)
        if positional and replace(self, parameter=positional[0]).is_self:
            del positional[0]
        return positional[:1] == [self.parameter] and self.determines_result

    @property
    def determines_result(self) -> bool:
        """Whether the function's result depends on the argument's value."""
        function, owner = self.target.function, self.target.owner
        results = needs_with_overrides(self.project).result(function, owner)
        return any(d.parameter == self.name for d in results)

    # -- what the calls pass

    @property
    def passed(self) -> list[Located]:
        """The expressions that the calls pass."""
        found: list[Located] = []
        for call, arguments in self.calls:
            passed: list[ast.expr] = []
            if isinstance(self.index, int):
                passed += arguments.star[self.index : self.index + 1] if self.index >= 0 else ()
            elif isinstance(self.index, str):
                passed += (k.value for k in arguments.double_star if k.arg == self.index)
            elif self.name in arguments.by_name:
                passed.append(arguments.by_name[self.name])
            elif self.parameter is self.target.function.node.args.vararg:
                passed += arguments.star
            found += ((call.module_of(expr), expr) for expr in passed)
        return found

    @property
    def origins(self) -> Iterator[Located]:
        """What the calls pass, or where they pass on a parameter, what their callers pass."""
        for located in self.passed:
            yield from origins_of(self.project, *located)

    def is_known(self, need: Need) -> bool:
        """Return whether a value that is needed is known though the argument is traced.

        It is the truth of a container, or a static field of a pytree.
        """
        origins = [(m, expr) for m, expr in self.origins if not is_none(expr)]
        project = self.project
        if need.is_of_truth:
            return bool(origins) and all(
                (values := project.values(m, expr)) and all(map(_is_container, values))
                for m, expr in origins
            )
        if not isinstance(need.index, str) or need.traced:
            return False
        instances = [self.annotated_instances] if self.annotated_instances else []
        instances = instances or [project.values(*located) for located in origins]
        return bool(instances) and all(
            values and all(_holds_static(project, value, need.index) for value in values)
            for values in instances
        )

    def is_left_out(self, uses: Uses) -> bool:
        """Return whether every call certainly leaves the argument to its default."""
        if not uses.calls or uses.escapes or self.passed:
            return False
        return not any(arguments.unclear for _, arguments in self.calls)

    @property
    def first_array(self) -> Located | None:
        """The first array that a call passes, or the default if that is one."""
        places = (*self.passed, *self.defaults)
        return next((p for p in places if argument_kind(self.project, *p) == "array"), None)

    @property
    def kind(self) -> Kind:
        """The kind of what the calls pass."""
        return join([argument_kind(self.project, *located) for located in self.passed])

    @property
    def is_option(self) -> bool:
        """Whether this is a bool, a string, an integer or a function, as far as the code shows."""
        default = self.default
        if self.annotated_kind == "array":
            return False
        if default_kind(default) == "python" or self.annotated_kind == "python":
            return True
        if isinstance(default, ast.Name) and is_python_value(self.project, self.module, default):
            return True
        passed = [(module, expr) for module, expr in self.passed if not is_none(expr)]
        return bool(passed) and all(is_python_value(self.project, *located) for located in passed)

    # -- what the function does with it

    @property
    def uses(self) -> list[ast.Name]:
        """The reads of the parameter in the function."""
        return reads_of(self.module, self.name, self.parameter)

    @property
    def changed_array(self) -> ast.AugAssign | None:
        """Where the function changes an array of NumPy that a call passes: `x += 1`."""
        passed = (value for place in self.passed for value in self.project.values(*place))
        if not any(isinstance(v, Result) and v.name.startswith("numpy.") for v in passed):
            return None
        scope = self.module.scope_of(self.target.function.node)
        nodes = [binding.node for binding in scope.bindings.get(self.name, ())]
        changes = [node for node in nodes if isinstance(node, ast.AugAssign)]
        return changes[0] if changes and len(changes) == len(nodes) - 1 else None

    @property
    def iterator(self) -> Place | None:
        """An iterator that a call passes, or a view of a dictionary, which JAX does not take."""
        return next((place for place in self.passed if _makes_iterator(*place)), None)

    @property
    def has_attributes(self) -> bool:
        """Whether the function reads attributes that neither an array nor a string has."""
        return any(
            isinstance(above := self.module.parent(use), ast.Attribute)
            and above.attr not in (*STATIC_ATTRIBUTES, "real", "imag", "value")
            and not hasattr(str, above.attr)
            for use in self.uses
        )

    @property
    def is_immutable(self) -> bool:
        """Whether what is passed cannot change, and equal values are interchangeable.

        JAX traces once for equal static arguments. A list or an object may change and stay equal to
        itself, and `1`, `1.0` and `True` are equal.
        """
        if not self._is_passed_immutable():
            return False
        annotated = [
            v.cls
            for v in self.annotated_instances
            if isinstance(v, Instance) and isinstance(v.cls, Class)
        ]
        if annotated:
            return all(is_frozen(self.project.evaluator, cls) for cls in annotated)
        if self.has_attributes:
            return False
        if self.is_variadic:
            return True
        contents = contents_of(self.project.evaluator, self.module, self.target.function.node)
        bindings = {binding for use in self.uses for binding in self.module.reaching(use)}
        if any(b.node is self.parameter and contents.shows_container(b) for b in bindings):
            return False
        if not any(_is_container_use(self.module, use) for use in self.uses):
            return True
        passed = self.passed
        if not passed:
            return self.annotated_kind == "python"
        return all(is_python_value(self.project, *located) for located in passed)

    @property
    def _is_of_equal_types(self) -> bool:
        """Whether values of different types that may be equal are passed, or left as the default.

        If the function tests the type, one whose type is not known may be equal to another, too.
        """
        places = [*self.origins, *self.defaults]
        types = [_types(self.project, *place) for place in places]
        if len({bool, int, float, _NumPyScalar} & set().union(*types)) > 1:
            return True
        function, owner = self.target.function, self.target.owner
        is_sure = all(types) and not any(isinstance(expr, ast.Attribute) for _, expr in places)
        return (
            self.annotated_kind != "python"
            and not is_sure
            and any(
                need.type_test
                or need.reason in (MATCH, "`isinstance()`", "`type()`")
                or (need.reason == IDENTITY and need.certain)  # `1 is True` is false
                for need in needs_with_overrides(self.project).of(function, owner)
                if need.parameter == self.name
            )
        )

    def _is_passed_immutable(self) -> bool:
        if self._is_of_equal_types:
            return False
        return not any(
            argument_kind(self.project, *place) == "array"
            or any(_may_change(self.project, v) for v in _values_within(self.project, *place, 0))
            or any(
                isinstance(v, Container) and not isinstance(v.node, ast.Tuple)
                for v in _values_within(self.project, *place)
            )
            for place in self.passed
        )


def _may_change(project: Project, value: Value) -> bool:
    """Return whether a value is an object whose state may change, or one is bound to it."""
    match value:
        case Instance(cls=Class() as cls):
            return not is_frozen(project.evaluator, cls)
    # A bound method is equal whatever state its object has.
    return isinstance(value, Instance | Result) or (
        isinstance(value, Bound) and isinstance(value.receiver, Instance)
    )


def is_none(expr: ast.expr) -> bool:
    """Return whether an expression is `None`."""
    return isinstance(expr, ast.Constant) and expr.value is None


def _holds_static(project: Project, value: Value, field: str) -> bool:
    match value:
        case Instance(cls=Class() as cls):
            return is_static_field(project.evaluator, cls, field)
    return False


def _is_container(value: Value) -> bool:
    return isinstance(value, Container) or value == Constant(None)


def is_python_value(project: Project, module: Module, node: ast.expr) -> bool:
    """Return whether an argument is certainly a Python value; a float literal is one, too."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant):
        return True
    if isinstance(node, ast.Constant):
        return node.value is not None
    return argument_kind(project, module, node) == "python"


def is_array_use(project: Project, module: Module, node: ast.expr) -> bool:
    """Return whether an expression stands where arrays do."""
    match module.parent(node):
        case ast.BinOp(left=left, right=right):
            # `n - 1` may be any number.
            other = right if left is node else left
            return not (isinstance(other, ast.Constant) and isinstance(other.value, int | str))
        case ast.UnaryOp(op=ast.USub()) | ast.AugAssign():
            return True
        case ast.Attribute(attr=attr):
            return attr in ("T", "at") or attr in STATIC_ATTRIBUTES or is_array_method(attr)
        case ast.Call(func=func, args=args) if func is not node:
            values = project.values(module, func)
            names = {v.name for v in values if isinstance(v, External)}
            layers = [v.cls for v in values if isinstance(v, Instance)]
            if node in args[:1] and any(
                isinstance(layer, External) and layer.name.startswith(LAYER_MODULES)
                for layer in layers
            ):
                return True
            return (node in args[1:] and bool(names & CALL_WITH.keys())) or any(
                name.startswith(TRACED_MODULES) and name.rpartition(".")[2] not in OF_ANYTHING
                for name in names
            )
    return False


def _is_container_use(module: Module, use: ast.Name) -> bool:
    """Return whether a use is one of a container or an array, which may change."""
    match module.parent(use):
        case ast.Subscript(value=base):
            return base is use
        case ast.For(iter=iterable) | ast.comprehension(iter=iterable):
            return iterable is use
        case ast.Attribute(attr=attr):
            return is_array_method(attr) or attr in ARRAY_ATTRIBUTES
        case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[right]):
            return right is use
        case ast.Call(func=ast.Name(id="zip" | "enumerate" | "reversed" | "sorted" | "len")):
            return True
    return False


def _types(project: Project, module: Module, node: ast.expr) -> set[type]:
    """Return the types of the values that an expression may be; `Constant`s count as literals."""
    match node:
        case ast.UnaryOp(op=ast.Not()) | ast.Compare():
            return {bool}
        case ast.UnaryOp(operand=operand):
            return _types(project, module, operand)
    return {
        type(value.value)
        if isinstance(value, Constant)
        else _NumPyScalar
        if isinstance(value, Result) and value.name.startswith("numpy.")
        else type(value)
        for value in project.values(module, node)
    }


# -- what JAX cannot trace


def is_untraceable(argument: Argument) -> bool:
    """Return whether some call passes a string, a function or a class, which JAX rejects.

    The declaration, the default, and what callers pass on tell.
    """
    annotated, annotation = argument.annotated_instances, argument.parameter.annotation
    shown = (*argument.passed, *argument.defaults)
    return (
        (annotation is not None and last_name(annotation) in _OBJECTS)
        or (bool(annotated) and all(_is_rejected(argument.project, v) for v in annotated))
        or any(_holds_object(argument.project, *place) for place in shown)
    )


def is_known_object(argument: Argument) -> bool:
    """Return whether calls, the annotation or the default show what such an argument is."""
    if argument.kind == "python" or argument.annotated_instances:
        return True
    return any(_holds_object(argument.project, *place) for place in argument.defaults)


def _is_rejected(project: Project, value: Value) -> bool:
    """Return whether JAX rejects a value as an argument: a function, a string, an object."""
    match value:
        case Function() | Class() | Bound() | Partial() | Wrapped():
            return True
        case External(name):
            # A function or dtype of a library, named but not called.
            return not name.endswith((".pi", ".inf", ".nan", ".e", ".newaxis"))
        case Constant(value=str() | bytes()):
            return True
        case Result(name):
            return name in _OBJECT_RESULTS
        case Instance(cls=External(name)):
            # `types.SimpleNamespace(...)`; what array libraries make may be arrays.
            return name.partition(".")[0] in ("types", "pathlib", "argparse", "collections", "enum")
        case Instance(cls=Class() as cls):
            return not is_pytree(project.evaluator, cls) or _has_object_field(project, cls)
        case Container(node=ast.Set() | ast.SetComp()):
            return True
    return False


def untraceable_result(project: Project, function: Function, static: Set[str]) -> ast.expr | None:
    """Return what a function returns that no checkpoint can: a function, a string, an object, or
    beside arrays, a number that it computes in Python, such as from `static` parameters.
    """
    module, returned_names = function.module, set[str]()
    for returned in returned_expressions(function.node):
        if _holds_object(project, module, returned):
            return returned
        if _makes_iterator(module, returned):
            return returned
        for part in _parts(returned):
            if _is_text(module, part):
                return part
            if isinstance(part, ast.Name):
                returned_names.add(part.id)
        for part in returned.elts[1:] if isinstance(returned, ast.Tuple) else ():
            names = {node.id for node in ast.walk(part) if isinstance(node, ast.Name)}
            is_computed = bool(names) and names <= static
            if is_computed or (names and argument_kind(project, module, part) == "python"):
                return part
    for node in own_nodes(function.node):
        if isinstance(node, ast.Yield | ast.YieldFrom):
            return node
        for held, stored in changes_in_place(node):  # `out["name"] = name`
            if isinstance(held, ast.Name) and held.id in returned_names:
                for part in stored:
                    if _holds_object(project, module, part) or _is_text(module, part):
                        return part
    return None


def _makes_iterator(module: Module, expr: ast.expr) -> bool:
    """Return whether an expression is an iterator, or a view of a dictionary."""
    bindings = module.reaching(expr) if isinstance(expr, ast.Name) else ()
    for made in (expr, *(b.value for b in bindings if not b.path)):
        match made:
            case ast.GeneratorExp() | ast.Call(func=ast.Name(id="map" | "filter" | "zip" | "iter")):
                return True
            case ast.Call(func=ast.Name(id="enumerate" | "reversed")):
                return True
            case ast.Call(func=ast.Attribute(attr="items" | "values" | "keys"), args=[]):
                return True
    return False


def _parts(expr: ast.expr) -> Iterator[ast.expr]:
    """Yield an expression, and the parts of the containers that it writes out."""
    yield expr
    match expr:
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Dict(values=parts):
            for part in parts:
                yield from _parts(part)


def _is_text(module: Module, expr: ast.expr) -> bool:
    """Return whether an expression makes a string."""
    bindings = module.reaching(expr) if isinstance(expr, ast.Name) else ()
    for made in (expr, *(b.value for b in bindings if not b.path)):
        match made:
            case ast.JoinedStr() | ast.Call(func=ast.Name(id="str" | "repr")):
                return True
            case ast.Attribute(attr="__name__" | "__qualname__"):
                return True
    return False


def _holds_object(project: Project, module: Module, expr: ast.expr) -> bool:
    return any(_is_rejected(project, value) for value in _values_within(project, module, expr))


def _values_within(
    project: Project, module: Module, expr: ast.expr, callers: int = _CALLERS, depth: int = _DEPTH
) -> Iterator[Value]:
    """Yield what an expression may be and what containers in it hold, by what some callers of
    callers pass on, too.
    """
    # `x = (x, y)` in a loop has no end.
    for place in origins_of(project, module, expr, callers) if depth > 0 else ():
        for value in project.values(*place):
            yield value
            if isinstance(value, Container):
                for part in elements(value):
                    yield from _values_within(project, *part, callers, depth - 1)


def _has_object_field(project: Project, cls: Class) -> bool:
    return any(
        isinstance(field, ast.AnnAssign)
        and any(last_name(n) in _OBJECTS for n in ast.walk(field.annotation))
        and not is_declared_static(field)
        for owner in project_bases(project.evaluator, cls)
        for field in owner.node.body
    )


# -- data or option


def is_data(argument: Argument) -> bool:
    """Return whether an argument is data: the function computes with it, or the calls show it."""
    project = argument.project
    if argument.is_primary or is_computed_with(argument):
        return True
    return any(
        _is_item(expr) or argument_kind(project, module, expr) == "array"
        for module, expr in replace(argument, index=None).origins
    )


def _is_item(expr: ast.expr) -> bool:
    """Return whether an expression is like `batch["x"]`; options are attributes and names."""
    return isinstance(expr, ast.Subscript) and isinstance(expr.slice, ast.Constant)


def is_computed_with(argument: Argument, depth: int = _CALLS) -> bool:
    """Return whether the function, or one that it calls, uses the argument or an item as data."""
    module, uses = argument.module, set(argument.uses)
    # `up, down = params`
    is_unpacked = any(isinstance(module.parent(use), ast.Assign) for use in uses)
    items = {
        node
        for node in (ast.walk(argument.target.function.node) if is_unpacked else ())
        if isinstance(node, ast.Name)
        and any(binding.path and binding.value in uses for binding in module.reaching(node))
    }
    return any(_is_data_use(argument.project, module, use, depth) for use in uses | items)


def _is_data_use(project: Project, module: Module, use: ast.expr, depth: int) -> bool:
    while isinstance(above := module.parent(use), ast.Subscript) and above.value is use:
        use = above
    if is_array_use(project, module, use):
        return True
    call = module.parent(use)
    if isinstance(call, ast.keyword):
        call = module.parent(call)
    if depth <= 0 or not isinstance(call, ast.Call) or call.func is use:
        return False
    return any(
        _takes_data(project, value, call, use, depth - 1)
        for value in project.values(module, call.func)
    )


def _takes_data(
    project: Project, value: Value, call: ast.Call, passed: ast.expr, depth: int
) -> bool:
    """Return whether a callee takes what a call passes as data."""
    match value:
        case Wrapped(how="jax.vmap", node=ast.Call(args=[_], keywords=[])):
            return True
    match underlying(value):
        case Instance(cls=External(name)) if name.startswith(LAYER_MODULES):
            return passed in call.args[:1]
        case Function() as function:
            args, keywords = full_arguments(value, call)
            by_name = bind_call(function.node, args, keywords, skipped(value)).by_name
            target = Target(function, receiver_of(value))
            return any(
                by_name.get(parameter.arg) is passed
                and is_computed_with(Argument(project, target, parameter), depth)
                for parameter in parameters(function.node)
            )
    return False


def suggests_option(need: Need) -> bool:
    """Return whether a need is in a place that takes Python values rather than arrays.

    Calls of the value and calls of code that cannot be seen are judged elsewhere.
    """
    elsewhere = need.operands or need.opaque or need.called
    return not elsewhere and not need.reason.startswith("an argument of")


def may_be_option(argument: Argument, uses: Uses) -> bool:
    """Return whether a parameter that only *may* be needed can be an option as well as an array.

    It can if nothing is known of what is passed, and the function does not compute with it.
    """
    if argument.annotated_instances or argument.is_left_out(uses):
        return False
    function = argument.target.function
    declared = parameter_kind(argument.project, function.module, function.node, argument.parameter)
    return "array" not in (declared, argument.kind) and not is_data(argument)


def may_be_ignored_option(argument: Argument, uses: Uses) -> bool:
    """Return whether an argument that the function ignores may be a string, which JAX rejects."""
    if argument.kind != "unknown" or argument.determines_result:
        return False
    return may_be_option(argument, uses)
