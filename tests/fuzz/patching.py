"""Apply a unified diff as `patch` does, but strictly."""

from __future__ import annotations

import re

_HUNK = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_NO_NEWLINE = b"\\ No newline at end of file\n"


def patched(old: bytes, difference: bytes) -> bytes:
    """Return a file's bytes with the diff applied.

    Raises:
        ValueError: the diff is malformed or does not match the file.
    """
    before = _lines(old)
    after: list[bytes] = []
    lines = _lines(difference)[2:]
    at = place = 0
    while at < len(lines):
        header = _HUNK.match(lines[at])
        if header is None:
            raise ValueError(f"not a hunk header: {lines[at]!r}")
        first, count = int(header[1]), int(header[2] or 1)
        start = first - 1 if count else first
        if start < place:
            raise ValueError("hunks are out of order")
        after += before[place:start]
        place, at = start, at + 1
        while at < len(lines) and not _HUNK.match(lines[at]):
            mark, text = lines[at][:1], lines[at][1:]
            at += 1
            if at < len(lines) and lines[at] == _NO_NEWLINE:
                text, at = text.removesuffix(b"\n"), at + 1
            if mark in (b" ", b"-"):
                if place >= len(before) or before[place] != text:
                    raise ValueError(f"line {place + 1} is not {text!r}")
                place += 1
            if mark in (b" ", b"+"):
                after.append(text)
            elif mark != b"-":
                raise ValueError(f"no line of a difference: {mark + text!r}")
    return b"".join([*after, *before[place:]])


def _lines(data: bytes) -> list[bytes]:
    """Split lines, keeping line feeds; a single carriage return does not end a line."""
    pieces = data.split(b"\n")
    return [piece + b"\n" for piece in pieces[:-1]] + ([pieces[-1]] if pieces[-1] else [])
