"""RMT307: checkpointed calls whose results are only added."""

from __future__ import annotations

import pytest
from support import findings

CODE = "RMT307"
TEMPLATE = """\
import jax
import jax.numpy as jnp

def step(loss, w, xs, a, b):
    f = jax.checkpoint(loss)

    def total(w):
{body}
    return {how}(w)
"""


def code(body: str, how: str = "jax.grad(total)") -> str:
    indented = "".join(f"        {line}\n" for line in body.splitlines())
    return TEMPLATE.format(body=indented, how=how)


FOUND = [
    "return f(w, a) + f(w, b)",
    "return (f(w, a) + 2 * f(w, b)) / 3",
    "return sum(f(w, x) for x in xs)",
    "return sum([f(w, x) / 4 for x in xs])",
    "return jnp.mean(jnp.array([f(w, x) for x in xs]))",
    "y = 0\nfor x in xs:\n    y += f(w, x)\nreturn y / len(xs)",
    "y = 0\nfor x in xs:\n    y = y + f(w, x)\nreturn y",
]


@pytest.mark.parametrize("body", FOUND)
def test_found(body: str) -> None:
    [finding] = findings(code(body), select=CODE)
    assert (finding.confidence, finding.severity) == ("medium", "note")
    assert findings(code(body, how="total"), select=CODE) == []


LEFT_ALONE = [
    "return f(f(w, a), b)",
    "return f(w, a) + f(f(w, a), b)",
    "return f(w, a) * f(w, b)",
    "return jnp.concatenate([f(w, x) for x in xs]).sum()",
    "return max(f(w, x) for x in xs)",
    "y = a\nfor x in xs:\n    y = y + f(x, y)\nreturn y",
    "y = a\nfor x in xs:\n    h = w * y\n    y += f(h, x)\nreturn y",
    "y = 0\nfor x in xs:\n    y = f(w, x)\nreturn y",
    "return f(w, a)",
    "return f(w, a) + loss(w, b)",
    "return jax.lax.map(lambda x: f(w, x), xs).sum()",
]


@pytest.mark.parametrize("body", LEFT_ALONE)
def test_left_alone(body: str) -> None:
    assert findings(code(body), select=CODE) == []
