"""The `primaryLocationLineHash` by which GitHub recognizes an alert when lines move.

GitHub computes it for results without one, and warns about one that differs from its own. The hash
covers the first 100 characters from the start of the line that are neither spaces nor tabs, on this
line or later ones. Lines with the same hash are numbered.
"""

from __future__ import annotations

import sys
from collections import Counter

_WINDOW = 100
_BASE = 37
_MASK = (1 << 64) - 1
_WINDOW_FACTOR = pow(_BASE, _WINDOW, 1 << 64)
_SKIPPED = frozenset((0x20, 0x09))
_LINE_FEED = 0x0A
_END_OF_FILE = 0xFFFF


def line_hashes(text: str) -> list[str]:
    """Return the hash of each line of a file, such as `8b7cf3e952e7aeb2:1`."""
    seen: Counter[int] = Counter()
    hashes = []
    for value in _window_hashes(text):
        seen[value] += 1
        hashes.append(f"{value:x}:{seen[value]}")
    return hashes


def _window_hashes(text: str) -> list[int]:
    """Return the polynomial hash, modulo 2**64, of the window that starts at each line."""
    units, starts = _units(text)
    units += [0] * _WINDOW  # a window that exceeds the file is padded with zeros
    prefix_hashes = [0]
    for unit in units:
        prefix_hashes.append((prefix_hashes[-1] * _BASE + unit) & _MASK)
    return [
        (prefix_hashes[start + _WINDOW] - prefix_hashes[start] * _WINDOW_FACTOR) & _MASK
        for start in starts
    ]


def _units(text: str) -> tuple[list[int], list[int]]:
    """Return the UTF-16 units that are hashed, and the index at which each line starts."""
    codec = f"utf-16-{sys.byteorder[0]}e"
    data = text.replace("\r\n", "\n").replace("\r", "\n").encode(codec, "surrogatepass")
    units: list[int] = []
    starts = [0]
    for unit in memoryview(data).cast("H"):
        if unit in _SKIPPED:
            continue
        units.append(unit)
        if unit == _LINE_FEED:
            starts.append(len(units))
    units.append(_END_OF_FILE)
    return units, starts
