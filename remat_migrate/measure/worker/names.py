"""Explain what `checkpoint_name` and policies save: what each policy matches, and why nothing.

Each policy is watched while the gradient is traced. Whether the gradient needs a value at all shows
when it is traced with policies that save only this value, and compared with policies that save
nothing.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax

from . import interception
from .entry import Entry
from .instruments.liveness import VIEWS, size
from .interception import Decision, Site
from .internals import internals
from .records import Cost, NameUse, PolicyUse
from .sites import trace

_POLICIES = jax.checkpoint_policies
_SAVED, _OFFLOADED, _NOT = "saved", "offloaded", "not-saved"


class _Value(NamedTuple):
    """A named value of the forward pass.

    Attributes:
        path: file of the line that names it.
        line: the line.
        bytes: its bytes, in all iterations of loops.
        is_read: whether it is under a checkpoint.
        is_hidden: whether it is inside a function with a differentiation rule of its own.
        is_returned: whether the checkpointed function returns it.
        is_input: whether it is an argument of the checkpointed function.
    """

    path: str
    line: int
    bytes: int
    is_read: bool
    is_hidden: bool
    is_returned: bool
    is_input: bool


class _Watch:
    """Records what policies decide.

    Attributes:
        asked: for each name, the decisions on it by site, and the bytes of a value.
        matched: what the policy of each site saves.
        products: whether each product that the policy was asked about has batch dimensions.
    """

    def __init__(self) -> None:
        self.asked: dict[str, dict[Site, tuple[str, int]]] = {}
        self.matched: dict[Site, dict[str, None]] = {}
        self.products: dict[Site, list[bool]] = {}
        # The same function for the same policy, as JAX caches by it.
        self.watched = functools.cache(self._watched)

    def _watched(self, site: Site, policy: Any) -> Callable[..., Any]:
        def decide(primitive: Any, *avals: Any, **params: Any) -> Any:
            decision = policy(primitive, *avals, **params) if policy else False
            state = _state(decision)
            what = str(primitive)
            if what == "name":
                what = f'"{params["name"]}"'
                self.asked.setdefault(params["name"], {})[site] = state, size(avals[0])
            if what == "dot_general":
                has_batch = bool(params["dimension_numbers"][1][0])
                self.products.setdefault(site, []).append(has_batch)
            if state != _NOT:
                self.matched.setdefault(site, {})[what] = None
            return decision

        return decide


def _state(decision: Any) -> str:
    if type(decision).__name__ == "Offloadable":
        return _OFFLOADED
    return _SAVED if decision is True or type(decision).__name__ == "SaveableType" else _NOT


# A checkpoint whose policy saves nothing.
_NOTHING = Decision(policy=lambda site, own: _POLICIES.nothing_saveable)


def explained(entry: Entry) -> tuple[list[NameUse], list[PolicyUse]]:
    """Return what becomes of each name in a function, and what each of its policies saves."""
    with interception.plan({}):
        values: dict[str, list[_Value]] = {}
        jaxpr = internals().opened(jax.make_jaxpr(entry.forward)(*entry.shapes))
        for name, value in _values(jaxpr, 1, is_read=False, is_hidden=False, returned=()):
            values.setdefault(name, []).append(value)
    own = interception.policies()
    if not values and not own:
        return [], []
    watch = _Watch()
    cost = trace(entry, {}, Decision(policy=watch.watched))
    bare = trace(entry, {}, _NOTHING)
    policies = []
    for site, policy in own.items():
        without = trace(entry, {site: _NOTHING}) if len(own) > 1 else bare
        policies.append(_policy_use(site, policy, watch, cost, without))
        for name in policies[-1].absent:
            values.setdefault(name, [])
    names = [
        _name_use(entry, name, values.get(name, []), watch, own, cost, bare)
        for name in dict.fromkeys([*values, *watch.asked])
    ]
    return names, policies


def _policy_use(site: Site, policy: Any, watch: _Watch, cost: Cost, without: Cost) -> PolicyUse:
    """Return what a policy saves, given the costs with it and without it."""
    listed = dict.fromkeys(_names_of(policy))
    absent = tuple(name for name in listed if site not in watch.asked.get(name, {}))
    kept = None
    if cost.residual_bytes is not None and without.residual_bytes is not None:
        kept = cost.residual_bytes - without.residual_bytes
    matched = tuple(watch.matched.get(site, ()))
    place = Path(site.location.path), site.location.line, _text(policy)
    products = watch.products.get(site, ())
    is_batched = not matched and bool(products) and all(products)
    avoided, peak = without.flops - cost.flops, cost.peak_bytes - without.peak_bytes
    return PolicyUse(*place, kept, peak, avoided, matched, absent, is_batched)


def _name_use(
    entry: Entry,
    name: str,
    found: list[_Value],
    watch: _Watch,
    own: Collection[Site],
    cost: Cost,
    bare: Cost,
) -> NameUse:
    """Return what becomes of a name, given the costs with all policies and without any."""
    asked = watch.asked.get(name, {})
    states = {state for state, _ in asked.values()}
    with_policy = [site for site in asked if site in own]
    only = _changed(name, is_offloaded=_OFFLOADED in states)
    is_residual = bool(asked) and trace(entry, {}, only) != bare
    if is_residual and with_policy and states == {_NOT}:
        # The policy may save the operation whose result has the name.
        if trace(entry, {}, _changed(name, keeps_own=True)) == cost:
            states = {_SAVED}
    reason = _reason(found, states, with_policy, is_residual=is_residual)
    state = _NOT if reason else _OFFLOADED if _OFFLOADED in states else _SAVED
    path, line = (Path(found[0].path), found[0].line) if found else (None, 0)
    count = sum(one.bytes for one in found) or max((n for _, n in asked.values()), default=0)
    return NameUse(name, path, line, count, state, reason)


def _changed(name: str, *, keeps_own: bool = False, is_offloaded: bool = False) -> Decision:
    """Return the decision that policies save a name, and nothing else or what they save anyway."""
    only = _POLICIES.save_only_these_names(name)
    if is_offloaded:
        only = _POLICIES.save_and_offload_only_these_names(
            names_which_can_be_saved=[],
            names_which_can_be_offloaded=[name],
            offload_src="device",
            offload_dst="pinned_host",
        )

    def policy(site: Site, own: Any) -> Any:
        if not (keeps_own and own):
            return only

        def either(primitive: Any, *avals: Any, **params: Any) -> Any:
            return only(primitive, *avals, **params) or own(primitive, *avals, **params)

        return either

    return Decision(policy=policy)


def _reason(
    found: list[_Value], states: Collection[str], own: Collection[Site], *, is_residual: bool
) -> str:
    """Return why nothing with a name is saved; the empty string if it is."""
    if not states:
        if not found:
            return "no value has this name"
        if not any(one.is_read for one in found):
            return "it is outside all checkpoints, which alone read names"
        if any(one.is_hidden for one in found):
            return (
                "it is inside a function with its own differentiation rule (jax.custom_vjp,"
                " jax.custom_jvp), and policies do not see inside it: name the value in the rule"
            )
        return "the gradient does not depend on it"
    if not is_residual:
        if any(one.is_returned for one in found):
            return (
                "the checkpointed function returns it, and its own gradient does not need it; what"
                " reads it outside keeps it"
            )
        if any(one.is_input for one in found):
            return "it is an input of the checkpointed function, which keeps inputs without a name"
        return "it is no residual: the gradient does not need its value"
    if states == {_NOT}:
        return "the policy does not save it" if own else "its checkpoint has no policy"
    return ""


def _values(
    jaxpr: Any, times: int, *, is_read: bool, is_hidden: bool, returned: Collection[Any]
) -> Iterator[tuple[str, _Value]]:
    """Yield the named values in an open jaxpr that runs a number of times.

    Args:
        jaxpr: the jaxpr.
        times: how often it runs.
        is_read: whether it is under a checkpoint.
        is_hidden: whether a differentiation rule replaces it.
        returned: its variables that the checkpointed function returns.
    """
    given = set(returned)
    for equation in reversed(jaxpr.eqns):
        if internals().name(equation) in VIEWS and not given.isdisjoint(equation.outvars):
            given.update(equation.invars[:1])
    for equation in jaxpr.eqns:
        name = internals().name(equation)
        made = equation.outvars[:1]
        if name == "name":
            path, _, line = next(internals().places(equation), ("", "", 0))
            count = times * size(made[0].aval)
            is_returned = made[0] in given
            is_input = is_read and equation.invars[0] in jaxpr.invars
            value = _Value(path, line, count, is_read, is_hidden, is_returned, is_input)
            yield internals().label(equation), value
        _, bodies, again = internals().inner(equation)
        for body in map(internals().opened, bodies):
            is_checkpoint = internals().is_checkpoint(equation)
            pairs = zip(equation.outvars, body.outvars)
            yield from _values(
                body,
                times * again,
                is_read=is_read or is_checkpoint,
                is_hidden=is_hidden or name.startswith(("custom_vjp", "custom_jvp")),
                returned=body.outvars if is_checkpoint else [o for v, o in pairs if v in given],
            )


def _names_of(policy: Any) -> Iterator[str]:
    """Yield the names that a policy was made with."""
    cells = [cell.cell_contents for cell in getattr(policy, "__closure__", None) or ()]
    for value in (*cells, *getattr(policy, "__dict__", {}).values()):
        if callable(value):
            yield from _names_of(value)
        elif isinstance(value, (list, tuple, set, frozenset)):
            yield from sorted(one for one in value if isinstance(one, str))


def _text(policy: Any) -> str:
    """Return the name of a policy, or of the function that made it."""
    of_jax = (n for n in reversed(dir(_POLICIES)) if getattr(_POLICIES, n) is policy)
    name = next(of_jax, None) or getattr(policy, "__qualname__", None)
    # Some versions of JAX make instances of classes such as `SaveOnlyTheseNames`.
    name = name or re.sub("(?<=.)(?=[A-Z])", "_", type(policy).__name__).lower()
    return str(name).partition(".")[0]
