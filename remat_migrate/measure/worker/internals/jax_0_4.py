"""JAX 0.4.30 to 0.6: a checkpoint is an equation that holds a jaxpr."""

from __future__ import annotations

import importlib
import os
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

import jax

Inner = Tuple[str, Tuple[Any, ...], int]

# Primitives that apply a jaxpr for two elements to all elements of an array.
_ELEMENTWISE = ("reduce", "reduce_window", "scatter", "select_and_scatter", "sort")


class Internals:
    """Version-independent access to the private modules of JAX."""

    # All private names that are used, and their modules.
    private: Mapping[str, str] = {
        "Jaxpr": "jax._src.core",
        "Literal": "jax._src.core",
        "eval_jaxpr": "jax._src.core",
        "dce_jaxpr": "jax._src.interpreters.partial_eval",
        "user_frames": "jax._src.source_info_util",
        "register_exclusion": "jax._src.source_info_util",
        "name_p": "jax._src.ad_checkpoint",
    }

    # Modules that define `checkpoint` and `remat`.
    homes: Tuple[str, ...] = ("jax", "jax.ad_checkpoint", "jax._src.ad_checkpoint")

    def __init__(self) -> None:
        """Import all private names.

        Raises:
            AttributeError, ImportError: a name is missing, see `missing`.
        """
        self._used: Dict[str, Any] = {
            name: getattr(importlib.import_module(module), name)
            for name, module in self.private.items()
        }

    @classmethod
    def missing(cls) -> List[str]:
        """Return the private names that this version of JAX lacks."""
        return [
            module + "." + name
            for name, module in cls.private.items()
            if not hasattr(_module(module), name)
        ]

    def exclude(self, folder: str) -> None:
        """Exclude files below a folder from user frames."""
        self._used["register_exclusion"](folder)

    # -- jaxprs

    def opened(self, jaxpr: Any) -> Any:
        """Return the open jaxpr of an open or closed jaxpr."""
        return getattr(jaxpr, "jaxpr", jaxpr)

    def is_literal(self, atom: Any) -> bool:
        """Return whether an input of an equation is a literal."""
        return isinstance(atom, self._used["Literal"])

    def dead_code_removed(self, jaxpr: Any, outputs: Optional[int] = None) -> Any:
        """Remove dead code from a jaxpr and from the jaxprs inside it.

        Keeps the given number of outputs, or all.
        """
        inner = self.opened(jaxpr)
        count = len(inner.outvars)
        kept = count if outputs is None else outputs
        return self._used["dce_jaxpr"](inner, [place < kept for place in range(count)], True)[0]

    def segment(
        self, jaxpr: Any, invars: Sequence[Any], outvars: Sequence[Any], equations: Sequence[Any]
    ) -> Any:
        """Return a jaxpr of some equations of a jaxpr."""
        return self._used["Jaxpr"]((), list(invars), list(outvars), list(equations), jaxpr.effects)

    def evaluate(self, jaxpr: Any, constants: Sequence[Any], args: Sequence[Any]) -> List[Any]:
        """Evaluate an open jaxpr."""
        outputs: List[Any] = self._used["eval_jaxpr"](jaxpr, constants, *args)
        return outputs

    # -- equations

    def name(self, equation: Any) -> str:
        """Return the name of the primitive."""
        return str(equation.primitive.name)

    def label(self, equation: Any) -> str:
        """Return the name that a `name` equation assigns."""
        return str(equation.params["name"])

    def inner(self, equation: Any) -> Inner:
        """Return the jaxprs inside an equation: how they run, the jaxprs, and how often they run.

        Returns:
            ("loop", bodies, length), ("branches", jaxprs of which one runs, 1), ("call", jaxprs
            that all run, 1), or ("", (), 1). The length of a `while` is unknown and given as 1.
        """
        name, params = equation.primitive.name, equation.params
        if name == "scan":
            return "loop", (params["jaxpr"],), params["length"]
        if name == "while":
            return "loop", (params["body_jaxpr"], params["cond_jaxpr"]), 1
        if name == "cond":
            return "branches", tuple(params["branches"]), 1
        if name.startswith(_ELEMENTWISE):
            return "", (), 1
        if name == "custom_linear_solve":
            # The other jaxprs run as part of `solve`.
            return "call", (params["jaxprs"].solve,), 1
        held = self._held(params)
        return ("call", held, 1) if held else ("", (), 1)

    def _held(self, params: Mapping[str, Any]) -> Tuple[Any, ...]:
        """Return the jaxprs among the parameters of an equation."""
        found: List[Any] = []
        for value in params.values():
            values = value if isinstance(value, (tuple, list)) else (value,)
            # Open and closed jaxprs are different classes in some versions.
            found += [one for one in values if hasattr(one, "eqns")]
        return tuple(found)

    def is_inlined_call(self, equation: Any) -> bool:
        """Return whether an equation is a call of a jitted function."""
        return equation.primitive.name in ("pjit", "jit", "closed_call", "core_call")

    def places(self, equation: Any) -> Iterator[Tuple[str, str, int]]:
        """Yield the lines of user code that an equation comes from, the innermost first.

        Yields:
            path, function, line.
        """
        for frame in self._frames(equation.source_info):
            yield frame.file_name, frame.function_name, frame.start_line

    def _frames(self, source_info: Any) -> Any:
        return self._used["user_frames"](source_info)

    # -- programs

    def named(self, array: Any, name: str) -> Any:
        """Name an array by a `name` equation, whatever flags are set."""
        return self._used["name_p"].bind(array, name=name)

    def set_flag(self, name: str, value: Any) -> bool:
        """Set a flag of JAX, and return whether this version has it."""
        if name not in jax.config.values:
            if name != "jax_num_cpu_devices":
                return False
            # Without this option, the flag of XLA must be set before JAX starts its backend.
            flag = " --xla_force_host_platform_device_count=%d" % value
            os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + flag
            return True
        update: Any = jax.config.update
        update(name, value)
        return True


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None
