"""Breaks new lines that are too long, as Black and ruff do."""

from __future__ import annotations

import configparser
import tomllib
from collections.abc import Collection, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider

from ..source import SourceFile
from ..source.escapes import lines_of
from .expressions import with_commas

_MOST = 100  # breaks in one statement: each makes a line shorter


def fitted(text: str, old: str, width: int) -> str:
    """A statement whose new lines are broken where they are longer than `width`.

    The outermost brackets of a line are split first: their contents go on one line if they fit,
    otherwise one item per line.

    Args:
        text: the source code of one top-level statement.
        old: the statement before it was changed; its lines are left alone.
        width: the length of the longest line that is allowed.
    """
    lines, kept = _lines(text), set(_lines(old))
    new = {n for n, line in enumerate(lines, 1) if line not in kept}
    module: cst.Module | None = None
    for _ in range(_MOST):
        long = {n for n in new if len(lines[n - 1]) > width}
        if not long:
            break
        module = module or cst.parse_module(text)
        broken = _break_one(module, lines, long, width)
        if broken is None:
            break
        line, module = broken
        text = module.code
        before, lines = len(lines), _lines(text)
        more = len(lines) - before
        new = {n for n in new if n <= line} | {n + more for n in new if n > line}
        new |= set(range(line, line + more + 1))
    return text


def _lines(text: str) -> list[str]:
    """The lines of a text without their endings."""
    return [line.rstrip("\r\n") for line in lines_of(text)]


def _break_one(
    module: cst.Module, lines: Sequence[str], long: Collection[int], width: int
) -> tuple[int, cst.Module] | None:
    """The number of a long line and the module with it split; None if no line can be split."""
    wrapper = MetadataWrapper(module, unsafe_skip_copy=True)
    calls: list[tuple[int, int, int, cst.Call]] = []
    places = wrapper.resolve(PositionProvider)
    for node, place in places.items():
        line = place.start.line
        if line not in long:
            continue
        unit, indent = module.default_indent, _indent(lines[line - 1])
        if isinstance(node, cst.FunctionDef) and _all_parameters(node.params):
            if "\n" not in module.code_for_node(node.params):
                return line, _with(module, node, _signature(module, node, indent, unit, width))
        if isinstance(node, cst.Assign | cst.AnnAssign | cst.Return) and place.end.line == line:
            if isinstance(value := node.value, cst.IfExp) and not value.lpar:
                return line, _with(module, value, _broken_condition(value, indent, unit))
        if isinstance(node, cst.Call) and node.args and place.end.line == line:
            calls.append((-line, place.end.column, -place.start.column, node))
    if not calls:
        return None
    # The last brackets of the first long line, unless the code before them is too long.
    *_, call = max(calls, key=lambda found: found[:3])
    line = places[call].start.line
    while isinstance(call.func, cst.Call) and places[call.func].end.column >= width:
        call = call.func
    indent = _indent(lines[line - 1])
    return line, _with(
        module, call, _broken_call(module, call, indent, module.default_indent, width)
    )


def _with(module: cst.Module, old: cst.CSTNode, new: cst.CSTNode) -> cst.Module:
    return cst.ensure_type(module.deep_replace(old, new), cst.Module)


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _space(indent: str) -> cst.ParenthesizedWhitespace:
    """A line break and the indentation of the next line."""
    return cst.ParenthesizedWhitespace(last_line=cst.SimpleWhitespace(indent))


def _broken_call(
    module: cst.Module, call: cst.Call, indent: str, unit: str, width: int
) -> cst.Call:
    plain = [
        a.with_changes(
            comma=cst.MaybeSentinel.DEFAULT, whitespace_after_arg=cst.SimpleWhitespace("")
        )
        for a in call.args
    ]
    inside, closing = _space(indent + unit), _space(indent)
    texts = [module.code_for_node(arg) for arg in plain]
    if len(indent + unit + ", ".join(texts)) <= width or len(plain) == 1:
        plain[-1] = plain[-1].with_changes(whitespace_after_arg=closing)
        return call.with_changes(whitespace_before_args=inside, args=plain)
    args = with_commas(plain, [*[inside] * (len(plain) - 1), closing])
    return call.with_changes(whitespace_before_args=inside, args=args)


def _broken_condition(node: cst.IfExp, indent: str, unit: str) -> cst.IfExp:
    """A conditional expression in parentheses, each part on its own line."""
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
    module: cst.Module, node: cst.FunctionDef, indent: str, unit: str, width: int
) -> cst.FunctionDef:
    params = node.params
    inside, closing = _space(indent + unit), _space(indent)
    every = _all_parameters(params)
    last = every[-1]
    on_one_line = len(indent + unit + module.code_for_node(params).strip()) <= width

    def placed(param: Any) -> Any:
        if param is not last:
            space = cst.SimpleWhitespace(" ") if on_one_line else inside
            return param.with_changes(comma=cst.Comma(whitespace_after=space))
        if on_one_line:
            return param.with_changes(
                comma=cst.MaybeSentinel.DEFAULT, whitespace_after_param=closing
            )
        return param.with_changes(comma=cst.Comma(whitespace_after=closing))

    fields: dict[str, Any] = {
        name: [placed(param) for param in getattr(params, name)]
        for name in ("posonly_params", "params", "kwonly_params")
    }
    space = cst.SimpleWhitespace(" ") if on_one_line else inside
    comma = cst.Comma(whitespace_after=space)
    if params.posonly_params:
        fields["posonly_ind"] = cst.ParamSlash(
            comma if every[len(params.posonly_params) :] else cst.MaybeSentinel.DEFAULT
        )
    if isinstance(params.star_arg, cst.Param):
        fields["star_arg"] = placed(params.star_arg)
    elif params.kwonly_params:
        fields["star_arg"] = cst.ParamStar(comma)
    if params.star_kwarg is not None:
        fields["star_kwarg"] = placed(params.star_kwarg)
    return node.with_changes(whitespace_before_params=inside, params=params.with_changes(**fields))


# -- line length

_DEFAULT, _LONGEST = 88, 120


def line_length(source: SourceFile) -> int:
    """The line length of a project: its formatter's setting, or the longest line of the file."""
    for folder in source.path.parents:
        # A language server runs for days: changed settings are read again.
        found = _setting(folder, tuple(_modified(folder / name) for name in _FILES))
        if found is not None:
            return found
    lengths = map(len, _lines(source.text))
    return max([_DEFAULT, *(length for length in lengths if length <= _LONGEST)])


def _modified(path: Path) -> int:
    """The time of a file's last change; 0 if it does not exist."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


@lru_cache
def _setting(folder: Path, modified: tuple[int, ...]) -> int | None:
    """The line length in a folder's formatter settings, which were changed at these times."""
    if not any(modified):
        return None
    for name in _TOML:
        try:
            data: Any = tomllib.loads((folder / name).read_text())
        except (OSError, ValueError):
            continue  # not there, or not TOML: others say so
        tools = [data] if name != "pyproject.toml" else _tools(data)
        for tool in tools:
            length = tool.get("line-length", tool.get("column_limit", _DEFAULT))
            if isinstance(length, int):
                return length
    for name, section, key in _INI:
        parser = configparser.ConfigParser(interpolation=None)
        try:
            parser.read(folder / name)
        except configparser.Error:
            continue
        if (value := parser.get(section, key, fallback="")).isdigit():
            return int(value)
    return None


_TOML = ("ruff.toml", ".ruff.toml", "pyproject.toml")
_INI = (
    (".style.yapf", "style", "column_limit"),
    ("setup.cfg", "yapf", "column_limit"),
    ("setup.cfg", "flake8", "max-line-length"),
    (".flake8", "flake8", "max-line-length"),
    ("tox.ini", "flake8", "max-line-length"),
)
_FILES = (*_TOML, *dict.fromkeys(name for name, _, _ in _INI))


def _tools(data: dict[str, Any]) -> list[dict[str, Any]]:
    tools = data.get("tool", {})
    return [tools[name] for name in ("ruff", "black", "yapf") if isinstance(tools.get(name), dict)]
