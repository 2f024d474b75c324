"""Programs that run the examples of several rules, and what they assert."""

from __future__ import annotations

from remat_migrate.api import Fails

TRACED = Fails("TracerBoolConversionError|ConcretizationTypeError")

# A checkpointed function, and a loss that calls it.
BLOCK = """\
from functools import partial

import jax
import jax.numpy as jnp


@partial(jax.checkpoint, {options})
def block({parameters}):
    {body}


def loss(x):
    return jnp.sum(block({arguments}))
"""
GRADIENT = "value, gradient = jax.value_and_grad(loss)(jnp.ones(3))\n"
DOUBLED = "assert value == 6 and (gradient == 2).all()\n"

FLAX_INIT = """\
import jax

value, variables = Net().init_with_output(jax.random.PRNGKey(0), jax.numpy.ones(3))
"""

# The intermediate values that a policy saves.
RESIDUALS = """\
from jax._src.ad_checkpoint import saved_residuals

kept = [text for _, text in saved_residuals(f, 1.0) if "argument" not in text]
"""
