"""RMT207: `static_argnums` of the wrong type or without an argument."""

from __future__ import annotations

import pytest
from support import findings, fixed, no_findings

CODE = "RMT207"
HEAD = "import jax\nimport numpy as np\nfrom functools import partial\nimport flax.linen as nn\n"
F = "def f(x, a=1, b=2):\n    return x * a * b\n"


def fixed_code(code: str) -> str:
    return fixed(HEAD + code, select=CODE)["example.py"].removeprefix(HEAD)


FIXED = [
    ("g = jax.checkpoint(f, static_argnums=[2, 1])\n", "(2, 1)"),
    ("g = jax.checkpoint(f, static_argnums={1})\n", "(1,)"),
    ("g = jax.remat(f, static_argnums=[])\n", "()"),
    ("g = partial(jax.checkpoint, static_argnums=[1])(f)\n", "(1,)"),
    ("from flax.linen import partitioning\ng = partitioning.remat(f, static_argnums=1)\n", "(1,)"),
]


@pytest.mark.parametrize(("code", "written"), FIXED)
def test_fixed(code: str, written: str) -> None:
    after = fixed_code(F + code)
    assert f"static_argnums={written}" in after
    assert findings(HEAD + after, select=CODE) == []


FOR_YOU = [
    "g = jax.checkpoint(f, static_argnums=range(1, 3))\n",
    "g = jax.checkpoint(f, static_argnums=None)\n",
    "g = jax.checkpoint(f, static_argnums=np.int64(1))\n",
    "g = jax.checkpoint(f, static_argnums=[i for i in ids])\n",
]


@pytest.mark.parametrize("code", FOR_YOU)
def test_found_and_not_fixed(code: str) -> None:
    (found,) = findings(HEAD + F + code, select=CODE)
    assert found.reason
    assert fixed_code(F + code) == F + code


LEFT_ALONE = [
    "g = jax.checkpoint(f, static_argnums=(1, -1))\n",
    "g = jax.checkpoint(f, static_argnums=which)\n",
    "g = jax.checkpoint(f, static_argnums=tuple(ids))\n",
    "def h(x, *more):\n    return x\ng = jax.checkpoint(h, static_argnums=(7,))\n",
    "g = jax.checkpoint(unknown, static_argnums=(7,))\n",
    "g = jax.jit(f, static_argnums=[1])\n",
    "from flax.linen import partitioning\ng = partitioning.remat(f, static_argnums=[1])\n",
    'jax.config.update("jax_remat3", True)\ng = jax.checkpoint(f, static_argnums=[1])\n',
    "import pytest\ndef test():\n    with pytest.raises(TypeError):\n"
    "        jax.checkpoint(f, static_argnums=[1])\n",
]

test_left_alone = no_findings(CODE, LEFT_ALONE, HEAD + F)
