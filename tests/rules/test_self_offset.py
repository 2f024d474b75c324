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
        ("nn.remat(Block, static_argnums=(2,))()(x, mask, True)", "(3,)"),
        ("nn.remat(Block, static_argnums=2)()(x, mask, True)", "(3,)"),
        ("nn.checkpoint(Block, static_argnums=(2,), prevent_cse=False)()(x, mask, True)", "(3,)"),
        ("partitioning.remat(Block, static_argnums=(3,))()(x, mask, True)", "(2,)"),
    ],
)
def test_shifted(before: str, after: str) -> None:
    old = before[before.index("argnums=") :].split("=")[1].partition(")")[0]
    old = old + ")" if old.startswith("(") else "2"
    written = before.replace(f"static_argnums={old}", f"static_argnums={after}")
    assert fixed(code_of(before), select=CODE) == {"example.py": code_of(written)}
    assert findings(code_of(written), select=CODE) == []


def test_keyword_arguments_are_passed_by_position() -> None:
    before = "nn.remat(Block, static_argnums=(2,))()(x, mask, train=True)"
    after = "nn.remat(Block, static_argnums=(3,))()(x, mask, True)"
    assert fixed(code_of(before), select=CODE) == {"example.py": code_of(after)}


def test_the_need_decides_where_calls_do_not_show_what_is_passed() -> None:
    before = code_of("nn.remat(Block, static_argnums=2)()(x, mask, train=self.train)")
    after = code_of("nn.remat(Block, static_argnums=(3,))()(x, mask, self.train)")
    assert fixed(before, select=CODE) == {"example.py": after}


def test_only_one_rule_reports_it() -> None:
    code = code_of("nn.remat(Block, static_argnums=(2,))()(x, mask, True)")
    assert [f.code for f in findings(code)] == [CODE]


def test_indices_defined_elsewhere_are_not_fixed() -> None:
    code = (
        code_of("nn.remat(Block, static_argnums=STATIC)()(x, mask, True)") + "\n\nSTATIC = (2,)\n"
    )
    [finding] = findings(code, select=CODE)
    assert finding.fix is not None
    assert finding.fix.safety == "manual"


LEFT_ALONE = [
    "nn.remat(Block, static_argnums=(3,))()(x, mask, True)",
    "nn.remat(Block, static_argnums=(0, 3))()(x, mask, True)",
    # `mask` and `train` are static on purpose.
    "nn.remat(Block, static_argnums=(2, 3))()(x, mask, True)",
    "partitioning.remat(Block, static_argnums=(2,))()(x, mask, True)",
    "nn.remat(Block, static_argnums=static)()(x, mask, True)",
    # The neighbor need not be concrete: RMT201.
    "nn.remat(Block, static_argnums=(1,))()(x, mask, True)",
    "jax.checkpoint(lambda x, m, t: x, static_argnums=(2,))(x, mask, True)",
]


@pytest.mark.parametrize("call", LEFT_ALONE)
def test_left_alone(call: str) -> None:
    assert findings(code_of(call), select=CODE) == []
