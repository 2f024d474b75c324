"""Unified diffs."""

from __future__ import annotations

import difflib
import re

from .source_file import SourceFile

_QUOTED = re.compile(r'[\x00-\x1f"\\\x7f]')
_ESCAPES = {
    **{ord(letter): f"\\{sign}" for letter, sign in zip("\a\b\t\n\v\f\r", "abtnvfr", strict=True)},
    **{ord(letter): f"\\{letter}" for letter in '"\\'},
}


def unified_diff(before: SourceFile, after: SourceFile, shown_path: str) -> str:
    """Return the difference in the format of `git diff`; empty if there is none.

    Only line feeds end lines and carriage returns are kept, so that `git apply` and `patch` accept
    the result for files with Windows line endings.

    Args:
        before: the file before the change.
        after: the file after it.
        shown_path: the path to show, with `/`.
    """
    prefixes = ("", "") if shown_path.startswith("/") or shown_path[1:3] == ":/" else ("a/", "b/")
    old, new = (_header(f"{prefix}{shown_path}") for prefix in prefixes)
    lines = difflib.unified_diff(_lines(before.on_disk), _lines(after.on_disk), old, new)
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )


def _header(name: str) -> str:
    """Return a file name as git writes it in a patch.

    A name with control characters, quotes, or unprintable characters is quoted; one with a space is
    followed by a tab, so that `patch` does not cut it there.
    """
    if not (_QUOTED.search(name) or any(not letter.isprintable() for letter in name)):
        return f"{name}\t" if " " in name else name
    quoted = (
        chr(byte)
        if 0x20 <= byte < 0x7F and byte not in b'"\\'
        else _ESCAPES.get(byte, f"\\{byte:03o}")
        for byte in name.encode(errors="surrogateescape")
    )
    return f'"{"".join(quoted)}"'


def _lines(source: SourceFile) -> list[str]:
    text = "\ufeff" + source.text if source.bom else source.text
    pieces = text.split("\n")
    return [piece + "\n" for piece in pieces[:-1]] + ([pieces[-1]] if pieces[-1] else [])
