# mypy: disable-error-code="no-untyped-def,no-untyped-call"
"""Long loops in segments, so that the gradient keeps one carry for each segment, not each step.

`plan --apply` writes `scan_in_segments` into the project as it stands here.
"""

from __future__ import annotations

import jax


def scan_in_segments(f, init, xs=None, length=None, reverse=False, unroll=1, *, sizes):
    """Run `jax.lax.scan` in checkpointed segments of `sizes[0]` steps, these in `sizes[1]`, etc."""
    # The gradient keeps the carry at the start of each segment, and recomputes one at a time.
    if length is None:
        length = jax.tree.leaves(xs)[0].shape[0]
    if not sizes:
        return jax.lax.scan(f, init, xs, length, reverse, unroll)
    size, *smaller = sizes
    if length <= size:
        return scan_in_segments(f, init, xs, length, reverse, unroll, sizes=smaller)

    def scan_part(carry, start, stop, size):
        count = (stop - start) // size
        split = jax.tree.map(lambda x: x[start:stop].reshape(count, size, *x.shape[1:]), xs)

        def segment(carry, xs):
            return scan_in_segments(f, carry, xs, size, reverse, unroll, sizes=smaller)

        segment = jax.checkpoint(segment, prevent_cse=count == 1)
        carry, ys = jax.lax.scan(segment, carry, split, count, reverse)
        return carry, jax.tree.map(lambda y: y.reshape(stop - start, *y.shape[2:]), ys)

    rest = length % size
    if rest == 0:
        return scan_part(init, 0, length, size)
    if reverse:
        carry, last = scan_part(init, length - rest, length, rest)
        carry, first = scan_part(carry, 0, length - rest, size)
    else:
        carry, first = scan_part(init, 0, length - rest, size)
        carry, last = scan_part(carry, length - rest, length, rest)
    return carry, jax.tree.map(lambda *ys: jax.numpy.concatenate(ys), first, last)
