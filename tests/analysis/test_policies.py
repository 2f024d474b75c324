"""The table of policies against the installed JAX, in both directions."""

from __future__ import annotations

import importlib
from typing import Any

import pytest
from analysis.test_apis import installed, jax_version, parameters

from remat_migrate.analysis.policies.known_policies import (
    ANSWER_IS_CHECKED_SINCE,
    POLICY_OPTION,
    TAKES_POLICY,
    Policy,
    available,
)
from remat_migrate.libraries.apis import APIS

jax = pytest.importorskip("jax")


def here() -> list[Policy]:
    return list(available(jax_version()))


HERE = pytest.mark.parametrize("policy", here(), ids=lambda policy: policy.name)
MADE = pytest.mark.parametrize(
    "policy", [p for p in here() if p.is_made], ids=lambda policy: policy.name
)


def test_names_match_the_library() -> None:
    library = {name for name in vars(jax.checkpoint_policies) if not name.startswith("_")}
    assert {policy.name for policy in here()} == library


@MADE
def test_the_signature_of_a_factory(policy: Policy) -> None:
    found = parameters(getattr(jax.checkpoint_policies, policy.name))
    star = [n for n, p in found.items() if p.kind is p.VAR_POSITIONAL]
    assert star == [names.name for names in policy.names if names.star]
    keyword_only = tuple(n for n, p in found.items() if p.kind is p.KEYWORD_ONLY)
    assert keyword_only == policy.keyword_only
    rest = tuple(n for n in found if n not in star and n not in keyword_only)
    assert rest == policy.parameters
    assert {names.name for names in policy.names} <= set(found)
    assert set(policy.policies) <= set(rest)


def made(policy: Policy) -> Any:
    """Return the policy; call a factory with an argument for each parameter."""
    function = getattr(jax.checkpoint_policies, policy.name)
    if not policy.is_made:
        return function
    other = jax.checkpoint_policies.checkpoint_dots
    listed = {names.name for names in policy.names if not names.star}
    given = {
        name: other if name in policy.policies else frozenset() if name in listed else "device"
        for name in (*policy.parameters, *policy.keyword_only)
    }
    return function(**given)


def answers(policy: Policy) -> set[bool]:
    """Return what a policy answers for products with and without batch dimensions, a sine, and a
    name.
    """
    import jax.numpy as jnp
    from jax.ad_checkpoint import checkpoint_name

    seen: set[bool] = set()
    inner = made(policy)

    def asked(prim: Any, *args: Any, **params: Any) -> Any:
        answer = inner(prim, *args, **params)
        seen.add(
            answer is True or (not isinstance(answer, bool) and "Recompute" not in repr(answer))
        )
        return answer

    def function(x: Any) -> Any:
        batched = jnp.einsum("bij,bjk->bik", x, x)
        return checkpoint_name(jnp.sin(batched @ jnp.ones((2, 2))), "name").sum()

    jax.make_jaxpr(jax.grad(jax.checkpoint(function, policy=asked)))(jnp.ones((2, 2, 2)))
    return seen


@HERE
def test_constant_answers(policy: Policy) -> None:
    seen = answers(policy)
    expected = policy.answer(jax_version())
    if expected is not None:
        assert seen == {expected}
    elif not policy.names:
        assert seen == {True, False}


@pytest.mark.parametrize("name", sorted(TAKES_POLICY))
def test_every_api_takes_a_policy_by_this_keyword(name: str) -> None:
    gone = APIS[name].removed_in
    if gone is not None and jax_version() >= gone:
        return
    found = parameters(installed(name))
    assert POLICY_OPTION in found
    assert not any(p.kind is p.VAR_KEYWORD for p in found.values())


def test_invalid_answers_are_rejected() -> None:
    function = jax.grad(jax.checkpoint(lambda x: jax.numpy.sin(x), policy=lambda *_, **__: None))
    if jax_version() >= ANSWER_IS_CHECKED_SINCE:
        with pytest.raises((TypeError, AssertionError)):
            function(1.0)
    else:
        assert importlib.import_module("math").isfinite(function(1.0))
