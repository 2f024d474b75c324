"""Gitignore patterns in the settings and in `.gitignore` files."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path

from ..errors import SettingsError
from ..settings import Settings
from ..text.regular_files import read_regular

# What a `.gitignore` has beyond this is ignored where git is not asked.
_MOST_PATTERNS = 5_000
_LONGEST_PATTERN = 4_096
# The time to match a name grows with its length to the power of the stars in a pattern.
_MOST_STARS = 3


def excluded_by(settings: Settings) -> Callable[[Path], bool]:
    """Return a predicate for the files that settings exclude.

    Raises:
        SettingsError: a pattern is invalid.
    """
    matchers = [matcher(globs.patterns, globs.base) for globs in settings.exclude]
    return lambda path: any(matches(path) for matches in matchers)


def matcher(patterns: Iterable[str], base: Path) -> Callable[[Path], bool]:
    """Return a predicate for the files that match gitignore patterns relative to `base`.

    Raises:
        SettingsError: a pattern is invalid.
    """
    lines = list(patterns)
    if not lines:
        return lambda path: False
    # Imported here because it takes as long as reading a small project.
    from pathspec import GitIgnoreSpec

    for line in filter(_has_many_stars, lines):
        raise SettingsError(
            f"{base}: pattern {line[:80]!r} has more than {_MOST_STARS} `*` in a name, or `**`"
        )
    try:
        spec = GitIgnoreSpec.from_lines(lines)
    except (ValueError, re.error) as error:  # re.error: a reversed range
        raise SettingsError(f"{base}: invalid gitignore pattern: {error}") from error

    def matches(path: Path) -> bool:
        try:
            relative = path.relative_to(base)
        except ValueError:
            return False
        return spec.match_file(relative.as_posix())

    return matches


def _has_many_stars(pattern: str) -> bool:
    names = pattern.split("/")
    return max(names.count("**"), *(n.count("*") for n in names if n != "**"), 0) > _MOST_STARS


def is_ignored(rules: Iterable[Callable[[str], bool | None]], path: str) -> bool:
    """Return whether the last rules that match `path`, those of the innermost folder, ignore it."""
    ignored = False
    for ignores in rules:
        verdict = ignores(path)
        if verdict is not None:
            ignored = verdict
    return ignored


def ignore_rules(folder: str) -> Callable[[str], bool | None] | None:
    """Return a function that tells whether a folder's `.gitignore` ignores or keeps a path.

    The function returns None for a path that no rule matches.
    """
    try:
        data = read_regular(Path(folder, ".gitignore"))
    except OSError:
        return None
    from pathspec import GitIgnoreSpec

    lines = data.decode(errors="replace").splitlines()[:_MOST_PATTERNS]
    lines = [n for n in lines if len(n) <= _LONGEST_PATTERN and not _has_many_stars(n)]
    try:
        spec = GitIgnoreSpec.from_lines(lines)
    except (ValueError, re.error):  # Like git, skip invalid patterns.
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
