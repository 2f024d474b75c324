"""Checkpoints one call.

    x = block(p, x)         ->  x = jax.checkpoint(block)(p, x)
    x = block(p, x, train)  ->  x = jax.checkpoint(lambda p, x: block(p, x, train))(p, x)

Arrays and trees of arrays are traced. The lambda closes over arguments that must be concrete or may
not be arrays: they stay as they are, and if one is an array after all, its gradient still flows.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from ...analysis import Module, Project
from ...analysis.names.scopes import FunctionNode, parameters
from ...analysis.values.bind import bind_call
from ...analysis.values.callees import Target, targets_of
from ...codemod.changes import Change, Code, Replace
from ..arguments.traced_arguments import Arrays, declared_kind
from ..checkpoint_code import CheckpointCode
from ..imports import written
from ..refusal import Refused, check_own
from .callees import api_for, check_compile_time, may_lack_hash
from .hazards import check_hazards

_JAX = "jax.checkpoint"


@dataclass(frozen=True, slots=True)
class _Argument:
    """An argument of a call: its index or keyword, its value, and the name of its parameter."""

    place: int | str
    value: ast.expr
    parameter: str | None


def wrap_call(
    project: Project,
    module: Module,
    call: ast.Call,
    options: Sequence[str] = (),
    *,
    known_arrays: Collection[int | str] | None = None,
    checkpoint: str = "jax.checkpoint",
    arrays: Arrays | None = None,
    condition: str = "",
) -> list[Change]:
    """Return the changes that checkpoint one call.

    Args:
        project: the project.
        module: the module of the call.
        call: the call.
        options: options of the checkpoint, as `name=value`.
        known_arrays: the arguments, by index or keyword, that are arrays or trees of arrays in a
            trace; all others are Python values. None without a trace.
        checkpoint: the Api of JAX to use, by qualified name.
        arrays: determines arrays without a trace.
        condition: when to apply the checkpoint, by default always.

    Raises:
        Refused: a checkpoint changes what the call does, or may do so.
    """
    check_own(module, call, "the call")
    values = project.values(module, call.func)
    api = api_for(project, module, call, known_arrays is not None)
    targets = [t for v in values for t in targets_of(project.evaluator, v)]
    for target in targets:
        check_hazards(project, target.function)
        check_compile_time(project, target)
    arguments = _arguments(module, call, targets)
    if api == "equinox.filter_checkpoint":
        closed: list[_Argument] = []  # it selects the arrays itself
    elif known_arrays is not None:
        closed = [a for a in arguments if a.place not in known_arrays]
    else:
        closed = _closed(arrays or Arrays(project), module, arguments, targets)
    traced = [a for a in arguments if a not in closed]
    if not traced:
        reason = "no argument is known to be an array: `remat-migrate measure` traces them"
        raise Refused(reason, module, call)
    reference = written(project, module, checkpoint if api == _JAX else api, call)
    code = CheckpointCode(reference.text, tuple(options))
    if not closed and not may_lack_hash(project, values):
        changes: list[Change] = [
            Replace(module, call.func, Code.of(code.around("{f}"), f=call.func))
        ]
        if condition:
            callee, whole = module.segment(call.func), module.segment(call)
            if "{" in whole:
                raise Refused("its arguments hold braces", module, call)
            given = whole.removeprefix(callee)
            text = f"{code.around(callee)}{given} if {condition} else {{call}}"
            changes = [Replace(module, call, Code.of(text, call=call))]
    elif not condition:
        changes = _around_call(module, call, traced, code)
    else:
        raise Refused("not all arguments are known to be arrays", module, call)
    return [*changes, *reference.changes]


def _arguments(module: Module, call: ast.Call, targets: Sequence[Target]) -> list[_Argument]:
    names: dict[ast.expr, str] = {}
    for target in targets[:1]:
        bound = bind_call(target.function.node, call.args, call.keywords, target.skip)
        names = {expr: name for name, expr in bound.by_name.items()}
    found: list[_Argument] = []
    for index, arg in enumerate(call.args):
        found.append(_Argument(index, arg, names.get(arg)))
    for keyword in call.keywords:
        if keyword.arg is None:
            reason = "arguments are unpacked with `**`, so the arrays among them are unknown"
            raise Refused(reason, module, call)
        found.append(_Argument(keyword.arg, keyword.value, names.get(keyword.value)))
    return found


def _closed(
    arrays: Arrays, module: Module, arguments: list[_Argument], targets: Sequence[Target]
) -> list[_Argument]:
    """Return the arguments that may not be arrays."""
    found: list[_Argument] = []
    for argument in arguments:
        if isinstance(argument.value, ast.Starred):
            if arrays.kind(module, argument.value.value) == "array":
                continue
            reason = "arguments are unpacked with `*`, and may not be arrays"
            raise Refused(reason, module, argument.value)
        kind = arrays.kind(module, argument.value)
        needed = used = declared = False
        for target in targets:
            parameter = _parameter(target.function.node, argument.parameter)
            if parameter is None:
                continue
            needed = needed or arrays.needed(target, parameter)
            used = used or arrays.used_as_array(target, parameter)
            declared = declared or declared_kind(parameter, None) == "python"
        if needed and kind == "array":
            reason = f"`{argument.parameter}` must be concrete, and is an array here"
            raise Refused(reason, module, argument.value)
        if kind == "array" or (kind == "unknown" and used and not declared):
            continue
        found.append(argument)
    return found


def _parameter(function: FunctionNode, name: str | None) -> ast.arg | None:
    return next((p for p in parameters(function) if p.arg == name), None)


def _around_call(
    module: Module, call: ast.Call, traced: Sequence[_Argument], code: CheckpointCode
) -> list[Change]:
    """Return the changes that make it `jax.checkpoint(lambda x: f(x, train))(x)`."""
    # The rest of the call must not read the parameters of the lambda instead.
    rest = _nodes_without(call, [a.value for a in traced])
    free = {n.id for n in rest if isinstance(n, ast.Name)}
    names: dict[str, ast.expr] = {}
    for argument in traced:
        value = argument.value
        if isinstance(value, ast.Starred):
            reason = "arguments are unpacked with `*`, and others may not be arrays"
            raise Refused(reason, module, value)
        name = value.id if isinstance(value, ast.Name) else argument.parameter or "x"
        if name in names:
            name = argument.parameter or name
        while name in free or name in names:
            name += "_"
        names[name] = value
    wrapped = code.around(f"lambda {', '.join(names)}: {{call}}")
    passed = ", ".join(f"{{given_{name}}}" for name in names)
    parts = {f"given_{name}": value for name, value in names.items()}
    return [
        Replace(module, call, Code.of(f"{wrapped}({passed})", call=call, **parts)),
        *(
            Replace(module, value, Code(name))
            for name, value in names.items()
            if not (isinstance(value, ast.Name) and value.id == name)
        ),
    ]


def _nodes_without(tree: ast.AST, left_out: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """Yield the nodes of a tree, without some nodes and those in them."""
    if tree not in left_out:
        yield tree
        for child in ast.iter_child_nodes(tree):
            yield from _nodes_without(child, left_out)
