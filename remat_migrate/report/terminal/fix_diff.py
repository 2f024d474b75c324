"""A fix as a short diff below its finding, with the numbers of the old lines."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from difflib import SequenceMatcher
from pathlib import Path

from ...rule import Fix
from ...text import Edit, SourceFile, apply_edits
from ...text.escapes import is_cell_start
from .display import Screen, expand_tabs, printable, truncate

_LINE_END = re.compile(r"\r\n|\r|\n")
# Lines of one fix to show.
_MOST = 20
# Edits with at most so many lines between them are shown together.
_NEAR = 2


def fix_diff(
    fix: Fix, own: Path, sources: Mapping[Path, SourceFile], gutter: int, screen: Screen
) -> Iterator[str]:
    """Yield the lines that a fix removes and adds.

    Args:
        fix: the fix.
        own: the file of its finding, whose name is not repeated.
        sources: the text of each file that the fix edits.
        gutter: the columns of line numbers.
        screen: where the lines are shown.
    """
    left = _MOST
    for path in sorted(fix.paths & sources.keys(), key=lambda path: (path != own, path)):
        edits = [edit for edit in fix.edits if edit.path == path]
        lines = _trimmed(list(_file_diff(sources[path], edits)))
        if path != own and lines and left > 0:
            yield f"{' ' * gutter} {screen.paint(':::', 'blue')} {screen.path(path)}"
        for number, sign, text in lines[: max(left, 0)]:
            shown = truncate(expand_tabs(printable(text)), screen.width - gutter - 3)
            style = {"-": ("red",), "+": ("green",)}.get(sign, ())
            place = screen.paint(f"{number or '':>{gutter}}", "blue", "bold")
            yield f"{place} {screen.paint(f'{sign} {shown}'.rstrip(), *style)}".rstrip()
        left -= len(lines)
    if left < 0:
        yield f"{' ' * gutter} {screen.paint('...', 'blue', 'bold')} {-left} more, see --diff"


def _file_diff(source: SourceFile, edits: list[Edit]) -> Iterator[tuple[int, str, str]]:
    """Yield the shown number, the sign and the text of each line; an added line has no number."""
    for group in _groups(source, edits):
        first, last = _lines(source, group)
        starts = source.line_starts
        begin = starts[first - 1]
        end = starts[last] if last < len(starts) else len(source.text)
        moved = [Edit(e.path, e.start - begin, e.end - begin, e.text) for e in group]
        # Not `splitlines`, for which a form feed ends a line.
        old = [source.line_text(number) for number in range(first, last + 1)]
        new = _LINE_END.split(apply_edits(source.text[begin:end], moved))
        if new[-1] == "":
            del new[-1]
        for tag, i, j, k, m in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            for number in range(first + i, first + j):
                sign = " " if tag == "equal" else "-"
                mark = source.container.mark if source.container else ""
                if not (mark and is_cell_start(mark, source.line_text(number))):
                    yield source.shown_number(number), sign, source.shown_line(number)
            if tag != "equal":
                yield from ((0, "+", line) for line in new[k:m])


def _trimmed(lines: list[tuple[int, str, str]]) -> list[tuple[int, str, str]]:
    """Return lines without the unchanged ones around the changes."""
    changed = [at for at, (_, sign, _) in enumerate(lines) if sign != " "]
    return lines[changed[0] : changed[-1] + 1] if changed else []


def _groups(source: SourceFile, edits: list[Edit]) -> Iterator[list[Edit]]:
    """Yield the edits of a file in groups whose lines are close together."""
    group: list[Edit] = []
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end)):
        if group and _lines(source, [edit])[0] - _lines(source, group)[1] > _NEAR:
            yield group
            group = []
        group.append(edit)
    if group:
        yield group


def _lines(source: SourceFile, edits: list[Edit]) -> tuple[int, int]:
    """Return the first and the last line that edits touch."""
    first = bisect_right(source.line_starts, min(edit.start for edit in edits))
    # The start of a line that an edit only reaches may be that of another cell.
    last = bisect_right(source.line_starts, max(max(edit.end - 1, edit.start) for edit in edits))
    return first, last
