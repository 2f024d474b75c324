"""What the compiled program needs: the only one to know of fusion, scheduling and merged code."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax

from .internals import internals


class Compiled(NamedTuple):
    """What XLA says about a program.

    Attributes:
        temporary_bytes: memory besides arguments and results.
        flops: as XLA counts them, with a loop's body once.
    """

    temporary_bytes: int
    flops: float


def compile_program(program: Any, *shapes: Any) -> Compiled:
    """Compile a function of arrays of these shapes for the default device.

    Raises:
        Exception: whatever compiling raises.
    """
    compiled = jax.jit(program).lower(*shapes).compile()
    memory: Any = compiled.memory_analysis()
    flops = internals().costs(compiled).get("flops", float("nan"))
    return Compiled(int(memory.temp_size_in_bytes), float(flops))
