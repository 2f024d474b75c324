"""Breaks lines that new code has made too long, and joins those that it lets fit, as Black does."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider

from ..text.escapes import bare_lines_of
from .expressions import has_comma, with_commas
from .style import Style

_MOST = 100  # breaks in one statement: each makes a line shorter
_LONGEST = 2_000  # characters of a line: generated code stays on one


def fitted(text: str, old: str, style: Style) -> str:
    """Return a statement with its new lines laid out anew.

    Arguments that share a line between the brackets of a call join the line of the call where they
    fit there, unless the old statement has a call that could be joined, too. A line that is too
    long is broken at its outermost brackets: their contents on one line of their own if they fit
    there, else one item a line. A line of thousands of characters stays as it is.

    Args:
        text: the source code of one top-level statement.
        old: the same before it was changed; its lines are not broken.
        style: the layout of the file.
    """
    lines, kept = bare_lines_of(text), set(bare_lines_of(old))
    new = {n for n, line in enumerate(lines, 1) if line not in kept}
    module: cst.Module | None = None
    may_join: bool | None = None
    for _ in range(_MOST):
        long = {n for n in new if style.width < len(lines[n - 1]) <= _LONGEST}
        hangs = any(lines[n - 1].endswith("(") for m in new for n in (m - 1, m) if n)
        if not long and not hangs and not style.fills:
            break
        module = module or cst.parse_module(text)
        layout = _Layout(module, lines, style)
        changed = layout.joined(new) if hangs and may_join is not False else None
        if changed and may_join is None:
            before = _Layout(cst.parse_module(old), bare_lines_of(old), style)
            may_join = before.joined(range(1, len(before.lines) + 1)) is None
        if not may_join:
            changed = None
        changed = changed or layout.broken(long) or layout.filled(new)
        if changed is None:
            break
        line, module = changed
        text = module.code
        count, lines = len(lines), bare_lines_of(text)
        more = len(lines) - count
        # Joined lines are new, as are those that a line is broken into.
        new = {n for n in new if n <= line} | {n + more for n in new if n + min(more, 0) > line}
        new |= set(range(line, line + max(more, 0) + 1))
    return text


class _Layout:
    """A statement with the places of its nodes: each method changes one bracket of it.

    They return the line of the bracket, and the new module.
    """

    def __init__(self, module: cst.Module, lines: Sequence[str], style: Style) -> None:
        self.module, self.lines, self.style = module, lines, style
        wrapper = MetadataWrapper(module, unsafe_skip_copy=True)
        places = wrapper.resolve(PositionProvider)
        # Code in f-strings stays on its line.
        fixed = {part for s in places if isinstance(s, _TEMPLATES) for part in _within(s)}
        self.places = {node: place for node, place in places.items() if node not in fixed}

    def joined(self, new: Collection[int]) -> tuple[int, cst.Module] | None:
        """Join a call or signature whose items are on one line between its brackets."""
        for node in self.places:
            if not isinstance(node, cst.Call | cst.FunctionDef):
                continue
            items = node.args if isinstance(node, cst.Call) else _all_parameters(node.params)
            if not items or has_comma(items[-1]) or not _is_plain_break(_opening(node)):
                continue
            first, last = self.places[items[0]].start.line, self.places[items[-1]].end.line
            if not set(range(first - 1, last + 2)) & set(new) or not self._is_joinable(node, items):
                continue
            candidate = _with(self.module, node, _unbroken(node, items))
            text = bare_lines_of(candidate.code)
            if len(text[first - 2]) <= self.style.width:
                return first - 1, candidate
        return None

    def _is_joinable(self, node: cst.CSTNode, items: Sequence[Any]) -> bool:
        """Return whether there is nothing but line breaks between items of one line each."""
        places = [self.places[item] for item in items]
        if isinstance(node, cst.FunctionDef):
            return places[0].start.line == places[-1].end.line
        spaces = [item.comma.whitespace_after for item in items if has_comma(item)]
        return all(place.start.line == place.end.line for place in places) and all(
            isinstance(space, cst.SimpleWhitespace) or _is_plain_break(space) for space in spaces
        )

    def filled(self, new: Collection[int]) -> tuple[int, cst.Module] | None:
        """Fill the lines of a call whose positional arguments are on lines of their own.

        yapf formats calls like this, unless they have keyword arguments.
        """
        if not self.style.fills:
            return None
        for node, place in self.places.items():
            if not isinstance(node, cst.Call) or len(node.args) < 2:
                continue
            start, end = self.places[node.args[0]].start, place.end
            if end.line == start.line or not set(range(start.line, end.line + 1)) & set(new):
                continue
            spaces = [a.comma.whitespace_after for a in node.args if isinstance(a.comma, cst.Comma)]
            if has_comma(node.args[-1]) or any(a.keyword for a in node.args):
                continue
            if not all(map(_is_plain_break, spaces)) or _is_plain_break(_opening(node)):
                continue
            column, args = start.column, list[cst.Arg]()
            for arg in node.args:
                size = len(self.module.code_for_node(arg.with_changes(comma=_NO_COMMA))) + 1
                if args and column + 1 + size <= self.style.width:
                    args[-1] = args[-1].with_changes(comma=_comma(_SPACE))
                    column += 1 + size
                elif args:
                    column = start.column + size
                else:
                    column += size
                args.append(arg)
            if any(a is not b for a, b in zip(args, node.args, strict=True)):
                return start.line, _with(self.module, node, node.with_changes(args=args))
        return None

    def broken(self, long: Collection[int]) -> tuple[int, cst.Module] | None:
        """Return a bracket of a line that is too long, broken."""
        module, style = self.module, self.style
        calls: list[tuple[int, int, int, cst.Call]] = []
        for node, place in self.places.items():
            if isinstance(node, cst.Call) and node.args and _is_plain_break(_opening(node)):
                line, last = (
                    self.places[node.args[0]].start.line,
                    self.places[node.args[-1]].end.line,
                )
                if line in long and line == last and len(node.args) > 1:
                    return line, _with(module, node, self._one_per_line(node, line))
            line = place.start.line
            if line not in long:
                continue
            indent = _indent(self.lines[line - 1])
            if isinstance(node, cst.FunctionDef) and _all_parameters(node.params):
                if "\n" not in module.code_for_node(node.params):
                    return line, _with(module, node, _signature(module, node, indent, style))
            if isinstance(node, cst.Assign | cst.AnnAssign | cst.Return) and place.end.line == line:
                if isinstance(value := node.value, cst.IfExp) and not value.lpar:
                    new = _broken_condition(value, indent, module.default_indent)
                    return line, _with(module, value, new)
            if isinstance(node, cst.IfExp) and place.end.line == line:
                if node.lpar and _is_plain_break(node.lpar[-1].whitespace_after):
                    each = _space(indent)
                    split = node.with_changes(
                        whitespace_before_if=each, whitespace_before_else=each
                    )
                    return line, _with(module, node, split)
            if isinstance(node, cst.Call) and node.args and place.end.line == line:
                calls.append((-line, place.end.column, -place.start.column, node))
        if not calls:
            return None
        # The last brackets of the first long line, unless what stands in front is too long.
        *_, call = max(calls, key=lambda found: found[:3])
        line = self.places[call].start.line
        while isinstance(call.func, cst.Call) and self.places[call.func].end.column >= style.width:
            call = call.func
        indent = _indent(self.lines[line - 1])
        return line, _with(module, call, _broken_call(module, call, indent, style))

    def _one_per_line(self, call: cst.Call, line: int) -> cst.Call:
        """Return a call whose arguments share a line between its brackets, with one on each."""
        each, last = _space(_indent(self.lines[line - 1])), call.args[-1]
        args = [arg.with_changes(comma=_comma(each)) for arg in call.args[:-1]]
        if not has_comma(last) and isinstance(
            last.whitespace_after_arg, cst.ParenthesizedWhitespace
        ):
            end = last.whitespace_after_arg
            last = last.with_changes(comma=_comma(end), whitespace_after_arg=_NOTHING)
        return call.with_changes(args=[*args, last])


# LibCST 1.8 and later parse template strings.
_TEMPLATES = (cst.FormattedString, getattr(cst, "TemplatedString", cst.FormattedString))
_NOTHING, _SPACE = cst.SimpleWhitespace(""), cst.SimpleWhitespace(" ")
_NO_COMMA = cst.MaybeSentinel.DEFAULT


def _comma(space: cst.BaseParenthesizableWhitespace) -> cst.Comma:
    return cst.Comma(whitespace_after=space)


def _within(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Yield the nodes inside of a node."""
    for child in node.children:
        yield child
        yield from _within(child)


def _is_plain_break(space: object) -> bool:
    """Return whether whitespace is a line break and no more: no comment, no blank line."""
    return (
        isinstance(space, cst.ParenthesizedWhitespace)
        and not space.empty_lines
        and space.first_line.comment is None
    )


def _opening(node: cst.Call | cst.FunctionDef) -> cst.BaseParenthesizableWhitespace:
    """Return the whitespace behind the opening bracket."""
    return (
        node.whitespace_before_args if isinstance(node, cst.Call) else node.whitespace_before_params
    )


def _unbroken(node: cst.Call | cst.FunctionDef, items: Sequence[Any]) -> cst.CSTNode:
    """Return a call or signature without the line breaks inside of its brackets."""
    if isinstance(node, cst.Call):
        last = node.args[-1].with_changes(whitespace_after_arg=_NOTHING)
        args = [arg.with_changes(comma=_comma(_SPACE)) for arg in node.args[:-1]]
        return node.with_changes(whitespace_before_args=_NOTHING, args=[*args, last])
    last = items[-1]
    params = node.params.with_deep_changes(last, whitespace_after_param=_NOTHING)
    return node.with_changes(whitespace_before_params=_NOTHING, params=params)


def _with(module: cst.Module, old: cst.CSTNode, new: cst.CSTNode) -> cst.Module:
    return cst.ensure_type(module.deep_replace(old, new), cst.Module)


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _space(indent: str) -> cst.ParenthesizedWhitespace:
    """Return a line break, and the indentation of the next line."""
    return cst.ParenthesizedWhitespace(last_line=cst.SimpleWhitespace(indent))


def _broken_call(module: cst.Module, call: cst.Call, indent: str, style: Style) -> cst.Call:
    plain = [a.with_changes(comma=_NO_COMMA, whitespace_after_arg=_NOTHING) for a in call.args]
    inside, closing = _space(indent + style.continuation), _space(indent)
    texts = [module.code_for_node(arg) for arg in plain]
    if len(indent + style.continuation + ", ".join(texts)) <= style.width or len(plain) == 1:
        plain[:-1] = [arg.with_changes(comma=_comma(_SPACE)) for arg in plain[:-1]]
        plain[-1] = plain[-1].with_changes(whitespace_after_arg=closing)
        return call.with_changes(whitespace_before_args=inside, args=plain)
    args = with_commas(plain, [*[inside] * (len(plain) - 1), closing])
    return call.with_changes(whitespace_before_args=inside, args=args)


def _broken_condition(node: cst.IfExp, indent: str, unit: str) -> cst.IfExp:
    """Return a conditional expression in parentheses, a part on each line."""
    inside, closing = _space(indent + unit), _space(indent)
    return node.with_changes(
        lpar=[cst.LeftParen(inside)],
        rpar=[cst.RightParen(closing)],
        whitespace_before_if=inside,
        whitespace_before_else=inside,
    )


def _all_parameters(params: cst.Parameters) -> list[Any]:
    found: list[Any] = [*params.posonly_params, *params.params]
    if isinstance(params.star_arg, cst.Param):
        found.append(params.star_arg)
    found += params.kwonly_params
    return [*found, params.star_kwarg] if params.star_kwarg is not None else found


def _signature(
    module: cst.Module, node: cst.FunctionDef, indent: str, style: Style
) -> cst.FunctionDef:
    params = node.params
    inside, closing = _space(indent + style.continuation), _space(indent)
    every = _all_parameters(params)
    last = every[-1]
    text = indent + style.continuation + module.code_for_node(params).strip()
    on_one_line = len(text) <= style.width

    def placed(param: Any) -> Any:
        if param is not last:
            space = cst.SimpleWhitespace(" ") if on_one_line else inside
            return param.with_changes(comma=cst.Comma(whitespace_after=space))
        if on_one_line:
            return param.with_changes(comma=_NO_COMMA, whitespace_after_param=closing)
        return param.with_changes(comma=cst.Comma(whitespace_after=closing))

    fields: dict[str, Any] = {
        name: [placed(param) for param in getattr(params, name)]
        for name in ("posonly_params", "params", "kwonly_params")
    }
    space = cst.SimpleWhitespace(" ") if on_one_line else inside
    comma = cst.Comma(whitespace_after=space)
    if params.posonly_params:
        fields["posonly_ind"] = cst.ParamSlash(
            comma if every[len(params.posonly_params) :] else _NO_COMMA
        )
    if isinstance(params.star_arg, cst.Param):
        fields["star_arg"] = placed(params.star_arg)
    elif params.kwonly_params:
        fields["star_arg"] = cst.ParamStar(comma)
    if params.star_kwarg is not None:
        fields["star_kwarg"] = placed(params.star_kwarg)
    return node.with_changes(whitespace_before_params=inside, params=params.with_changes(**fields))
