"""What the calls of a checkpointed function pass for one of its parameters."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from ...libraries.apis import CALL_WITH
from ...libraries.library_arguments import (
    ARRAY_ATTRIBUTES,
    OF_ANYTHING,
    STATIC_ATTRIBUTES,
    TRACED_MODULES,
)
from ...libraries.library_needs import is_array_method
from ..names.module import Module
from ..names.scopes import Binding
from ..needs.need import Need
from ..project import Project
from ..sites.uses import Call
from ..values.bind import Arguments, default_of
from ..values.callees import Target, is_frozen
from ..values.containers import items
from ..values.contents import contents_of
from ..values.declarations import Kind, annotation_kind, default_kind, join
from ..values.values import Class, Constant, Container, External, Instance, Result
from .argument_kinds import kinds_of
from .concrete_values import is_numpy, is_untraced

BoundCalls = tuple[tuple[Call, Arguments], ...]


def is_flag(project: Project, module: Module, node: ast.expr) -> bool:
    """Whether an argument is certainly a value of Python, a number with a fraction included."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant):
        return True
    if isinstance(node, ast.Constant):
        return node.value is not None
    return kinds_of(project).of(module, node) == "python"


def is_mixed(
    project: Project, parameter: ast.arg, index: int | str | None, bound: BoundCalls
) -> bool:
    """Whether some calls pass a value of Python, and others something else."""
    passed = [
        (module, expr)
        for module, expr in what_is_passed(parameter, index, bound)
        if not (isinstance(expr, ast.Constant) and expr.value is None)
    ]
    flags = [is_flag(project, module, expr) for module, expr in passed]
    # A loop over numbers and arrays.
    numbers = [
        any(isinstance(v, Constant) for v in project.values(module, expr))
        for module, expr in passed
    ]
    return any(numbers) and not all(flags)


def what_is_passed(
    parameter: ast.arg, index: int | str | None, bound: BoundCalls
) -> list[tuple[Module, ast.expr]]:
    """The expressions that the calls pass for a parameter, or for one place of `*args`."""
    found: list[tuple[Module, ast.expr]] = []
    for call, arguments in bound:
        passed: list[ast.expr] = []
        if isinstance(index, int):
            passed += arguments.star[index : index + 1] if index >= 0 else ()
        elif isinstance(index, str):
            passed += (k.value for k in arguments.double_star if k.arg == index)
        elif parameter.arg in arguments.by_name:
            passed.append(arguments.by_name[parameter.arg])
        found += ((call.module_of(expr), expr) for expr in passed)
    return found


def narrowed(
    project: Project, parameter: ast.arg, needs: Sequence[Need], bound: BoundCalls
) -> BoundCalls:
    """The calls with the items that are needed in the place of a container that is written out."""
    keys = {need.index for need in needs}
    if None in keys:
        return bound
    found: list[tuple[Call, Arguments]] = []
    for call, arguments in bound:
        expr = arguments.by_name.get(parameter.arg)
        parts = [] if expr is None else _items(project, call.module, expr, keys)
        found += (
            (call, replace(arguments, by_name={**arguments.by_name, parameter.arg: part}))
            for part in parts
        )
        if not parts:
            found.append((call, arguments))
    return tuple(found)


def _items(
    project: Project, module: Module, expr: ast.expr, keys: Collection[object]
) -> list[ast.expr]:
    values = project.values(module, expr)
    if not values or not all(isinstance(v, Container) and v.module is module for v in values):
        return []
    return [
        part
        for value in values
        if isinstance(value, Container)
        for key in keys
        for owner, part in items(value, key)
        if owner is module
    ]


def passed_kind(
    project: Project,
    target: Target,
    parameter: ast.arg,
    index: int | str | None,
    bound: BoundCalls,
) -> tuple[Kind, tuple[Module, ast.expr] | None]:
    """The kind of what the calls pass, and the first array among it."""
    kinds: list[Kind] = []
    for module, expr in what_is_passed(parameter, index, bound):
        kind = kinds_of(project).of(module, expr)
        if kind == "array":
            return "array", (module, expr)
        kinds.append(kind)
    return join(kinds), None


def all_untraced(
    project: Project,
    target: Target,
    parameter: ast.arg,
    needs: Sequence[Need],
    index: int | str | None,
    bound: BoundCalls,
) -> bool:
    """Whether every call passes what is certainly no tracer, and its value can be had inside.

    Inside a checkpointed function an operation on an array of JAX gives a tracer: it must be one
    that can be computed at compile time.
    """
    passed = what_is_passed(parameter, index, bound)
    if not all(is_untraced(project, module, expr) for module, expr in passed):
        return False
    if all(is_numpy(project, module, expr) for module, expr in passed):
        return True
    operations = {operation for need in needs for _, operation in need.traced}
    return all(_is_computed(project, target, need.node, parameter, operations) for need in needs)


def _is_computed(
    project: Project,
    target: Target,
    node: ast.expr,
    parameter: ast.arg,
    operations: Collection[ast.expr],
) -> bool:
    """Whether an expression is the parameter itself, or made of it by operations that are hoisted.

    `operations` are those that can be computed at compile time.
    """
    module = target.function.module

    def of_all(nodes: Sequence[ast.expr]) -> bool:
        return all(_is_computed(project, target, n, parameter, operations) for n in nodes)

    if node in operations:
        used = [n for n in ast.walk(node) if isinstance(n, ast.Name)]
        return of_all([n for n in used if any(b.kind != "import" for b in module.reaching(n))])
    match node:
        case ast.Name():
            bindings = module.reaching(node)
            values = [b.value for b in bindings if b.kind == "assign" and b.value is not None]
            if any(b.node is parameter for b in bindings):
                return len(bindings) == 1
            return len(values) == len(bindings) > 0 and of_all(values)
        case ast.Call(func=ast.Attribute(value=value, attr="tolist" | "item"), args=[]):
            return of_all([value])
        case ast.Call(args=[value]):
            names = {v.name for v in project.values(module, node.func) if isinstance(v, External)}
            return bool(names) and names <= _READING and of_all([value])
    return False


# Calls that give Python or NumPy the values of an array of JAX.
_READING = frozenset(
    {
        "builtins.bool", "builtins.int", "builtins.float", "builtins.range", "numpy.asarray",
        "numpy.array",
    }
)  # fmt: skip


def flag_like(
    project: Project,
    target: Target,
    parameter: ast.arg,
    index: int | str | None,
    bound: BoundCalls,
) -> bool:
    """Whether a parameter that only *may* be needed is a bool, a string, an integer, a function."""
    if annotation_kind(parameter.annotation) == "array":
        return False
    default = default_of(target.function.node, parameter)
    if default_kind(default) == "python" or annotation_kind(parameter.annotation) == "python":
        return True
    if isinstance(default, ast.Name) and is_flag(project, target.function.module, default):
        return True
    # `None` goes with anything.
    passed = [
        (module, expr)
        for module, expr in what_is_passed(parameter, index, bound)
        if not (isinstance(expr, ast.Constant) and expr.value is None)
    ]
    return bool(passed) and all(is_flag(project, module, expr) for module, expr in passed)


def by_value(
    project: Project,
    target: Target,
    parameter: ast.arg,
    index: int | str | None,
    bound: BoundCalls,
) -> bool:
    """Whether what is passed for a parameter cannot change: no list, no object with attributes.

    Nor do some calls pass `1` and others `1.0` or `True`: they are equal, and JAX traces once for
    equal static arguments.
    """
    if len(_number_types(what_is_passed(parameter, index, bound))) > 1:
        return False
    for module, expr in what_is_passed(parameter, index, bound):
        if isinstance(expr, ast.List | ast.Dict | ast.Set | ast.ListComp | ast.DictComp):
            return False
        if kinds_of(project).of(module, expr) == "array":
            return False
        for value in project.values(module, expr):
            match value:
                case Instance(cls=Class() as cls):
                    if not is_frozen(project.evaluator, cls):
                        return False
                case Instance() | Result():
                    return False
                case Container(node=node) if not isinstance(node, ast.Tuple):
                    return False
    annotated = [
        v
        for v in (
            project.evaluator.annotated(target.function.module, parameter.annotation)
            if parameter.annotation is not None
            else ()
        )
        if isinstance(v, Instance) and isinstance(v.cls, Class)
    ]
    if annotated:
        return all(
            is_frozen(project.evaluator, v.cls) for v in annotated if isinstance(v.cls, Class)
        )
    if has_attributes(target, parameter):
        return False
    function = target.function.node
    if parameter in (function.args.vararg, function.args.kwarg):
        return True  # whose items are arguments
    uses = list(uses_of(target, parameter))
    contents = contents_of(project.evaluator, target.function.module, function)
    if any(contents.shows_container(binding) for _, binding in uses):
        return False
    if not any(_is_taken_apart(target.function.module, use) for use, _ in uses):
        return True
    passed = what_is_passed(parameter, index, bound)
    if not passed:
        return annotation_kind(parameter.annotation) == "python"
    return all(is_flag(project, module, expr) for module, expr in passed)


def uses_of(target: Target, parameter: ast.arg) -> Iterator[tuple[ast.Name, Binding]]:
    """The uses of a parameter in a function, with its binding."""
    for node in ast.walk(target.function.node):
        if isinstance(node, ast.Name) and node.id == parameter.arg:
            for binding in target.function.module.reaching(node):
                if binding.node is parameter:
                    yield node, binding


def _is_taken_apart(module: Module, use: ast.Name) -> bool:
    """Whether a use is one of a container or of an array, which may change."""
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


def _number_types(passed: list[tuple[Module, ast.expr]]) -> set[type]:
    return {
        type(expr.value)
        for _, expr in passed
        if isinstance(expr, ast.Constant) and isinstance(expr.value, bool | int | float)
    }


def has_attributes(target: Target, parameter: ast.arg) -> bool:
    """Whether the function reads attributes of a parameter that no array and no string has."""
    module, node = target.function.module, target.function.node
    for inner in ast.walk(node):
        if isinstance(inner, ast.Attribute) and isinstance(inner.value, ast.Name):
            if inner.value.id == parameter.arg and inner.attr not in STATIC_ATTRIBUTES:
                if any(b.node is parameter for b in module.reaching(inner.value)):
                    if not hasattr(str, inner.attr) and inner.attr not in ("real", "imag", "value"):
                        return True
    return False


def used_as_array(project: Project, target: Target, parameter: ast.arg) -> bool:
    """Whether the function computes with a parameter as with an array."""
    module = target.function.module
    return any(is_array_use(project, module, use) for use, _ in uses_of(target, parameter))


def is_array_use(project: Project, module: Module, node: ast.expr) -> bool:
    """Whether an expression stands where arrays do."""
    match module.parent(node):
        case ast.BinOp(left=left, right=right):
            # `n - 1` may be any number.
            other = right if left is node else left
            return not (isinstance(other, ast.Constant) and isinstance(other.value, int | str))
        case ast.UnaryOp(op=ast.USub()) | ast.AugAssign():
            return True
        case ast.Attribute(attr=attr) if attr in ("T", "at"):
            return True
        case ast.Attribute(attr=attr) if attr in STATIC_ATTRIBUTES or is_array_method(attr):
            return True
        case ast.Call(func=func, args=args) if func is not node:
            names = {v.name for v in project.values(module, func) if isinstance(v, External)}
            return (node in args[1:] and bool(names & CALL_WITH.keys())) or any(
                name.startswith(TRACED_MODULES) and name.rpartition(".")[2] not in OF_ANYTHING
                for name in names
            )
    return False
