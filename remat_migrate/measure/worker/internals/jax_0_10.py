"""JAX 0.10 and newer: under `jax_remat3`, checkpoints and names are `call_hi_primitive`s."""

from __future__ import annotations

from typing import Any

from . import jax_0_7
from .jax_0_4 import Inner

# Classes of such primitives that pass their input on, and the names of the usual primitives.
_NAMES = {
    "CheckpointName": "name",
    "CheckpointNameFwd": "name",
    # Passes on the first of two equal values: the saved one, and the recomputed one.
    "PrimalLeftTangentRight": "copy",
}


class Internals(jax_0_7.Internals):
    """Adds the equations of `jax_remat3`."""

    def name(self, equation: Any) -> str:
        """Return the name of the primitive without `jax_remat3`."""
        if equation.primitive.name == "call_hi_primitive":
            return _NAMES.get(type(equation.params["_prim"]).__name__, "call_hi_primitive")
        return super().name(equation)

    def label(self, equation: Any) -> str:
        """Return the name that a `name` equation assigns."""
        if equation.primitive.name == "call_hi_primitive":
            return str(equation.params["_prim"].params["name"])
        return super().label(equation)

    def inner(self, equation: Any) -> Inner:
        """Return the jaxprs inside an equation."""
        if equation.primitive.name == "call_hi_primitive":
            held = self._held(equation.params["_prim"].params)
            return ("call", held, 1) if held else ("", (), 1)
        return super().inner(equation)
