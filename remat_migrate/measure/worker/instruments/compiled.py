"""The temporary memory of a compiled program, which alone accounts for fusion and scheduling."""

from __future__ import annotations

import os
from typing import Any

import jax

from ..entry import Entry

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


def temporary_bytes(entry: Entry, program: Any) -> int:
    """Compile a program of an entry, and return the first number of `memory_of`.

    Raises:
        Exception: any error that JAX raises while it compiles.
    """
    return memory_of(entry, program)[0]


def memory_of(entry: Entry, program: Any) -> tuple[int, int]:
    """Compile a program of an entry, and return its memory on each device.

    Returns:
        bytes besides inputs and outputs, or all for a training step; all bytes.

    Raises:
        Exception: any error that JAX raises while it compiles.
    """
    memory = _memory(entry, program)
    whole = _whole(memory)
    return whole if entry.counted is not None else int(memory.temp_size_in_bytes), whole


def peak_bytes(entry: Entry, program: Any) -> int:
    """Compile a program of an entry, and return its memory on each device besides inputs.

    For a training step, includes the inputs. An output in the memory of a donated input counts
    once.

    Raises:
        Exception: any error that JAX raises while it compiles.
    """
    memory = _memory(entry, program)
    return _whole(memory) - (memory.argument_size_in_bytes if entry.counted is None else 0)


def _whole(memory: Any) -> int:
    return int(
        memory.argument_size_in_bytes
        + memory.output_size_in_bytes
        - memory.alias_size_in_bytes
        + memory.temp_size_in_bytes
    )


def _memory(entry: Entry, program: Any) -> Any:
    jitted = jax.jit(program, donate_argnums=entry.donated)
    return jitted.lower(*entry.placed_shapes).compile().memory_analysis()
