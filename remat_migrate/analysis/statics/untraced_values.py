"""Arrays that nothing traces: NumPy's, and results of `jax.numpy` that depend on no argument.

A value computed from them alone is concrete wherever the old code could read it: in a compiled
function, it could not.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from ...libraries.library_arguments import STATIC_ATTRIBUTES, TRACED_MODULES
from ..names.module import Module
from ..names.scopes import Binding, FunctionNode
from ..needs.need import Need
from ..project import Project
from ..values.bind import default_of, positional_parameters
from ..values.callees import underlying
from ..values.evaluator import returned_expressions
from ..values.values import External, Function, ModuleValue
from .argument_kinds import kinds_of
from .arguments import Argument

_DEPTH = 12
_PYTHON = ("builtins.", "math.", "itertools.")
_JAX = (*TRACED_MODULES, "jax.device_put", "jax.tree")
# Calls that read the values of a JAX array into Python or NumPy.
_READERS = frozenset(
    {
        "builtins.bool", "builtins.int", "builtins.float", "builtins.range", "numpy.asarray",
        "numpy.array",
    }
)  # fmt: skip


def is_untraced(project: Project, module: Module, node: ast.expr) -> bool:
    """Return whether an expression is certainly not a tracer."""
    return _Untraced(project, (*_PYTHON, *_JAX)).holds(module, node, _DEPTH)


def is_concrete_inside(argument: Argument, needs: Sequence[Need]) -> bool:
    """Return whether no call passes a tracer, and the values are available inside the checkpoint.

    Inside a checkpointed function, an operation on a JAX array returns a tracer, unless it runs at
    compile time.
    """
    project, passed = argument.project, argument.passed
    if argument.default is not None:
        passed = [*passed, (argument.module, argument.default)]
    if not all(is_untraced(project, *located) for located in passed):
        return False
    plain = _Untraced(project, _PYTHON)
    if all(plain.holds(module, expr, _DEPTH) for module, expr in passed):
        return True
    operations = {operation for need in needs for _, operation in need.traced}
    return all(_is_computed(argument, need.node, operations) for need in needs)


def _is_computed(argument: Argument, node: ast.expr, hoisted: Collection[ast.expr]) -> bool:
    """Return whether an expression is the argument, or computed from it by `hoisted` operations."""
    module = argument.module

    def are_computed(nodes: Iterable[ast.expr]) -> bool:
        return all(_is_computed(argument, n, hoisted) for n in nodes)

    if node in hoisted:
        used = (n for n in ast.walk(node) if isinstance(n, ast.Name))
        return are_computed(n for n in used if any(b.kind != "import" for b in module.reaching(n)))
    match node:
        case ast.Name():
            bindings = module.reaching(node)
            values = [b.value for b in bindings if b.kind == "assign" and b.value is not None]
            if any(b.node is argument.parameter for b in bindings):
                return len(bindings) == 1
            return len(values) == len(bindings) > 0 and are_computed(values)
        case ast.Call(func=ast.Attribute(value=value, attr="tolist" | "item"), args=[]):
            return are_computed([value])
        case ast.Call(args=[value]):
            callees = argument.project.values(module, node.func)
            names = {v.name for v in callees if isinstance(v, External)}
            return bool(names) and names <= _READERS and are_computed([value])
    return False


@dataclass(frozen=True)
class _Untraced:
    """Tells whether expressions consist of constants and of calls of NumPy and `libraries`."""

    project: Project
    libraries: tuple[str, ...]

    def holds(self, module: Module, node: ast.expr, depth: int) -> bool:
        if depth <= 0:
            return False
        match node:
            case ast.Constant() | ast.JoinedStr():
                return True
            case ast.Attribute(attr=attr) if attr in STATIC_ATTRIBUTES:
                return True
            case ast.Name():
                bindings = module.reaching(node)
                if not bindings:
                    return bool(self.project.values(module, node))  # a builtin
                return all(self._binding(module, b, depth - 1) for b in bindings)
            case ast.Attribute():
                values = self.project.values(module, node)
                if values and all(isinstance(v, External) for v in values):
                    return True  # `np.pi`
                return not isinstance(node.value, ast.Name) and self.holds(
                    module, node.value, depth - 1
                )
            case ast.Call():
                return self._call(module, node, depth - 1)
            case (
                ast.Tuple() | ast.List() | ast.Set() | ast.Dict() | ast.Subscript() | ast.Slice()
                | ast.UnaryOp() | ast.BinOp() | ast.BoolOp() | ast.Compare() | ast.IfExp()
                | ast.Starred() | ast.NamedExpr()
            ):  # fmt: skip
                return self._all(
                    module,
                    (c for c in ast.iter_child_nodes(node) if isinstance(c, ast.expr)),
                    depth - 1,
                )
        return False

    def _all(self, module: Module, nodes: Iterable[ast.expr], depth: int) -> bool:
        return all(self.holds(module, node, depth) for node in nodes)

    def _binding(self, module: Module, binding: Binding, depth: int) -> bool:
        match binding.kind:
            case "assign" | "element" | "augment":
                return binding.value is not None and self.holds(module, binding.value, depth)
            case "import":
                return self._import(module, binding, depth)
            case "parameter":
                return self._parameter(module, binding, depth)
        return False

    def _import(self, module: Module, binding: Binding, depth: int) -> bool:
        statement, alias = binding.statement, binding.node
        if not isinstance(statement, ast.ImportFrom) or not isinstance(alias, ast.alias):
            return False
        bases = self.project.evaluator.import_base(statement, module)
        for base in bases:
            if not isinstance(base, ModuleValue):
                return False
            bindings = base.module.exported(alias.name)
            if not bindings or not all(self._binding(base.module, b, depth) for b in bindings):
                return False
        return bool(bases)

    def _parameter(self, module: Module, binding: Binding, depth: int) -> bool:
        """Return whether every known call passes an untraced value.

        The first parameter is never certain: by default, gradients are taken with respect to it.
        """
        function, parameter = binding.scope.node, binding.node
        if not isinstance(function, FunctionNode) or not isinstance(parameter, ast.arg):
            return False
        positional = positional_parameters(function)
        place = positional.index(parameter) if parameter in positional else -1
        if place == 0 or parameter in (function.args.vararg, function.args.kwarg):
            return False
        kinds = kinds_of(self.project)
        calls = kinds.callers(module, function)
        modules = {module, *(call.module for call in calls)}
        if any(place in kinds.differentiated(m).get(function, ()) for m in modules):
            return False
        for call in calls:
            bound = call.bound_to(function)
            passed = bound.by_name.get(parameter.arg)
            if bound.unclear:
                return False
            owner = module if passed is None else call.module_of(passed)
            passed = passed or default_of(function, parameter)
            if passed is None or not self.holds(owner, passed, depth):
                return False
        return bool(calls)

    def _call(self, module: Module, node: ast.Call, depth: int) -> bool:
        values = self.project.values(module, node.func)
        plain = self._all(module, (*node.args, *(k.value for k in node.keywords)), depth)
        if not values and isinstance(node.func, ast.Attribute):
            return plain and self.holds(module, node.func.value, depth)
        for value in values:
            match underlying(value):
                case External(name) if name.startswith("numpy."):
                    pass  # NumPy raises where it is given a tracer
                case External(name) if name.startswith(self.libraries):
                    if not plain:
                        return False
                case Function() as function if value == function:
                    returned = list(returned_expressions(function.node))
                    if not returned or not self._all(function.module, returned, depth):
                        return False
                case _:
                    return False
        return bool(values)
