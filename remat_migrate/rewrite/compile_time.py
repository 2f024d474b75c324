"""`jax.numpy` on static values: computed while tracing, under `jax.ensure_compile_time_eval`.

Inside a checkpointed function the result of every `jax.numpy` operation is a tracer, even of
operations on Python numbers. Where Python needs such a result, the operation is computed in
`with jax.ensure_compile_time_eval():`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from ..model import Module, Project
from ..model.need import Need
from ..source import Edit
from .imports import written
from .indent import indent_unit, indentation, indented
from .refusal import Refused

_CONTEXT = "jax.ensure_compile_time_eval"


def hoist(project: Project, needs: Iterable[Need]) -> list[Edit]:
    """The edits that compute at compile time what Python needs of `jax.numpy` operations.

    Raises:
        Refused: the operation stands where it cannot be taken out, or in a file that is not to
            be changed.
    """
    wrapped: dict[ast.stmt, Module] = {}
    taken: dict[ast.stmt, dict[ast.expr, Module]] = {}
    for need in needs:
        for module, operation in () if need.unseen else need.traced:
            if not module.editable:
                raise Refused(
                    "a `jax.numpy` result that Python needs is computed in a file that is not to"
                    f" be changed: compute it in `with {_CONTEXT}():`",
                    module,
                    operation,
                )
            statement = module.statement(operation)
            if _whole(module, statement, operation):
                wrapped[statement] = module
            else:
                place = _place(module, statement, operation)
                taken.setdefault(statement, {})[place] = module
    edits: list[Edit] = []
    for statement, module in wrapped.items():
        edits += _wrap(project, module, statement)
    for statement, places in taken.items():
        if statement in wrapped:
            continue
        outer = [p for p in places if not any(p is not q and _inside(p, q) for q in places)]
        module = places[outer[0]]
        edits += _take_out(project, module, statement, outer)
    return edits


def _inside(node: ast.AST, outer: ast.AST) -> bool:
    return any(inner is node for inner in ast.walk(outer))


def _whole(module: Module, statement: ast.stmt, operation: ast.expr) -> bool:
    """Whether a statement only computes the operation: `y = jnp.ceil(n)`, `assert jnp.all(m)`."""
    if isinstance(statement, ast.Assign | ast.AnnAssign):
        value = statement.value
        while value is not operation and isinstance(value, ast.Call) and len(value.args) == 1:
            # `n = int(jnp.ceil(x))`
            value = value.args[0]
        return value is operation
    return isinstance(statement, ast.Assert)


def _place(module: Module, statement: ast.stmt, operation: ast.expr) -> ast.expr:
    """The expression to take out: the whole test of an `if`, else the operation itself."""
    place: ast.expr = operation
    child: ast.AST = operation
    for around in module.ancestors(operation):
        if isinstance(around, ast.Lambda | ast.comprehension | ast.ListComp | ast.GeneratorExp):
            raise Refused(
                "a `jax.numpy` result that Python needs is computed in a lambda or comprehension:"
                f" compute it before, in `with {_CONTEXT}():`",
                module,
                operation,
            )
        if isinstance(around, ast.BoolOp) and around.values[0] is not child:
            place = around  # what stands before it guards it
        if isinstance(around, ast.IfExp) and around.test is not child:
            raise Refused(
                "a `jax.numpy` result that Python needs is computed under a condition: compute it"
                f" before, in `with {_CONTEXT}():`",
                module,
                operation,
            )
        if around is statement:
            break
        child = around
    match statement:
        case ast.If():
            holder = module.parent(statement)
            if isinstance(holder, ast.If) and statement in holder.orelse:
                if module.source.text.startswith("elif", module.span(statement).start):
                    raise Refused(
                        "Python needs a `jax.numpy` result in an `elif`: compute it before the"
                        f" `if`, in `with {_CONTEXT}():`",
                        module,
                        operation,
                    )
            return statement.test
        case ast.While():
            raise Refused(
                "Python needs a `jax.numpy` result at every round of a `while`: use"
                f" `numpy`, or compute it in `with {_CONTEXT}():`",
                module,
                operation,
            )
        case ast.With() | ast.AsyncWith() | ast.FunctionDef() | ast.ClassDef():
            raise Refused(
                f"a `jax.numpy` result that Python needs: compute it in `with {_CONTEXT}():`",
                module,
                operation,
            )
    return place


def _wrap(project: Project, module: Module, statement: ast.stmt) -> list[Edit]:
    source = module.source
    start, end = source.span(statement)
    _own_line(module, statement)
    indent, unit = indentation(module, statement.lineno), indent_unit(module)
    context = written(project, module, _CONTEXT, statement)
    lines = indented(source, source.line_starts[statement.lineno - 1], end, unit, indent).lstrip()
    text = f"with {context.text}():{source.newline}{indent}{unit}{lines}"
    return [Edit(source.path, start, end, text), *context.edits]


def _own_line(module: Module, statement: ast.stmt) -> None:
    text = module.source.line_text(statement.lineno)
    if text[: statement.col_offset].strip():
        raise Refused("several statements stand on its line", module, statement)


def _take_out(
    project: Project, module: Module, statement: ast.stmt, places: list[ast.expr]
) -> list[Edit]:
    source = module.source
    _own_line(module, statement)
    indent, unit = indentation(module, statement.lineno), indent_unit(module)
    context = written(project, module, _CONTEXT, statement)
    function = module.enclosing_function(statement)
    taken = {n.id for n in ast.walk(function or module.tree) if isinstance(n, ast.Name)}
    lines: list[str] = []
    edits: list[Edit] = []
    for place in sorted(places, key=lambda n: (n.lineno, n.col_offset)):
        base = "condition" if isinstance(statement, ast.If) else "static_value"
        name, number = base, 2
        while name in taken:
            name, number = f"{base}_{number}", number + 1
        taken.add(name)
        start, end = source.span(place)
        text = source.text[start:end]
        if "\n" in text and not _bracketed(place):
            text = f"({text})"
        lines.append(f"{indent}{unit}{name} = {text}")
        edits.append(Edit(source.path, start, end, name))
    start = source.span(statement).start
    head = source.newline.join([f"with {context.text}():", *lines])
    edits.append(Edit(source.path, start, start, f"{head}{source.newline}{indent}"))
    return [*edits, *context.edits]


def _bracketed(node: ast.expr) -> bool:
    return isinstance(node, ast.Call | ast.Tuple | ast.List)
