"""RMT000: a file that could not be read, decoded or parsed."""

from __future__ import annotations

from collections.abc import Iterator

from remat_migrate.api import Example, Finding, Project, Rule
from remat_migrate.api.code import SourceError, SourceFile, Span, read_bytes


class UnreadableFile(Rule):
    """## What it does
    Checks for files that cannot be read, decoded as text, or parsed as Python. The other files are
    checked as usual.

    ## Why is this bad?
    remat-migrate knows nothing about such a file. It may contain any of the other problems, or
    calls that a fix in another file would have to update.

    ## Fix
    Not fixed automatically. The message says what is wrong with the file. If the file is invalid on
    purpose, for example as test input, list it in `exclude` or `per-file-ignores`.
    """

    code, name = "RMT000", "unreadable-file"
    wrong = [Example("import jax\n\nstep = jax.checkpoint(loss\n")]
    right = ["import jax\n\nstep = jax.checkpoint(loss)\n"]

    def check_project(self, project: Project) -> Iterator[Finding]:
        """Report each target that could not be read."""
        for error in project.errors:
            source = _readable_part(error)
            yield self.finding(source, _position(source, error), str(error))


def _readable_part(error: SourceError) -> SourceFile:
    """Return as much of the file as can be shown around the error."""
    try:
        data = read_bytes(error.path)
    except SourceError:
        data = b""
    return SourceFile(error.path, "" if b"\0" in data else data.decode(errors="replace"))


def _position(source: SourceFile, error: SourceError) -> Span:
    starts = source.line_starts
    if not source.text or error.line > len(starts):
        return Span(0, 0)
    start = starts[error.line - 1]
    width = len(source.line_text(error.line))
    at = start + min(error.column - 1, max(0, width - 1))
    return Span(at, at + 1)
