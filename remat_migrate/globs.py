"""Globs: which files a list of gitignore patterns means."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from .errors import SettingsError


def matcher(patterns: Iterable[str], base: Path) -> Callable[[Path], bool]:
    """A function that says whether a file is meant by `patterns`, relative to the folder `base`.

    A pattern that names a folder means everything below it. Files outside `base` are meant by no
    pattern.

    Raises:
        SettingsError: a pattern is not one that git understands.
    """
    lines = list(patterns)
    if not lines:
        return lambda path: False
    # Imported late: it costs as much as reading a small project.
    from pathspec import GitIgnoreSpec

    try:
        spec = GitIgnoreSpec.from_lines(lines)
    except ValueError as error:
        raise SettingsError(f"{base}: not a gitignore pattern: {error}") from error

    def means(path: Path) -> bool:
        try:
            relative = path.relative_to(base)
        except ValueError:
            return False
        return spec.match_file(relative.as_posix())

    return means
