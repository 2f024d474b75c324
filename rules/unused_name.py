"""RMT406: no policy mentions a name."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from remat_migrate.analysis import Module, Project
from remat_migrate.analysis.policies.checkpoint_names import names_of
from remat_migrate.analysis.policies.values import factory_calls
from remat_migrate.rule import Example, Finding, Rule

from .shared.example_uses import RESIDUALS


class UnusedName(Rule):
    """## What it does
    Checks for names given by `checkpoint_name` that no policy refers to: the string appears nowhere
    else in the Python files of the project, and no policy saves all names. Off by default: a
    library names values for the policies of its users, and other files may contain settings.

    ## Why is this bad?
    A name has no effect without a policy that mentions it. It may be left over from a removed
    policy, or one of the two may be misspelled.

    ## Fix
    Not fixed automatically. Mention the name in a policy, or remove it.
    """

    code, name = "RMT406", "unused-name"
    severity = "note"
    words = ("checkpoint_name",)
    url = "https://docs.jax.dev/en/latest/_autosummary/jax.ad_checkpoint.checkpoint_name.html"
    enabled = False
    wrong = [
        Example(
            "import jax\nfrom jax.ad_checkpoint import checkpoint_name\n\n\n"
            "def block(x):\n"
            '    return jax.numpy.sin(checkpoint_name(jax.numpy.sin(x), "h"))\n\n\n'
            "f = jax.checkpoint(block)\n",
            use="slope = jax.grad(f)(0.0)\nplain = jax.grad(jax.checkpoint(lambda x:"
            " jax.numpy.sin(jax.numpy.sin(x))))(0.0)\n",
            shows="assert slope == plain\n",
        ),
    ]
    right = [
        Example(
            "import jax\nfrom jax.ad_checkpoint import checkpoint_name\n\n\n"
            "def block(x):\n"
            '    return jax.numpy.sin(checkpoint_name(jax.numpy.sin(x), "h"))\n\n\n'
            "policy = jax.checkpoint_policies.save_only_these_names('h')\n"
            "f = jax.checkpoint(block, policy=policy)\n",
            use=RESIDUALS,
            holds="assert len(kept) == 1\n",
        ),
    ]

    def check(self, module: Module, project: Project) -> Iterator[Finding]:
        """Report each name that no policy mentions."""
        for naming in project.once(names_of).namings:
            name = naming.text.only
            if naming.module is not module or not naming.sure or name is None:
                continue
            if _is_mentioned(project, name) or _saves_any_name(project):
                continue
            yield self.finding(
                *module.location(naming.name),
                f"no policy in the project mentions the name `{name}`",
                confidence="medium",
            )


def _is_mentioned(project: Project, name: str) -> bool:
    """Return whether a string other than the definition contains or matches a name."""
    namings = project.once(names_of).namings
    defining = {naming.name for naming in namings}
    defining |= {node for naming in namings for _, node in naming.text.places}
    part = max(re.split(r"\W+", name), key=len)  # a policy may match the name with a pattern
    for module in project.mentioning((part,)):
        for node in module.nodes:
            if isinstance(node, ast.Constant) and node not in defining:
                if isinstance(node.value, str) and _matches(node.value, name):
                    return True
    return False


def _matches(text: str, name: str) -> bool:
    """Return whether a string contains a name, or is a pattern that matches it."""
    if name in text:
        return True
    if "*" not in text and "|" not in text:
        return False
    try:
        return re.fullmatch(text, name) is not None
    except re.error:
        return False


def _saves_any_name(project: Project) -> bool:
    """Return whether a policy saves all names but some."""
    return any(
        names.role == "excluded"
        for module in project.mentioning(("checkpoint_policies", "save_any"))
        for _, policy in factory_calls(project, module)
        for names in policy.names
    )
