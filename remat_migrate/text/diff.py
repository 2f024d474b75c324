"""How a change of a file is shown."""

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
    """Return the difference as `diff -u` and `git diff` write it; empty if there is none.

    Lines end at line feeds alone and keep their carriage returns, so that `git apply` and `patch`
    take the result for files with Windows line endings too.

    Args:
        before: the file as it was.
        after: as it would be.
        shown_path: the path to show, with `/`.
    """
    prefixes = ("", "") if shown_path.startswith("/") or shown_path[1:3] == ":/" else ("a/", "b/")
    old, new = (_header(f"{prefix}{shown_path}") for prefix in prefixes)
    lines = difflib.unified_diff(_lines(before.on_disk), _lines(after.on_disk), old, new)
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )


def _header(name: str) -> str:
    """Return a file's name in a patch as git writes it: what could end the line or steer a
    terminal is
    quoted, and one with a space in it has a tab behind it, so that it is not cut there."""
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
