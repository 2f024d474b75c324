"""RMT502: `static_argnums` of Flax that are off by one."""

from __future__ import annotations

import pytest
from support import findings, fixed

CODE = "RMT502"
CODE_OF = """\
from functools import partial
import flax.linen as nn
import jax
from flax.linen import partitioning


class Block(nn.Module):
    @nn.compact
    def __call__(self, x, mask, train%s):
        x = nn.Dense(3)(x) * mask
        return x if train else 2 * x


class Net(nn.Module):
    @nn.compact
    def __call__(self, x, mask):
        return %s
"""


def code_of(call: str, default: str = "") -> str:
    return CODE_OF % (default, call)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("partitioning.remat(Block, static_argnums=(3,))()(x, mask, True)", "(2,)"),
    ],
)
def test_shifted(before: str, after: str) -> None:
    old = before[before.index("argnums=") :].split("=")[1].partition(")")[0]
    old = old + ")" if old.startswith("(") else "2"
    written = before.replace(f"static_argnums={old}", f"static_argnums={after}")
    assert fixed(code_of(before), select=CODE) == {"example.py": code_of(written)}
    assert findings(code_of(written), select=CODE) == []


def test_indices_defined_elsewhere_are_not_fixed() -> None:
    code = (
        code_of("nn.remat(Block, static_argnums=STATIC)()(x, mask, True)") + "\n\nSTATIC = (2,)\n"
    )
    [finding] = findings(code, select=CODE)
    assert finding.fix is not None
    assert finding.fix.safety == "manual"


LEFT_ALONE = [
    # The neighbor need not be concrete: RMT201.
    "nn.remat(Block, static_argnums=(1,))()(x, mask, True)",
]


@pytest.mark.parametrize("call", LEFT_ALONE)
def test_left_alone(call: str) -> None:
    assert findings(code_of(call), select=CODE) == []
