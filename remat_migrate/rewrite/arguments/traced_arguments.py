"""Determines which arguments of a call are arrays, or trees of arrays, and so may be traced.

Under `jax.checkpoint`, every argument becomes a tracer. Numbers that must be concrete, strings,
functions, and configurations must be closed over instead. The kind of the rest is unknown.
"""

from __future__ import annotations

import ast

from ...analysis import Module, Project
from ...analysis.names.scopes import Binding, FunctionNode
from ...analysis.statics.argument_kinds import kinds_of
from ...analysis.statics.project_needs import project_needs
from ...analysis.values.bind import default_of, positional_parameters
from ...analysis.values.callees import Target, targets_of, underlying
from ...analysis.values.declarations import Kind, annotation_kind, default_kind
from ...analysis.values.evaluator import returned_expressions
from ...analysis.values.values import External, Function, Instance, Value, Wrapped
from ...libraries.library_arguments import (
    OF_ANYTHING,
    STATIC_ATTRIBUTES,
    STATIC_RESULTS,
    TRACED_MODULES,
)
from ...libraries.library_needs import has_static_result, is_array_method

_DEPTH = 8
# How far a name that may be a Python value is followed: not to all callers.
_KIND_DEPTH = 1
# A name in more files than this is not searched for: that takes long, and tells little.
_FILES = 8
_PYTHON_NAMES = frozenset({"bool", "int", "str", "bytes", "Callable", "type", "Type", "Literal"})
_ARRAY_ONLY = frozenset({"T", "mT", "at", "real", "imag"})
# Layers of libraries: their calls take an array first, and return arrays.
LAYERS = ("flax.linen.", "haiku.", "equinox.nn.")
_TREE_MAPS = frozenset({"jax.tree.map", "jax.tree_util.tree_map", "jax.tree_map"})


def _of_arrays(attribute: str) -> bool:
    return attribute in _ARRAY_ONLY or is_array_method(attribute)


class Arrays:
    """Determines which expressions are certainly arrays or trees of arrays.

    `kind` returns "array" only if every value that an expression may have is one.
    """

    def __init__(self, project: Project, known: frozenset[ast.arg] = frozenset()) -> None:
        """`known` are parameters that are known to be arrays."""
        self.project = project
        self._given = known
        self._running: set[ast.AST] = set()

    def kind(self, module: Module, node: ast.expr, depth: int = _DEPTH) -> Kind:
        """Return the kind of an expression."""
        if depth <= 0:
            return "unknown"
        if node in self._running:
            return "array"  # in a loop, its value before the loop decides
        self._running.add(node)
        try:
            return self._kind(module, node, depth)
        finally:
            self._running.discard(node)

    def _kind(self, module: Module, node: ast.expr, depth: int) -> Kind:
        match node:
            case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Dict(values=parts):
                if any(part is None for part in getattr(node, "keys", ())):
                    return "unknown"
                return _all([self.kind(module, p, depth) for p in parts])
            case ast.BinOp(left=left, right=right):
                sides = [self.kind(module, n, depth) for n in (left, right)]
                if "array" in sides or isinstance(node.op, ast.MatMult):
                    return "array"
            case ast.UnaryOp(op=ast.USub() | ast.UAdd() | ast.Invert()):
                return self.kind(module, node.operand, depth)
            case ast.Compare(ops=[ast.Lt() | ast.LtE() | ast.Gt() | ast.GtE() | ast.Eq()]):
                sides = [self.kind(module, n, depth) for n in (node.left, *node.comparators)]
                if "array" in sides:
                    return "array"
            case ast.IfExp():
                return _all([self.kind(module, n, depth) for n in (node.body, node.orelse)])
            case ast.NamedExpr() | ast.Starred():
                return self.kind(module, node.value, depth)
            case ast.Subscript():
                return self.kind(module, node.value, depth - 1)
            case ast.Attribute(attr=attr) if attr not in STATIC_ATTRIBUTES:
                if _of_arrays(attr) and self.kind(module, node.value, depth - 1) == "array":
                    return "array"
            case ast.Name():
                return self._name(module, node, depth)
            case ast.Call():
                return self._call(module, node, depth)
        return self._python(module, node)

    def _name(self, module: Module, node: ast.Name, depth: int) -> Kind:
        bindings = module.reaching(node)
        if not bindings:
            return "unknown"
        kind = _all([self._binding(module, b, depth) for b in bindings])
        return self._python(module, node) if kind == "unknown" else kind

    def _python(self, module: Module, node: ast.expr) -> Kind:
        found = kinds_of(self.project).of(module, node, _KIND_DEPTH)
        return "python" if found == "python" else "unknown"

    def _binding(self, module: Module, binding: Binding, depth: int) -> Kind:
        match binding.kind:
            case "parameter":
                assert isinstance(binding.node, ast.arg)
                function = binding.scope.node
                assert isinstance(function, FunctionNode)
                return self.parameter(module, function, binding.node, depth - 1)
            case "assign":
                assert binding.value is not None
                value: ast.expr | None = binding.value
                for step in binding.path:
                    if isinstance(value, ast.Tuple | ast.List) and 0 <= step < len(value.elts):
                        value = value.elts[step]
                    else:
                        break
                return self.kind(module, value, depth - 1) if value is not None else "unknown"
            case "augment":
                assert isinstance(binding.node, ast.AugAssign)
                added = self.kind(module, binding.node.value, depth - 1)
                return "array" if added == "array" else "unknown"
            case "element":
                assert binding.value is not None
                return self._element(module, binding.value, binding.path, depth - 1)
        return "unknown"

    def _element(
        self, module: Module, iterable: ast.expr, path: tuple[int, ...], depth: int
    ) -> Kind:
        """Return the kind of the elements of `iterable`."""
        if depth <= 0:
            return "unknown"
        match iterable:
            case ast.Call(func=ast.Name(id="range" | "len")):
                return "python"
            case ast.Call(func=ast.Name(id="enumerate"), args=[inner, *_]):
                if path[:1] == (0,):
                    return "python"
                return self._element(module, inner, path[1:], depth - 1)
            case ast.Call(func=ast.Name(id="zip"), args=parts):
                if path and 0 <= path[0] < len(parts):
                    return self._element(module, parts[path[0]], path[1:], depth - 1)
                return _all([self._element(module, p, (), depth - 1) for p in parts])
            case ast.Call(func=ast.Name(id="reversed" | "list" | "tuple"), args=[inner]):
                return self._element(module, inner, path, depth - 1)
            case ast.Call(func=ast.Attribute(attr="items", value=inner), args=[]):
                return "python" if path[:1] == (0,) else self._element_of(module, inner, depth)
            case ast.Call(func=ast.Attribute(attr="values", value=inner), args=[]):
                return self._element_of(module, inner, depth)
            case ast.List(elts=parts) | ast.Tuple(elts=parts) if not path:
                return _all([self.kind(module, p, depth - 1) for p in parts])
        return self._element_of(module, iterable, depth)

    def _element_of(self, module: Module, node: ast.expr, depth: int) -> Kind:
        # The elements of a tree of arrays are trees of arrays; those of a dict are its keys.
        return "array" if self.kind(module, node, depth - 1) == "array" else "unknown"

    def _call(self, module: Module, node: ast.Call, depth: int) -> Kind:
        values = self.project.values(module, node.func)
        kinds: list[Kind] = []
        for value in values:
            match underlying(value):
                case External(name) if name in STATIC_RESULTS or has_static_result(name):
                    kinds.append("python")
                case External(name) if name.startswith((*TRACED_MODULES, "jax.device_put")):
                    kinds.append("array")
                case External(name) if name in _TREE_MAPS and len(node.args) > 1:
                    kinds.append(self.kind(module, node.args[1], depth - 1))
                case External(
                    "builtins.list" | "builtins.tuple" | "builtins.sum" | "builtins.dict"
                ) if len(node.args) == 1 and not node.keywords:
                    kinds.append(self.kind(module, node.args[0], depth - 1))
                case Function() as function:
                    if isinstance(value, Wrapped) and "grad" in value.how:
                        kinds.append("array")
                        continue
                    kinds.append(self._returned(function, depth))
                case Instance(cls=External(name)) if name.startswith(LAYERS):
                    kinds.append("array")
                case Instance():
                    kinds.append(self._returned(value, depth))
                case _:
                    kinds.append("unknown")
        if not values and isinstance(node.func, ast.Attribute):
            attr = node.func.attr
            if _of_arrays(attr):
                return self.kind(module, node.func.value, depth - 1)
            at = node.func.value
            if isinstance(at, ast.Subscript) and isinstance(at.value, ast.Attribute):
                if at.value.attr == "at":  # x.at[i].set(y)
                    return self.kind(module, at.value.value, depth - 1)
        return _all(kinds) if kinds else self._python(module, node)

    def _returned(self, value: Value, depth: int) -> Kind:
        """Return the kind of the result of calling a value."""
        kinds: list[Kind] = []
        for target in targets_of(self.project.evaluator, value):
            function = target.function
            for expr in returned_expressions(function.node):
                kinds.append(self.kind(function.module, expr, depth - 2))
        return _all(kinds) if kinds else "unknown"

    def parameter(
        self, module: Module, function: FunctionNode, node: ast.arg, depth: int = _DEPTH
    ) -> Kind:
        """Return the kind of a parameter, by annotation, default, transformations, use, callers."""
        if node in self._given:
            return "array"
        if depth <= 0 or node in self._running:
            return "unknown"
        declared = declared_kind(node, default_of(function, node))
        if declared != "unknown":
            return declared
        self._running.add(node)
        try:
            if self.is_transformed(module, function, node):
                return "array"
            if self.used_as_array(Target(Function(module, function)), node, depth - 1):
                return "array"
            passed: list[Kind] = []
            if not self._is_rare(function):
                return "unknown"
            for call in kinds_of(self.project).callers(module, function):
                bound = call.bound_to(function)
                expr = bound.by_name.get(node.arg)
                if bound.unclear or expr is None:
                    return "unknown"
                passed.append(self.kind(call.module_of(expr), expr, depth - 2))
            return _all(passed) if passed else "unknown"
        finally:
            self._running.discard(node)

    def is_transformed(self, module: Module, function: FunctionNode, node: ast.arg) -> bool:
        """Return whether a parameter is differentiated, or one of a compiled function."""
        positional = positional_parameters(function)
        if node not in positional:
            return False
        index = positional.index(node)
        name = getattr(function, "name", None)
        modules = {module: None}
        if isinstance(name, str) and self._is_rare(function):
            modules.update(dict.fromkeys(self.project.mentioning([name])))
        return any(
            index in kinds_of(self.project).differentiated(other).get(function, ())
            for other in modules
        )

    def _is_rare(self, function: FunctionNode) -> bool:
        name = getattr(function, "name", None)
        return name is None or len(self.project.files.mentioning((name,))) <= _FILES

    def used_as_array(self, target: Target, node: ast.arg, depth: int = _DEPTH) -> bool:
        """Return whether a function uses a parameter as only arrays, or numbers, allow.

        A parameter that must be concrete may be a number.
        """
        if depth <= 0 or self.needed(target, node):
            return False
        function = target.function
        module = function.module
        for use in ast.walk(function.node):
            if not isinstance(use, ast.Name) or use.id != node.arg:
                continue
            if any(b.node is node for b in module.reaching(use)):
                if self._is_array_use(module, use, depth):
                    return True
        return False

    def _is_array_use(self, module: Module, use: ast.Name, depth: int) -> bool:
        match module.parent(use):
            case ast.BinOp(left=left, right=right) as operation:
                other = right if left is use else left
                if isinstance(operation.op, ast.MatMult):
                    return True
                return self.kind(module, other, depth - 1) == "array"
            case ast.Attribute(attr="T" | "at" | "mT" | "shape" | "ndim" | "dtype"):
                return True
            case ast.Call(func=func, args=args) as call if use in args:
                place = args.index(use)
                for value in self.project.values(module, func):
                    match underlying(value):
                        case External(name) if name.startswith(TRACED_MODULES):
                            # It need not be concrete, so it is an operand.
                            if name.rpartition(".")[2] not in OF_ANYTHING:
                                return True
                        case Instance(cls=External(name)) if name.startswith(LAYERS):
                            return place == 0
                        case _:
                            return self._passed_on(call, place, value, depth)
        return False

    def _passed_on(self, call: ast.Call, place: int, value: Value, depth: int) -> bool:
        if any(isinstance(a, ast.Starred) for a in call.args[: place + 1]):
            return False
        for target in targets_of(self.project.evaluator, value):
            positional = positional_parameters(target.function.node)[target.skip :]
            if place >= len(positional) or positional[place] in self._running:
                return False
            parameter = positional[place]
            self._running.add(parameter)
            try:
                return self.used_as_array(target, parameter, depth - 2)
            finally:
                self._running.discard(parameter)
        return False

    def needed(self, target: Target, node: ast.arg) -> bool:
        """Return whether a parameter must be concrete."""
        return any(
            n.certain and n.parameter == node.arg
            for n in project_needs(self.project).of(target.function, target.owner)
        )


def declared_kind(node: ast.arg, default: ast.expr | None) -> Kind:
    """Return the kind that the annotation and default of a parameter imply."""
    annotation = node.annotation
    kind = annotation_kind(annotation)
    if kind == "array" and annotation is not None:
        names = {
            getattr(n, "id", getattr(n, "attr", None))
            for n in ast.walk(annotation)
            if isinstance(n, ast.Name | ast.Attribute)
        }
        return "unknown" if names & _PYTHON_NAMES else "array"
    return kind if kind != "unknown" else default_kind(default)


def _all(kinds: list[Kind]) -> Kind:
    """Return the kind of a value with parts of these kinds; "unknown" if they differ."""
    distinct = set(kinds) or {"array"}
    return distinct.pop() if len(distinct) == 1 else "unknown"
