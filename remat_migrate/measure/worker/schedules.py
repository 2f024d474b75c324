"""How many steps of a long loop run under one checkpoint."""

from __future__ import annotations

import math

# Kind of checkpoints on a loop in segments, before the sizes of its segments.
_SEGMENTS = "segments"
# Steps of a long loop; shorter ones gain little.
LONG = 16


def schedules(steps: int) -> tuple[str, ...]:
    """Return the kinds of checkpoints on a loop in segments.

    Two levels keep about 2 sqrt(n) carries. Three levels keep 3 cbrt(n) for another forward pass.
    Each comes without and with a checkpoint on the body, which may keep more than the carry.
    """
    if steps < LONG:
        return ()
    third = math.ceil(round(steps ** (1 / 3), 6))
    two = _size(steps, math.isqrt(steps - 1) + 1)
    outer = _size(steps, third * third)
    inner = _size(outer, third)
    sizes = [(two,), (two, 1), (outer, inner), (outer, inner, 1)]
    return tuple(" ".join(map(str, (_SEGMENTS, *each))) for each in sizes)


def _size(steps: int, least: int) -> int:
    """Return a size that divides the steps, if one is near: a remainder copies what is scanned."""
    near = range(least, least + least // 2 + 1)
    return next((size for size in near if steps % size == 0), least)


def sizes_of(kind: str) -> tuple[int, ...]:
    """Return the sizes of the segments of a kind; 1 is a checkpoint on the body."""
    first, *sizes = kind.split()
    return tuple(map(int, sizes)) if first == _SEGMENTS else ()


def described(kind: str) -> str:
    """Return `two levels: segments of 32 steps` for a kind."""
    sizes = sizes_of(kind)
    longer = [str(size) for size in sizes if size > 1]
    levels = "two levels" if len(longer) == 1 else "three levels"
    steps = "checkpointed steps" if 1 in sizes else "steps"
    return f"{levels}: segments of {' and '.join(longer)} {steps}"
