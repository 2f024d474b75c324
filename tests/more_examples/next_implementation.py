"""Special cases of the rules about `jax_remat3`."""

from __future__ import annotations

from remat_migrate.rule import Example

WRONG: dict[str, list[Example]] = {
    "RMT601": [
        Example(
            """\
import jax
import jax.numpy as jnp


def kept_here(prim, *operands, **params):
    name = str(prim)
    if name in ("exp", "tanh"):
        return True
    return jax.checkpoint_policies.dots_saveable(prim, *operands, **params)


def f(x):
    return jnp.sin(jnp.tanh(x))


def loss(x):
    return jax.checkpoint(f, policy=kept_here)(x)
""",
            use="""\
from jax._src.ad_checkpoint import saved_residuals


def count():
    return sum("argument" not in text for _, text in saved_residuals(loss, 1.0))


kept = [count()]
if hasattr(jax.config, "jax_remat3"):
    jax.config.update("jax_remat3", True)
    kept.append(count())
""",
            shows="assert kept in ([1], [1, 0]), kept\n",
        ),
    ],
    "RMT603": [
        Example(
            """\
import jax


def is_checkpointed(f, x):
    return "remat2[" in str(jax.make_jaxpr(f)(x))
""",
            use="""\
import jax.numpy as jnp


def checkpoints(f, x):
    return int(is_checkpointed(f, x))


def number():
    return checkpoints(lambda x: jax.checkpoint(jnp.sin)(x), 1.0)

found = [number()]
if hasattr(jax.config, "jax_remat3"):
    jax.config.update("jax_remat3", True)
    found.append(number())
""",
            shows="assert found in ([1], [1, 0]), found\n",
        ),
    ],
}

RIGHT: dict[str, list[Example]] = {
    "RMT601": [
        Example(
            """\
import jax
import jax.numpy as jnp


def policy(prim, *_, **params):
    if prim.name == "name":
        return params["name"].startswith("block")
    return prim is jax.lax.dot_general_p


g = jax.checkpoint(jnp.sin, policy=policy)
""",
        ),
    ],
    "RMT602": [
        Example(
            """\
from functools import partial

import jax
import jax.numpy as jnp


def loss(x, w):
    @partial(jax.checkpoint, prevent_cse=True, static_argnums=(2,))
    def block(x, w, double):
        return jnp.sin(x * w) if double else x * w

    return block(x, w, True)
""",
            use="""\
if hasattr(jax.config, "jax_remat3"):
    jax.config.update("jax_remat3", True)
slopes = jax.grad(loss, (0, 1))(1.0, 2.0)
""",
            holds="assert [round(float(s), 4) for s in slopes] == [-0.8323, -0.4161]\n",
        ),
    ],
    "RMT603": [
        Example(
            """\
import jax


def is_remat(mode):
    return mode in ("remat", "checkpoint")
""",
        ),
    ],
}
