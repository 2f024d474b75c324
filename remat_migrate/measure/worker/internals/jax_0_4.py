"""JAX 0.4.30 to 0.6: checkpoints are equations `remat2` that hold a jaxpr."""

from __future__ import annotations

import importlib
from typing import Any, Iterator, List, Sequence, Tuple

Inner = Tuple[str, Tuple[Any, ...], int]


class Internals:
    """What is used of JAX's private modules, by functions whose meaning no version changes."""

    needed = (
        ("jax._src.core", "Jaxpr"),
        ("jax._src.core", "Literal"),
        ("jax._src.core", "eval_jaxpr"),
        ("jax._src.interpreters.partial_eval", "dce_jaxpr"),
        ("jax._src.source_info_util", "user_frames"),
        ("jax._src.source_info_util", "register_exclusion"),
        ("jax._src.ad_checkpoint", "saved_residuals"),
    )

    def __init__(self) -> None:
        self._core = importlib.import_module("jax._src.core")
        self._partial_eval = importlib.import_module("jax._src.interpreters.partial_eval")
        self._source_info = importlib.import_module("jax._src.source_info_util")
        self._ad_checkpoint = importlib.import_module("jax._src.ad_checkpoint")

    def exclude(self, folder: str) -> None:
        """Take lines of files below a folder for none of the user's."""
        self._source_info.register_exclusion(folder)

    def missing(self) -> List[str]:
        """Which private functions are gone."""
        return [
            "%s.%s" % (module, name)
            for module, name in self.needed
            if not hasattr(importlib.import_module(module), name)
        ]

    def opened(self, jaxpr: Any) -> Any:
        """A jaxpr without the values of its constants."""
        return getattr(jaxpr, "jaxpr", jaxpr)

    def is_literal(self, atom: Any) -> bool:
        """Whether an input of an equation is a number and no variable."""
        return isinstance(atom, self._core.Literal)

    def dead_code_removed(self, jaxpr: Any) -> Any:
        """A jaxpr without what none of its outputs needs, also inside its equations."""
        inner = self.opened(jaxpr)
        return self._partial_eval.dce_jaxpr(inner, [True] * len(inner.outvars))[0]

    def inner(self, equation: Any) -> Inner:
        """The jaxprs inside an equation: how they run, which they are, and how often.

        Returns:
            ("loop", bodies, length), ("branches", those of which one runs, 1), ("call", one, 1), or
            ("", (), 1). How often a `while` runs is not known and given as 1.
        """
        name, params = equation.primitive.name, equation.params
        if name == "scan":
            return "loop", (params["jaxpr"],), params["length"]
        if name == "while":
            return "loop", (params["body_jaxpr"], params["cond_jaxpr"]), 1
        if name == "cond":
            return "branches", tuple(params["branches"]), 1
        for key in ("jaxpr", "call_jaxpr", "fun_jaxpr"):
            if params.get(key) is not None:
                return "call", (params[key],), 1
        return "", (), 1

    def is_checkpoint(self, equation: Any) -> bool:
        """Whether an equation is a checkpoint."""
        return equation.primitive.name in ("remat2", "checkpoint")

    def is_recomputation(self, equation: Any) -> bool:
        """Whether a checkpoint is what a backward pass computes again."""
        return bool(equation.params.get("differentiated"))

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
        return self._source_info.user_frames(source_info)

    def saved_residuals(self, function: Any, *args: Any) -> List[Tuple[Any, str]]:
        """What a forward pass keeps: shape and dtype of each value, and where it comes from."""
        found: List[Tuple[Any, str]] = self._ad_checkpoint.saved_residuals(function, *args)
        return found

    def segment(
        self, jaxpr: Any, invars: Sequence[Any], outvars: Sequence[Any], equations: Sequence[Any]
    ) -> Any:
        """Some equations of a jaxpr as one of its own."""
        return self._core.Jaxpr((), list(invars), list(outvars), list(equations), jaxpr.effects)

    def evaluate(self, jaxpr: Any, constants: Sequence[Any], args: Sequence[Any]) -> List[Any]:
        """The outputs of an open jaxpr."""
        outputs: List[Any] = self._core.eval_jaxpr(jaxpr, constants, *args)
        return outputs
