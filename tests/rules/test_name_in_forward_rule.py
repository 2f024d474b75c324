"""RMT605: `checkpoint_name` in the forward rule of a `custom_vjp`."""

from __future__ import annotations

import pytest
from support import places

CODE = "RMT605"
HEAD = "import jax\nfrom jax.ad_checkpoint import checkpoint_name\n\n\n"
ACT = HEAD + (
    "@jax.custom_vjp\ndef act(x):\n    return {0}\n\n\n"
    "def fwd(x):\n    return {1}, x\n\n\n"
    "def bwd(x, g):\n    return ({2},)\n\n\n"
    "act.defvjp({3})\n"
)
NAMED = 'checkpoint_name(x, "h")'


@pytest.mark.parametrize("given", ["fwd, bwd", "fwd=fwd, bwd=bwd"])
def test_found(given: str) -> None:
    assert places(ACT.format("x", NAMED, "g", given), select=(CODE,)) == ["example.py:11:12 RMT605"]


def test_a_function_in_the_rule() -> None:
    text = ACT.format("x", f"(lambda x: {NAMED})(x)", "g", "fwd, bwd")
    assert len(places(text, select=(CODE,))) == 1


def test_elsewhere() -> None:
    assert (
        places(ACT.format(NAMED, "x", NAMED.replace("x,", "g,"), "fwd, bwd"), select=(CODE,)) == []
    )
    assert places(ACT.format("x", NAMED, "g", "other, bwd"), select=(CODE,)) == []
    own = ACT.replace("from jax.ad_checkpoint import", "from .own import")
    assert places(own.format("x", NAMED, "g", "fwd, bwd"), select=(CODE,)) == []
