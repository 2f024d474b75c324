"""Taking items out of a list of items: arguments, elements, entries, imported names, operands."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence

from .layout import Layout
from .text import Span

Cut = tuple[int, int, str]


def drop_items(
    layout: Layout,
    items: Sequence[Span],
    dropped: Sequence[bool],
    inside: Span,
    *,
    bracketed: bool,
    operators: bool = False,
    one_needs_comma: bool = False,
) -> list[tuple[list[Cut], frozenset[int]]]:
    """The cuts `(start, end, text in its place)` that take items out of a list.

    Args:
        layout: the file.
        items: every item with the parentheses around it, in order.
        dropped: which of them go.
        inside: from behind the opening bracket to the closing one; without brackets, from the
            first item to the end of the last.
        bracketed: whether there are brackets; then comments may stand between the items, and a
            comma may follow the last.
        operators: whether the items are operands, with an operator between two of them.
        one_needs_comma: whether a single item that is left needs a comma after it (a tuple).

    Returns:
        The cuts of each run of neighbours that go, with the indices of the run.
    """
    found: list[tuple[list[Cut], frozenset[int]]] = []
    if all(dropped):
        return [(_without(layout, inside.start, inside.end), frozenset(range(len(items))))]
    index = 0
    while index < len(items):
        if not dropped[index]:
            index += 1
            continue
        first = index
        while index < len(items) and dropped[index]:
            index += 1
        if operators:
            cuts = _drop_operands(layout, items, first, index - 1)
        else:
            cuts = _drop_run(layout, items, first, index - 1, inside, bracketed)
        found.append((cuts, frozenset(range(first, index))))
    if one_needs_comma and dropped.count(False) == 1:
        kept = items[dropped.index(False)].end
        comma = layout.after(kept)
        cuts, run = found[-1]
        # A cut behind the one that is left may take the comma along.
        if comma is None or comma.text != "," or _covered(comma.start, found):
            cuts.append((kept, kept, ","))
        found[-1] = (cuts, run)
        everything = frozenset().union(*(run for _, run in found))
        return [([cut for cuts, _ in found for cut in cuts], everything)]
    return found


def _covered(offset: int, found: Iterable[tuple[list[Cut], frozenset[int]]]) -> bool:
    return any(start <= offset < end for cuts, _ in found for start, end, _ in cuts)


def _drop_operands(layout: Layout, items: Sequence[Span], first: int, last: int) -> list[Cut]:
    if last + 1 < len(items):
        return _without(layout, items[first].start, items[last + 1].start)
    return _without(layout, items[first - 1].end, items[last].end)


def _drop_run(
    layout: Layout, items: Sequence[Span], first: int, last: int, inside: Span, bracketed: bool
) -> list[Cut]:
    start, end = items[first].start, items[last].end
    comma = layout.after(end)
    separated = comma is not None and comma.text == "," and comma.start < inside.end
    behind = comma.end if separated and comma is not None else end
    text = layout.source.text
    if bracketed and _alone(layout, start, behind):
        line, below = layout.line_start(start), layout.next_line(behind)
        if not layout.comments_in(line, below):
            return [(line, below, "")]
        return _without(layout, line + len(layout.indent(start)), below, keep_lines=True)
    if last + 1 < len(items):
        following = items[last + 1].start
        same_line = layout.line_start(following) == layout.line_start(behind)
        before = layout.before(start)
        if same_line or first == 0 or before is None:
            return _without(layout, start, following)
        # Its neighbours stand on other lines: the line break behind it stays.
        previous = before.end if before.text == "," else start
        return _without(layout, previous, behind)
    if first > 0:
        previous = items[first - 1].end
        if not layout.comments_in(previous, start):
            return [(previous, end, "")]
        while start > inside.start and text[start - 1] in " \t":
            start -= 1
    return _without(layout, start, behind)


def _alone(layout: Layout, start: int, end: int) -> bool:
    """Whether nothing but white space and comments stands beside `[start, end)` on its lines."""
    text = layout.source.text
    if text[layout.line_start(start) : start].strip():
        return False
    after = text[end : layout.line_end(end)].strip()
    return (not after or after.startswith("#")) and layout.line_end(end) < len(text)


def _without(layout: Layout, start: int, end: int, *, keep_lines: bool = False) -> list[Cut]:
    """Cut `[start, end)` but for the comments in it, each of which ends its line."""
    cuts: list[Cut] = []
    at = start
    for comment in layout.comments_in(start, end):
        space = comment.start
        alone = not layout.source.text[layout.line_start(at) : at].strip()
        while space > at and layout.source.text[space - 1] in " \t" and not (keep_lines or alone):
            space -= 1
        cuts.append((at, space, ""))
        at = layout.next_line(comment.end)
    if at > start and at < end:
        # The rest of the last line keeps its indentation; with nothing on it, the line goes.
        if layout.source.text[end : layout.line_end(end)].strip():
            at = min(end, at + len(layout.indent(at)))
        else:
            end = layout.next_line(end)
    cuts.append((at, end, ""))
    return [(low, high, put) for low, high, put in cuts if low < high]


def without_comments(layout: Layout, start: int, end: int) -> list[Cut]:
    """The cuts that take `[start, end)` of an expression out and leave the comments in it."""
    return _without(layout, start, end)


def list_of(
    node: ast.AST, layout: Layout, parent: Callable[[ast.AST], ast.AST | None]
) -> tuple[Sequence[ast.AST], Sequence[Span], Span, bool] | None:
    """The list that an item stands in: its items, their spans, the inside, whether bracketed.

    None for a node that is not an item of a list.
    """
    holder = parent(node)
    match holder:
        case ast.Call():
            start = layout.opening(layout.source.span(holder).end - 1)
            inside = Span(start + 1, layout.source.span(holder).end - 1)
            arguments: list[ast.expr | ast.keyword] = [*holder.args, *holder.keywords]
            arguments.sort(key=lambda a: (a.lineno, a.col_offset))
            return arguments, [_item_span(a, layout, inside) for a in arguments], inside, True
        case ast.List() | ast.Set() | ast.Tuple():
            span = layout.source.span(holder)
            bracketed = not isinstance(holder, ast.Tuple) or _is_parenthesised(layout, span)
            inside = Span(span.start + 1, span.end - 1) if bracketed else span
            return (
                holder.elts,
                [_item_span(e, layout, inside) for e in holder.elts],
                inside,
                bracketed,
            )
        case ast.Dict():
            span = layout.source.span(holder)
            inside = Span(span.start + 1, span.end - 1)
            keys = [
                k if k is not None else v for k, v in zip(holder.keys, holder.values, strict=True)
            ]
            return keys, _entries(holder, layout, inside), inside, True
        case ast.BoolOp():
            span = layout.source.span(holder)
            return holder.values, [layout.grouped(v, span) for v in holder.values], span, True
        case ast.Import() | ast.ImportFrom():
            spans = [layout.source.span(alias) for alias in holder.names]
            closing = layout.after(spans[-1].end)
            if closing is not None and closing.text == ",":
                closing = layout.after(closing.end)
            if isinstance(holder, ast.ImportFrom) and closing is not None and closing.text == ")":
                inside = Span(layout.opening(closing.start) + 1, closing.start)
                return holder.names, spans, inside, True
            return holder.names, spans, Span(spans[0].start, spans[-1].end), False
        case ast.With() | ast.AsyncWith() if isinstance(node, ast.withitem):
            return _with_items(holder, layout)
    return None


def _item_span(node: ast.expr | ast.keyword, layout: Layout, inside: Span) -> Span:
    if isinstance(node, ast.expr):
        return layout.grouped(node, inside)
    return layout.source.span(node)


def _is_parenthesised(layout: Layout, span: Span) -> bool:
    text = layout.source.text
    return (
        text[span.start] == "("
        and text[span.end - 1] == ")"
        and (layout.opening(span.end - 1) == span.start)
    )


def _entries(node: ast.Dict, layout: Layout, inside: Span) -> list[Span]:
    spans = []
    for key, value in zip(node.keys, node.values, strict=True):
        end = layout.grouped(value, inside).end
        if key is not None:
            spans.append(Span(layout.grouped(key, inside).start, end))
        else:
            stars = layout.before(layout.grouped(value, inside).start)
            spans.append(Span(stars.start if stars else inside.start, end))
    return spans


def _with_items(
    node: ast.With | ast.AsyncWith, layout: Layout
) -> tuple[Sequence[ast.AST], Sequence[Span], Span, bool]:
    limit = Span(layout.source.span(node).start, layout.source.span(node.body[0]).start)
    spans = []
    for item in node.items:
        start, end = layout.grouped(item.context_expr, limit)
        if item.optional_vars is not None:
            end = layout.grouped(item.optional_vars, limit).end
        spans.append(Span(start, end))
    closing = layout.after(spans[-1].end)
    if closing is not None and closing.text == ",":
        closing = layout.after(closing.end)
    if closing is not None and closing.text == ")" and closing.end <= limit.end:
        start = layout.opening(closing.start)
        if start < spans[0].start:
            return node.items, spans, Span(start + 1, closing.start), True
    return node.items, spans, Span(spans[0].start, spans[-1].end), False
