"""The private APIs of JAX that measuring needs, for JAX 0.4.30 and newer.

No other module of the worker depends on the version of JAX or imports its private modules. Under
`jax_remat3`, which JAX 0.10 added, checkpoints and names are `call_hi_primitive`s.
"""

from __future__ import annotations

import functools
import importlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jax

Inner = tuple[str, tuple[Any, ...], int]

OLDEST = (0, 4, 30)
# Classes of `call_hi_primitive`s that pass their input on, and the names of the usual primitives.
_PASSED_ON = {
    "CheckpointName": "name",
    "CheckpointNameFwd": "name",
    # Passes on the first of two equal values: the saved one, and the recomputed one.
    "PrimalLeftTangentRight": "copy",
}
# Primitives that apply a jaxpr for two elements to all elements of an array.
_ELEMENTWISE = ("reduce", "reduce_window", "scatter", "select_and_scatter", "sort")


class Unsupported(Exception):
    """This version of JAX is too old, or lacks a private function."""


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
    homes: tuple[str, ...] = ("jax", "jax.ad_checkpoint", "jax._src.ad_checkpoint")

    def __init__(self) -> None:
        """Import all private names.

        Raises:
            AttributeError, ImportError: a name is missing, see `missing`.
        """
        self._used: dict[str, Any] = {
            name: getattr(importlib.import_module(module), name)
            for name, module in self.private.items()
        }
        self._is_new = _numbers(jax.__version__) >= (0, 7)

    @classmethod
    def missing(cls) -> list[str]:
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

    def dead_code_removed(self, jaxpr: Any, outputs: int | None = None) -> Any:
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

    def evaluate(self, jaxpr: Any, constants: Sequence[Any], args: Sequence[Any]) -> list[Any]:
        """Evaluate an open jaxpr."""
        outputs: list[Any] = self._used["eval_jaxpr"](jaxpr, constants, *args)
        return outputs

    # -- equations

    def name(self, equation: Any) -> str:
        """Return the name of the primitive without `jax_remat3`."""
        name = str(equation.primitive.name)
        if name == "call_hi_primitive":
            return _PASSED_ON.get(type(equation.params["_prim"]).__name__, name)
        return name

    def label(self, equation: Any) -> str:
        """Return the name that a `name` equation assigns."""
        params = equation.params
        return str(params["_prim"].params["name"] if "_prim" in params else params["name"])

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
        held = self._held(params["_prim"].params if "_prim" in params else params)
        return ("call", held, 1) if held else ("", (), 1)

    def _held(self, params: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return the jaxprs among the parameters of an equation."""
        found: list[Any] = []
        for value in params.values():
            values = value if isinstance(value, (tuple, list)) else (value,)
            # Open and closed jaxprs are different classes in some versions.
            found += [one for one in values if hasattr(one, "eqns")]
        return tuple(found)

    def scan_operands(self, params: Mapping[str, Any]) -> tuple[int, int]:
        """Return how many operands of a scan are constants, and how many are carried."""
        if "num_carry" in params:
            return params["num_consts"], params["num_carry"]
        consts, carried, _ = params["ft_in"].unpack()  # since JAX 0.12
        return len(consts), len(carried)

    def is_inlined_call(self, equation: Any) -> bool:
        """Return whether an equation is a call of a jitted function."""
        return equation.primitive.name in ("pjit", "jit", "closed_call", "core_call")

    def is_checkpoint(self, equation: Any) -> bool:
        """Return whether an equation is a checkpointed call."""
        name = equation.primitive.name
        kind = type(equation.params["_prim"]).__name__ if "_prim" in equation.params else name
        return kind.lower().startswith(("remat", "checkpoint"))

    def places(self, equation: Any) -> Iterator[tuple[str, str, int]]:
        """Yield the lines of user code that an equation comes from, the innermost first.

        Yields:
            path, function, line.
        """
        source = equation.source_info
        # JAX 0.7 and newer take a traceback.
        for frame in self._used["user_frames"](source.traceback if self._is_new else source):
            yield frame.file_name, frame.function_name, frame.start_line

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


def _numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a version of JAX, such as `0.4.30.dev1`."""
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


@functools.cache
def internals() -> Internals:
    """Return the private APIs of the installed JAX.

    Raises:
        Unsupported: it is too old, or lacks a private function, which the message names.
    """
    if _numbers(jax.__version__) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise Unsupported("measuring needs jax %s or newer, this is %s" % (oldest, jax.__version__))
    if missing := Internals.missing():
        raise Unsupported(
            "jax %s has no %s, which measuring needs" % (jax.__version__, ", ".join(missing))
        )
    return Internals()
