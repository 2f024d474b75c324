"""What must be static where a checkpoint is applied, as data."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from ..names.module import Module, Place
from ..needs.need import Need
from ..sites.calls import Call, Escape, Uses
from ..values.bind import Arguments
from ..values.callees import Target


@dataclass(frozen=True, eq=False, slots=True)
class Required:
    """A parameter that must be concrete.

    Attributes:
        name: the parameter.
        index: the position in `*args`, or the key in `**kwargs`.
        position: the index among the wrapped function's positional parameters, `self` included;
            None if it is keyword-only.
        needs: the places that need it; empty if JAX rejects what is passed.
        by_value: whether it may be a static argument. JAX traces once for equal static arguments,
            and an object that can change is equal to itself, so JAX would miss the change.
        certain: whether it is known to be a Python value. If it may be an array, the fix closes
            over it, which is right for both.
    """

    name: str
    index: int | str | None
    position: int | None
    needs: tuple[Need, ...] = ()
    by_value: bool = True
    certain: bool = True


@dataclass(frozen=True, eq=False, slots=True)
class Obstacle:
    """Why the arguments cannot be made static: a reason and the place that shows it.

    Attributes:
        reason: the reason.
        module: the module with the place.
        node: the place.
        label: what the place shows.
        parameter: the argument; empty if it is about all of them.
        unseen: whether it is unknown which arguments must be concrete, so that the fix may close
            over all of them.
    """

    reason: str
    module: Module
    node: ast.expr | ast.stmt | ast.arg
    label: str
    parameter: str = ""
    unseen: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class Statics:
    """What must be static where a checkpoint is applied.

    Attributes:
        target: the wrapped function; None if it cannot be seen.
        required: the parameters that must be concrete, in order.
        indices: their `static_argnums`, counted as the Api counts; None if some of them cannot be
            passed by position.
        uses: the calls of the wrapped function, and where it escapes the analysis.
        bound: each call's arguments by parameter.
        obstacle: why they cannot be made static.
        results: the results of JAX that must be concrete and that nothing traced goes into.
        changing: a name of outside state that the function, or one that it calls, uses and that may
            change between calls.
        open_ended: whether the functions that may be wrapped have different signatures, or are not
            all known, so that a fix must not depend on a signature.
    """

    target: Target | None
    required: tuple[Required, ...] = ()
    indices: tuple[int, ...] | None = ()
    uses: Uses = field(default_factory=Uses)
    bound: tuple[tuple[Call, Arguments], ...] = ()
    obstacle: Obstacle | None = None
    results: tuple[Need, ...] = ()
    changing: Place | None = None
    open_ended: bool = False

    @property
    def computed(self) -> list[Need]:
        """The needs of results that must be computed at compile time."""
        return [*(need for r in self.required for need in r.needs), *self.results]

    @property
    def escapes(self) -> list[Escape]:
        """Where the wrapped function escapes the analysis."""
        return self.uses.escapes
