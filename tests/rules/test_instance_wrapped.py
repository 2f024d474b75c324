"""RMT501: `nn.remat` of an instance of a Flax module."""

from __future__ import annotations

import pytest
from support import findings, no_findings

CODE = "RMT501"
HEAD = """\
from functools import partial
import flax.linen as nn
from flax.linen import partitioning


class Block(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(3)(x)


class Net(nn.Module):
    cls: nn.Module

    def setup(self):
        self.block = Block()
        self.blocks = [Block() for _ in range(3)]

"""
COMPACT = HEAD + "    @nn.compact\n    def __call__(self, x):\n"
CALL = HEAD + "    def __call__(self, x):\n"


MANUAL = [
    (COMPACT + "        block = Block()\n        return nn.remat(block)(x)\n", "wrap a function"),
    (
        CALL + "        for b in self.blocks:\n            x = nn.remat(b)(x)\n        return x\n",
        "wrap a function",
    ),
]


@pytest.mark.parametrize(("code", "instead"), MANUAL)
def test_what_to_wrap_instead(code: str, instead: str) -> None:
    [finding] = findings(code, select=CODE)
    assert finding.fix is not None
    assert finding.fix.safety == "manual"
    assert instead in finding.fix.title


def test_expected_failures_are_ignored() -> None:
    code = COMPACT + "        return nn.remat(Block())(x)\n"
    code = "def test(self):\n" + "".join(f"    {line}\n" for line in code.splitlines())
    code += "    with self.assertRaises(ValueError):\n        Net().init(key, x)\n"
    assert findings(code, select=CODE) == []


LEFT_ALONE = [
    "        return nn.remat(Block)()(x)\n",
    "        return nn.remat(Block.__call__)(self.block, x)\n",
    "        return nn.remat(self.cls)()(x)\n",
    "        return nn.remat(lambda mdl, x: mdl(x))(self.block, x)\n",
    "        cls = partial(Block)\n        return nn.remat(cls)()(x)\n",
    "        return nn.scan(nn.remat(Block), length=2)()(x)\n",
    "        return nn.remat_scan(Block, lengths=(2, 2))()(x)\n",
]

test_left_alone = no_findings(CODE, LEFT_ALONE, CALL)
