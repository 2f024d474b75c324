"""Edits of text put together, until the last of them is a Change."""

from __future__ import annotations

from pathlib import Path

from ..source import Edit
from .refusal import Refused


def merged(edits: list[Edit]) -> tuple[Edit, ...]:
    """Edits without repetitions, insertions at one place put together."""
    found: dict[tuple[Path, int, int], Edit] = {}
    for edit in dict.fromkeys(edits):
        key = (edit.path, edit.start, edit.end)
        if key in found and edit.start == edit.end:
            edit = Edit(edit.path, edit.start, edit.end, found[key].text + edit.text)
        elif key in found:
            raise Refused("two changes of one place contradict each other")
        found[key] = edit
    return tuple(sorted(found.values()))
