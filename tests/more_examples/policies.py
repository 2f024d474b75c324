"""Special cases of the rules about policies."""

from __future__ import annotations

from remat_migrate.rule import Example, Fails

WRONG: dict[str, list[Example]] = {
    "RMT401": [
        Example(
            """\
import jax

f = jax.checkpoint(
    jax.numpy.sin,
    checkpoint_policy=jax.checkpoint_policies.dots_saveable,  # products are costly
)
""",
            """\
import jax

f = jax.checkpoint(
    jax.numpy.sin,
    policy=jax.checkpoint_policies.dots_saveable,  # products are costly
)
""",
            use="slope = jax.grad(f)(0.0)\n",
            fails=Fails("TypeError: .*unexpected keyword argument 'checkpoint_policy'"),
            holds="assert slope == 1.0\n",
        ),
        Example(
            """\
from functools import partial

import jax


@partial(jax.remat, save_policy=jax.checkpoint_policies.nothing_saveable)
def f(x):
    return x * x
""",
            """\
from functools import partial

import jax


@partial(jax.remat, policy=jax.checkpoint_policies.nothing_saveable)
def f(x):
    return x * x
""",
            use="slope = jax.grad(f)(3.0)\n",
            fails=Fails("TypeError: .*unexpected keyword argument 'save_policy'"),
            holds="assert slope == 6.0\n",
        ),
    ],
    "RMT402": [
        Example(
            """\
import jax

policy = jax.checkpoint_policies.save_anything_but_these_names("h")
""",
            """\
import jax

policy = jax.checkpoint_policies.save_anything_except_these_names("h")
""",
            use="f = jax.checkpoint(jax.numpy.sin, policy=policy)\n",
            fails=Fails("AttributeError: .*'save_anything_but_these_names'"),
            holds="assert jax.grad(f)(0.0) == 1.0\n",
        ),
        Example(
            """\
import jax

POLICY = "nothing_savable"
f = jax.checkpoint(
    jax.numpy.sin, policy=getattr(jax.checkpoint_policies, POLICY, None)
)
""",
            """\
import jax

POLICY = "nothing_saveable"
f = jax.checkpoint(
    jax.numpy.sin, policy=getattr(jax.checkpoint_policies, POLICY, None)
)
""",
            use="policy = getattr(jax.checkpoint_policies, POLICY, None)\n",
            shows="assert policy is None\n",
            holds="assert policy is jax.checkpoint_policies.nothing_saveable\n",
        ),
        Example(
            "from jax.checkpoint_policies import dots_saveable\n",
            use="dots_saveable\n",
            fails=Fails("ModuleNotFoundError: .*jax.checkpoint_policies"),
        ),
    ],
    "RMT404": [
        Example(
            """\
import jax

policy = jax.checkpoint_policies.dots_saveable()
""",
            """\
import jax

policy = jax.checkpoint_policies.dots_saveable
""",
            use="f = jax.checkpoint(jax.numpy.sin, policy=policy)\n",
            fails=Fails("TypeError: .*missing 1 required positional argument: 'prim'"),
            holds="assert jax.grad(f)(0.0) == 1.0\n",
        ),
        Example(
            """\
import jax
from jax.ad_checkpoint import checkpoint_name

NAMES = ("h", "y")
f = jax.checkpoint(
    lambda x: jax.numpy.sin(checkpoint_name(jax.numpy.sin(x), "h")),
    policy=jax.checkpoint_policies.save_only_these_names(NAMES),
)
""",
            """\
import jax
from jax.ad_checkpoint import checkpoint_name

NAMES = ("h", "y")
f = jax.checkpoint(
    lambda x: jax.numpy.sin(checkpoint_name(jax.numpy.sin(x), "h")),
    policy=jax.checkpoint_policies.save_only_these_names(*NAMES),
)
""",
            use="""\
from jax._src.ad_checkpoint import saved_residuals

kept = [text for _, text in saved_residuals(f, 1.0) if "argument" not in text]
""",
            shows="assert kept == []\n",
            holds="assert len(kept) == 1\n",
        ),
        Example(
            """\
import jax

f = jax.checkpoint(jax.numpy.sin, policy=lambda *_, **__: None)
""",
            use="slope = jax.grad(f)(0.0)\n",
            fails=Fails("TypeError: .*a remat policy|AssertionError", since="0.4.16"),
        ),
        Example(
            """\
import jax


def sines(prim, *operands):
    return prim.name == "sin"


f = jax.checkpoint(jax.numpy.dot, policy=sines)
""",
            use="""\
x = jax.numpy.ones(2)
slope = jax.grad(f)(x, x)
""",
            fails=Fails("TypeError: .*unexpected keyword argument"),
        ),
        Example(
            """\
import jax

policy = jax.checkpoint_policies.save_from_both_policies(
    jax.checkpoint_policies.dots_saveable,
    jax.checkpoint_policies.offload_dot_with_no_batch_dims("device", "pinned_host"),
)
""",
            use="""\
f = jax.checkpoint(jax.numpy.dot, policy=policy)
x = jax.numpy.ones(2)
jax.make_jaxpr(jax.grad(f))(x, x)
""",
            fails=Fails("ValueError: .*should be a boolean", since="0.4.38"),
        ),
    ],
}

RIGHT: dict[str, list[Example]] = {
    "RMT401": [
        Example(
            """\
from torch.utils.checkpoint import checkpoint

y = checkpoint(print, save_policy=1)
""",
        ),
    ],
    "RMT402": [
        Example(
            """\
import jax
import jax.ad_checkpoint

POLICY = "dots_saveable"
policy = getattr(jax.checkpoint_policies, POLICY)
names = jax.ad_checkpoint.checkpoint_policies.save_only_these_names("h")
""",
            use="f = jax.checkpoint(jax.numpy.sin, policy=policy)\n",
            holds="assert jax.grad(f)(0.0) == 1.0\n",
        ),
    ],
    "RMT403": [
        Example(
            """\
import jax

f = jax.checkpoint(print, policy=lambda prim, *_, **__: prim.name == "tanh")
""",
        ),
    ],
    "RMT404": [
        Example(
            """\
import jax

NAMES = ["h", "y"]
policy = jax.checkpoint_policies.save_and_offload_only_these_names(
    names_which_can_be_saved=NAMES,
    names_which_can_be_offloaded=["z"],
    offload_src="device",
    offload_dst="pinned_host",
)
""",
            use="f = jax.checkpoint(jax.numpy.sin, policy=policy)\n",
            holds="assert jax.grad(f)(0.0) == 1.0\n",
        ),
        Example(
            """\
import jax


def checkpointed(f, policy=None):
    if isinstance(policy, str):
        policy = getattr(jax.checkpoint_policies, policy)
    return jax.checkpoint(f, policy=policy)


g = checkpointed(print, "dots_saveable")
""",
        ),
    ],
}
