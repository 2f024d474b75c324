"""RMT403: policies that save everything."""

from __future__ import annotations

import pytest
from support import findings, no_findings

CODE = "RMT403"
HEAD = "import jax\n\np = jax.checkpoint_policies\n\n\ndef yes(*_, **__):\n    return True\n\n\n"

FOUND = [
    "g = jax.checkpoint(f, policy=yes)\n",
    "from flax import linen as nn\n\ng = nn.remat(nn.Dense, policy=p.everything_saveable)\n",
]


@pytest.mark.parametrize("code", FOUND)
def test_found(code: str) -> None:
    [finding] = findings(HEAD + code, select=CODE)
    assert (finding.severity, finding.confidence) == ("warning", "high")


@pytest.mark.parametrize(
    ("code", "lines"),
    [
        ("g = jax.checkpoint(f, policy=p.everything_saveable)\n", []),
        ("KEEP = p.everything_saveable\ng = jax.checkpoint(f, policy=KEEP)\n", [10]),
    ],
)
def test_a_policy_from_elsewhere_is_shown(code: str, lines: list[int]) -> None:
    [finding] = findings(HEAD + code, select=CODE)
    assert [one.source.position(one.span.start)[0] for one in finding.related] == lines


UNFIXED = [
    # Two sites share the option.
    "from functools import partial\nck = partial(jax.checkpoint, policy=yes)\n"
    "g = ck(f)\nh = ck(g)\n",
]


@pytest.mark.parametrize("code", UNFIXED)
def test_not_fixed(code: str) -> None:
    [finding] = findings(HEAD + code, select=CODE)
    assert finding.fix is not None
    assert finding.fix.safety == "manual"
    assert finding.reason


LEFT_ALONE = [
    "g = jax.checkpoint(f, policy=p.nothing_saveable)\n",
    "g = jax.checkpoint(f, policy=p.dots_saveable)\n",
    "g = jax.checkpoint(f, policy=p.save_any_names_but_these('h'))\n",
    # One of several.
    "g = jax.checkpoint(f, policy=p.everything_saveable if keep else None)\n",
    "policy = None\nif keep:\n    policy = p.everything_saveable\n"
    "g = jax.checkpoint(f, policy=policy)\n",
    "def ck(f, policy=p.everything_saveable):\n    return jax.checkpoint(f, policy=policy)\n",
    "POLICIES = {'all': p.everything_saveable, 'none': p.nothing_saveable}\n"
    "g = jax.checkpoint(f, policy=POLICIES[name])\n",
    # Chosen elsewhere by a setting.
    "def policy(name):\n    if name == 'all':\n        return p.everything_saveable\n"
    "    return p.nothing_saveable\n\n\ng = jax.checkpoint(f, policy=policy(name))\n",
    "g = jax.checkpoint(f, policy=lambda prim, *_, **__: prim is not None)\n",
    "def some(prim, *_, **__):\n    if prim.name == 'dot_general':\n        return True\n"
    "    return False\n\n\ng = jax.checkpoint(f, policy=some)\n",
    "def some(prim, *_, **__):\n    for name in names:\n        if prim.name == name:\n"
    "            return True\n\n\ng = jax.checkpoint(f, policy=some)\n",
    "class T:\n    def test_residuals(self):\n"
    "        g = jax.checkpoint(f, policy=p.everything_saveable)\n",
    "everything_saveable = 1\ng = checkpoint(f, policy=everything_saveable)\n",
]

test_left_alone = no_findings(CODE, LEFT_ALONE, HEAD)
