"""JAX 0.10 and newer: under `jax_remat3` checkpoints and names are `call_hi_primitive`s."""

from __future__ import annotations

from typing import Any

from . import jax_0_7
from .jax_0_4 import Inner

# Classes of these primitives that give what they are given, and what the others are called.
_NAMES = {
    "CheckpointName": "name",
    "CheckpointNameFwd": "name",
    # Gives the first of two equal values: the one that is kept, and the one computed again.
    "PrimalLeftTangentRight": "copy",
}


class Internals(jax_0_7.Internals):
    """As before 0.10, and the equations of `jax_remat3`."""

    def name(self, equation: Any) -> str:
        """What an equation does, as its primitive was called before."""
        if equation.primitive.name == "call_hi_primitive":
            return _NAMES.get(type(equation.params["_prim"]).__name__, "call_hi_primitive")
        return super().name(equation)

    def label(self, equation: Any) -> str:
        """The name that an equation called `name` gives."""
        if equation.primitive.name == "call_hi_primitive":
            return str(equation.params["_prim"].params["name"])
        return super().label(equation)

    def inner(self, equation: Any) -> Inner:
        """The jaxprs inside an equation, see the older one."""
        if equation.primitive.name == "call_hi_primitive":
            held = self._held(equation.params["_prim"].params)
            return ("call", held, 1) if held else ("", (), 1)
        return super().inner(equation)
