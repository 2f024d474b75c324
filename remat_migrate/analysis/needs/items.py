"""What an item of a container, an element that a loop sees, or an argument of a call depends on.

In `opts = {"train": train, "w": w}`, `opts["train"]` depends on `train` alone, and so does `train`
of a function that is called with `**opts`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from ..names.scopes import FunctionNode
from ..values.bind import bind_call, positional_parameters
from ..values.callees import underlying
from ..values.contents import unwrapped
from ..values.static_fields import field_value
from ..values.values import Class, External, Function
from .dependence import NONE, UNSEEN, Dependences, Key
from .function_analysis import FunctionAnalysis

# Calls that return a container with the contents of their first argument and their keywords.
_COPIES = frozenset(
    {
        "builtins.dict", "builtins.list", "builtins.tuple", "builtins.vars", "builtins.reversed",
        "copy.copy", "copy.deepcopy", "dataclasses.asdict", "dataclasses.replace",
        "types.SimpleNamespace", "flax.core.FrozenDict", "flax.core.freeze", "flax.core.unfreeze",
    }
)  # fmt: skip
_COPYING_METHODS = frozenset({"copy", "_replace", "replace", "_asdict"})
_KEYS_AND_LEAVES = frozenset({"jax.tree.leaves_with_path", "jax.tree_util.tree_leaves_with_path"})


def item(analysis: FunctionAnalysis, node: ast.expr, key: Key | None) -> Dependences:
    """Return what `node[key]`, the attribute `node.key`, or without a key `node` depends on."""
    if key is None:
        return analysis.dependences(node)
    match node:
        case ast.Dict():
            return _of_display(analysis, node, key)
        case ast.DictComp():
            return analysis.dependences(node.value)
        case ast.Tuple() | ast.List() if isinstance(key, int):
            if not any(isinstance(part, ast.Starred) for part in node.elts):
                in_range = -len(node.elts) <= key < len(node.elts)
                return analysis.dependences(node.elts[key]) if in_range else NONE
        case ast.BinOp(op=ast.BitOr(), left=left, right=right):
            return _of_any(analysis, (left, right), key)
        case ast.BoolOp():
            return _of_any(analysis, node.values, key)
        case ast.IfExp():
            return _of_any(analysis, (node.body, node.orelse), key)
        case ast.NamedExpr():
            return item(analysis, node.value, key)
        case ast.Name():
            return analysis.dependences(node, key)
        case ast.Subscript(slice=ast.Constant(value=str() | int() as outer)):
            inner = list(_items(analysis, node.value, outer))
            if inner:
                return _of_any(analysis, inner, key)
        case ast.Call():
            return _of_call(analysis, node, key)
    return analysis.dependences(node)


def _of_any(analysis: FunctionAnalysis, nodes: Iterable[ast.expr], key: Key | None) -> Dependences:
    found: Dependences = NONE
    for node in nodes:
        found |= item(analysis, node, key)
    return found


def _of_display(analysis: FunctionAnalysis, node: ast.Dict, key: Key) -> Dependences:
    found: Dependences = NONE
    for name, value in reversed(list(zip(node.keys, node.values, strict=True))):
        if name is None:
            found |= item(analysis, value, key)
        elif not isinstance(name, ast.Constant):
            found |= analysis.dependences(value)
        elif name.value == key:
            return found | analysis.dependences(value)
    return found


def item_of_name(analysis: FunctionAnalysis, node: ast.Name, key: Key) -> Dependences:
    """Return what an item of a name's value depends on."""
    bindings = analysis.module.reaching(node)
    found: Dependences = NONE
    for binding in bindings:
        if binding.kind == "parameter":
            found |= analysis.of_parameter(binding, key)
        elif (
            binding.kind in ("assign", "augment")
            and binding.value
            and not binding.path
            and analysis.contains(binding.scope.node)
        ):
            found |= item(analysis, binding.value, key)
        else:
            found |= analysis.of_binding(binding)
    for receiver, stored, value in analysis.contents.stored.get(node.id, ()):
        if analysis.module.reaching(receiver) & bindings:
            if stored == key:
                found |= analysis.dependences(value)
            elif stored is None:
                found |= item(analysis, value, key)
    return found


def _items(analysis: FunctionAnalysis, node: ast.expr, key: Key) -> Iterator[ast.expr]:
    """Yield the expressions that `node[key]` may be, where the function writes them out."""
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


def _of_call(analysis: FunctionAnalysis, node: ast.Call, key: Key) -> Dependences:
    if isinstance(node.func, ast.Attribute) and node.func.attr in _COPYING_METHODS:
        return _of_copy(analysis, node, key, [node.func.value, *node.args])
    values = analysis.callees(node.func).values
    found: Dependences = NONE
    for value in values:
        match underlying(value):
            case External(name) if name in _COPIES:
                found |= _of_copy(analysis, node, key, node.args)
            case Class() as cls:
                field = _field(analysis, cls, node, key)
                found |= analysis.dependences(node) if field is None else field
            case Function() as function if not analysis.contains(function.node):
                found |= analysis.of_result(function, value, node, key)
            case _:
                found |= analysis.dependences(node)
    return found if values else analysis.dependences(node)


def _of_copy(
    analysis: FunctionAnalysis, node: ast.Call, key: Key, sources: Sequence[ast.expr]
) -> Dependences:
    """Return the same of a copy that keywords change: `dict(base, n=n)`, `replace(o, n=n)`."""
    for keyword in node.keywords:
        if keyword.arg == key:
            return analysis.dependences(keyword.value)
    spread = [keyword.value for keyword in node.keywords if keyword.arg is None]
    return _of_any(analysis, (*sources, *spread), key)


def _field(analysis: FunctionAnalysis, cls: Class, node: ast.Call, key: Key) -> Dependences | None:
    """Return what a field of a new object depends on; None if the class does not tell."""
    if any(keyword.arg is None for keyword in node.keywords):
        return _of_copy(analysis, node, key, ())
    found = field_value(analysis.evaluator, cls, node, key)
    if found is None:
        return None
    return analysis.dependences(found) if found in ast.walk(node) else NONE


def element(
    analysis: FunctionAnalysis, iterable: ast.expr, path: tuple[int, ...] = ()
) -> Dependences:
    """Return what an element of a loop over `iterable`, unpacked by `path`, depends on."""
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
        case ast.Call(func=ast.Name(id="map"), args=[ast.Lambda(body=body), *parts]) if not path:
            found = analysis.dependences(body)
            if any(d.parameter == UNSEEN for d in found):  # its own parameters
                found |= NONE.union(*(element(analysis, part) for part in parts))
            return found
        case ast.Call() if path[:1] == (0,):
            values = analysis.evaluator.values(analysis.module, iterable.func)
            if any(isinstance(v, External) and v.name in _KEYS_AND_LEAVES for v in values):
                return NONE
        case ast.Tuple() | ast.List() | ast.Set():
            found = NONE
            for part in iterable.elts:
                found |= _unpacked(analysis, part, path)
            return found
        case ast.Name():
            return _element_of_name(analysis, iterable, path)
    return analysis.dependences(iterable)


def _element_of_name(
    analysis: FunctionAnalysis, node: ast.Name, path: tuple[int, ...]
) -> Dependences:
    found = analysis.stored_in(node)
    for binding in analysis.module.reaching(node):
        if binding.kind == "parameter" and analysis.contents.is_mapping_binding(binding):
            continue
        if binding.kind == "assign" and binding.value and not binding.path:
            if analysis.contains(binding.scope.node) and not isinstance(binding.value, ast.Name):
                found |= element(analysis, binding.value, path)
                continue
        found |= analysis.of_binding(binding)
    return found


def _unpacked(analysis: FunctionAnalysis, node: ast.expr, path: tuple[int, ...]) -> Dependences:
    if isinstance(node, ast.Starred):
        return element(analysis, node.value, path)
    if path and path[0] >= 0:
        return item(analysis, node, path[0])
    return analysis.dependences(node)


def argument(
    analysis: FunctionAnalysis,
    function: FunctionNode,
    call: tuple[Sequence[ast.expr], Sequence[ast.keyword]],
    skip: int,
    name: str,
    key: Key | None = None,
) -> Dependences:
    """Return what an argument of a call, or an item of it, depends on.

    Args:
        analysis: the function with the call.
        function: the function that is called.
        call: the arguments.
        skip: how many leading parameters are bound already.
        name: the parameter.
        key: the item.
    """
    args, keywords = call
    bound = bind_call(function, args, keywords, skip)
    if name in bound.by_name:
        return item(analysis, bound.by_name[name], key)
    signature = function.args
    spread = [k.value for k in keywords if k.arg is None]
    if signature.kwarg is not None and name == signature.kwarg.arg:
        if isinstance(key, str) and (given := [k for k in bound.double_star if k.arg == key]):
            return analysis.dependences(given[0].value)
        named = [k.value for k in bound.double_star if key is None]
        return _of_any(analysis, (*named, *spread), key)
    first = next((i for i, arg in enumerate(args) if isinstance(arg, ast.Starred)), len(args))
    names = [p.arg for p in positional_parameters(function)][skip:]
    if signature.vararg is not None and name == signature.vararg.arg:
        if not isinstance(key, int):
            return _of_any(analysis, (*bound.star, *args[first:]), None)
        if key < len(bound.star):
            return analysis.dependences(bound.star[key])
        return _from_star(analysis, args[first:], len(names) + key - first)
    found = _of_any(analysis, spread, name)
    if name in names and names.index(name) >= first and first < len(args):
        found |= _from_star(analysis, args[first:], names.index(name) - first)
    return found


def _from_star(analysis: FunctionAnalysis, rest: Sequence[ast.expr], place: int) -> Dependences:
    """Return what the argument at a place of `rest`, which starts with `*args`, depends on."""
    match rest:
        case [ast.Starred(value=spread)] if place >= 0:
            return item(analysis, spread, place)
    return _of_any(analysis, rest, None)
