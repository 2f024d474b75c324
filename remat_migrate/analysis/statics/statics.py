"""What must be static where a checkpoint is applied, as data, with positions and indices."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field

from ...libraries.apis import Api
from ..names.module import Module, Place
from ..needs.dependence import Key
from ..needs.need import Need
from ..sites.calls import Call, Uses
from ..sites.site import Site
from ..values.bind import Arguments, bind_call, positional_parameters
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


def bind_use(site: Site, target: Target, call: Call) -> Arguments:
    """Bind a call's arguments to the parameters of what the site wraps."""
    args, keywords = call.arguments
    skip = max(target.skip, call.skip if target.owner is not None else 0)
    return bind_call(target.function.node, args, keywords, skip)


def position_of(target: Target, name: str, index: Key | None = None) -> int | None:
    """Return the position of a parameter, `self` included; None if it is keyword-only."""
    node = target.function.node
    names = [p.arg for p in positional_parameters(node)]
    if name in names and target.given & set(names[: names.index(name)]):
        return None  # a partial gives an earlier one by keyword
    if node.args.vararg is not None and name == node.args.vararg.arg:
        return len(names) + index if isinstance(index, int) else None
    return names.index(name) if name in names else None


def static_indices(
    api: Api, target: Target, required: Iterable[Required]
) -> tuple[int, ...] | None:
    """Return the `static_argnums` of parameters; None if one cannot be passed by position."""
    found: set[int] = set()
    for item in required:
        if item.position is None:
            return None
        found.add(item.position - _first_position(api, target))
    return tuple(sorted(found))


def counted_position(api: Api, target: Target, index: int) -> int | None:
    """Return the position of the parameter that an index names; None if it names none."""
    if index >= 0:
        return index + _first_position(api, target)
    if api.negative_shift is None or index + api.negative_shift >= 0:
        return None
    if target.function.node.args.vararg is not None:
        return None  # it depends on how many arguments the call passes
    count = len(positional_parameters(target.function.node))
    return max(count + index + api.negative_shift, -1)


def _first_position(api: Api, target: Target) -> int:
    """Return the position of the parameter that index 0 names."""
    match api.counting:
        case "function":
            return target.skip
        case "method":
            return 0
    return 1


def lost_indices(api: Api, values: Iterable[int]) -> list[int]:
    """Return the negative indices that name no argument: `-1` of `flax.linen.remat`."""
    shift = api.negative_shift
    return [i for i in values if i < 0 and shift and i + shift >= 0]
