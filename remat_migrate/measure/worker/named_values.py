"""Name the values that a checkpoint policy may save: results of costly lines of the user's code.

A value is worth saving if it takes many operations for its bytes, and if the backward pass needs
it. It can be named in the source if the line assigns it to a variable: `h = x @ w` becomes
`h = checkpoint_name(x @ w, "block_h")`.
"""

from __future__ import annotations

import ast
import copy
import functools
import linecache
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .entry import shape_of
from .inlining import Frames
from .instruments.flops import flops_of_equation
from .instruments.liveness import size
from .internals import internals
from .records import NamedValue

# Operations per byte below which a value is not worth a name: reading it takes as long.
_LEAST = 8.0
# Primitives whose backward pass does not need their operands.
_ELEMENTWISE = ("add", "sub", "neg", "add_any", "convert_element_type", "copy", "name")
_SHAPES = ("reshape", "transpose", "squeeze", "expand_dims", "broadcast_in_dim", "concatenate")
_LINEAR = frozenset([*_ELEMENTWISE, *_SHAPES, "slice", "reduce_sum"])


class NamedValues:
    """Names values, each line once.

    Attributes:
        found: the values, by name.
    """

    def __init__(self, frames_of: Callable[[Any], Frames]) -> None:
        """Remember how to find the user's frames of an equation, the innermost first."""
        self.found: dict[str, NamedValue] = {}
        self._names: dict[tuple[str, str, int], str | None] = {}
        self._frames_of = frames_of

    def added(self, equations: Sequence[Any]) -> list[Any]:
        """Return equations with a name on each value that is worth one, in bodies of scans, too."""
        equations = [self._with_body(equation) for equation in equations]
        places = [next(iter(self._frames_of(equation)), None) for equation in equations]
        needed = _needed(equations)
        known: dict[int, int] = {}
        result: list[Any] = []
        # The operations that saving a value avoids: those of the last costly equation, if only
        # linear ones follow. The backward pass of others needs what they read, not their result.
        avoided: dict[Any, int] = {}
        for equation, place, following in zip(equations, places, [*places[1:], None]):
            result.append(equation)
            costs = flops_of_equation(equation, known)
            if _is_linear(equation):
                reads = (atom for atom in equation.invars if not internals().is_literal(atom))
                costs = max((avoided.get(atom, 0) for atom in reads), default=0)
            avoided.update(dict.fromkeys(equation.outvars, costs))
            if following == place:
                continue
            avoided = {}
            if not place or not equation.outvars or equation.outvars[-1] not in needed:
                continue
            made = equation.outvars[-1]
            if costs > _LEAST * size(made.aval) > 0:
                if jnp.issubdtype(made.aval.dtype, np.complexfloating):
                    continue  # JAX 0.10 cannot differentiate a policy that saves it
                name = self._name(place, size(made.aval), costs)
                if name is not None:
                    result[-1:] = _named(equation, name)
        return result

    def _with_body(self, equation: Any) -> Any:
        if equation.primitive.name != "scan":
            return equation
        body = equation.params["jaxpr"]
        opened = internals().opened(body)
        equations = self.added(opened.eqns)
        if len(equations) == len(opened.eqns):
            return equation
        named = body.replace(jaxpr=opened.replace(eqns=equations))
        return equation.replace(params=dict(equation.params, jaxpr=named))

    def _name(self, place: tuple[str, str, int], count: int, flops: int) -> str | None:
        path, function, line = place
        if place not in self._names:
            target = _assigned(path, line)
            name = None
            if target:
                inside = [one for one in function.split(".") if one.strip("_") == one.strip("<>")]
                name = "_".join([*inside[-1:], target])
                if name in self.found:
                    name += "_%d" % line
            self._names[place] = name
        name = self._names[place]
        if name is not None:
            before = self.found.get(name, NamedValue(name, Path(path), function, line, 0, 0))
            self.found[name] = before._replace(
                bytes=max(count, before.bytes), flops=max(flops, before.flops)
            )
        return name


def _needed(equations: Sequence[Any]) -> set[Any]:
    """Return the values that the backward pass needs, as operands or through linear operations."""
    found: set[Any] = set()
    for equation in reversed(equations):
        reads = [atom for atom in equation.invars if not internals().is_literal(atom)]
        passes_on = len(reads) == 1 and not found.isdisjoint(equation.outvars)
        if passes_on or not _is_linear(equation):
            found.update(reads)
    return found


def _is_linear(equation: Any) -> bool:
    """Return whether the backward pass of an equation does not need its operands."""
    name = equation.primitive.name
    scales = name in ("mul", "div") and any(map(internals().is_literal, equation.invars))
    return name in _LINEAR or scales


def _named(equation: Any, name: str) -> list[Any]:
    """Return an equation followed by a name of its output, which keeps its variable."""
    *others, made = equation.outvars
    unnamed = copy.copy(made)
    shape = shape_of(made.aval.shape, made.aval.dtype)
    [naming] = (
        internals().opened(jax.make_jaxpr(lambda value: internals().named(value, name))(shape)).eqns
    )
    return [
        equation.replace(outvars=[*others, unnamed]),
        naming.replace(invars=[unnamed], outvars=[made], source_info=equation.source_info),
    ]


def _assigned(path: str, line: int) -> str:
    """Return the variable that the statement at a line assigns; empty if it is not one."""
    tree = _tree_of(path)
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.Assign) and node.lineno <= line <= (node.end_lineno or 0):
            if len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                return node.targets[0].id
    return ""


def names_in(equations: Sequence[Any]) -> list[str]:
    """Return the names of values that equations compute, in bodies of scans, too."""
    found: dict[str, None] = {}
    for equation in equations:
        if internals().name(equation) == "name":
            found[internals().label(equation)] = None
        _, bodies, _ = internals().inner(equation)
        for body in bodies:
            found.update(dict.fromkeys(names_in(internals().opened(body).eqns)))
    return list(found)


@functools.lru_cache(maxsize=64)
def _tree_of(path: str) -> ast.Module | None:
    """Parse a file that was imported; None if it cannot be read."""
    text = "".join(linecache.getlines(path))
    return ast.parse(text) if text else None
