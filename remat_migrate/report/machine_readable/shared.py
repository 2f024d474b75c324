"""What the formats for other programs share: which finding comes first, where it stands, and text
that no format breaks on.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from ...rule import Finding
from ...text import Edit, SourceFile, Span
from ...text.edits import Replacement
from ..terminal.display import display_path, printable
from ..terminal.full import fix_tag

_SEVERITIES = ("error", "warning", "note")
_CONFIDENCES = ("high", "medium", "low")
_ELLIPSIS = "…"
_SURROGATE = re.compile("[\ud800-\udfff]")
# Where GitHub and GitLab say that the checkout is.
_CHECKOUTS = ("GITHUB_WORKSPACE", "CI_PROJECT_DIR")


@dataclass(frozen=True, slots=True)
class Region:
    """A range in a file as it lies on disk: lines and columns from 1, columns in characters.

    The end is behind the last character.
    """

    line: int
    column: int
    end_line: int
    end_column: int


def on_disk(source: SourceFile, span: Span) -> tuple[SourceFile, Span]:
    """The file that other programs open, and where a range of characters stands in it."""
    if source.container is None:
        return source, span
    return source.on_disk, Span(source.file_offset(span.start), source.file_offset(span.end))


def edits_on_disk(
    source: SourceFile, edits: Iterable[Edit]
) -> tuple[SourceFile, tuple[Replacement, ...]]:
    """The file that other programs open, and what edits of the text mean there, in order."""
    from ...text.file_edits import file_edits  # what reads notebooks is rarely needed

    return source.on_disk, file_edits(source, edits)


def region(file: SourceFile, where: Span) -> Region:
    """Lines and columns of a range of characters in a file as it lies on disk."""
    return Region(*file.position(where.start), *file.position(where.end))


def worst_first(findings: Iterable[Finding]) -> list[Finding]:
    """The findings, the most severe and most certain first; else in the order they came in."""
    return sorted(
        findings,
        key=lambda finding: (
            _SEVERITIES.index(finding.severity),
            _CONFIDENCES.index(finding.confidence),
        ),
    )


def repository(root: Path) -> Path:
    """The folder of the repository that a project's folder lies in, or else that folder itself.

    Services name the checkout; where that is only a folder around it, git's own mark counts more.
    """
    named = [Path(value) for name in _CHECKOUTS if (value := os.environ.get(name))]
    around = [f for one in named for f in (one, one.resolve()) if root.is_relative_to(f)]
    # In a worktree and in a submodule `.git` is a file.
    marked = (f for f in (*around, root, *root.parents) if (f / ".git").exists())
    return next(marked, around[0] if around else root)


def portable_path(path: Path, folder: Path) -> str:
    """A path relative to `folder` where it lies below it, as text that can be encoded."""
    return encodable(display_path(path, folder))


def file_uri(path: Path) -> str:
    """A path as the reference that RFC 3986 makes of it: relative, or absolute with `file://`."""
    text = path.as_posix()
    # A half of a surrogate pair in a name stands for a byte that is not UTF-8.
    data = b"".join(map(_name_bytes, text)) if _SURROGATE.search(text) else text.encode()
    if not path.is_absolute():
        return quote(data, safe="/")
    return f"file://{'' if text.startswith('/') else '/'}{quote(data, safe='/:')}"


def place(finding: Finding, folder: Path) -> str:
    """`src/model.py:14:26`."""
    at = region(*on_disk(finding.source, finding.span))
    return f"{printable(display_path(finding.path, folder))}:{at.line}:{at.column}"


def fix_lines(finding: Finding) -> list[str]:
    """What mends a finding, and what there is to know besides: a line each, or several."""
    lines = []
    if finding.fix is not None:
        tag = fix_tag(finding)
        lines.append(f"{tag[0].upper()}{tag[1:]}: {finding.fix.title}")
    if finding.reason and not (finding.fix and finding.fix.title == finding.reason):
        lines.append(finding.reason)
    return [printable(line) for text in lines for line in text.splitlines()]


def encodable(text: str) -> str:
    """`text` with halves of surrogate pairs replaced: readers of UTF-8 and of JSON stop at them."""
    return _SURROGATE.sub("\ufffd", text)


def shorten(text: str, most: int) -> str:
    """`text`, or as much of its beginning as makes `most` characters with an ellipsis."""
    return text if len(text) <= most else text[: most - len(_ELLIPSIS)] + _ELLIPSIS


def _name_bytes(letter: str) -> bytes:
    if "\udc80" <= letter <= "\udcff":
        return bytes([ord(letter) - 0xDC00])
    return letter.encode("utf-8", "replace")
