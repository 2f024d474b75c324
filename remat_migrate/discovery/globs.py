"""Globs: which files a list of gitignore patterns means, and what `.gitignore` files leave out."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path

from ..errors import SettingsError
from ..text.atomic import read_regular


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
    except (ValueError, re.error) as error:  # a range of letters that goes backward: re's
        raise SettingsError(f"{base}: not a gitignore pattern: {error}") from error

    def means(path: Path) -> bool:
        try:
            relative = path.relative_to(base)
        except ValueError:
            return False
        return spec.match_file(relative.as_posix())

    return means


def is_ignored(rules: Iterable[Callable[[str], bool | None]], path: str) -> bool:
    """Whether the innermost rules that have something to say about `path` ignore it."""
    ignored = False
    for ignores in rules:
        verdict = ignores(path)
        if verdict is not None:
            ignored = verdict
    return ignored


def ignore_rules(folder: str) -> Callable[[str], bool | None] | None:
    """What the `.gitignore` of a folder says of a path below it: ignore, keep, or nothing."""
    try:
        data = read_regular(Path(folder, ".gitignore"), linked=True)
    except OSError:
        return None
    from pathspec import GitIgnoreSpec

    lines = data.decode(errors="replace").splitlines()
    try:
        spec = GitIgnoreSpec.from_lines(lines)
    except (ValueError, re.error):  # git passes by what it does not understand
        spec = GitIgnoreSpec.from_lines(filter(_is_pattern, lines))
    prefix = len(folder.rstrip(os.sep)) + 1
    return lambda path: spec.check_file(path[prefix:].replace(os.sep, "/")).include


def _is_pattern(line: str) -> bool:
    from pathspec import GitIgnoreSpec

    try:
        GitIgnoreSpec.from_lines([line])
    except (ValueError, re.error):
        return False
    return True
