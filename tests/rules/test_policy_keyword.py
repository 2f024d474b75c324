"""RMT401: misnamed `policy=`."""

from __future__ import annotations

import pytest
from support import findings, fixed, no_findings

CODE = "RMT401"
HEAD = "from functools import partial\nimport equinox as eqx\nimport jax\n"
HEAD += "from flax import linen as nn\nfrom flax import nnx\n"
HEAD += "import haiku as hk\n\nP = jax.checkpoint_policies.dots_saveable\n"

APIS = [
    "partial(partial(jax.checkpoint, {}=P), prevent_cse=False)(f)",
]  # fmt: skip


def check_fix(before: str, after: str) -> None:
    assert fixed(HEAD + before, select=CODE) == {"example.py": HEAD + after}


@pytest.mark.parametrize("api", APIS)
def test_apis(api: str) -> None:
    before, after = api.format("save_policy"), api.format("policy")
    check_fix(f"g = {before}\n", f"g = {after}\n")


UNFIXED = [
    "g = jax.checkpoint(f, policy=P, save_policy=P)\n",
    "OPTIONS = dict(save_policy=P)\ng = jax.checkpoint(f, **OPTIONS)\n",
    "g = jax.checkpoint(f, **{'save_policy': P})\n",
]


@pytest.mark.parametrize("code", UNFIXED)
def test_found_and_not_fixed(code: str) -> None:
    [finding] = findings(HEAD + code, select=CODE)
    assert finding.fix is not None
    assert finding.fix.safety == "manual"
    assert finding.reason


def test_a_partial_is_reported_once() -> None:
    code = "ck = partial(jax.checkpoint, save_policy=P)\na = ck(f)\nb = ck(g)\n"
    assert len(findings(HEAD + code, select=CODE)) == 1


LEFT_ALONE = [
    "g = jax.checkpoint(f, policy=P)\n",
    # A wrapper of the project has its own keywords.
    "def my(f, save_policy=None, concrete=False):\n"
    "    return jax.checkpoint(f, policy=save_policy, concrete=concrete)\n\n"
    "g = my(h, save_policy=P)\n",
    "def checkpoint(f, save_policy):\n    return f\n\ng = checkpoint(f, save_policy=P)\n",
    "from torch.utils.checkpoint import checkpoint\ng = checkpoint(f, save_policy=P)\n",
    # One of two functions, depending on a setting.
    "def my(f, **options):\n    return f\n\nck = my if flag else jax.checkpoint\n"
    "g = ck(f, save_policy=P)\n",
    "g = jax.checkpoint(f, prevent_cse=False, static_argnums=(1,))\n",
]

test_left_alone = no_findings(CODE, LEFT_ALONE, HEAD)
