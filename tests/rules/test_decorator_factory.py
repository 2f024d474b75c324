"""RMT504: a checkpoint function called with options only."""

from __future__ import annotations

from support import findings, fixed, no_findings

CODE = "RMT504"


def check_fix(before: str, after: str) -> None:
    assert fixed(before, select=CODE) == {"example.py": after}
    assert findings(after, select=CODE) == []


def test_layout_and_comments_are_kept() -> None:
    check_fix(
        "from functools import partial\nimport jax\n\n"
        "@jax.checkpoint(\n    # why\n    prevent_cse=False,  # here\n)\ndef f(x):\n    return x\n",
        "from functools import partial\nimport jax\n\n"
        "@partial(\n    jax.checkpoint,\n    # why\n    prevent_cse=False,  # here\n)\n"
        "def f(x):\n    return x\n",
    )


def test_called_immediately() -> None:
    check_fix(
        "import jax\n\ng = jax.checkpoint(prevent_cse=False, policy=p)(f)\n",
        "import jax\n\ng = jax.checkpoint(f, prevent_cse=False, policy=p)\n",
    )
    check_fix("import jax\n\ng = jax.remat()(f)\n", "import jax\n\ng = jax.remat(f)\n")
    # With more arguments, or over several lines, nothing is moved.
    check_fix(
        "from functools import partial\nimport jax\n\n"
        "g = jax.remat(prevent_cse=False)(\n    lambda x: x  # the block\n)\n",
        "from functools import partial\nimport jax\n\n"
        "g = partial(jax.remat, prevent_cse=False)(\n    lambda x: x  # the block\n)\n",
    )


def test_a_value() -> None:
    check_fix(
        "from functools import partial\nimport haiku as hk\n\n"
        "remat = hk.remat(prevent_cse=False)\nfs = [remat(f) for f in functions]\n",
        "from functools import partial\nimport haiku as hk\n\n"
        "remat = partial(hk.remat, prevent_cse=False)\nfs = [remat(f) for f in functions]\n",
    )


LEFT_ALONE = [
    "import jax\n\ng = jax.checkpoint(f, policy=p)\n",
    "import jax\n\ng = jax.checkpoint(fun=f, policy=p)\n",
    "import jax\n\ng = jax.checkpoint(*arguments)\n",
    "import jax\n\ng = jax.checkpoint(**{'fun': f})\n",
    "from flax import nnx\n\n@nnx.remat(static_argnums=(2,))\ndef f(m, x, n):\n    return x\n",
    "from flax import nnx as nn\n\n@nn.remat(static_argnums=(2,))\ndef f(m, x, n):\n    return x\n",
    "import brainstate\n\n@brainstate.transform.checkpoint(prevent_cse=False)\n"
    "def f(x):\n    return x\n",
    "import equinox as eqx\n\n@eqx.filter_checkpoint(prevent_cse=False)\ndef f(x):\n    return x\n",
    # A factory of the project.
    "import jax\n\ndef remat(f=None, **options):\n"
    "    return jax.remat(f, **options) if f else lambda f: remat(f, **options)\n\n"
    "@remat(prevent_cse=False)\ndef f(x):\n    return x\n",
    "from torch.utils.checkpoint import checkpoint\n\n@checkpoint(use_reentrant=False)\n"
    "def f(x):\n    return x\n",
]  # fmt: skip

test_left_alone = no_findings(CODE, LEFT_ALONE)


def test_code_in_an_f_string_is_not_edited() -> None:
    code = "import jax\n\nx = f'{jax.checkpoint(policy=p)}' f\"{'a' if x else 'b'}\"\n"
    (found,) = findings(code, select=CODE)
    assert found.fix is not None
    assert found.fix.safety == "manual"
    assert "f-string" in found.reason
