"""Loops that JAX compiles: which functions are their bodies, and whether the compiler sees a loop.

A scan that is unrolled or has length 1 is straight-line code to the compiler, so what applies to
loop bodies does not apply to it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from ...libraries.transforms import Loop
from ..names.module import Module
from ..values.callees import layers
from ..values.evaluator import Evaluator
from ..values.values import Applied, Value, Values
from .transformed_functions import Transformed, TransformUse, subjects

# Whether the compiler sees a loop: it does, it does not, or that depends on something unknown.
Answer = Literal["yes", "no", "unclear"]
# Returns the integers that an expression may be; None if others are possible.
Numbers = Callable[[Module, ast.expr], set[int] | None]


@dataclass(frozen=True, eq=False, slots=True)
class LoopUse(TransformUse):
    """One loop in the source.

    Attributes:
        loop: the kind of loop.
        bodies: what its body may be.
        compiled: whether the compiler sees a loop.
    """

    loop: Loop
    bodies: Values
    compiled: Answer


def find_loops(uses: Iterable[Transformed], evaluator: Evaluator) -> Iterator[LoopUse]:
    """Yield the transformations of a module that are loops."""
    for use in uses:
        if isinstance(use.transform, Loop):
            yield LoopUse(
                use, use.transform, subjects(use, evaluator), compiles_to_loop(use, literal)
            )


def checkpoints_around(value: Value) -> Iterator[Applied]:
    """Return the checkpoints around a function, outermost first."""
    return (layer for layer in layers(value) if isinstance(layer, Applied))


def compiles_to_loop(use: Transformed, numbers: Numbers) -> Answer:
    """Return whether the compiler sees a loop, given what its length and unrolling may be."""
    loop = use.transform
    assert isinstance(loop, Loop)
    if not loop.compiled_once:
        return "no"
    if use.spread:
        return "unclear"
    length = use.argument(*loop.length) if loop.length is not None else None
    if length is not None:
        if any(number <= 1 for number in numbers(use.module, length) or ()):
            return "no"
    if loop.bounds is not None:
        ends = [numbers(use.module, use.args[place]) for place in loop.bounds if use.args[place:]]
        if len(ends) == 2 and ends[0] and ends[1] and min(ends[1]) - max(ends[0]) <= 1:
            return "no"
    if loop.unroll is not None:
        unroll = use.argument(loop.unroll, loop.unroll_position)
        if isinstance(unroll, ast.Constant) and isinstance(unroll.value, bool):
            return "no" if unroll.value else "yes"  # `True` unrolls the whole loop; `False` means 1
        if unroll is not None and length is not None and ast.dump(unroll) == ast.dump(length):
            return "no"
        if unroll is not None:
            rounds = numbers(use.module, unroll)
            if rounds is None:
                return "unclear"
            return "yes" if all(number <= 1 for number in rounds) else "no"
    return "yes"


def literal(module: Module, node: ast.expr) -> set[int] | None:
    """Return the value of a literal integer, the only one that is known without the project."""
    match node:
        case ast.Constant(value=int(number)) if not isinstance(number, bool):
            return {number}
    return None
