"""Gitignore patterns in the settings."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

from ..errors import SettingsError

# The time to match a name grows with its length to the power of the stars in a pattern.
_MOST_STARS = 3


@cache
def matcher(patterns: tuple[str, ...], base: Path) -> Callable[[Path], bool]:
    """Return a predicate for the files that match gitignore patterns relative to `base`.

    Raises:
        SettingsError: a pattern is invalid.
    """
    # Imported here because it takes as long as reading a small project.
    from pathspec import GitIgnoreSpec

    for line in patterns:
        names = line.split("/")
        stars = (n.count("*") for n in names if n != "**")
        if max(names.count("**"), *stars, 0) > _MOST_STARS:
            raise SettingsError(
                f"{base}: pattern {line[:80]!r} has more than {_MOST_STARS} `*` in a name, or `**`"
            )
    try:
        spec = GitIgnoreSpec.from_lines(patterns)
    except (ValueError, re.error) as error:  # re.error: a reversed range
        raise SettingsError(f"{base}: invalid gitignore pattern: {error}") from error

    def matches(path: Path) -> bool:
        return path.is_relative_to(base) and spec.match_file(path.relative_to(base).as_posix())

    return matches
