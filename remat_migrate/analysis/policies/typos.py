"""Distinguishes typos of a name from different names that look similar."""

from __future__ import annotations

import re
from collections.abc import Iterable

# A letter distinguishes shorter words: `q_proj` and `k_proj`.
_SHORTEST = 5
# More letters than these are a word: `attn_key_value` and `attn_value`.
_MOST_LETTERS = 2
# The minimum similarity of a word to its typo.
_ALIKE = 0.83


def intended_name(name: str, known: Iterable[str]) -> str | None:
    """Return the only known name of which `name` is a typo; None if there is none, or several."""
    intended = {other for other in known if other != name and is_typo(name, other)}
    return intended.pop() if len(intended) == 1 else None


def is_typo(name: str, other: str) -> bool:
    """Return whether one name is a typo of the other: case, hyphens, a letter or two, or a plural.

    Numbers and short words must agree: `wi_0` is not a typo of `wi_1`, nor `q_proj` of `k_proj`,
    nor `attn_in` of `attn_out`.
    """
    one, two = _words(name), _words(other)
    if "".join(one) == "".join(two):
        return True
    if re.sub(r"\D", "", name) != re.sub(r"\D", "", other):
        return False
    if len(one) != len(two):
        return _is_word_typo("".join(one), "".join(two))
    pairs = [(a, b) for a, b in zip(one, two, strict=True) if a != b]
    return len(pairs) == 1 and _is_word_typo(*pairs[0])


def _is_word_typo(one: str, two: str) -> bool:
    from difflib import SequenceMatcher  # only where there is a name to compare

    if one.rstrip("s") == two.rstrip("s"):
        return True
    if min(len(one), len(two)) < _SHORTEST - 1 or abs(len(one) - len(two)) > _MOST_LETTERS:
        return False
    return one[0] == two[0] and SequenceMatcher(None, one, two).ratio() >= _ALIKE


def _words(name: str) -> list[str]:
    parts = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)
    return [part for part in re.split(r"[^a-z0-9]+", parts.lower()) if part]
