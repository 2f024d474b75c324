"""RMT404: an expression is not the policy that it looks like."""

from __future__ import annotations

from collections.abc import Iterator

from remat_migrate.api import Example, Fails, Finding, Module, Project, Rule
from remat_migrate.api.code import expects_failure

from .shared.example_uses import RESIDUALS
from .shared.policy_faults import faults_in

_SIN = "import jax\n\nf = jax.checkpoint(jax.numpy.sin, policy=%s)\n"
_TABLE = """\
import jax

POLICIES = {
    "dots": jax.checkpoint_policies.dots_saveable,
    "names": %s,
}


def f(x, policy="names"):
    return jax.checkpoint(jax.numpy.tanh, policy=POLICIES[policy])(x)
"""
_SLOPE = "slope = jax.grad(f)(0.0)\n"


class PolicyCall(Rule):
    """## What it does
    Checks for expressions that are passed as a policy but are not one:

    - a policy that is called: `nothing_saveable()` is `False`, `everything_saveable()` is `True`,
      `dots_saveable()` raises;
    - a factory that is not called: `policy=jax.checkpoint_policies.save_only_these_names`, or such
      a factory among the policies in a dictionary;
    - names in a list or tuple: `save_only_these_names(["h"])`, or `names_which_can_be_saved="h"`;
    - a string, a number, or `True`; a function that returns neither `True` nor `False`, or does not
      accept `**` arguments.

    ## Why is this bad?
    Most of these raise `TypeError` once the checkpoint is differentiated. Some fail silently:
    `policy=False` acts like no policy until `jax_remat3` calls it, and names in a tuple never
    match, so nothing is saved. Under `jax_remat3`, invalid policies go unnoticed where the function
    has neither matrix products nor named values, and always in jax 0.10 and 0.11.

    ## Fix
    Removes the call, unpacks the names, or writes the policy that a string names.
    """

    code, name = "RMT404", "policy-call"
    url = "https://docs.jax.dev/en/latest/jax.html#jax.checkpoint_policies"
    wrong = [
        Example(
            _SIN % "jax.checkpoint_policies.nothing_saveable()",
            _SIN % "jax.checkpoint_policies.nothing_saveable",
            use="policy = jax.checkpoint_policies.nothing_saveable()\nslope = jax.grad(f)(0.0)\n",
            shows="assert policy is False\n",
            holds="assert slope == 1.0\n",
        ),
        Example(
            _SIN.replace("sin", "tanh") % "jax.checkpoint_policies.save_only_these_names",
            use=_SLOPE,
            fails=Fails("TypeError|AssertionError"),
        ),
        Example(
            _TABLE % "jax.checkpoint_policies.save_only_these_names",
            use=_SLOPE,
            fails=Fails("TypeError|AssertionError"),
        ),
        Example(
            'import jax\n\npolicy = jax.checkpoint_policies.save_only_these_names(["h", "y"])\n',
            'import jax\n\npolicy = jax.checkpoint_policies.save_only_these_names("h", "y")\n',
            use="f = jax.checkpoint(jax.numpy.sin, policy=policy)\n",
            fails=Fails("TypeError: unhashable type: 'list'"),
            holds="assert jax.grad(f)(0.0) == 1.0\n",
        ),
        Example(
            _SIN % '"dots_saveable"',
            _SIN % "jax.checkpoint_policies.dots_saveable",
            use=_SLOPE,
            fails=Fails("TypeError: 'str' object is not callable"),
            holds="assert slope == 1.0\n",
        ),
    ]
    right = [
        _TABLE % 'jax.checkpoint_policies.save_only_these_names("h")',
        _TABLE.replace("[policy]", "[policy](x)") % "jax.checkpoint_policies.save_only_these_names",
        Example(
            "import jax\n\n\n"
            "def own(prim, *operands, **parameters):\n"
            "    dots = jax.checkpoint_policies.dots_saveable(prim, *operands, **parameters)\n"
            '    return dots or prim.name == "sin"\n\n\n'
            "f = jax.checkpoint(lambda x: jax.numpy.sin(jax.numpy.sin(x)), policy=own)\n",
            use=RESIDUALS,
            holds="assert jax.grad(f)(0.0) == 1.0\n",
        ),
    ]

    def check(self, module: Module, project: Project) -> Iterator[Finding]:
        """Report each expression that is not a valid policy."""
        for fault in faults_in(project, module):
            if not expects_failure(module, fault.node):
                yield self.finding(
                    *module.location(fault.node),
                    fault.message,
                    severity="warning" if fault.is_silent else "error",
                    fix=fault.fix,
                )
