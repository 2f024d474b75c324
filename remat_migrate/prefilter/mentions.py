"""How the bytes of a Python file mention a name: as an attribute, an import, or a string.

Most files that contain `checkpoint` mean something else, or have it in a comment or a longer word.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from .words import places_of

Stems = Mapping[bytes, list[tuple[bytes, bytes]]]

# The namespace of the policies.
NAMESPACE = b"checkpoint_policies"

# Enough characters for a chain of names, or for the blanks and the comment before a name in a list.
FAR = 300
SPACE = b" \t\r\n\\"
QUOTES = (b'"', b"'")
# Functions that read or replace an attribute by its name.
BY_NAME = (b"getattr", b"setattr", b"delattr", b"patch")

_IN_LIST = re.compile(rb"[ \t\\]*(?:[,)#;\r\n]|as\b|\Z)")
# :func:`jax.checkpoint`, ``jax.checkpoint``
_QUOTED = re.compile(rb"`[\w.]*\Z")
_STAR = re.compile(rb"import[ \t\\\r\n]*\*")


def shows_name(
    data: bytes, stems: Stems, places: Callable[[bytes, bytes], Iterable[int]] = places_of
) -> bool:
    """Return whether one of some names may be an attribute, an import, or a whole string.

    Comments and longer strings are taken for code, so the result may be true without reason.

    Args:
        data: the bytes of a file.
        stems: the names, see `stems_of`.
        places: returns the places of a stem in the bytes.
    """
    asked: dict[str, bool] = {}
    for stem, forms in stems.items():
        for at in places(stem, data):
            end = at + len(stem)
            if stem == b"checkpoint" and data[at - 8 : at] == b"jax_new_":
                return True
            if stem == b"checkpoint" and data[end : end + 9] == b"_policies":
                return True
            for head, tail in forms:
                start, stop = at - len(head), end + len(tail)
                if is_of_word(data[stop : stop + 1]) or is_of_word(data[start - 1 : start]):
                    continue
                if data[start:at] == head and data[end:stop] == tail:
                    if _is_attribute(data, start) or _is_listed(data, start, stop):
                        return True
                    if data[start - 1 : start] in QUOTES and data[stop : stop + 1] in QUOTES:
                        if "read" not in asked:
                            asked["read"] = any(function in data for function in BY_NAME)
                        if asked["read"]:
                            return True
                    if "star" not in asked:
                        asked["star"] = _STAR.search(data) is not None
                    if asked["star"]:
                        return True
    return False


def stems_of(names: Iterable[bytes]) -> Stems:
    """Group names by the substring to search for, with what precedes and follows it."""
    found: dict[bytes, list[tuple[bytes, bytes]]] = {b"checkpoint": [], b"remat": []}
    for name in names:
        stem = next((stem for stem in (b"checkpoint", b"remat") if stem in name), name)
        head, _, tail = name.partition(stem)
        found.setdefault(stem, []).append((head, tail))
    return found


def is_of_word(character: bytes) -> bool:
    """Return whether a byte belongs to an ASCII word; false for no byte."""
    return character.isalnum() or character == b"_"


def _is_attribute(data: bytes, at: int) -> bool:
    """Return whether a word may be an attribute: not in a comment or quoted in documentation."""
    before = data[max(0, at - FAR) : at]
    if not before.rstrip(SPACE).endswith(b"."):
        return False
    line = before.rpartition(b"\n")[2]
    return _QUOTED.search(line) is None and not line.lstrip().startswith(b"#")


def _is_listed(data: bytes, at: int, end: int) -> bool:
    """Return whether a word may be listed in an import."""
    raw = data[max(0, at - FAR) : at]
    before = raw.rstrip(SPACE)
    if _IN_LIST.match(data, end) is None:
        return False
    # In brackets over several lines, a comment may precede it.
    return before.endswith((b",", b"(", b"import")) or (
        b"\n" in raw[len(before) :] and b"#" in before.rpartition(b"\n")[2]
    )
