"""What the code of a function reveals about its values: containers, dictionaries, strings.

The keys, length, and structure of a container are known at trace time, whatever it holds, and a
string is never traced.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from ..names.module import Module
from ..names.scopes import Binding, FunctionNode
from .containers import looped
from .evaluator import Evaluator
from .values import External

# Methods of strings that neither containers nor arrays have.
_TEXT_METHODS = frozenset(dir(str)) - frozenset((*dir(list), *dir(dict), *dir(set), *dir(bool)))
_VIEWS = frozenset({"keys", "items", "values"})
_MAPPING_TYPES = frozenset({"dict", "Dict", "Mapping", "MutableMapping", "FrozenDict"})
_SEQUENCE_TYPES = frozenset({"list", "List", "tuple", "Tuple", "Sequence", "Iterable"})
_CONTAINER_BUILTINS = frozenset(
    f"builtins.{name}" for name in ("list", "tuple", "set", "frozenset", "dict", "sorted", "range")
)
_TREE_LEAVES = frozenset(
    {
        "jax.tree.leaves", "jax.tree.leaves_with_path", "jax.tree_util.tree_leaves",
        "jax.tree_util.tree_leaves_with_path",
    }
)  # fmt: skip

Stored = tuple[ast.Name, str | int | None, ast.expr]


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
        self._mappings: set[Binding | str] = set()
        self._containers: set[Binding | str] = set()
        self._texts: set[Binding] = set()
        # Answers to the question being answered: a name may be bound to something made from itself.
        self._answers: dict[tuple[Callable[[Binding], bool], Binding], bool] = {}
        # What is stored in the object of a name, with the key or attribute if it is known.
        self.stored: dict[str, list[Stored]] = {}
        for node in ast.walk(function):
            self._see(node)

    def _see(self, node: ast.AST) -> None:
        match node:
            case ast.Subscript(value=base, slice=ast.Constant(value=str()) | ast.JoinedStr()):
                self._mark_mapping(base)
            case ast.Subscript(value=base, slice=ast.Name() as key) if self._is_key_of(key, base):
                self._mark_mapping(base)
            case ast.Call(func=ast.Attribute(value=base, attr=attr)):
                if _shows_mapping(attr, node.args):
                    self._mark_mapping(base)
                elif attr in _TEXT_METHODS and isinstance(base, ast.Name):
                    self._texts |= self.module.reaching(base)
                self._see_stores(node, base, attr)
            case ast.Compare(left=ast.Name() as left, comparators=[other]):
                parts = other.elts if isinstance(other, ast.Tuple | ast.List | ast.Set) else [other]
                if any(map(_is_string, parts)):
                    self._texts |= self.module.reaching(left)
            case ast.Dict():
                for name, value in zip(node.keys, node.values, strict=True):
                    if name is None:
                        self._mark_mapping(value)
            case ast.keyword(arg=None):
                self._mark_mapping(node.value)
            case ast.Assign():
                for target in node.targets:
                    if isinstance(target, ast.Subscript | ast.Attribute):
                        self._store(target, node.value)

    def _see_stores(self, node: ast.Call, base: ast.expr, attr: str) -> None:
        if not isinstance(base, ast.Name):
            return
        found = self.stored.setdefault(base.id, [])
        match attr, node.args:
            case ("append" | "appendleft" | "add" | "extend", [value]):
                found.append((base, None, value))
            case ("insert", [_, value]):
                found.append((base, None, value))
            case ("setdefault", [key, value]):
                found.append((base, _constant(key), value))
            case ("update", arguments):
                found += ((base, None, value) for value in arguments)
                found += ((base, k.arg, k.value) for k in node.keywords)

    def _store(self, target: ast.Subscript | ast.Attribute, value: ast.expr) -> None:
        if isinstance(target.value, ast.Name):
            key = target.attr if isinstance(target, ast.Attribute) else _constant(target.slice)
            self.stored.setdefault(target.value.id, []).append((target.value, key, value))

    def _is_key_of(self, key: ast.Name, base: ast.expr) -> bool:
        """Return whether this is `tree[name]`, where `name` comes from a loop over `tree` or is
        built as a string.
        """
        for binding in self.module.reaching(key):
            if binding.value is None:
                continue
            if binding.kind == "assign" and isinstance(binding.value, ast.JoinedStr):
                return True
            source = self._source(binding)
            if source is not None and ast.dump(source) == ast.dump(base):
                return True
        return False

    def _mark_mapping(self, node: ast.expr) -> None:
        self._mappings |= set(self._known_as(node))
        self._mark_holder(node)

    def _mark_holder(self, node: ast.expr) -> None:
        """Note that whatever holds a dictionary, such as `params[0]`, is a container and not an
        array.
        """
        if isinstance(node, ast.Subscript):
            self._containers |= set(self._known_as(node.value))
            self._mark_holder(node.value)
        elif isinstance(node, ast.Name):
            for binding in self.module.reaching(node):
                source = self._source(binding)
                if source is not None:
                    self._containers |= set(self._known_as(source))

    def _source(self, binding: Binding) -> ast.expr | None:
        """Return the expression of which a loop variable is an item; None for other bindings."""
        if binding.kind != "element" or binding.value is None:
            return None
        part = looped(self.module, binding.value, binding.path)
        return part.source if part.kind in ("element", "value") and not part.path else None

    def _known_as(self, node: ast.expr) -> Iterator[Binding | str]:
        if isinstance(node, ast.Name):
            yield from self.module.reaching(node)
        elif isinstance(node, ast.Attribute | ast.Subscript):
            yield ast.dump(node)

    def _holds_for_all(self, holds: Callable[[Binding], bool], name: ast.Name) -> bool:
        """Return whether a predicate holds for all bindings of a name.

        In a loop, `y` may be bound to `y + [x]`: the predicate holds there if it holds for the
        other bindings.
        """
        bindings = self.module.reaching(name)
        outermost = not self._answers
        for binding in bindings:
            if (holds, binding) not in self._answers:
                self._answers[holds, binding] = True
                self._answers[holds, binding] = holds(binding)
        answer = bool(bindings) and all(self._answers[holds, binding] for binding in bindings)
        if outermost:
            self._answers.clear()
        return answer

    def is_mapping(self, node: ast.expr) -> bool:
        """Return whether an expression is a dictionary: its values can be traced, but not its
        keys.
        """
        match node:
            case ast.Dict() | ast.DictComp():
                return True
            case ast.BinOp(op=ast.BitOr()):
                return self.is_mapping(node.left) or self.is_mapping(node.right)
            case ast.BoolOp():
                return any(self.is_mapping(value) for value in node.values)
            case ast.IfExp():
                return self.is_mapping(node.body) or self.is_mapping(node.orelse)
            case ast.Name():
                return self._holds_for_all(self.is_mapping_binding, node)
            case ast.Call(func=ast.Attribute(value=base, attr="copy"), args=[]):
                return self.is_mapping(base)
            case ast.Call():
                callees = self.evaluator.values(self.module, node.func)
                return External("builtins.dict") in callees
        return ast.dump(node) in self._mappings if _is_path(node) else False

    def is_mapping_binding(self, binding: Binding) -> bool:
        """Return whether a binding gives its name a dictionary."""
        if binding in self._mappings:
            return True
        if binding.kind in ("assign", "augment") and binding.value is not None:
            return not binding.path and self.is_mapping(binding.value)
        if binding.kind != "parameter" or not isinstance(binding.node, ast.arg):
            return False
        function = binding.scope.node
        if isinstance(function, FunctionNode) and function.args.kwarg is binding.node:
            return True
        return _annotated(binding.node, _MAPPING_TYPES)

    def is_container(self, node: ast.expr) -> bool:
        """Return whether an expression is a container, whose truth and length are known at trace
        time.
        """
        if self.is_mapping(node):
            return True
        match node:
            case ast.List() | ast.Tuple() | ast.Set() | ast.ListComp() | ast.SetComp():
                return True
            case ast.BinOp(op=ast.Add() | ast.Sub() | ast.BitOr() | ast.BitAnd()):
                return self.is_container(node.left) or self.is_container(node.right)
            case ast.BoolOp():
                return all(self.is_container(value) for value in node.values)
            case ast.IfExp():
                return self.is_container(node.body) and self.is_container(node.orelse)
            case ast.Name():
                return self._holds_for_all(self._is_container_binding, node)
            case ast.Subscript(slice=ast.Slice()):
                return self.is_container(node.value)
            case ast.Call(func=ast.Attribute(value=base, attr=attr), args=[]) if attr in _VIEWS:
                return self.is_mapping(base)
            case ast.Call():
                callees = self.evaluator.values(self.module, node.func)
                names = {v.name for v in callees if isinstance(v, External)}
                return bool(names & (_CONTAINER_BUILTINS | _TREE_LEAVES))
        return ast.dump(node) in self._containers if _is_path(node) else False

    def _is_container_binding(self, binding: Binding) -> bool:
        if binding in self._containers or self.is_mapping_binding(binding):
            return True
        if binding.kind in ("assign", "augment") and binding.value is not None:
            if not binding.path:
                return self.is_container(binding.value)
            return binding.path[-1] < 0 and _is_starred(binding)
        if binding.kind != "parameter" or not isinstance(binding.node, ast.arg):
            return False
        function = binding.scope.node
        if isinstance(function, FunctionNode) and function.args.vararg is binding.node:
            return True
        return _annotated(binding.node, _SEQUENCE_TYPES)

    def shows_container(self, binding: Binding) -> bool:
        """Return whether the code uses a bound value as a container."""
        return binding in self._containers or binding in self._mappings

    def is_text(self, node: ast.expr) -> bool:
        """Return whether an expression is a string."""
        match node:
            case ast.Constant(value=str()) | ast.JoinedStr():
                return True
            case ast.BinOp(op=ast.Add() | ast.Mod()):
                return self.is_text(node.left) or self.is_text(node.right)
            case ast.Call(func=ast.Attribute(value=base, attr="format" | "join")):
                return self.is_text(base)
            case ast.Call():
                callees = self.evaluator.values(self.module, node.func)
                return bool(callees & {External("builtins.str"), External("jax.tree_util.keystr")})
            case ast.Name():
                return self._holds_for_all(self._is_text_binding, node)
        return False

    def _is_text_binding(self, binding: Binding) -> bool:
        if binding.kind == "parameter":
            return False  # which must be static if it is one
        if binding in self._texts:
            return True
        if binding.value is None or binding.path:
            return False
        if binding.kind == "assign":
            return self.is_text(binding.value)
        if binding.kind != "element":
            return False
        values = binding.value
        if isinstance(values, ast.Tuple | ast.List | ast.Set):
            return bool(values.elts) and all(self.is_text(part) for part in values.elts)
        return self.is_mapping(values)


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


def _is_starred(binding: Binding) -> bool:
    """Return whether a target is `*rest`, and not a name after a starred one."""
    return any(
        isinstance(part, ast.Starred)
        and isinstance(part.value, ast.Name)
        and part.value.id == binding.name
        for part in ast.walk(binding.node)
    )


def _is_string(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _is_path(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute | ast.Subscript)


def _constant(node: ast.expr) -> str | int | None:
    value = node.value if isinstance(node, ast.Constant) else None
    return value if isinstance(value, str | int) else None


def _annotated(parameter: ast.arg, names: frozenset[str]) -> bool:
    annotation = parameter.annotation
    if isinstance(annotation, ast.Subscript):
        annotation = annotation.value
    return getattr(annotation, "id", getattr(annotation, "attr", "")) in names
