"""Distinguishes typos of a name from different names that look similar."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

# A letter distinguishes shorter words: `q_proj` and `k_proj`.
_SHORTEST = 5
# From this length on, two letters may differ.
_LONG = 10


def intended_name(name: str, known: Iterable[str]) -> str | None:
    """Return the only known name of which `name` is a typo; None if there is none, or several."""
    intended = {other for other in known if other != name and is_typo(name, other)}
    return intended.pop() if len(intended) == 1 else None


def is_typo(name: str, other: str) -> bool:
    """Return whether one name is a typo of the other: case, hyphens, one or two letters, or a
    plural.

    Numbers and short words must agree: `wi_0` is not a typo of `wi_1`, nor `q_proj` of `k_proj`,
    nor `attn_in` of `attn_out`.
    """
    one, two = _words(name), _words(other)
    if "".join(one) == "".join(two):
        return True
    if _digits(name) != _digits(other):
        return False
    if len(one) == len(two):
        pairs = [(a, b) for a, b in zip(one, two, strict=True) if a != b]
        return len(pairs) == 1 and _is_word_typo(*pairs[0])
    return _is_word_typo("".join(one), "".join(two))


def _is_word_typo(one: str, two: str) -> bool:
    shorter = min(len(one), len(two))
    if one.rstrip("s") == two.rstrip("s"):
        return True
    if shorter < _SHORTEST - 1 or one[0] != two[0]:
        return False
    return distance(one, two) <= (2 if shorter >= _LONG else 1)


def _words(name: str) -> list[str]:
    parts = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)
    return [part for part in re.split(r"[^a-z0-9]+", parts.lower()) if part]


def _digits(name: str) -> str:
    return "".join(c for c in name if c.isdigit())


def distance(one: str, two: str) -> int:
    """Return the Damerau-Levenshtein distance of two words (with adjacent transpositions)."""
    older: list[int] = []
    last = list(range(len(two) + 1))
    for i, a in enumerate(one, 1):
        row = [i]
        for j, b in enumerate(two, 1):
            least = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (a != b))
            if i > 1 and j > 1 and a == two[j - 2] and b == one[i - 2]:
                least = min(least, older[j - 2] + 1)
            row.append(least)
        older, last = last, row
    return last[-1]


# The minimum similarity to the best match, and the minimum lead over the next one.
_LIKE, _MARGIN = 0.8, 0.06


def closest_name(name: str, known: Mapping[str, str]) -> str | None:
    """Return the only known name similar to `name`; None if there is none, or several.

    `known` maps each name to its canonical name.
    """
    from difflib import SequenceMatcher  # few runs come here

    ranked = sorted(
        ((SequenceMatcher(None, name, other).ratio(), other) for other in known), reverse=True
    )
    if not ranked or ranked[0][0] < _LIKE:
        return None
    best, found = ranked[0]
    others = [ratio for ratio, other in ranked if known[other] != known[found]]
    return found if not others or best - others[0] >= _MARGIN else None
