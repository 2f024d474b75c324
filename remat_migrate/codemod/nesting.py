"""Moves the body of a function, or some of its statements, into a nested function."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import libcst as cst

from ..errors import CodemodError
from .changes import Group, Nest
from .expressions import TIGHT
from .lines import Lines, own_lines, trimmed_start


def nested(nest: Nest, node: Any) -> list[cst.FunctionDef]:
    """Return the function with its body in a nested one, which it calls.

    Raises:
        CodemodError: another fix removes one of its decorators.
    """
    if len(node.decorators) != len(getattr(nest.node, "decorator_list", [])):
        raise CodemodError("another fix removes a decorator of the function")
    docstring, blanks, body = _split(node.body)
    if docstring and not blanks:
        blanks = [cst.EmptyLine(indent=False)]
    inner = cst.FunctionDef(
        cst.Name(nest.name),
        _without(node.params, nest.closed, nest.reassigned),
        body,
        [cst.Decorator(cst.parse_expression(nest.decorator.text))],
        leading_lines=blanks,
    )
    call = cst.Call(cst.Name(nest.name), _passed(node.params, nest.closed))
    last = cst.SimpleStatementLine([cst.Return(call)], leading_lines=[cst.EmptyLine(indent=False)])
    decorators = list(node.decorators)
    lines = [] if nest.removed is None else _lines_of(decorators.pop(nest.removed))
    block = node.body if isinstance(node.body, cst.IndentedBlock) else cst.IndentedBlock([])
    return [
        node.with_changes(
            decorators=decorators,
            lines_after_decorators=[*lines, *node.lines_after_decorators],
            body=block.with_changes(body=[*docstring, inner, last]),
        )
    ]


def _lines_of(decorator: cst.Decorator) -> Lines:
    """Return the lines above a decorator, and its comment on a line of its own."""
    comment = decorator.trailing_whitespace.comment
    return [*decorator.leading_lines, *own_lines([comment.value] if comment else [])]


def _split(
    body: cst.BaseSuite,
) -> tuple[list[Any], list[cst.EmptyLine], cst.IndentedBlock]:
    """Return the docstring, the blank lines after it, and the rest of a body."""
    if isinstance(body, cst.SimpleStatementSuite):
        line = cst.SimpleStatementLine(body.body, trailing_whitespace=body.trailing_whitespace)
        return [], [], cst.IndentedBlock([line])
    assert isinstance(body, cst.IndentedBlock)
    if len(body.body) > 1 and _is_text(body.body[0]):
        first: Any = body.body[1]
        rest = trimmed_start(first.leading_lines)
        blanks = list(first.leading_lines[: len(first.leading_lines) - len(rest)])
        statements = [first.with_changes(leading_lines=rest), *body.body[2:]]
        inner = body.with_changes(body=statements, header=cst.TrailingWhitespace())
        return [body.body[0]], blanks, inner
    return [], [], body.with_changes(header=cst.TrailingWhitespace())


def _is_text(statement: cst.CSTNode) -> bool:
    match statement:
        case cst.SimpleStatementLine([cst.Expr(cst.SimpleString() | cst.ConcatenatedString())]):
            return True
    return False


def _without(
    params: cst.Parameters, closed: Collection[str], reassigned: Sequence[str]
) -> cst.Parameters:
    """Return the other parameters without defaults, and those in `reassigned` with defaults."""

    def left(parameters: Sequence[cst.Param]) -> list[cst.Param]:
        return [
            cst.Param(p.name, p.annotation, star=p.star if isinstance(p.star, str) else "")
            for p in parameters
            if p.name.value not in closed
        ]

    star = left([params.star_arg]) if isinstance(params.star_arg, cst.Param) else []
    double = left([params.star_kwarg]) if params.star_kwarg is not None else []
    keywords = [cst.Param(cst.Name(n), default=cst.Name(n), equal=TIGHT) for n in reassigned]
    return cst.Parameters(
        params=left(params.params),
        posonly_params=left(params.posonly_params),
        kwonly_params=[*left(params.kwonly_params), *keywords],
        star_arg=star[0] if star else cst.MaybeSentinel.DEFAULT,
        star_kwarg=double[0] if double else None,
    )


def _passed(params: cst.Parameters, closed: Collection[str]) -> list[cst.Arg]:
    """Arguments that pass parameters through under their own names."""
    found = [cst.Arg(p.name) for p in (*params.posonly_params, *params.params)]
    if isinstance(params.star_arg, cst.Param):
        found.append(cst.Arg(params.star_arg.name, star="*"))
    found += [cst.Arg(p.name, p.name, TIGHT) for p in params.kwonly_params]
    if params.star_kwarg is not None:
        found.append(cst.Arg(params.star_kwarg.name, star="**"))
    return [arg for arg in found if cst.ensure_type(arg.value, cst.Name).value not in closed]


def grouped(group: Group, node: Any) -> list[Any]:
    """Return the block or the loop with its statements in a nested function.

    Raises:
        CodemodError: several statements are on one line.
    """
    if group.loop:
        loop = _parsed(group.loop)
        inner = node.with_changes(iter=cst.parse_expression(group.items), leading_lines=[])
        return [loop.with_changes(body=cst.IndentedBlock(_with_nested(group, [inner])))]
    suite: Sequence[Any] = getattr(group.node, "body", ())
    if len(node.body.body) != len(suite):
        raise CodemodError("several statements are on one line")
    first, stop = suite.index(group.body[0]), suite.index(group.body[-1]) + 1
    own = node.body.body
    body = [*own[:first], *_with_nested(group, own[first:stop]), *own[stop:]]
    return [node.with_changes(body=node.body.with_changes(body=body))]


def _with_nested(group: Group, body: Sequence[Any]) -> list[Any]:
    """Return the nested function with a body, and its call."""
    lines = [body[0].with_changes(leading_lines=[]), *body[1:]]
    if group.result:
        lines.append(_parsed(group.result))
    function = _parsed(group.function)
    blank = [cst.EmptyLine(indent=False)]
    return [
        function.with_changes(leading_lines=body[0].leading_lines, body=cst.IndentedBlock(lines)),
        _parsed(group.call).with_changes(leading_lines=blank),
    ]


def _parsed(code: str) -> Any:
    return cst.parse_statement(code)
