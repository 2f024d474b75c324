"""RMT405: names in policies that nothing defines."""

from __future__ import annotations

import pytest
from support import findings, fixed, no_findings

CODE = "RMT405"
HEAD = "import jax\nfrom jax.ad_checkpoint import checkpoint_name\n\np = jax.checkpoint_policies\n"
GIVEN = "def block(x, i):\n    return checkpoint_name(x, 'attention_out')\n\n"

TYPOS = [
    ("p.save_only_these_names('{}')", "attention-out"),
    ("p.save_only_these_names('other', '{}')", "attention_outs"),
    ("p.save_any_names_but_these('{}')", "attentionOut"),
    (
        "p.save_and_offload_only_these_names(names_which_can_be_saved=[],\n"
        "    names_which_can_be_offloaded=['{}'], offload_src='device', offload_dst='host')",
        "atttention_out",
    ),
    ("p.save_only_these_names(*['{}'])", "attentoin_out"),
]


@pytest.mark.parametrize(("code", "name"), TYPOS)
def test_a_typo(code: str, name: str) -> None:
    given = GIVEN + "def other(x):\n    return checkpoint_name(x, name='other')\n\n"
    before = HEAD + given + f"policy = {code.format(name)}  # names\n"
    [finding] = findings(before, select=CODE)
    assert (finding.severity, finding.confidence) == ("warning", "high")
    assert fixed(before, select=CODE) == {"example.py": before}
    after = HEAD + given + f"policy = {code.format('attention_out')}  # names\n"
    assert fixed(before, select=CODE, unsafe=True) == {"example.py": after}


# Ways to define a name.
GIVING = [
    "jax.tree.map(functools.partial(checkpoint_name, name='h'), x)",
    "checkpoint_name(x, Names.H)",
    "checkpoint_name(x, Names.H.value)",
    "kernel(x, residual_checkpoint_name='h')",
]


@pytest.mark.parametrize("giving", GIVING)
def test_a_defined_name(giving: str) -> None:
    code = (
        "import functools\nNAME = 'h'\nPREFIX = ''\n\n\nclass Names:\n    H = 'h'\n\n\n"
        "def named(x, name='h'):\n    return checkpoint_name(x, name)\n\n\n"
        f"def block(x, i):\n    return {giving}\n\n\nq = p.save_only_these_names('h')\n"
    )
    assert findings(HEAD + code, select=CODE) == []


OPEN = [
    "def block(x):\n    return checkpoint_name(x, names[0])\n",
    "keep(checkpoint_name)\napply(x, checkpoint_name)\n",
    "from jax.experimental.pallas.ops.tpu.splash_attention import kernel\n",
]


@pytest.mark.parametrize("code", OPEN)
def test_names_that_unknown_code_may_define(code: str) -> None:
    assert findings(HEAD + code + "q = p.save_only_these_names('mlp')\n", select=CODE) == []


def test_a_typo_of_a_known_name_has_low_confidence_then() -> None:
    code = "import some_kernels\n" + GIVEN + "q = p.save_only_these_names('atention_out')\n"
    [finding] = findings(HEAD + code, select=CODE)
    assert finding.confidence == "low"
    assert finding.fix is not None
    assert finding.fix.safety == "manual"


RELATED_NAMES = [
    ("layer_1", "layer_2"),
]


@pytest.mark.parametrize(("given", "listed"), RELATED_NAMES)
def test_related_names_are_not_typos(given: str, listed: str) -> None:
    code = f"import some_kernels\n\n\ndef block(x):\n    return checkpoint_name(x, '{given}')\n\n"
    code += f"q = p.save_only_these_names('{listed}')\n"
    assert findings(HEAD + code, select=CODE) == []


LEFT_ALONE = [
    GIVEN + "q = p.save_only_these_names(*names)\n",
    GIVEN + "q = p.save_only_these_names(name)\n",
    GIVEN + "q = p.save_only_these_names()\n",
    GIVEN + "q = p.dots_saveable\n",
    "def block(x, i):\n    return checkpoint_name(x, f'layer_{i}')\n\n"
    "q = p.save_only_these_names('layer_7')\n",
    "for name in ('a', 'b'):\n    x = checkpoint_name(x, name)\n\n"
    "q = p.save_only_these_names('a')\n",
    "def save_only_these_names(name):\n    return name\n\nq = save_only_these_names('z')\n",
]

test_left_alone = no_findings(CODE, LEFT_ALONE, HEAD)
