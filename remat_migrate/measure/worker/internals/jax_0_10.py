"""JAX 0.10 and newer: under `jax_remat3` a checkpoint is a `call_hi_primitive`."""

from __future__ import annotations

from typing import Any

from . import jax_0_7
from .jax_0_4 import Inner


class Internals(jax_0_7.Internals):
    """As before 0.10, and the checkpoints of `jax_remat3`."""

    def inner(self, equation: Any) -> Inner:
        """The jaxprs inside an equation, see the older one."""
        if equation.primitive.name == "call_hi_primitive":
            jaxpr = getattr(equation.params["_prim"], "jaxpr", None)
            return ("", (), 1) if jaxpr is None else ("call", (jaxpr,), 1)
        return super().inner(equation)

    def is_checkpoint(self, equation: Any) -> bool:
        """Whether an equation is a checkpoint, of either implementation."""
        if equation.primitive.name == "call_hi_primitive":
            return type(equation.params["_prim"]).__name__ == "RematTraced"
        return super().is_checkpoint(equation)
