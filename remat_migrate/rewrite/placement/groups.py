"""Checkpoints a group of statements, or several iterations of a loop, as a nested function.

x = f(x)            @jax.checkpoint
x = g(x)       ->   def group(x):
                        x = f(x)
                        x = g(x)
                        return x

                    x = group(x)
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from ...analysis import Module, Project
from ...analysis.names.module import FunctionNode
from ...analysis.sites.references import reference_to
from ...codemod.changes import Change, Group
from ..checkpoint_code import CheckpointCode
from ..free_names import free_name, words_in
from ..refusal import Refused, check_own
from .expressions import free_names, is_local, lifting

_LEAVING = ast.Return | ast.Break | ast.Continue | ast.Yield | ast.YieldFrom | ast.Await


def wrap_group(
    project: Project,
    module: Module,
    statements: Sequence[ast.stmt],
    options: Sequence[str],
) -> list[Change]:
    """Return the changes that checkpoint a group of statements together.

    Args:
        project: the project.
        module: the module of the statements.
        statements: the statements in the order in which they run; those of a loop's iteration
            repeat if the group consists of several iterations.
        options: options of the checkpoint, as `name=value`.

    Raises:
        Refused: they are not in one block, or a checkpoint changes what they do.
    """
    check_own(module, statements[0], "the group")
    distinct = list(dict.fromkeys(statements))
    times = len(statements) // len(distinct)
    above = module.parent(statements[0])
    suite = getattr(above, "body", [])
    places = [suite.index(each) for each in distinct if each in suite]
    if list(statements) != distinct * times or sorted(places)[:1] != places[:1]:
        raise Refused("the group ends within an iteration of a loop", module, statements[0])
    if not isinstance(above, ast.stmt) or len(places) < len(distinct):
        raise Refused("the stages of the group are not in one block", module, statements[0])
    body, loop, items = list(suite[places[0] : places[-1] + 1]), "", ""
    if times > 1:
        if loop_around(module, statements[0]) is not above:
            raise Refused("the stages of the group are not in one block", module, statements[0])
        body = [above]
        loop, items = _in_chunks(module, above, times)
    return _nested(project, module, above, body, options, loop, items)


def _nested(
    project: Project,
    module: Module,
    node: ast.stmt,
    body: Sequence[ast.stmt],
    options: Sequence[str],
    loop: str,
    items: str,
) -> list[Change]:
    """Return the changes that move statements into a nested function, see `Group`."""
    inside = {inner for statement in body for inner in ast.walk(statement)}
    leaving = [n for n in inside if isinstance(n, _LEAVING) and n is not body[-1]]
    if leaving:
        raise Refused("the group leaves its block early", module, leaving[0])
    api, modules = lifting(project, module, body)
    made = {
        n.id: None
        for statement in body
        for n in ast.walk(statement)
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }
    # Names that it assigns are local: their values are passed. It closes over all others.
    read = [n.id for n in _read(module, body) if n.id in made and is_local(module, n)]
    given = list(dict.fromkeys([*modules, *read]))
    after = {n.id for n in _used_after(module, body, inside)}
    results = [name for name in made if name in after or name in given]
    returns = isinstance(body[-1], ast.Return)
    if not results and not returns:
        raise Refused("nothing that the group computes is used", module, body[0])
    name = free_name("group", words_in(module))
    reference = reference_to(module, project, api, body[0])
    decorator = CheckpointCode(reference.text, tuple(options)).decorator(project, module, body[0])
    call = f"{name}({', '.join(given)})"
    group = Group(
        module,
        node,
        tuple(body),
        f"@{decorator.text}\ndef {call}:\n    pass",
        "" if returns else f"return {', '.join(results)}",
        f"return {call}" if returns else f"{', '.join(results)} = {call}",
        loop,
        items,
    )
    return [group, *reference.changes, *decorator.changes]


def _in_chunks(module: Module, loop: ast.stmt, times: int) -> tuple[str, str]:
    """Return the loop over chunks of several iterations, and what iterates over one chunk."""
    assert isinstance(loop, ast.For)
    if loop.orelse:
        raise Refused("the loop has an `else`", module, loop)
    start = free_name("start", words_in(module))
    items = ast.unparse(loop.iter)
    if isinstance(loop.iter, ast.Call):
        items = f"list({items})"
    own = f"{items}[{start} : {start} + {times}]"
    return f"for {start} in range(0, {length(loop)}, {times}):\n    pass", own


def _read(module: Module, body: Sequence[ast.stmt]) -> Iterator[ast.Name]:
    """Yield the names that a group reads from outside."""
    yield from free_names(module, body)
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                yield node.target


def _used_after(
    module: Module, body: Sequence[ast.stmt], inside: set[ast.AST]
) -> Iterator[ast.Name]:
    """Yield the names outside a group that read what it assigns."""
    function = module.enclosing_function(body[0])
    for name in ast.walk(function) if function is not None else ():
        if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Load) and name not in inside:
            if any(binding.node in inside for binding in module.reaching(name)):
                yield name


def loop_around(module: Module, statement: ast.stmt) -> ast.For:
    """Return the only loop that repeats a statement.

    Raises:
        Refused: it is not in exactly one `for` loop.
    """
    loops: list[ast.AST] = []
    for around in module.ancestors(statement):
        if isinstance(around, FunctionNode):
            break
        if isinstance(around, ast.For | ast.While | ast.AsyncFor):
            loops.append(around)
    match loops:
        case [ast.For() as loop]:
            return loop
    reason = "the line does not run in one `for` loop, so that no iteration is known as the last"
    raise Refused(reason, module, statement)


def length(loop: ast.For) -> str:
    """Return the number of iterations as code.

    Raises:
        Refused: it is unknown, or computing it again may have another result.
    """
    match loop.iter:
        case ast.Call(ast.Name("range"), [stop], []):
            return ast.unparse(stop)
        case ast.Call(ast.Name("enumerate" | "zip"), [items, *_], []) | items:
            if isinstance(items, ast.Name | ast.Attribute):
                return f"len({ast.unparse(items)})"
    raise Refused("the length of the loop is unknown")
