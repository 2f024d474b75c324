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
from ...codemod.changes import Change, Group
from ..checkpoint_code import CheckpointCode
from ..imports import written
from ..refusal import Refused, check_own
from .expressions import free_names, is_local, lifting
from .iterations import counter, fresh_name, loop_around

_NAMES = ("group", "stages", "run_group", "checkpointed")
_STARTS = ("start", "first", "begin", "offset")
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
    if list(statements) != distinct * times:
        raise Refused("the group ends within an iteration of a loop", module, statements[0])
    above = module.parent(statements[0])
    suite = getattr(above, "body", ())
    if not isinstance(above, ast.stmt) or not all(each in suite for each in distinct):
        raise Refused("the stages of the group are not in one block", module, statements[0])
    if times > 1:
        loop = loop_around(module, statements[0])
        if loop is not above:
            raise Refused("the stages of the group are not in one block", module, statements[0])
        nested = _Nested(project, module, [loop], options)
        return [_in_chunks(module, loop, times, nested), *nested.imports]
    first, last = suite.index(distinct[0]), suite.index(distinct[-1])
    if first > last:
        raise Refused("the group ends within an iteration of a loop", module, statements[0])
    nested = _Nested(project, module, suite[first : last + 1], options)
    return [nested.change(above), *nested.imports]


class _Nested:
    """A nested function with a group of statements as its body.

    Attributes:
        imports: the changes that import what its decorator needs.
    """

    def __init__(
        self,
        project: Project,
        module: Module,
        body: Sequence[ast.stmt],
        options: Sequence[str],
    ) -> None:
        self._module, self._body = module, tuple(body)
        self._returns = isinstance(body[-1], ast.Return)
        inside = {node for statement in body for node in ast.walk(statement)}
        leaving = [n for n in inside if isinstance(n, _LEAVING) and n is not body[-1]]
        if leaving:
            raise Refused("the group leaves its block early", module, leaving[0])
        api, modules = lifting(project, module, body)
        made = {n.id: None for n in _in_order(body) if isinstance(n.ctx, ast.Store)}
        read = [n for n in _read(module, body) if is_local(module, n)]
        # Names that it assigns are local: their values are passed. It closes over all others.
        given = dict.fromkeys([*modules, *(n.id for n in read if n.id in made)])
        after = {n.id for n in _used_after(module, body, inside)}
        self._results = [name for name in made if name in after or name in given]
        self._given = list(given)
        self._name = fresh_name(module, body[0], _NAMES)
        reference = written(project, module, api, body[0])
        decorator = CheckpointCode(reference.text, tuple(options)).decorator(
            project, module, body[0]
        )
        self._decorator = decorator.text
        self.imports = (*reference.changes, *decorator.changes)
        if not self._results and not self._returns:
            raise Refused("nothing that the group computes is used", module, body[0])

    def change(self, node: ast.stmt, loop: str = "", items: str = "") -> Change:
        """Return the change that moves the group, see `Group`."""
        given, results = ", ".join(self._given), ", ".join(self._results)
        call = f"{self._name}({given})"
        return Group(
            self._module,
            node,
            self._body,
            f"@{self._decorator}\ndef {self._name}({given}):\n    pass",
            "" if self._returns else f"return {results}",
            f"return {call}" if self._returns else f"{results} = {call}",
            loop,
            items,
        )


def _in_chunks(module: Module, loop: ast.For, times: int, nested: _Nested) -> Change:
    """Return the change that runs a loop in chunks of several iterations."""
    if loop.orelse:
        raise Refused("the loop has an `else`", module, loop)
    size, _ = counter(loop)
    start = fresh_name(module, loop, _STARTS)
    stop = f"{start} + {times}"
    items = ast.unparse(loop.iter)
    match loop.iter:
        case ast.Call(ast.Name("range"), [_], []):
            own = f"range({start}, min({stop}, {size}))"
        case ast.Name() | ast.Attribute():
            own = f"{items}[{start} : {stop}]"
        case _:
            own = f"list({items})[{start} : {stop}]"
    return nested.change(loop, f"for {start} in range(0, {size}, {times}):\n    pass", own)


def _in_order(body: Sequence[ast.stmt]) -> Iterator[ast.Name]:
    return (n for statement in body for n in ast.walk(statement) if isinstance(n, ast.Name))


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
