"""Gitignore patterns with many stars, matched in time that does not double with each star.

`pathspec` makes regular expressions of patterns. In `*a*a*a*b`, each star may end at each `a`, and
a failure tries all combinations. But if a part between two stars matches at some place, a later
place for it gains nothing: the star behind it matches whatever is between.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

_FEW = 3
_STAR, _FOLDERS = "[^/]*", "(?:/.+)?"  # what `pathspec` writes for `*` and `/**/`
# The part of a name between two stars: characters and `[a-z]`.
_BETWEEN = re.compile(
    rf"{re.escape(_STAR)}(?=((?:\\.|\[\^?\]?[^]]*\]|[^][\\(){{}}/])*?){re.escape(_STAR)})\1",
    re.DOTALL,
)
_CLASS = re.compile(r"(\\.)|(\[\^?\]?[^]]*\])", re.DOTALL)


def with_many_stars(spec: GitIgnoreSpec) -> GitIgnoreSpec:
    """Return the same patterns, those with many stars as expressions that do not try them all."""
    import pathspec

    slow = {
        p.regex.pattern for p in spec.patterns if p.regex is not None and _is_slow(p.regex.pattern)
    }
    if not slow:
        return spec
    patterns = [
        type(one)(re.compile(without_retries(one.regex.pattern)), one.include)
        if one.regex is not None and one.regex.pattern in slow
        else one
        for one in spec.patterns
    ]
    options: dict[str, Any] = {"backend": "simple"} if hasattr(pathspec, "backend") else {}
    return type(spec)(patterns, **options)


def _is_slow(regex: str) -> bool:
    return regex.count(_STAR) + regex.count(_FOLDERS) > _FEW


def without_retries(regex: str) -> str:
    """Return a regular expression of `pathspec` with its stars, but the last in a row, atomic."""
    *between, last = regex.split(_FOLDERS)
    parts = [_BETWEEN.sub(_atomic, part) for part in between]
    found = parts[0] if parts else ""
    for part in parts[1:]:
        found += f"(?>(?:/.+?)??{part}(?=/))"
    return found + (_FOLDERS if parts else "") + _BETWEEN.sub(_atomic, last)


def _atomic(star: re.Match[str]) -> str:
    # No character of a name is a slash, not even in `[+-9]`.
    return f"(?>[^/]*?{_CLASS.sub(lambda m: m[1] or f'(?!/){m[2]}', star[1])})"
