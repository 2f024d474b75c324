"""Edits of a file on disk, for tools that do not know about notebook views."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher

from .edits import Edit, Replacement, apply_edits, trimmed
from .escapes import lines_of
from .notebook import JupyterNotebook
from .source_file import SourceFile


def file_edits(source: SourceFile, edits: Iterable[Edit]) -> tuple[Replacement, ...]:
    """Convert edits of one file into replacements in the text of `source.on_disk`, in order.

    For a notebook, these replace its JSON or Markdown.

    Args:
        source: the file; `edits` refer to its text.
        edits: the edits of one fix, which must not overlap.

    Raises:
        ApplyError: two edits overlap, or one is outside the text.
        BrokenEscape: an edit changes a line of a notebook that is not Python.
    """
    ordered = sorted(set(edits))
    if source.container is None:
        return tuple(Replacement(edit.start, edit.end, edit.text) for edit in ordered)
    container = source.own_container
    if isinstance(container, JupyterNotebook):
        return tuple(container.replacements_of(ordered))
    text = apply_edits(source.text, ordered)
    return tuple(_line_edits(source.on_disk.text, source.replaced(text).on_disk.text))


def _line_edits(before: str, after: str) -> Iterator[Replacement]:
    """Yield replacements of the lines that differ, trimmed to the characters that differ where
    possible.
    """
    old, new = lines_of(before), lines_of(after)
    starts = [0]
    for line in old:
        starts.append(starts[-1] + len(line))
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        if i2 - i1 != j2 - j1:
            yield Replacement(starts[i1], starts[i2], "".join(new[j1:j2]))
            continue
        for start, one, other in zip(starts[i1:i2], old[i1:i2], new[j1:j2], strict=True):
            if one != other:
                yield trimmed(start, one, other)
