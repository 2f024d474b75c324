"""RMT201: traced arguments whose values are needed at trace time."""

from __future__ import annotations

import pytest
from support import findings, fixed, no_findings

CODE = "RMT201"
HEAD = "from functools import partial\nimport jax\nimport flax.linen as nn\nimport haiku as hk\n"
BODY = "    if flag:\n        return 2 * x\n    return x\n"


def fixed_code(code: str) -> str:
    return fixed(HEAD + code, select=CODE)["example.py"].removeprefix(HEAD)


FIXED = [
    # Static arguments stay static; only arguments that must be concrete are added.
    (
        "@partial(jax.checkpoint, static_argnums=(2,))\n"
        f"def f(x, flag, n, s):\n{BODY}\ny = f(1.0, True, 2, 3)\n",
        "@partial(jax.checkpoint, static_argnums=(1, 2))\n"
        f"def f(x, flag, n, s):\n{BODY}\ny = f(1.0, True, 2, 3)\n",
    ),
]


@pytest.mark.parametrize(("before", "after"), FIXED)
def test_fixed(before: str, after: str) -> None:
    assert fixed_code(before) == after


LEFT_ALONE = [
    # A default that no call passes stays a Python value; so does None.
    f"@jax.checkpoint\ndef f(x, flag=True):\n{BODY}\ny = f(1.0)\n",
    "@jax.checkpoint\ndef f(x, m):\n    return x if m is None else x * m\ny = f(1.0, None)\n",
    # Pytrees have a truth value and a length.
    "@jax.checkpoint\ndef f(x, ws):\n    return x if not ws else x * ws[0]\ny = f(1.0, [2.0])\n",
    # Static, as each library counts; a computed option may name it.
    f"def f(x, flag):\n{BODY}\ny = jax.checkpoint(f, static_argnums=-1)(1.0, True)\n",
    f"N = (1,)\ndef f(x, flag):\n{BODY}\ny = jax.checkpoint(f, static_argnums=N)(1.0, True)\n",
    f"def f(x, flag):\n{BODY}\ny = jax.checkpoint(f, static_argnums=which())(1.0, True)\n",
    f"def f(x, flag):\n{BODY}\ny = jax.checkpoint(f, **options())(1.0, True)\n",
    "class B(nn.Module):\n    def __call__(self, x, flag):\n        return x if flag else 2 * x\n"
    "class N(nn.Module):\n    def __call__(self, x):\n"
    "        return nn.remat(B, static_argnums=(2,))()(x, True)\n",
    # Closed over, or passed by a partial.
    f"def f(x, flag):\n{BODY}\ny = jax.checkpoint(lambda x: f(x, True))(1.0)\n",
    f"def f(flag, x):\n{BODY}\ny = jax.checkpoint(partial(f, True))(1.0)\n",
    # Requested in another way: RMT101 and RMT206.
    f"def f(x, flag):\n{BODY}\ny = jax.checkpoint(f, concrete=True)(1.0, True)\n",
    f"def f(x, flag):\n{BODY}\ny = jax.checkpoint(f, static_argnames='flag')(1.0, flag=True)\n",
    # Other functions of that name.
    f"def checkpoint(f):\n    return f\n@checkpoint\ndef f(x, flag):\n{BODY}\ny = f(1.0, True)\n",
    f"import equinox as eqx\n@eqx.filter_checkpoint\ndef f(x, flag):\n{BODY}\ny = f(1.0, True)\n",
]

test_left_alone = no_findings(CODE, LEFT_ALONE, HEAD)


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("return x if flag else -x", True),
        ("return x if (x > 0).all() else -x", True),
        ("return sum(flag.values()) * x if flag else x", False),
    ],
)
def test_nothing_calls_it(body: str, found: bool) -> None:
    """A branch on an argument fails for every caller; a pytree has a concrete structure."""
    code = f"{HEAD}@jax.checkpoint\ndef f(x, flag):\n    {body}\n"
    assert [f.confidence for f in findings(code, select=CODE)] == ["low"] * found
    handed_on = f"{code}def run(g, *arguments):\n    return g(*arguments)\nrun(f, 1.0, None)\n"
    assert findings(handed_on, select=CODE) == []


def test_an_argument_traced_by_jit_is_not_fixed() -> None:
    code = f"{HEAD}def f(x, flag):\n{BODY}\ny = jax.jit(jax.checkpoint(f))(1.0, True)\n"
    (found,) = findings(code, select=CODE)
    assert "jax.jit" in found.reason
    assert fixed(code, select=CODE)["example.py"] == code
