"""Putting a checkpoint on a call.

    x = block(p, x)         ->  x = jax.checkpoint(block)(p, x)
    x = block(p, x, train)  ->  x = jax.checkpoint(lambda p, x: block(p, x, train))(p, x)

Arrays and trees of arrays are traced. What Python needs, and what is not known to be an array, is
closed over: it stays what it is, and if it should be an array after all, its gradient still flows.
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
from ..imports import written
from ..refusal import Refused
from .callees import api_for, called_values, check_compile_time, may_lack_hash
from .hazards import check_hazards

_JAX = "jax.checkpoint"


@dataclass(frozen=True, slots=True)
class _Argument:
    """An argument of a call: its place (an index or a keyword), its value, the parameter's name."""

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
) -> list[Change]:
    """Put a checkpoint on one call.

    Args:
        project: the project.
        module: where the call stands.
        call: the call.
        options: options of the checkpoint, as `name=value`.
        known_arrays: the arguments, by index or keyword, of which a trace has seen that they are
            arrays or trees of arrays; all others are Python's. None if nothing was traced.
        checkpoint: the Api of JAX to use, by qualified name.
        arrays: tells arrays where nothing was traced.

    Raises:
        Refused: a checkpoint would change what the call does, or that cannot be told.
    """
    if not module.editable:
        raise Refused("the call stands in a file that is not to be changed", module, call)
    values = called_values(project, module, call.func)
    api = api_for(project, module, call, known_arrays is not None)
    targets = [t for v in values for t in targets_of(project.evaluator, v)]
    for target in targets:
        check_hazards(project, target.function)
        check_compile_time(project, target)
    arguments = _arguments(module, call, targets)
    if api == "equinox.filter_checkpoint":
        closed: list[_Argument] = []  # it sorts the arrays out itself
    elif known_arrays is not None:
        closed = [a for a in arguments if a.place not in known_arrays]
    else:
        closed = _closed(arrays or Arrays(project), module, arguments, targets)
    traced = [a for a in arguments if a not in closed]
    if not traced:
        raise Refused(
            "no argument is known to be an array: `remat-migrate measure` sees what they are",
            module,
            call,
        )
    reference = written(project, module, checkpoint if api == _JAX else api, call)
    text, imports = reference.text, reference.changes
    given = "".join(f", {option}" for option in options)
    if not closed and not may_lack_hash(project, values):
        return [*_around_callee(module, call, text, given), *imports]
    return [*_around_call(module, call, traced, text, given), *imports]


# -- its arguments


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
            raise Refused(
                "arguments are spread with `**`, so it cannot be told which are arrays",
                module,
                call,
            )
        found.append(_Argument(keyword.arg, keyword.value, names.get(keyword.value)))
    return found


def _closed(
    arrays: Arrays, module: Module, arguments: list[_Argument], targets: Sequence[Target]
) -> list[_Argument]:
    """The arguments that are not known to be arrays.

    Raises:
        Refused: Python needs the value of an array.
    """
    found: list[_Argument] = []
    for argument in arguments:
        if isinstance(argument.value, ast.Starred):
            if arrays.kind(module, argument.value.value) == "array":
                continue
            raise Refused(
                "arguments are spread with `*`, and are not known to be arrays",
                module,
                argument.value,
            )
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
            raise Refused(
                f"Python needs the value of `{argument.parameter}`, which is an array here",
                module,
                argument.value,
            )
        if kind == "array" or (kind == "unknown" and used and not declared):
            continue
        found.append(argument)
    return found


def _parameter(function: FunctionNode, name: str | None) -> ast.arg | None:
    return next((p for p in parameters(function) if p.arg == name), None)


# -- as code


def _around_callee(module: Module, call: ast.Call, checkpoint: str, given: str) -> list[Change]:
    """`jax.checkpoint(f)(x)`."""
    return [Replace(module, call.func, Code.of(f"{checkpoint}({{f}}{given})", f=call.func))]


def _around_call(
    module: Module, call: ast.Call, traced: Sequence[_Argument], checkpoint: str, given: str
) -> list[Change]:
    """`jax.checkpoint(lambda x: f(x, train))(x)`."""
    swapped = [a.value for a in traced]
    # What stays in the lambda must not read its parameters instead.
    free = {n.id for n in _staying(call, swapped) if isinstance(n, ast.Name)}
    names: dict[str, ast.expr] = {}
    for argument in traced:
        value = argument.value
        if isinstance(value, ast.Starred):
            raise Refused("arguments are spread with `*` beside some of Python", module, value)
        name = value.id if isinstance(value, ast.Name) else argument.parameter or "x"
        if name in names:
            name = argument.parameter or name
        while name in free or name in names:
            name += "_"
        names[name] = value
    wrapped = f"{checkpoint}(lambda {', '.join(names)}: {{call}}{given})"
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


def _staying(call: ast.Call, swapped: Sequence[ast.expr]) -> Iterator[ast.AST]:
    stack: list[ast.AST] = [call]
    while stack:
        node = stack.pop()
        if any(node is other for other in swapped):
            continue
        yield node
        stack.extend(ast.iter_child_nodes(node))
