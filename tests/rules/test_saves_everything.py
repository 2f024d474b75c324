"""RMT403: policies that save everything."""

from __future__ import annotations

import pytest
from support import findings, fixed, no_findings

CODE = "RMT403"
HEAD = "import jax\n\np = jax.checkpoint_policies\n\n\ndef yes(*_, **__):\n    return True\n\n\n"

FOUND = [
    "g = jax.checkpoint(f, policy=p.everything_saveable)\n",
    "g = jax.checkpoint(f, policy=yes)\n",
    "g = jax.checkpoint(f, policy=lambda *_, **__: True)\n",
    "policy = p.everything_saveable\ng = jax.checkpoint(f, policy=policy)\n",
    "g = jax.checkpoint(f, policy=p.save_anything_except_these_names('h'))\n",
    "def all_of_it(prim, *_, **params):\n    if prim:\n        return True\n"
    "    return True\n\n\ng = jax.checkpoint(f, policy=all_of_it)\n",
    "from flax import linen as nn\n\ng = nn.remat(nn.Dense, policy=p.everything_saveable)\n",
]


@pytest.mark.parametrize("code", FOUND)
def test_found(code: str) -> None:
    [finding] = findings(HEAD + code, select=CODE)
    assert (finding.severity, finding.confidence) == ("warning", "high")


def test_the_checkpoint_is_removed() -> None:
    before = (
        "def loss(x):\n"
        "    h = jax.checkpoint(f, policy=p.everything_saveable)(x)  # saved\n"
        "    return h.sum()\n\n\n"
        "other = p.dots_saveable\n"
    )
    after = before.replace("jax.checkpoint(f, policy=p.everything_saveable)(x)", "f(x)")
    assert fixed(HEAD + before, select=CODE, unsafe=True) == {"example.py": HEAD + after}
    assert fixed(HEAD + before, select=CODE) == {"example.py": HEAD + before}


UNFIXED = [
    # Excludes names: the intention is unknown.
    "g = jax.checkpoint(f, policy=p.save_anything_except_these_names('h'))\n",
    # Two sites share the option.
    "from functools import partial\nck = partial(jax.checkpoint, policy=yes)\n"
    "g = ck(f)\nh = ck(g)\n",
]


@pytest.mark.parametrize("code", UNFIXED)
def test_not_fixed(code: str) -> None:
    [finding] = findings(HEAD + code, select=CODE)
    assert finding.fix is None
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


def test_names_were_excluded_up_to_jax_0_10_1() -> None:
    code = HEAD + "g = jax.checkpoint(f, policy=p.save_anything_except_these_names('h'))\n"
    assert findings(code, select=CODE, jax_version="0.10.1") == []
    assert len(findings(code, select=CODE, jax_version="0.10.2")) == 1
