"""Calls whose static arguments stand by position.

`jax.checkpoint` counts the arguments that are passed by position; a static argument passed by
keyword, or left to its default, is an error or makes another argument static.
"""

from __future__ import annotations

import ast
from collections.abc import Collection

from ...analysis.sites.uses import Call
from ...analysis.values.bind import Arguments, default_of, positional_parameters
from ...analysis.values.values import Function
from ...codemod.changes import ArrangeArguments, Change, Code
from ..literals import is_literal, literal_text
from ..refusal import Refused, check_editable
from .argument_specs import Added


def pass_by_position(
    call: Call,
    bound: Arguments,
    function: Function,
    last: int,
    *,
    needed: Collection[str] = (),
    every: bool = False,
    star_count: int = 0,
) -> tuple[list[Change], list[Added]]:
    """The changes that make a call pass its parameters up to number `last` by position.

    Also returns the arguments that were not passed by position before: a transformation that the
    call goes through may count them, see `spec_edits`.

    Args:
        call: the call.
        bound: its arguments by parameter.
        function: what is called.
        last: the index of the last parameter to pass by position, `self` counted.
        needed: the parameters whose values are needed at trace time.
        every: whether all arguments that the call gives must stand by position.
        star_count: how many arguments must be given to `*args`.

    Raises:
        Refused: some of them are spread, missing, or would be evaluated in another order.
    """
    node = call.node
    if bound.wrong:
        raise Refused("a call does not fit the function's parameters", call.module, node)
    if bound.unclear:
        raise Refused(
            "a call spreads its arguments (`*` or `**`), so it cannot be told which it passes by"
            " position",
            call.module,
            node,
        )
    if len(bound.star) < star_count:
        raise Refused("a call does not pass the static argument", call.module, node)
    parameters = positional_parameters(function.node)
    if every:
        given = [i for i, p in enumerate(parameters) if p.arg in bound.by_name]
        last = max([last, *given])
        extra = [k.arg for k in node.keywords if k.arg not in {p.arg for p in parameters}]
        if extra:
            raise Refused(
                f"`{extra[0]}` can only be passed by keyword, which this checkpoint ignores",
                call.module,
                node,
            )
    wanted = parameters[bound.skip : last + 1]
    missing = [p for p in wanted if p.arg not in bound.by_position]
    if not missing:
        return [], []
    check_editable(call.module, [node])
    if call.partials:
        raise Refused("arguments are given through `functools.partial`", call.module, node)
    moved: list[ast.keyword | Code] = []
    added: list[Added] = []
    keywords = {k.arg: k for k in node.keywords}
    for position, parameter in enumerate(missing, len(node.args) - call.first):
        keyword = keywords.get(parameter.arg)
        moved.append(keyword if keyword is not None else _default(call, function, parameter))
        name = parameter.arg
        added.append(Added(position, name, keyword is None, name in needed))
    return _arranged(call, moved), added


def _default(call: Call, function: Function, parameter: ast.arg) -> Code:
    default = default_of(function.node, parameter)
    if default is None:
        raise Refused(f"a call does not pass `{parameter.arg}`", call.module, call.node)
    if not is_literal(default):
        raise Refused(
            f"the default of `{parameter.arg}` is not a literal that can be written at the call",
            call.module,
            call.node,
        )
    return Code(literal_text(function.module, default, call.module))


def _arranged(call: Call, moved: list[ast.keyword | Code]) -> list[Change]:
    """The change that puts keywords and defaults behind the positional arguments, in order."""
    node = call.node
    rest = [k for k in node.keywords if k not in moved]
    slots: list[ast.expr | ast.keyword] = sorted(
        [*node.args, *node.keywords], key=lambda n: (n.lineno, n.col_offset)
    )
    order: list[ast.expr | ast.keyword | Code] = [*node.args, *moved, *rest]
    existing = [n for n in order if not isinstance(n, Code)]
    swapped = [n for n, s in zip(existing, slots, strict=True) if n is not s]
    if sum(not _calm(n) for n in swapped) > 1:
        raise Refused(
            "passing the arguments by position would evaluate them in another order",
            call.module,
            node,
        )
    unnamed = frozenset(n for n in moved if isinstance(n, ast.keyword))
    return [ArrangeArguments(call.module, node, tuple(order), unnamed)]


def _calm(node: ast.AST) -> bool:
    return not any(
        isinstance(n, ast.Call | ast.Await | ast.Yield | ast.NamedExpr) for n in ast.walk(node)
    )
