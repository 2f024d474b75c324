"""RMT204: results of `jax.numpy` operations that are needed at trace time."""

from __future__ import annotations

import pytest
from support import findings, fixed

CODE = "RMT204"
HEAD = "import jax\nimport jax.numpy as jnp\nimport numpy as np\n\n\n"
USE = "\n\ny = jax.checkpoint(f, static_argnums=(1,))(1.0, 2)\n"

FOUND = [
    "def f(x, n):\n    if jnp.greater(n, 1) if n else n == 0:\n        return x\n    return -x\n",
    "def f(x, n):\n    rows = int(jnp.ceil(n / 2))\n    return x * rows\n",
]


@pytest.mark.parametrize("code", FOUND)
def test_fixed(code: str) -> None:
    assert [f.code for f in findings(HEAD + code + USE, select=CODE)] == [CODE]
    after = fixed(HEAD + code + USE, select=CODE)["example.py"]
    assert "with jax.ensure_compile_time_eval():" in after
    assert findings(after, select=CODE) == []


LEFT_ALONE = [
    "def f(x, n):\n    return x if n > 1 else -x\n",
    "def f(x, n):\n    return x if np.greater(n, 1) else -x\n",
    "def f(x, n):\n    return jnp.where(jnp.greater(n, 1), x, -x)\n",
    "def f(x, n):\n    with jax.ensure_compile_time_eval():\n        big = jnp.greater(n, 1)\n"
    "    return x if big else -x\n",
]


@pytest.mark.parametrize("code", LEFT_ALONE)
def test_left_alone(code: str) -> None:
    assert findings(HEAD + code + USE, select=CODE) == []


@pytest.mark.parametrize(
    ("decorator", "result", "count"),
    [("@jax.jit", "inner(x)", 0), ("", "jax.lax.map(inner, x)", 0), ("", "inner(x)", 1)],
)
def test_compiled_function_traces_anyway(decorator: str, result: str, count: int) -> None:
    body = f"    {decorator}\n    def inner(y):\n        return y if jnp.add(1, 1) > 1 else -y\n"
    text = f"{HEAD}@jax.checkpoint\ndef f(x):\n{body}    return jnp.sin({result})\n"
    assert len(findings({"m.py": text}, select=CODE)) == count
