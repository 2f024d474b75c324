"""Moving blocks of statements to the right."""

from __future__ import annotations

from ..model import Module
from ..source import SourceFile
from ..source.layout import layout_of


def indent_unit(module: Module) -> str:
    """One step of indentation as the file has it: of its first indented block."""
    for statement in module.tree.body:
        body = getattr(statement, "body", None)
        if isinstance(body, list) and body:
            start = module.source.line_starts[body[0].lineno - 1]
            text = module.source.text[start : module.span(body[0]).start]
            if text and not text.strip():
                return text
    return "    "


def indented(source: SourceFile, start: int, end: int, unit: str, outer: str) -> str:
    """The lines of `[start, end)` one step to the right; lines inside strings stay where they are.

    `start` is the start of a line. The step goes behind `outer`, the indentation of the statement
    that holds the lines: where tabs and spaces are mixed, before it would be another column.
    """
    layout = layout_of(source)
    text = source.text
    parts: list[str] = []
    at = start
    while at < end:
        after = min(layout.next_line(at), end)
        line = text[at:after]
        keep = not line.strip() or (at > 0 and layout.in_string(at))
        # Python counts columns from a form feed on.
        blank = line[: len(line) - len(line.lstrip(" \t\f"))]
        page, line = line[: blank.rfind("\f") + 1], line[blank.rfind("\f") + 1 :]
        if keep:
            parts.append(page + line)
        elif line.startswith(outer):
            parts.append(page + outer + unit + line.removeprefix(outer))
        else:
            parts.append(page + unit + line)
        at = after
    return "".join(parts)


def indentation(module: Module, line: int) -> str:
    """The white space that a line starts with."""
    text = module.source.line_text(line)
    return text[: len(text) - len(text.lstrip(" \t"))]
