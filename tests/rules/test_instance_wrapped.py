"""RMT501: `nn.remat` of an instance of a Flax module."""

from __future__ import annotations

import pytest
from support import findings, fixed, no_findings, places

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


def check_fix(before: str, after: str) -> None:
    assert fixed(before, select=CODE) == {"example.py": after}
    assert findings(after, select=CODE) == []


FIXED = [
    (
        "        return nn.remat(Block(), prevent_cse=False)(x)\n",
        '        return nn.remat(Block, prevent_cse=False)(name="Block_0")(x)\n',
    ),
    (
        "        block = nn.remat(\n            Block(),  # the block\n        )\n"
        "        return block(x)\n",
        "        block = nn.remat(\n            Block,  # the block\n"
        '        )(name="Block_0")\n        return block(x)\n',
    ),
    (
        "        x = nn.Dense(4)(x)\n        return partitioning.remat(nn.Dense(\n            4,\n"
        "        ))(x)\n",
        "        x = nn.Dense(4)(x)\n        return partitioning.remat(nn.Dense)(\n            4,\n"
        '            name="Dense_1",\n        )(x)\n',
    ),
    (
        "        for i in range(3):\n            x = nn.remat(Block())(x)\n        return x\n",
        "        for i in range(3):\n"
        '            x = nn.remat(Block)(name=f"Block_{i}")(x)\n        return x\n',
    ),
    (
        '        return nn.remat(Block(name="block"))(x)\n',
        '        return nn.remat(Block)(name="block")(x)\n',
    ),
    (
        "        block = Block()\n        return nn.remat(block)(x)\n",
        "        block = Block()\n"
        "        return nn.remat(lambda module, *args: module(*args))(block, x)\n",
    ),
    # Whether a layer of a library needs a Python value is not known.
    (
        "        args = self\n        print(args)\n"
        "        return nn.remat(nn.Dropout(0.5))(x, deterministic=not args.train)\n",
        "        args = self\n        print(args)\n"
        "        return nn.remat(lambda module, *args_: module(*args_,"
        " deterministic=not args.train))(nn.Dropout(0.5), x)\n",
    ),
]


@pytest.mark.parametrize(("before", "after"), FIXED)
def test_in_a_compact_method(before: str, after: str) -> None:
    check_fix(COMPACT + before, COMPACT + after)


def test_an_instance_of_a_list() -> None:
    check_fix(
        CALL + "        for b in self.blocks:\n            x = nn.remat(b)(x)\n        return x\n",
        CALL + "        for b in self.blocks:\n"
        "            x = nn.remat(lambda module, *args: module(*args))(b, x)\n        return x\n",
    )


def test_non_array_keywords_are_closed_over() -> None:
    check_fix(
        CALL + "        return nn.remat(self.block)(x, train=True)\n",
        CALL + "        return nn.remat(lambda module, *args: module(*args, train=True))"
        "(self.block, x)\n",
    )


BY_HAND = [
    # A later `Block()` would become `Block_0`.
    COMPACT + "        x = nn.remat(Block())(x)\n        return Block()(x)\n",
    COMPACT + "        return nn.remat(Block(), static_argnums=(1,))(x)\n",
    COMPACT + "        return nn.scan(nn.remat(Block()), length=2)(x)\n",
    CALL + "        f = nn.remat(self.block)\n        return f(x)\n",
    COMPACT + "        f = nn.remat(nn.Dropout(0.5))\n        return f(x, deterministic=False)\n",
]


@pytest.mark.parametrize("code", BY_HAND)
def test_manual_fixes(code: str) -> None:
    [finding] = findings(code, select=CODE)
    assert finding.fix is not None
    assert finding.fix.safety == "manual"


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


def test_a_parameter_may_be_a_class() -> None:
    code = HEAD + "\ndef build(block: Block, layer):\n    return nn.remat(block), nn.remat(layer)\n"
    assert findings(code, select=CODE) == []


def test_one_finding_where_the_class_would_need_a_static_argument() -> None:
    code = """\
import flax.linen as nn

class Block(nn.Module):
    @nn.compact
    def __call__(self, x, train):
        return nn.Dense(4)(x * 2 if train else x)

class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.remat({block})(x, True)
"""
    found = places(code.format(block="Block()"))
    assert [place.rpartition(" ")[2] for place in found] == ["RMT501"]
    found = places(code.replace("{block})", "Block)()"))
    assert [place.rpartition(" ")[2] for place in found] == ["RMT201"]
