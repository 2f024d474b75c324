"""Functions that a parameter holds: fixed if all are known and agree. Those of fields are not."""

from __future__ import annotations

import pytest
from support import findings, fixed

FACTORY = """\
import functools
import jax


def maybe_remat(enabled=True):
    def wrap(fn):
        return jax.checkpoint(fn, concrete=True) if enabled else fn

    return wrap

"""

BLOCK = """\

@maybe_remat()
def block(x, train):
    return x if train else -x

"""

AGREEING = {
    "decorated": (FACTORY + BLOCK, "static_argnums=(1,)"),
}  # fmt: skip

DISAGREEING = {
    "other place": FACTORY + BLOCK + "@maybe_remat()\ndef g(on, x):\n    return x if on else -x\n",
    "unseen": FACTORY + BLOCK + "import other\n\ng = maybe_remat()(other.block)\n",
    "handed on": FACTORY + BLOCK + "blocks = list(map(maybe_remat(), [abs]))\n",
}


@pytest.mark.parametrize("name", AGREEING)
def test_fixed_if_all_agree(name: str) -> None:
    text, expected = AGREEING[name]
    after = fixed(text)["example.py"]
    assert "concrete" not in after
    assert expected in after


@pytest.mark.parametrize("name", DISAGREEING)
def test_left_alone_if_they_disagree_or_are_unknown(name: str) -> None:
    text = DISAGREEING[name]
    [found] = [f for f in findings(text) if f.code == "RMT101"]
    assert found.reason
    assert fixed(text) == {"example.py": text}
