"""What the compiled program needs: the only one to know of fusion, scheduling and merged code."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import jax

from ..internals import internals

# In these versions XLA schedules programs for the CPU so that as much as possible runs at once, and
# keeps what a checkpoint is there to drop: a transformer with checkpoints and without needs 2.53
# and 2.48 GB in jax 0.8, and 0.77 and 2.58 GB with its other scheduler. No accelerator does that.
_HASTY = ((0, 5), (0, 11))
_SCHEDULER = "xla_cpu_enable_concurrency_optimized_scheduler"


class Compiled(NamedTuple):
    """What XLA says about a program.

    Attributes:
        temporary_bytes: memory besides arguments and results.
        flops: as XLA counts them, with a loop's body once.
    """

    temporary_bytes: int
    flops: float


def choose_scheduler(version: str) -> None:
    """Have programs for the CPU scheduled for little memory, before JAX starts its backend.

    What the user says in XLA_FLAGS stands.
    """
    numbers = tuple(int(part) for part in version.split(".")[:2])
    flags = os.environ.get("XLA_FLAGS", "")
    if _HASTY[0] <= numbers < _HASTY[1] and _SCHEDULER not in flags:
        os.environ["XLA_FLAGS"] = (flags + " --%s=false" % _SCHEDULER).strip()


def compile_program(program: Any, *shapes: Any) -> Compiled:
    """Compile a function of arrays of these shapes for the default device.

    Raises:
        Exception: whatever compiling raises.
    """
    compiled = jax.jit(program).lower(*shapes).compile()
    memory: Any = compiled.memory_analysis()
    flops = internals().costs(compiled).get("flops", float("nan"))
    return Compiled(int(memory.temp_size_in_bytes), float(flops))
