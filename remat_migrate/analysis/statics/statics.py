"""What must be static at an application: the decision as data."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from ..names.module import Module
from ..needs.need import Need
from ..sites.uses import Call, Escape, Uses
from ..values.bind import Arguments
from ..values.callees import Target


@dataclass(frozen=True, eq=False, slots=True)
class Required:
    """A parameter that Python must know.

    Attributes:
        name: the parameter, or `*args`' name.
        index: the position in `*args`, or the key in `**kwargs`.
        position: the index among the wrapped function's positional parameters, `self` counted;
            None where it can only be passed by keyword.
        needs: the places where it is needed; empty when what is passed is no value of JAX.
        reason: what for, in words.
        by_value: whether it may be a static argument. JAX traces a checkpointed function once for
            equal static arguments; an object that can change is equal to itself, so a change of it
            would not be seen.
        certain: whether it is known to be one. What may be an array as well as a flag must not be
            static: it is closed over, which is right for both.
    """

    name: str
    index: int | str | None
    position: int | None
    needs: tuple[Need, ...]
    reason: str
    by_value: bool = True
    certain: bool = True


@dataclass(frozen=True, eq=False, slots=True)
class Obstacle:
    """Why the arguments cannot be made static: a reason and the place that shows it.

    `parameter` is the argument that it is about; "": all of them. `unseen`: it is not known which
    arguments Python needs, so closing over all of them is right.
    """

    reason: str
    module: Module
    node: ast.expr | ast.stmt | ast.arg
    label: str
    parameter: str = ""
    unseen: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class Statics:
    """What must be static at one application.

    Attributes:
        target: the wrapped function; None when it cannot be seen.
        required: the parameters that Python must know, in order.
        indices: their `static_argnums`, counted as the Api does; None when some of them cannot
            be passed by position.
        uses: the calls of the wrapped function and where it goes out of sight.
        bound: each call's arguments by parameter.
        obstacle: why no rewriting keeps the meaning.
        changing: a name that the function reads from around it and that may change between calls.
        others: what must be static of the other functions that may be wrapped: the same indices.
        open_ended: whether the functions that may be wrapped have different signatures, or are not
            all known, so that nothing can be written after the signature of one.
    """

    target: Target | None
    required: tuple[Required, ...] = ()
    indices: tuple[int, ...] | None = ()
    uses: Uses = field(default_factory=Uses)
    bound: tuple[tuple[Call, Arguments], ...] = ()
    obstacle: Obstacle | None = None
    changing: ast.Name | None = None
    others: tuple[Statics, ...] = ()
    open_ended: bool = False

    @property
    def each(self) -> tuple[Statics, ...]:
        """The decisions for all functions that may be wrapped."""
        return self, *self.others

    @property
    def escapes(self) -> list[Escape]:
        """Where the wrapped function goes out of sight."""
        return self.uses.escapes
