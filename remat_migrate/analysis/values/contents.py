"""Determines from the code of a function which of its values are mappings, sequences, or strings.

The keys, length, and structure of a container are known at trace time, even if its elements are
traced. A string is never traced.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Literal

from ..fixed_point import FixedPoint
from ..names.module import Binding, FunctionNode, Module, last_name
from .containers import Looped, looped
from .evaluator import Evaluator
from .values import External, alternatives

# Methods of strings that neither containers nor arrays have.
_TEXT_METHODS = frozenset(dir(str)) - frozenset((*dir(list), *dir(dict), *dir(set), *dir(bool)))
_VIEWS = frozenset({"keys", "items", "values"})
# "cyclic" is what a name is bound to that is only made from itself.
Kind = Literal["mapping", "sequence", "text", "unknown", "cyclic"]
_KINDS: tuple[Kind, ...] = ("mapping", "sequence", "text")
_TYPES: Mapping[str, Kind] = {
    **dict.fromkeys(("dict", "Dict", "Mapping", "MutableMapping", "FrozenDict"), "mapping"),
    **dict.fromkeys(("list", "List", "tuple", "Tuple", "Sequence", "Iterable"), "sequence"),
}
# What functions return.
_RESULTS: Mapping[str, Kind] = {
    "builtins.dict": "mapping",
    **dict.fromkeys(
        (
            "builtins.list", "builtins.tuple", "builtins.set", "builtins.frozenset",
            "builtins.sorted", "builtins.range", "jax.tree.leaves", "jax.tree.leaves_with_path",
            "jax.tree_util.tree_leaves", "jax.tree_util.tree_leaves_with_path",
        ),
        "sequence",
    ),
    **dict.fromkeys(("builtins.str", "jax.tree_util.keystr"), "text"),
}  # fmt: skip
# Operators whose result is a container or a string if an operand is.
_KEEPING = (ast.Add, ast.Sub, ast.BitOr, ast.BitAnd, ast.Mod)


def contents_of(evaluator: Evaluator, module: Module, function: FunctionNode) -> Contents:
    """Return what a function's code reveals about its values."""
    found = evaluator.contents.get(function)
    if not isinstance(found, Contents):
        found = evaluator.contents[function] = Contents(evaluator, module, function)
    return found


class Contents:
    """What one function's code reveals about its values, including nested functions."""

    def __init__(self, evaluator: Evaluator, module: Module, function: FunctionNode) -> None:
        self.evaluator = evaluator
        self.module = module
        # How the code uses what bindings and paths, by their dumps, stand for.
        self._marked: dict[Binding | str, set[Kind]] = {}
        # A name may be bound to something made from itself.
        self._bound = FixedPoint[Binding, Kind](self._kind_of_bound, "cyclic")
        for node in ast.walk(function):
            self._see(node)

    def _see(self, node: ast.AST) -> None:
        match node:
            case ast.Subscript(value=base, slice=ast.Constant(value=str()) | ast.JoinedStr()):
                self._mark_mapping(base)
            case ast.Call(func=ast.Attribute(value=base, attr=attr)):
                if _shows_mapping(attr, node.args):
                    self._mark_mapping(base)
                elif attr in _TEXT_METHODS and isinstance(base, ast.Name):
                    self._mark(base, "text")
            case ast.Compare(left=ast.Name() as left, comparators=[other]):
                parts = other.elts if isinstance(other, ast.Tuple | ast.List | ast.Set) else [other]
                if any(map(_is_string, parts)):
                    self._mark(left, "text")
            case ast.Dict():
                for name, value in zip(node.keys, node.values, strict=True):
                    if name is None:
                        self._mark_mapping(value)
            case ast.keyword(arg=None):
                self._mark_mapping(node.value)

    def _mark(self, node: ast.expr, kind: Kind) -> None:
        if isinstance(node, ast.Name):
            for binding in self.module.reaching(node):
                self._marked.setdefault(binding, set()).add(kind)
        elif isinstance(node, ast.Attribute | ast.Subscript):
            self._marked.setdefault(ast.dump(node), set()).add(kind)

    def _mark_mapping(self, node: ast.expr) -> None:
        self._mark(node, "mapping")
        # Whatever holds a dictionary, such as `params[0]`, is a container and not an array.
        while isinstance(node, ast.Subscript):
            node = node.value
            self._mark(node, "sequence")

    def is_mapping(self, node: ast.expr) -> bool:
        """Return whether an expression is a dictionary: its values can be traced, but not its
        keys.
        """
        return self.kind_of(node) == "mapping"

    def is_container(self, node: ast.expr) -> bool:
        """Return whether an expression is a container, whose truth and length are known at trace
        time.
        """
        return self.kind_of(node) in ("mapping", "sequence")

    def is_mapping_binding(self, binding: Binding) -> bool:
        """Return whether a binding gives its name a dictionary."""
        return self._bound.answer(binding) == "mapping"

    def shows_container(self, binding: Binding) -> bool:
        """Return whether the code uses a bound value as a container."""
        return bool(self._marked.get(binding, set()) - {"text"})

    def kind_of(self, node: ast.expr) -> Kind:
        """Return what an expression certainly is."""
        match node:
            case ast.Dict() | ast.DictComp():
                return "mapping"
            case ast.List() | ast.Tuple() | ast.Set() | ast.ListComp() | ast.SetComp():
                return "sequence"
            case ast.Constant(value=str()) | ast.JoinedStr():
                return "text"
            case ast.BinOp(op=op, left=left, right=right) if isinstance(op, _KEEPING):
                sides = self.kind_of(left), self.kind_of(right)
                return next((kind for kind in _KINDS if kind in sides), "unknown")
            case ast.Name():
                return _common({self._bound.answer(b) for b in self.module.reaching(node)})
            case ast.Subscript(slice=ast.Slice()):
                return self.kind_of(node.value)
            case ast.Attribute() | ast.Subscript():
                return self._first_mark(ast.dump(node))
            case ast.Call():
                return self._kind_of_result(node)
        parts = {self.kind_of(part) for part in alternatives(node)}
        return "mapping" if "mapping" in parts else _common(parts)

    def _kind_of_result(self, call: ast.Call) -> Kind:
        match call:
            case ast.Call(func=ast.Attribute(value=base, attr="copy"), args=[]):
                if self.is_mapping(base):
                    return "mapping"
            case ast.Call(func=ast.Attribute(value=base, attr=attr), args=[]) if attr in _VIEWS:
                return "sequence" if self.is_mapping(base) else "unknown"
            case ast.Call(func=ast.Attribute(value=base, attr="format" | "join")):
                return "text" if self.kind_of(base) == "text" else "unknown"
        callees = self.evaluator.values(self.module, call.func)
        kinds = {_RESULTS.get(v.name, "unknown") for v in callees if isinstance(v, External)}
        return next((kind for kind in _KINDS if kind in kinds), "unknown")

    def _first_mark(self, of: Binding | str) -> Kind:
        marks = self._marked.get(of, ())
        return next((kind for kind in _KINDS if kind in marks), "unknown")

    def _kind_of_bound(self, binding: Binding) -> Kind:
        marked = self._first_mark(binding)
        if binding.kind == "parameter":
            if marked in ("mapping", "sequence") or not isinstance(binding.node, ast.arg):
                return marked
            # A string must be static.
            function = binding.scope.node
            assert isinstance(function, FunctionNode)
            if binding.node is function.args.kwarg:
                return "mapping"
            if binding.node is function.args.vararg:
                return "sequence"
            return _annotated(binding.node)
        if marked != "unknown" or binding.value is None:
            return marked
        if binding.kind in ("assign", "augment") and not binding.path:
            return self.kind_of(binding.value)
        if binding.kind == "element":
            part = looped(self.module, binding.value, binding.path)
            if part.kind == "key" or (not part.path and self._has_texts(part)):
                return "text"
        return "unknown"

    def _has_texts(self, part: Looped) -> bool:
        """Return whether the elements of what a loop is over are strings."""
        match part.source:
            case ast.Tuple(elts=[_, *_] as elts) | ast.List(elts=elts) | ast.Set(elts=elts):
                return bool(elts) and all(self.kind_of(part) == "text" for part in elts)
        return part.kind == "element" and self.is_mapping(part.source)


def _common(kinds: set[Kind]) -> Kind:
    """Return the kind of what is one of several."""
    if len(kinds) > 1:
        kinds = kinds - {"cyclic"}
    if kinds == {"mapping", "sequence"}:
        return "sequence"
    return next(iter(kinds)) if len(kinds) == 1 else "unknown"


def _shows_mapping(method: str, arguments: list[ast.expr]) -> bool:
    """Return whether a call of a method shows that its object is a dictionary."""
    if method in _VIEWS:
        return not arguments
    match method, arguments:
        case (("get" | "pop" | "setdefault"), [ast.Constant(value=value), *_]):
            return not isinstance(value, int)
        case (("get" | "pop" | "setdefault"), [ast.JoinedStr(), *_]):
            return True
    return False


def _is_string(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _annotated(parameter: ast.arg) -> Kind:
    annotation = parameter.annotation
    if isinstance(annotation, ast.Subscript):
        annotation = annotation.value
    return _TYPES.get(last_name(annotation) if annotation else "", "unknown")
