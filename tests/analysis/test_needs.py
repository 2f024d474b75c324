"""Which parameters must be concrete at trace time."""

from __future__ import annotations

import pytest
from support import needs_of

HEADING = "import jax\nimport jax.numpy as jnp\n\n\n"


@pytest.mark.parametrize("number", [1, 6])
def test_calls_on_the_way_to_a_need_are_merged(number):
    """Each function passes `x` on both as it is and through an operation."""
    inner = "def f0(x):\n    if x > 0:\n        return x\n    return -x\n\n\n"
    between = "".join(
        f"def f{n}(x):\n    return f{n - 1}(x) + f{n - 1}(jnp.sin(x))\n\n\n"
        for n in range(1, number + 1)
    )
    text = f"{HEADING}{inner}{between}@jax.checkpoint\ndef last(x):\n    return f{number}(x)\n"
    needs = [need for need in needs_of(text) if need.reason == "a branch on it"]
    assert [bool(need.traced) for need in needs] == [False, True]
    assert len(needs[1].traced) == number


@pytest.mark.parametrize(("number", "items"), [(120, [None])])
def test_a_value_of_many_items_needs_the_parameter(number, items):
    """A long chain has all of its operations."""
    lines = "".join(f"    x = jnp.sin(x @ p['w{n}'])\n" for n in range(number))
    text = f"{HEADING}@jax.checkpoint\ndef f(p, x):\n{lines}    return x if x[0] > 0 else -x\n"
    needs = [need for need in needs_of(text) if need.reason == "a branch on it"]
    by_parameter = {(need.parameter, need.index): len(need.traced) for need in needs}
    assert by_parameter.pop(("x", None)) == 2 * number + 1
    if items == [None]:
        assert by_parameter[("p", None)] == 2 * number + 1
        assert len(by_parameter) <= 32
    else:
        assert [index for _, index in by_parameter] == items


@pytest.mark.parametrize(
    ("expression", "is_needed"),
    [
        ("x[x > 0]", True),
        ("x[:, ~(x < 0) & y]", True),
        ("x[jnp.isnan(x)]", True),
        ("jnp.where(x > 0)[0]", True),
        ("jnp.where(x > 0, x, 0.0)", False),
        ("x.at[x < 0].set(0.0)", False),
        ("x[y]", False),
    ],
)
def test_a_boolean_index_decides_on_a_shape(expression, is_needed):
    text = f"{HEADING}@jax.checkpoint\ndef f(x, y):\n    return {expression}\n"
    assert any(need.certain for need in needs_of(text)) == is_needed
