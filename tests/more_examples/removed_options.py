"""Special cases of the rules about suppressions and removed options."""

from __future__ import annotations

from remat_migrate.rule import Example

WRONG: dict[str, list[Example]] = {
    "RMT102": [
        Example(
            """\
import os, subprocess

env = {**os.environ, "JAX_NEW_CHECKPOINT": "0"}
subprocess.run(["python", "t.py", "--jax_new_checkpoint=0"], env=env)
""",
        ),
    ],
    "RMT103": [
        Example(
            """\
import jax
from jax import ad_checkpoint

f = ad_checkpoint.remat(print)
""",
            """\
import jax

f = jax.remat(print)
""",
        ),
        Example(
            'mock.patch("jax.ad_checkpoint.checkpoint")\n',
        ),
    ],
    "RMT104": [
        Example(
            """\
from jax.ad_checkpoint import remat

f = remat(print, False)
""",
            """\
from jax.ad_checkpoint import remat

f = remat(print, prevent_cse=False)
""",
        ),
    ],
}

RIGHT: dict[str, list[Example]] = {
    "RMT001": [
        Example(
            "import remat  # noqa: F401\n",
        ),
    ],
    "RMT103": [
        Example(
            "from torch.utils.checkpoint import checkpoint\n",
        ),
    ],
    "RMT104": [
        Example(
            """\
import jax

f = jax.checkpoint(print)(1, True)
""",
        ),
        Example(
            """\
from torch.utils.checkpoint import checkpoint

y = checkpoint(print, True)
""",
        ),
    ],
}
