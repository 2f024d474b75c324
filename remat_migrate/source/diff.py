"""How a change of a file is shown."""

from __future__ import annotations

import difflib

from .text import SourceFile


def unified_diff(before: SourceFile, after: SourceFile, shown_path: str) -> str:
    """The difference as `diff -u` and `git diff` write it; empty if there is none.

    Lines end at line feeds alone and keep their carriage returns, so that `git apply` and `patch`
    take the result for files with Windows line endings too.

    Args:
        before: the file as it was.
        after: as it would be.
        shown_path: the path to show, with `/`.
    """
    prefixes = ("", "") if shown_path.startswith("/") or ":" in shown_path else ("a/", "b/")
    # As git does, so that a name with a space in it is not cut there.
    end = "\t" if " " in shown_path else ""
    lines = difflib.unified_diff(
        _lines(before.on_disk),
        _lines(after.on_disk),
        f"{prefixes[0]}{shown_path}{end}",
        f"{prefixes[1]}{shown_path}{end}",
    )
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )


def _lines(source: SourceFile) -> list[str]:
    text = "\ufeff" + source.text if source.bom else source.text
    pieces = text.split("\n")
    return [piece + "\n" for piece in pieces[:-1]] + ([pieces[-1]] if pieces[-1] else [])
