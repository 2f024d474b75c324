"""What an item of a container depends on, an element that a loop sees, an argument of a call.

`opts = {"train": train, "w": w}`: `opts["train"]` needs `train` alone, and so does `train` of a
function that is called with `**opts`.
"""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

from ..names.module import Module
from ..names.scopes import Binding, FunctionNode
from ..values.bind import Arguments, bind_call, positional_parameters
from ..values.callees import underlying
from ..values.classes import class_annotations, class_chain, self_assignments
from ..values.contents import Contents, unwrapped
from ..values.evaluator import Evaluator
from ..values.overrides import Callees
from ..values.values import Class, External, Function, Value
from .operations import NONE, Dependences, Key

# Calls that give a container with the contents of their first argument and of their keywords.
_COPIES = frozenset(
    {
        "builtins.dict", "builtins.list", "builtins.tuple", "builtins.vars", "builtins.reversed",
        "copy.copy", "copy.deepcopy", "dataclasses.asdict", "dataclasses.replace",
        "types.SimpleNamespace", "flax.core.FrozenDict", "flax.core.freeze", "flax.core.unfreeze",
    }
)  # fmt: skip
_COPYING_METHODS = frozenset({"copy", "_replace", "replace", "_asdict"})
_KEYS_AND_LEAVES = frozenset({"jax.tree.leaves_with_path", "jax.tree_util.tree_leaves_with_path"})


class ItemAnalysis(ABC):
    """What the analysis of a function's dependences offers to the analysis of items.

    Attributes:
        evaluator: evaluates expressions.
        module: the function's module.
        items_known: the items that were asked for.
        items_running: the items that are being analysed, to end recursion.
        items_cut: how often a recursion was ended.
    """

    def __init__(self, evaluator: Evaluator, module: Module) -> None:
        self.evaluator = evaluator
        self.module = module
        self.items_known: dict[tuple[ast.expr, Key], Dependences] = {}
        self.items_running: set[tuple[ast.expr, Key]] = set()
        self.items_cut = 0

    @property
    @abstractmethod
    def contents(self) -> Contents:
        """What the code shows of its values."""

    @abstractmethod
    def callees(self, node: ast.expr) -> Callees:
        """Return what calling an expression may run."""

    @abstractmethod
    def depends(self, node: ast.expr | None) -> Dependences:
        """Return the parameters whose value an expression needs to have a value."""

    @abstractmethod
    def stored_in(self, node: ast.Name) -> Dependences:
        """Return what the values depend on that are put into an object made here."""

    @abstractmethod
    def binding(self, binding: Binding) -> Dependences:
        """Return what the value that a binding gives its name depends on."""

    @abstractmethod
    def parameter(self, binding: Binding, key: Key | None = None) -> Dependences:
        """Return what a parameter, or an item of it, depends on."""

    @abstractmethod
    def inside(self, node: ast.AST) -> bool:
        """Return whether a node is the function or stands in it."""

    @abstractmethod
    def function_result(
        self, function: Function, callee: Value, node: ast.Call, key: Key | None = None
    ) -> Dependences:
        """Return what the result of a function of the project depends on."""


def item(analysis: ItemAnalysis, node: ast.expr, key: Key) -> Dependences:
    """What `node[key]`, or the attribute `node.key`, depends on."""
    match node:
        case ast.Dict():
            return _of_display(analysis, node, key)
        case ast.DictComp():
            return analysis.depends(node.value)
        case ast.Tuple() | ast.List() if isinstance(key, int):
            if not any(isinstance(part, ast.Starred) for part in node.elts):
                in_range = -len(node.elts) <= key < len(node.elts)
                return analysis.depends(node.elts[key]) if in_range else NONE
        case ast.BinOp(op=ast.BitOr()):
            return item(analysis, node.left, key) | item(analysis, node.right, key)
        case ast.BoolOp():
            return _union(item(analysis, value, key) for value in node.values)
        case ast.IfExp():
            return item(analysis, node.body, key) | item(analysis, node.orelse, key)
        case ast.NamedExpr():
            return item(analysis, node.value, key)
        case ast.Name():
            return _guarded(analysis, node, key)
        case ast.Subscript(slice=ast.Constant(value=str() | int() as outer)):
            inner = list(_items(analysis, node.value, outer))
            if inner:
                return _union(item(analysis, part, key) for part in inner)
        case ast.Call():
            return _of_call(analysis, node, key)
    return analysis.depends(node)


def _guarded(analysis: ItemAnalysis, node: ast.Name, key: Key) -> Dependences:
    """An item of a name, found once; `opts = merge(opts)` goes in circles."""
    known = analysis.items_known.get((node, key))
    if known is not None:
        return known
    if (node, key) in analysis.items_running:
        analysis.items_cut += 1
        return NONE
    cut = analysis.items_cut
    analysis.items_running.add((node, key))
    try:
        found = _of_name(analysis, node, key)
    finally:
        analysis.items_running.discard((node, key))
    if analysis.items_cut == cut or not analysis.items_running:
        analysis.items_known[node, key] = found
    return found


def _of_display(analysis: ItemAnalysis, node: ast.Dict, key: Key) -> Dependences:
    found: Dependences = NONE
    for name, value in reversed(list(zip(node.keys, node.values, strict=True))):
        if name is None:
            found |= item(analysis, value, key)
        elif not isinstance(name, ast.Constant):
            found |= analysis.depends(value)
        elif name.value == key:
            return found | analysis.depends(value)
    return found


def _of_name(analysis: ItemAnalysis, node: ast.Name, key: Key) -> Dependences:
    bindings = analysis.module.reaching(node)
    found: Dependences = NONE
    for binding in bindings:
        if binding.kind == "parameter":
            found |= analysis.parameter(binding, key)
        elif binding.kind in ("assign", "augment") and binding.value and not binding.path:
            if analysis.inside(binding.scope.node):
                found |= item(analysis, binding.value, key)
        else:
            found |= analysis.binding(binding)
    for receiver, stored, value in analysis.contents.stored.get(node.id, ()):
        if analysis.module.reaching(receiver) & bindings:
            if stored == key:
                found |= analysis.depends(value)
            elif stored is None:
                found |= item(analysis, value, key)
    return found


def _items(analysis: ItemAnalysis, node: ast.expr, key: Key) -> Iterator[ast.expr]:
    """The expressions that `node[key]` may be, where they are written in the function."""
    match node:
        case ast.Dict():
            for name, value in zip(node.keys, node.values, strict=True):
                if isinstance(name, ast.Constant) and name.value == key:
                    yield value
        case ast.Tuple() | ast.List() if isinstance(key, int) and 0 <= key < len(node.elts):
            yield node.elts[key]
        case ast.Name():
            for binding in analysis.module.reaching(node):
                if binding.kind == "assign" and binding.value and not binding.path:
                    if not isinstance(binding.value, ast.Name):
                        yield from _items(analysis, binding.value, key)


def _of_call(analysis: ItemAnalysis, node: ast.Call, key: Key) -> Dependences:
    found: Dependences = NONE
    if isinstance(node.func, ast.Attribute) and node.func.attr in _COPYING_METHODS:
        return _of_keywords(analysis, node, key, [node.func.value, *node.args])
    values = analysis.callees(node.func).values
    for value in values:
        match underlying(value):
            case External(name) if name in _COPIES:
                found |= _of_keywords(analysis, node, key, node.args)
            case Class() as cls:
                made = _field(analysis, cls, node, key)
                found |= analysis.depends(node) if made is None else made
            case Function() as function if not analysis.inside(function.node):
                found |= analysis.function_result(function, value, node, key)
            case _:
                found |= analysis.depends(node)
    return found if values else analysis.depends(node)


def _of_keywords(
    analysis: ItemAnalysis, node: ast.Call, key: Key, sources: Sequence[ast.expr]
) -> Dependences:
    """An item of a copy that keywords change: `dict(base, train=train)`, `replace(o, n=n)`."""
    for keyword in node.keywords:
        if keyword.arg == key:
            return analysis.depends(keyword.value)
    spread = [keyword.value for keyword in node.keywords if keyword.arg is None]
    return _union(item(analysis, source, key) for source in (*sources, *spread))


def _field(analysis: ItemAnalysis, cls: Class, node: ast.Call, key: Key) -> Dependences | None:
    """What a field of a new object depends on; None where the class does not tell."""
    fields: list[str] = []
    for owner in class_chain(analysis.evaluator, cls):
        if not isinstance(owner, Class):
            continue
        made = self_assignments(owner.node).get(str(key), ())
        if any(isinstance(s, ast.FunctionDef) and s.name == "__init__" for s in owner.node.body):
            method = next(s for s in owner.node.body if getattr(s, "name", "") == "__init__")
            assert isinstance(method, ast.FunctionDef)
            bound = bind_call(method, node.args, node.keywords, 1)
            if bound.unclear or len(made) != 1 or not isinstance(made[0], ast.Name):
                return None
            passed = bound.by_name.get(made[0].id)
            return analysis.depends(passed)
        fields = [*(f for f in class_annotations(owner.node) if f not in fields), *fields]
    if isinstance(key, int):
        key = fields[key] if 0 <= key < len(fields) else str(key)
    if key not in fields or any(isinstance(arg, ast.Starred) for arg in node.args):
        return None
    position = fields.index(key)
    if position < len(node.args):
        return analysis.depends(node.args[position])
    return _of_keywords(analysis, node, key, ())


def element(analysis: ItemAnalysis, iterable: ast.expr, path: tuple[int, ...] = ()) -> Dependences:
    """What an element that a loop over `iterable` sees depends on; `path` is its unpacking."""
    iterable = unwrapped(iterable)
    contents = analysis.contents
    if contents.is_mapping(iterable):
        return NONE
    match iterable:
        case ast.Call(func=ast.Attribute(attr="keys"), args=[]):
            return NONE
        case ast.Call(func=ast.Attribute(attr="items"), args=[]) if path[:1] == (0,):
            return NONE
        case ast.Call(func=ast.Name(id="enumerate"), args=[inner, *_]):
            if path[:1] == (0,):
                return NONE
            return element(analysis, inner, path[1:])
        case ast.Call(func=ast.Name(id="zip"), args=parts) if path:
            if 0 <= path[0] < len(parts):
                return element(analysis, parts[path[0]], path[1:])
        case ast.Call() if path[:1] == (0,):
            values = analysis.evaluator.values(analysis.module, iterable.func)
            if any(isinstance(v, External) and v.name in _KEYS_AND_LEAVES for v in values):
                return NONE
        case ast.Tuple() | ast.List() | ast.Set():
            return _union(_unpacked(analysis, part, path) for part in iterable.elts)
        case ast.Name():
            found: Dependences = NONE
            for binding in analysis.module.reaching(iterable):
                if binding.kind == "parameter" and contents.is_mapping_binding(binding):
                    continue
                if binding.kind == "assign" and binding.value and not binding.path:
                    if analysis.inside(binding.scope.node):
                        if not isinstance(binding.value, ast.Name):
                            found |= element(analysis, binding.value, path)
                            continue
                found |= analysis.binding(binding)
            return found | analysis.stored_in(iterable)
    return analysis.depends(iterable)


def _unpacked(analysis: ItemAnalysis, node: ast.expr, path: tuple[int, ...]) -> Dependences:
    if isinstance(node, ast.Starred):
        return element(analysis, node.value, path)
    if path and path[0] >= 0:
        return item(analysis, node, path[0])
    return analysis.depends(node)


def supplied(
    analysis: ItemAnalysis,
    function: FunctionNode,
    call: tuple[Sequence[ast.expr], Sequence[ast.keyword]],
    skip: int,
    name: str,
    key: Key | None = None,
) -> Dependences:
    """What an argument of a call depends on: of a parameter, or of one of its items."""
    args, keywords = call
    bound = bind_call(function, args, keywords, skip)

    def part(node: ast.expr) -> Dependences:
        return analysis.depends(node) if key is None else item(analysis, node, key)

    a = function.args
    if name in bound.by_name:
        return part(bound.by_name[name])
    spread = [k.value for k in keywords if k.arg is None]
    if a.kwarg is not None and name == a.kwarg.arg:
        if isinstance(key, str) and (given := [k for k in bound.double_star if k.arg == key]):
            return analysis.depends(given[0].value)
        named = [k.value for k in bound.double_star if key is None]
        return _union((*map(analysis.depends, named), *map(part, spread)))
    first = next((i for i, arg in enumerate(args) if isinstance(arg, ast.Starred)), len(args))
    names = [p.arg for p in positional_parameters(function)][skip:]
    if a.vararg is not None and name == a.vararg.arg:
        return _of_star(analysis, bound, args, first, len(names), key)
    found = _union(item(analysis, node, name) for node in spread)
    if name in names and names.index(name) >= first and first < len(args):
        found |= _from_star(analysis, args, first, names.index(name) - first)
    return found


def _of_star(
    analysis: ItemAnalysis,
    bound: Arguments,
    args: Sequence[ast.expr],
    first: int,
    count: int,
    key: Key | None,
) -> Dependences:
    """What lands in `*args`, which takes what is behind the first `count` arguments."""
    if isinstance(key, int) and key < len(bound.star):
        return analysis.depends(bound.star[key])
    if isinstance(key, int):
        return _from_star(analysis, args, first, count + key - first)
    return _union(analysis.depends(arg) for arg in (*bound.star, *args[first:]))


def _from_star(
    analysis: ItemAnalysis, args: Sequence[ast.expr], first: int, place: int
) -> Dependences:
    """The argument that stands `place` behind the beginning of the first `*arguments`."""
    behind = args[first:]
    if len(behind) == 1 and place >= 0 and isinstance(behind[0], ast.Starred):
        return item(analysis, behind[0].value, place)
    return _union(analysis.depends(arg) for arg in behind)


def _union(found: Sequence[Dependences] | Iterator[Dependences]) -> Dependences:
    return frozenset().union(*found)
