"""The hash of a line by which GitHub knows an alert again, `primaryLocationLineHash`.

GitHub computes it for results that come without, and warns where its own is another. It is of the
first 100 characters from the start of the line on that are neither blanks nor tabs, in whichever
line they stand; a line that has the hash of an earlier one is told apart by its number.
"""

from __future__ import annotations

import sys
from collections import Counter

_WINDOW = 100
_BASE = 37
_MASK = (1 << 64) - 1
# What the characters before a window are multiplied with at its end.
_SHIFT = pow(_BASE, _WINDOW, 1 << 64)
_PASSED_OVER = frozenset((0x20, 0x09))
_END_OF_FILE = 0xFFFF


def line_hashes(text: str) -> list[str]:
    """The hash of each line of a file, the first at index 0, as in `8b7cf3e952e7aeb2:1`."""
    seen: Counter[int] = Counter()
    hashes = []
    for value in _windows(text):
        seen[value] += 1
        hashes.append(f"{value:x}:{seen[value]}")
    return hashes


def _windows(text: str) -> list[int]:
    """The polynomial hash, modulo 2**64, of the characters in the window of each line."""
    units, starts = _units(text)
    # Beyond the end of the file every window is filled up with zeros.
    units += [0] * _WINDOW
    up_to = [0]
    for unit in units:
        up_to.append((up_to[-1] * _BASE + unit) & _MASK)
    return [(up_to[start + _WINDOW] - up_to[start] * _SHIFT) & _MASK for start in starts]


def _units(text: str) -> tuple[list[int], list[int]]:
    """The UTF-16 units that count, and at which of them each line starts."""
    codec = f"utf-16-{sys.byteorder[0]}e"
    data = text.replace("\r\n", "\n").replace("\r", "\n").encode(codec, "surrogatepass")
    units: list[int] = []
    starts = [0]
    for unit in memoryview(data).cast("H"):
        if unit in _PASSED_OVER:
            continue
        units.append(unit)
        if unit == 0x0A:
            starts.append(len(units))
    units.append(_END_OF_FILE)
    return units, starts
