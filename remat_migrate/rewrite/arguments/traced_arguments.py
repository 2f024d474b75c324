"""Which arguments of a call may be traced: arrays and trees of arrays, as far as can be seen.

Under `jax.checkpoint` every argument becomes a tracer. An argument that is an array, or a tree of
arrays, may; a number that Python needs, a string, a function, a configuration must be closed over;
of the rest nothing is known.
"""

from __future__ import annotations

import ast

from ...analysis import Module, Project
from ...analysis.names.scopes import Binding, FunctionNode
from ...analysis.statics.argument_kinds import kinds_of
from ...analysis.statics.project_needs import project_needs
from ...analysis.values.bind import default_of, positional_parameters
from ...analysis.values.callees import Target, targets_of, underlying
from ...analysis.values.calls import returned_expressions
from ...analysis.values.declarations import Kind, annotation_kind, default_kind
from ...analysis.values.values import External, Function, Instance, Value, Wrapped
from ...libraries.library_arguments import (
    OF_ANYTHING,
    STATIC_ATTRIBUTES,
    STATIC_RESULTS,
    TRACED_MODULES,
)
from ...libraries.library_needs import has_static_result, is_array_method

_DEPTH = 8
# How far a name is followed where it may be one of Python's: not to all callers.
_KIND_DEPTH = 1
# A name in more files than this is not looked for: it takes long, and tells little.
_FILES = 8
_PYTHON_NAMES = frozenset({"bool", "int", "str", "bytes", "Callable", "type", "Type", "Literal"})
_ARRAY_ONLY = frozenset({"T", "mT", "at", "real", "imag"})
# Layers of libraries: their calls take an array first, and give arrays.
LAYERS = ("flax.linen.", "haiku.", "equinox.nn.")
_TREE_MAPS = frozenset({"jax.tree.map", "jax.tree_util.tree_map", "jax.tree_map"})


def _of_arrays(attribute: str) -> bool:
    return attribute in _ARRAY_ONLY or is_array_method(attribute)


class Arrays:
    """Tells which expressions are certainly arrays or trees of arrays.

    `kind` says "array" only where all that an expression may be is one.
    """

    def __init__(self, project: Project, known: frozenset[ast.arg] = frozenset()) -> None:
        """`known` are parameters of which it is known."""
        self.project = project
        self._given = known
        self._running: set[ast.AST] = set()

    def kind(self, module: Module, node: ast.expr, depth: int = _DEPTH) -> Kind:
        """The kind of an expression where it stands."""
        if depth <= 0:
            return "unknown"
        if node in self._running:
            return "array"  # of a loop: what it was before decides
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
        """The kind of what a loop over `iterable` gives."""
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
        # A loop over a tree of arrays gives trees of arrays; one over a dict gives its keys.
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
        """The kind of what calling a value returns."""
        kinds: list[Kind] = []
        for target in targets_of(self.project.evaluator, value):
            function = target.function
            for expr in returned_expressions(function.node):
                kinds.append(self.kind(function.module, expr, depth - 2))
        return _all(kinds) if kinds else "unknown"

    # -- parameters

    def parameter(
        self, module: Module, function: FunctionNode, node: ast.arg, depth: int = _DEPTH
    ) -> Kind:
        """What a parameter is: by annotation, default, transformations, callers, use."""
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
        """Whether a gradient is taken of what is passed for a parameter, or it is compiled."""
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
        """Whether a function computes with a parameter itself as only arrays (or numbers) allow.

        One that Python needs the value of may be a number.
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
            case ast.Attribute(attr="T" | "at" | "mT"):
                return True
            case ast.Attribute(attr="shape" | "ndim" | "dtype"):
                return True
            case ast.Call(func=func, args=args) as call if use in args:
                place = args.index(use)
                for value in self.project.values(module, func):
                    match underlying(value):
                        case External(name) if name.startswith(TRACED_MODULES):
                            # Python does not need it, so it is an operand.
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
        """Whether Python may need the value of a parameter."""
        return any(
            n.certain and n.parameter == node.arg
            for n in project_needs(self.project).of(target.function, target.owner)
        )


def declared_kind(node: ast.arg, default: ast.expr | None) -> Kind:
    """What annotation and default of a parameter say, if they leave no doubt."""
    annotation = node.annotation
    kind = annotation_kind(annotation)
    if kind == "array" and annotation is not None:
        names = {
            getattr(n, "id", getattr(n, "attr", None))
            for n in ast.walk(annotation)
            if isinstance(n, ast.Name | ast.Attribute)
        }
        return "unknown" if names & _PYTHON_NAMES else "array"
    if kind != "unknown":
        return kind
    return default_kind(default)


def _all(kinds: list[Kind]) -> Kind:
    """The kind of something made of parts of these kinds; "array" only if all are."""
    first = kinds[0] if kinds else "array"
    return first if all(k == first for k in kinds) else "unknown"
