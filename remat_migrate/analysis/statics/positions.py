"""Positions of parameters, and the indices that name them in `static_argnums`."""

from __future__ import annotations

from collections.abc import Iterable

from ...libraries.apis import Api
from ..needs.dependence import Key
from ..sites.calls import Call
from ..sites.site import Site
from ..values.bind import Arguments, bind_call, positional_parameters
from ..values.callees import Target
from .statics import Required


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
