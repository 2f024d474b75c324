"""Computes `jax.numpy` operations on static values at trace time.

In a checkpointed function, the result of every `jax.numpy` operation is a tracer, even if it only
uses Python numbers. A result that must be concrete is computed in
`with jax.ensure_compile_time_eval():`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from ..analysis import Module, Project
from ..analysis.needs.needs import MATCH, Need
from ..analysis.sites.references import reference_to
from ..codemod.changes import Change, Code, Indent, Insert, Replace
from .free_names import free_name, words_in
from .refusal import Refused, check_own

_CONTEXT = "jax.ensure_compile_time_eval"
_RESULT = "a `jax.numpy` result"


def hoist(project: Project, needs: Iterable[Need]) -> list[Change]:
    """Return the changes that compute at trace time the operations that `needs` name.

    Raises:
        Refused: an operation cannot be moved out, or is in an installed package.
    """
    wrapped: dict[ast.stmt, Module] = {}
    taken: dict[ast.stmt, dict[ast.expr, Module]] = {}
    words: dict[Module, set[str]] = {}
    for need in needs:
        if need.passed:
            raise Refused(
                f"{_RESULT} is passed to a function that computes with it before it needs the"
                f" value, and a checkpoint traces that: compute what it needs before, in `with"
                f" {_CONTEXT}():`",
                need.module,
                need.node,
            )
        for module, operation in () if need.opaque else need.operations:
            check_own(module, operation, f"{_RESULT} that must be concrete")
            statement = module.statement(operation)
            if _whole(statement, operation):
                wrapped[statement] = module
            else:
                place = _place(module, statement, operation, need.reason)
                taken.setdefault(statement, {})[place] = module
    changes: list[Change] = []
    for statement, module in wrapped.items():
        changes += _wrap(project, module, statement)
    for statement, places in taken.items():
        if statement in wrapped:
            continue
        outer = [p for p in places if not any(p is not q and p in ast.walk(q) for q in places)]
        module = places[outer[0]]
        used = words.setdefault(module, words_in(module))
        changes += _take_out(project, module, statement, outer, used)
    return changes


def _whole(statement: ast.stmt, operation: ast.expr) -> bool:
    """Return whether a statement only computes the operation: `y = jnp.ceil(n)`, `assert ...`."""
    if isinstance(statement, ast.AugAssign):
        return operation is statement.target
    value = statement.value if isinstance(statement, ast.Assign | ast.AnnAssign) else None
    while value is not operation and isinstance(value, ast.Call) and len(value.args) == 1:
        value = value.args[0]  # `n = int(jnp.ceil(x))`
    return value is operation or isinstance(statement, ast.Assert)


def _place(module: Module, statement: ast.stmt, operation: ast.expr, reason: str) -> ast.expr:
    """Return the expression to move out: the whole test of an `if`, else the operation itself."""
    place: ast.expr = operation
    child: ast.AST = operation
    inner: ast.AST = operation
    is_inside = _has_suite(module, statement, reason)
    for around in module.ancestors(operation):
        is_inside = is_inside or _runs_apart(around, child, inner, statement)
        if isinstance(around, ast.BoolOp) and around.values[0] is not child:
            place = around  # the operands before it guard it
        if around is statement:
            break
        child, inner = around, child
    if is_inside:
        raise Refused(
            f"{_RESULT} must be concrete here: use `numpy`, or compute it before, in"
            f" `with {_CONTEXT}():`",
            module,
            operation,
        )
    return statement.test if isinstance(statement, ast.If) else place


def _has_suite(module: Module, statement: ast.stmt, reason: str) -> bool:
    """Return whether nothing can be computed before the head of a statement."""
    match statement:
        case ast.If():
            holder = module.parent(statement)
            return (
                isinstance(holder, ast.If)
                and statement in holder.orelse
                and module.source.text.startswith("elif", module.span(statement).start)
            )
        case ast.Match():
            return reason == MATCH
    return isinstance(
        statement, ast.While | ast.With | ast.AsyncWith | ast.FunctionDef | ast.ClassDef
    )


def _runs_apart(around: ast.AST, child: ast.AST, inner: ast.AST, statement: ast.stmt) -> bool:
    """Return whether a node runs a part of it later, often, or not always: `inner`, in `child`."""
    match around:
        case ast.Lambda() | ast.JoinedStr() | ast.match_case():
            return True
        case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
            first = around.generators[0]  # its iterable is computed outside
            return child is not first or inner is not first.iter
        case ast.IfExp(test=test):
            return test is not child and not isinstance(statement, ast.If)
    return False


def _wrap(project: Project, module: Module, statement: ast.stmt) -> list[Change]:
    _own_line(module, statement)
    context = reference_to(module, project, _CONTEXT, statement)
    header = Code(f"with {context.text}(): pass")
    return [Indent(module, statement, header), *context.changes]


def _own_line(module: Module, statement: ast.stmt) -> None:
    text = module.source.line_text(statement.lineno)
    if text[: statement.col_offset].strip():
        raise Refused("its line has several statements", module, statement)


def _take_out(
    project: Project,
    module: Module,
    statement: ast.stmt,
    places: list[ast.expr],
    taken: set[str],
) -> list[Change]:
    """Return the changes that compute some places before a statement, by names not yet taken."""
    _own_line(module, statement)
    context = reference_to(module, project, _CONTEXT, statement)
    lines: list[str] = []
    parts: dict[str, ast.expr] = {}
    changes: list[Change] = []
    for place in sorted(places, key=lambda n: (n.lineno, n.col_offset)):
        base = "condition" if isinstance(statement, ast.If) else "static_value"
        name = free_name(base, taken)
        taken.add(name)
        parts[name] = place
        # Each step of a loop over an array is an operation, too.
        value = f"list({{{name}}})" if _is_iterated(module, place) else f"{{{name}}}"
        lines.append(f"    {name} = {value}")
        changes.append(Replace(module, place, Code(name)))
    code = Code.of("\n".join([f"with {context.text}():", *lines, ""]), **parts)
    return [Insert(module, statement, (code,)), *changes, *context.changes]


def _is_iterated(module: Module, place: ast.expr) -> bool:
    match module.parent(place):
        case ast.For(iter=iterable) | ast.comprehension(iter=iterable):
            return iterable is place
    return False
