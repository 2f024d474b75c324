"""The temporary memory of a compiled program, which alone accounts for fusion and scheduling."""

from __future__ import annotations

import functools
import os
from typing import Any, NamedTuple

import jax

from ..entry import Entry, Run

# In these versions, XLA's default scheduler for the CPU runs as much as possible concurrently, and
# keeps what a checkpoint drops: under jax 0.8, a transformer needs 2.53 GB with checkpoints and
# 2.48 GB without, against 0.77 and 2.58 GB with the other scheduler. Accelerators do not do that.
_CONCURRENT = ((0, 5), (0, 11))
_SCHEDULER = "xla_cpu_enable_concurrency_optimized_scheduler"


def choose_scheduler(version: str) -> None:
    """Select the memory-optimized scheduler for the CPU, unless the user's XLA_FLAGS choose one.

    Must run before JAX starts its backend.
    """
    numbers = tuple(int(part) for part in version.split(".")[:2])
    flags = os.environ.get("XLA_FLAGS", "")
    if _CONCURRENT[0] <= numbers < _CONCURRENT[1] and _SCHEDULER not in flags:
        os.environ["XLA_FLAGS"] = (flags + f" --{_SCHEDULER}=false").strip()


class Compiled(NamedTuple):
    """The memory of a compiled program on each device.

    Attributes:
        temporary: bytes besides inputs and outputs; for a training step, all bytes.
        peak: bytes besides inputs; for a training step, all bytes.
        needed: all bytes. An output in the memory of a donated input counts once.
    """

    temporary: int
    peak: int
    needed: int


def compiled(entry: Entry, run: Run | None = None) -> Compiled:
    """Compile the gradient computation, of another implementation if one is given.

    Raises:
        Exception: any error that JAX raises while it compiles.
    """
    program = functools.partial(entry.differentiated, run=run)
    jitted = jax.jit(program, donate_argnums=entry.donated)
    memory: Any = jitted.lower(*entry.placed_shapes).compile().memory_analysis()
    inputs, temporary = int(memory.argument_size_in_bytes), int(memory.temp_size_in_bytes)
    outputs = int(memory.output_size_in_bytes - memory.alias_size_in_bytes)
    needed = inputs + outputs + temporary
    if entry.counted is not None:
        return Compiled(needed, needed, needed)
    return Compiled(temporary, needed - inputs, needed)
