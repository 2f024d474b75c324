"""RMT308: checkpoints that no gradient in the project runs."""

from __future__ import annotations

import pytest
from support import findings, no_findings

CODE = "RMT308"
HEAD = "import jax\n\ndef f(x):\n    return x * x\n\ndef g(x):\n    return jax.checkpoint(f)(x)\n\n"


@pytest.mark.parametrize("code", ["", "y = g(1.0)\n", "step = jax.jit(g)\n"])
def test_found(code: str) -> None:
    [finding] = findings(HEAD + code, select=CODE)
    assert (finding.confidence, finding.severity) == ("low", "note")
    assert findings(HEAD + code) == []  # off by default


LEFT_ALONE = [
    "step = jax.grad(g)\n",
    "step = jax.grad(lambda x: jax.lax.map(g, x).sum())\n",
    "y, back = jax.vjp(g, 1.0)\n",
    "step = jax.jacfwd(g)\n",
]

test_left_alone = no_findings(CODE, LEFT_ALONE, HEAD)


def test_functions_passed_to_unknown_code_are_left_alone() -> None:
    assert findings("import jax\n\nrun(jax.checkpoint(abs))\n", select=CODE) == []
