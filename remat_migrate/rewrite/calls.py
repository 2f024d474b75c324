"""Calls whose static arguments stand by position.

`jax.checkpoint` counts the arguments that are passed by position; a static argument passed by
keyword, or left to its default, is an error or makes another argument static.
"""

from __future__ import annotations

import ast
from collections.abc import Collection

from ..model.bind import Arguments, default_of, positional_parameters
from ..model.uses import Call
from ..model.values import Function
from ..source import Edit, Span
from ..source.layout import layout_of
from .argument_specs import Added
from .literals import is_literal, literal_text
from .refusal import Refused, check_editable


def pass_by_position(
    call: Call,
    bound: Arguments,
    function: Function,
    last: int,
    *,
    needed: Collection[str] = (),
    every: bool = False,
    star_count: int = 0,
) -> tuple[list[Edit], list[Added]]:
    """The edits that make a call pass its parameters up to number `last` by position.

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
    moved: list[ast.keyword | str] = []
    added: list[Added] = []
    keywords = {k.arg: k for k in node.keywords}
    for position, parameter in enumerate(missing, len(node.args) - call.first):
        keyword = keywords.get(parameter.arg)
        moved.append(keyword if keyword is not None else _default(call, function, parameter))
        name = parameter.arg
        added.append(Added(position, name, keyword is None, name in needed))
    return _arranged(call, moved), added


def _default(call: Call, function: Function, parameter: ast.arg) -> str:
    default = default_of(function.node, parameter)
    if default is None:
        raise Refused(f"a call does not pass `{parameter.arg}`", call.module, call.node)
    if not is_literal(default):
        raise Refused(
            f"the default of `{parameter.arg}` is not a literal that can be written at the call",
            call.module,
            call.node,
        )
    return literal_text(function.module, default, call.module)


def _arranged(call: Call, moved: list[ast.keyword | str]) -> list[Edit]:
    """Edits that put keywords and defaults behind the positional arguments, in the given order."""
    node, source = call.node, call.module.source
    rest = [k for k in node.keywords if k not in moved]
    slots: list[ast.expr | ast.keyword] = sorted(
        [*node.args, *node.keywords], key=lambda n: (n.lineno, n.col_offset)
    )
    order: list[ast.expr | ast.keyword | str] = [*node.args, *moved, *rest]
    existing = [n for n in order if not isinstance(n, str)]
    if existing != slots:
        swapped = [n for n, s in zip(existing, slots, strict=True) if n is not s]
        effects = [n for n in swapped if not _calm(n)]
        if len(effects) > 1:
            raise Refused(
                "passing the arguments by position would evaluate them in another order",
                call.module,
                node,
            )
    texts = [_text(call, n, n in moved) if not isinstance(n, str) else n for n in order]
    edits: list[Edit] = []
    if not slots:
        end = source.span(node).end - 1
        return [Edit(source.path, end, end, ", ".join(texts))]
    more = _on_lines_of_their_own(call, slots[-1], texts[len(slots) :])
    for index, slot in enumerate(slots):
        put = texts[index] if more or index < len(slots) - 1 else ", ".join(texts[index:])
        start, end = _span(call, slot)
        if source.text[start:end] == put:
            continue
        edits.append(_smallest(Edit(source.path, start, end, put), source.text))
    return [*edits, *more]


def _on_lines_of_their_own(
    call: Call, last: ast.expr | ast.keyword, texts: list[str]
) -> list[Edit]:
    """Edits that put arguments behind the last one, where each has a line of its own."""
    source, layout = call.module.source, layout_of(call.module.source)
    start, end = _span(call, last)
    line, after = layout.line_start(start), layout.after(end)
    closing = source.span(call.node).end - 1
    siblings: list[ast.expr | ast.keyword] = [*call.node.args, *call.node.keywords]
    if not texts or after is None or source.text[line:start].strip():
        return []
    if any(n is not last and n.lineno == last.lineno for n in siblings):
        return []
    at = layout.line_end(after.end if after.text == "," else end)
    if at > closing:
        return []
    added = source.newline.join(["", *(f"{source.text[line:start]}{text}," for text in texts)])
    commas = [] if after.text == "," else [Edit(source.path, end, end, ",")]
    return [*commas, Edit(source.path, at, at, added)]


def _text(call: Call, node: ast.expr | ast.keyword, by_position: bool) -> str:
    start, end = _span(call, node)
    text = call.module.source.text[start:end]
    if by_position and isinstance(node, ast.keyword):
        value = text.partition("=")[2].lstrip(" \t")
        # Behind `name=` a line break needs no brackets, nor does it inside the call's.
        return value.lstrip()
    return text


def _span(call: Call, node: ast.expr | ast.keyword) -> Span:
    """The span of an argument, with the parentheses around it."""
    source = call.module.source
    if isinstance(node, ast.keyword):
        return source.span(node)
    start, end = source.span(call.node)
    return layout_of(source).grouped(node, Span(start, end - 1))


def _smallest(edit: Edit, text: str) -> Edit:
    """The same edit without what both texts end with."""
    old = text[edit.start : edit.end]
    common = 0
    while common < min(len(old), len(edit.text)) and old[-1 - common] == edit.text[-1 - common]:
        common += 1
    if common == len(edit.text) or (common and not edit.text[:-common]):
        return Edit(edit.path, edit.start, edit.end - common, edit.text[: len(edit.text) - common])
    return edit


def _calm(node: ast.AST) -> bool:
    return not any(
        isinstance(n, ast.Call | ast.Await | ast.Yield | ast.NamedExpr) for n in ast.walk(node)
    )
