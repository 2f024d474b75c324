"""RMT203: static arguments that are left to their default (found with RMT202's calls)."""

from __future__ import annotations

from support import findings, fixed

CODE = "RMT203"
FLAX = """\
import flax.linen as nn


class Block(nn.Module):
    def __call__(self, x, mask=None, train=False):
        return 2 * x if train else x


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        %s
"""


def test_flax_counts_self() -> None:
    code = FLAX % "return nn.remat(Block, static_argnums=(3,))()(x)"
    after = fixed(code, select=CODE)["example.py"]
    assert after == code.replace("()(x)", "()(x, None, False)")


def test_partitioning_allows_defaults() -> None:
    head = "from flax.linen import partitioning\n"
    code = head + FLAX % "return partitioning.remat(Block, static_argnums=(2,))()(x)"
    assert findings(code, select=CODE) == []


def test_a_class_that_is_chosen_at_run_time() -> None:
    """Either class takes the same call."""
    code = FLAX % (
        "layer = nn.remat(Block, static_argnums=(3,)) if self.many else Block\n"
        "        return layer()(x)"
    )
    after = fixed(code, select=CODE)["example.py"]
    assert after == code.replace("layer()(x)", "layer()(x, None, False)")
