"""Gitignore patterns in the settings."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

from ..errors import SettingsError
from ..settings import Globs

# The time to match a name grows with its length to the power of the stars in a pattern.
_MOST_STARS = 3


@cache
def excluded_by(exclude: tuple[Globs, ...]) -> Callable[[Path], bool]:
    """Return a predicate for the files that settings exclude.

    Raises:
        SettingsError: a pattern is invalid.
    """
    matchers = [matcher(globs.patterns, globs.base) for globs in exclude]
    return lambda path: any(matches(path) for matches in matchers)


def matcher(patterns: Iterable[str], base: Path) -> Callable[[Path], bool]:
    """Return a predicate for the files that match gitignore patterns relative to `base`.

    Raises:
        SettingsError: a pattern is invalid.
    """
    # Imported here because it takes as long as reading a small project.
    from pathspec import GitIgnoreSpec

    lines = list(patterns)
    for line in lines:
        names = line.split("/")
        stars = (n.count("*") for n in names if n != "**")
        if max(names.count("**"), *stars, 0) > _MOST_STARS:
            raise SettingsError(
                f"{base}: pattern {line[:80]!r} has more than {_MOST_STARS} `*` in a name, or `**`"
            )
    try:
        spec = GitIgnoreSpec.from_lines(lines)
    except (ValueError, re.error) as error:  # re.error: a reversed range
        raise SettingsError(f"{base}: invalid gitignore pattern: {error}") from error

    def matches(path: Path) -> bool:
        return path.is_relative_to(base) and spec.match_file(path.relative_to(base).as_posix())

    return matches
