"""The ways to place a checkpoint on a stage: where it is, and with which policy."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .internals import internals
from .records import BODY, PLAIN, WRAPPED
from .schedules import schedules, sizes_of

# Policies that need no names, and keep the most expensive operations. The first recomputes more.
DOTS_POLICIES = ("dots_with_no_batch_dims_saveable", "dots_saveable")
# Policies that need no names, and work on any device.
POLICIES = ("nothing_saveable", *DOTS_POLICIES, "everything_saveable")
# Functions that make policies.
_ONLY = "save_only_these_names"
_OF_NAMES = (
    _ONLY,
    "save_any_names_but_these",
    "save_anything_except_these_names",
    "save_and_offload_only_these_names",
    "save_from_both_policies",
)
_TO_HOST = 'offload_src="device", offload_dst="pinned_host"'


class Kind(NamedTuple):
    """A way to place a checkpoint on a stage.

    Attributes:
        kind: no checkpoint, one on the stage, one on the body of its loop, or `segments`.
        policy: the policy as an attribute of `jax.checkpoint_policies`, called if it takes
            arguments: `dots_saveable`, `save_only_these_names("h")`; or None.
    """

    kind: str = PLAIN
    policy: str | None = None

    @property
    def is_on_loop(self) -> bool:
        """Whether it is on the body or on segments of a loop."""
        return self.kind == BODY or bool(sizes_of(self.kind))

    @property
    def options(self) -> dict[str, Any]:
        """The options of the checkpoint."""
        if self.policy is None:
            return {}
        return {"policy": _policy(self.policy)}


@functools.cache
def _policy(text: str) -> Callable[..., Any]:
    """Return a policy; the same object for the same text, as JAX caches by it."""
    found: Callable[..., Any] = eval(text, {}, _policies())
    return found


@functools.cache
def _policies() -> dict[str, Any]:
    """Return the policies of the installed JAX, and the functions that make some."""
    names = [name for name in dir(jax.checkpoint_policies) if name[0] != "_"]
    return {name: getattr(jax.checkpoint_policies, name) for name in names}


def every_policy(names: Sequence[str]) -> list[str]:
    """Return each policy of the installed JAX once; those that take names, with these."""
    found: dict[int, str] = {}
    by_name = _policies()
    for policy in (*POLICIES, *by_name):
        found.setdefault(id(by_name[policy]), policy)
    arguments: dict[str, list[str]] = {name: [] for name in _OF_NAMES}
    if names:
        every = ", ".join(f'"{name}"' for name in names)
        arguments = {name: [every] for name in _OF_NAMES}
        arguments[_ONLY] = [every, *(f'"{name}"' for name in names if len(names) > 1)]
        only = f"{_ONLY}({every})"
        arguments["save_from_both_policies"] = [f"{policy}, {only}" for policy in DOTS_POLICIES]
        arguments["save_and_offload_only_these_names"] = [
            f"names_which_can_be_saved=[], names_which_can_be_offloaded=[{every}], {_TO_HOST}"
        ]
    arguments["offload_dot_with_no_batch_dims"] = [_TO_HOST]
    made = {name: [f"{name}({one})" for one in each] for name, each in arguments.items()}
    return [text for policy in found.values() for text in made.get(policy, [policy])]


def available_kinds(jaxpr: Any, steps: int | None, policies: Sequence[str]) -> tuple[Kind, ...]:
    """Return the ways to place a checkpoint on a stage that differ, starting with none.

    Args:
        jaxpr: the stage.
        steps: steps of its loop, 0 if that is in another function, None if it has none.
        policies: policies to try.
    """
    distinct: dict[Any, str | None] = {(): None}
    for policy in policies:
        saved = _saved(jaxpr, Kind(WRAPPED, policy).options["policy"])
        distinct.setdefault(tuple((id(one), str(how)) for one, how in saved), policy)
    if steps is None:
        return (Kind(), *(Kind(WRAPPED, policy) for policy in distinct.values()))
    # A policy for the whole loop would save the products of all layers.
    bodies = (Kind(BODY, policy) for policy in distinct.values() if steps)
    return (Kind(), Kind(WRAPPED), *bodies, *map(Kind, schedules(steps)))


def can_differentiate(jaxpr: Any, policy: str) -> bool:
    """Return whether JAX can differentiate a checkpoint with a policy on any part of a program.

    JAX 0.10 raises TypeError for a policy that saves complex values.
    """
    saved = _saved(jaxpr, Kind(WRAPPED, policy).options["policy"])
    return not any(
        jnp.issubdtype(variable.aval.dtype, np.complexfloating)
        for equation, _ in saved
        for variable in equation.outvars
        if hasattr(variable.aval, "dtype")
    )


def _saved(jaxpr: Any, policy: Callable[..., Any]) -> Iterator[tuple[Any, Any]]:
    """Yield the equations that a policy does not recompute, and what it decides."""
    for equation in internals().opened(jaxpr).eqns:
        _, bodies, _ = internals().inner(equation)
        for body in bodies:
            yield from _saved(body, policy)
        avals = (atom.aval for atom in equation.invars)
        if not bodies and (decision := policy(equation.primitive, *avals, **equation.params)):
            yield equation, decision
