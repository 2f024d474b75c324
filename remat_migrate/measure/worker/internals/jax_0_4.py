"""JAX 0.4.30 to 0.6: a checkpoint is an equation that holds a jaxpr, as a jitted function is."""

from __future__ import annotations

import importlib
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

import jax

Inner = Tuple[str, Tuple[Any, ...], int]

# What their jaxprs say about two entries, they do to all entries of an array.
_BY_ENTRY = ("reduce", "reduce_window", "scatter", "select_and_scatter", "sort")


class Internals:
    """What is used of JAX's private modules, by functions whose meaning no version changes."""

    # Nothing private is used but these: its name, and the module that it stands in.
    private: Mapping[str, str] = {
        "Jaxpr": "jax._src.core",
        "Literal": "jax._src.core",
        "eval_jaxpr": "jax._src.core",
        "dce_jaxpr": "jax._src.interpreters.partial_eval",
        "user_frames": "jax._src.source_info_util",
        "register_exclusion": "jax._src.source_info_util",
        "name_p": "jax._src.ad_checkpoint",
    }

    # Where checkpoint functions stand, under the names `checkpoint` and `remat`.
    homes: Tuple[str, ...] = ("jax", "jax.ad_checkpoint", "jax._src.ad_checkpoint")

    def __init__(self) -> None:
        """Look all of `private` up.

        Raises:
            AttributeError, ImportError: one is gone; `missing` says which.
        """
        self._used: Dict[str, Any] = {
            name: getattr(importlib.import_module(module), name)
            for name, module in self.private.items()
        }

    @classmethod
    def missing(cls) -> List[str]:
        """Which private functions are gone."""
        return [
            module + "." + name
            for name, module in cls.private.items()
            if not hasattr(_module(module), name)
        ]

    def exclude(self, folder: str) -> None:
        """Take lines of files below a folder for none of the user's."""
        self._used["register_exclusion"](folder)

    # -- jaxprs

    def opened(self, jaxpr: Any) -> Any:
        """A jaxpr without the values of its constants."""
        return getattr(jaxpr, "jaxpr", jaxpr)

    def is_literal(self, atom: Any) -> bool:
        """Whether an input of an equation is a number and no variable."""
        return isinstance(atom, self._used["Literal"])

    def dead_code_removed(self, jaxpr: Any, outputs: Optional[int] = None) -> Any:
        """A jaxpr without what none of its outputs needs, also inside its equations.

        With a number of outputs, only the first so many are kept.
        """
        inner = self.opened(jaxpr)
        count = len(inner.outvars)
        kept = count if outputs is None else outputs
        return self._used["dce_jaxpr"](inner, [place < kept for place in range(count)])[0]

    def segment(
        self, jaxpr: Any, invars: Sequence[Any], outvars: Sequence[Any], equations: Sequence[Any]
    ) -> Any:
        """Some equations of a jaxpr as one of its own."""
        return self._used["Jaxpr"]((), list(invars), list(outvars), list(equations), jaxpr.effects)

    def evaluate(self, jaxpr: Any, constants: Sequence[Any], args: Sequence[Any]) -> List[Any]:
        """The outputs of an open jaxpr."""
        outputs: List[Any] = self._used["eval_jaxpr"](jaxpr, constants, *args)
        return outputs

    # -- equations

    def name(self, equation: Any) -> str:
        """What an equation does, as its primitive is called."""
        return str(equation.primitive.name)

    def label(self, equation: Any) -> str:
        """The name that an equation called `name` gives."""
        return str(equation.params["name"])

    def inner(self, equation: Any) -> Inner:
        """The jaxprs inside an equation: how they run, which they are, and how often.

        Returns:
            ("loop", bodies, length), ("branches", those of which one runs, 1), ("call", those that
            all run, 1), or ("", (), 1). How often a `while` runs is not known and given as 1.
        """
        name, params = equation.primitive.name, equation.params
        if name == "scan":
            return "loop", (params["jaxpr"],), params["length"]
        if name == "while":
            return "loop", (params["body_jaxpr"], params["cond_jaxpr"]), 1
        if name == "cond":
            return "branches", tuple(params["branches"]), 1
        if name.startswith(_BY_ENTRY):
            return "", (), 1
        if name == "custom_linear_solve":
            # What is solved runs in what solves it.
            return "call", (params["jaxprs"].solve,), 1
        held = self._held(params)
        return ("call", held, 1) if held else ("", (), 1)

    def _held(self, params: Mapping[str, Any]) -> Tuple[Any, ...]:
        """The jaxprs among the parameters of an equation."""
        found: List[Any] = []
        for value in params.values():
            values = value if isinstance(value, (tuple, list)) else (value,)
            # Of the open and the closed ones, which are two classes in some versions.
            found += [one for one in values if hasattr(one, "eqns")]
        return tuple(found)

    def is_inlined_call(self, equation: Any) -> bool:
        """Whether an equation only groups others, as a jitted function in a jaxpr does."""
        return equation.primitive.name in ("pjit", "jit", "closed_call", "core_call")

    def places(self, equation: Any) -> Iterator[Tuple[str, str, int]]:
        """The lines of user code that an equation comes from, the innermost first.

        Yields:
            path, function, line.
        """
        for frame in self._frames(equation.source_info):
            yield frame.file_name, frame.function_name, frame.start_line

    def _frames(self, source_info: Any) -> Any:
        return self._used["user_frames"](source_info)

    # -- programs

    def named(self, array: Any, name: str) -> Any:
        """An array with a name, an equation `name` whatever flags are set."""
        return self._used["name_p"].bind(array, name=name)

    def costs(self, compiled: Any) -> Mapping[str, float]:
        """What the compiler says that a compiled program costs, by what is counted."""
        costs = compiled.cost_analysis()
        if isinstance(costs, list):  # one for each computation, up to jax 0.4
            costs = costs[0] if costs else {}
        found: Mapping[str, float] = costs or {}
        return found

    def set_flag(self, name: str, value: Any) -> bool:
        """Give a flag of JAX a value; False if this version has no such flag."""
        if name not in jax.config.values:
            return False
        update: Any = jax.config.update
        update(name, value)
        return True


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None
