"""How many steps of a long loop run under one checkpoint."""

from __future__ import annotations

import math

# Kind of checkpoints on a loop in segments, before the sizes of its segments.
_SEGMENTS = "segments"
# Shorter loops gain little.
_LEAST = 16


def schedules(steps: int) -> tuple[str, ...]:
    """Return the kinds of checkpoints on a loop in segments.

    Two levels keep about 2 sqrt(n) carries. Three levels keep 3 cbrt(n) for another forward pass.
    Each comes without and with a checkpoint on the body, which may keep more than the carry.
    """
    if steps < _LEAST:
        return ()
    root, third = math.isqrt(steps - 1) + 1, math.ceil(round(steps ** (1 / 3), 6))
    sizes = [(root,), (root, 1), (third * third, third), (third * third, third, 1)]
    return tuple(" ".join(map(str, (_SEGMENTS, *each))) for each in sizes)


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
