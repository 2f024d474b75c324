"""RMT406: a name that no policy mentions.

https://docs.jax.dev/en/latest/_autosummary/jax.ad_checkpoint.checkpoint_name.html
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from remat_migrate.analysis import Module, Project
from remat_migrate.analysis.policies.checkpoint_names import names_of
from remat_migrate.analysis.policies.values import factory_calls
from remat_migrate.rule import Example, Finding, Rule


class UnusedName(Rule):
    """## What it does

    Finds names given by `checkpoint_name` that no policy can ask for: the string stands nowhere
    else in the Python files of the project, and no policy saves all names. Off by default: a
    library names values for the policies of others, and settings may stand in other files.

    ## Why is this bad?

    Without a policy that mentions it a name does nothing. It may be what is left of a policy, or
    one of the two may be misspelt.

    ## Fix

    None: mention it in a policy, or take it away.
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
            use="from jax._src.ad_checkpoint import saved_residuals\n"
            "kept = [t for _, t in saved_residuals(f, 1.0) if 'argument' not in t]\n",
            holds="assert len(kept) == 1\n",
        ),
    ]

    def check(self, module: Module, project: Project) -> Iterator[Finding]:
        """One finding for each name that nothing else mentions."""
        for naming in names_of(project).namings:
            name = naming.text.only
            if naming.module is not module or not naming.sure or name is None:
                continue
            if _is_mentioned(project, name) or _saves_any_name(project):
                continue
            yield self.finding(
                module.source,
                module.span(naming.name),
                f"no policy of the project mentions the name `{name}`",
                confidence="medium",
            )


def _is_mentioned(project: Project, name: str) -> bool:
    """Whether a string holds the name, or matches it, that does not give it."""
    giving = {naming.name for naming in names_of(project).namings}
    giving |= {node for n in names_of(project).namings for _, node in n.text.places}
    part = max(re.split(r"\W+", name), key=len)  # of it a pattern of a policy may be made
    for module in project.mentioning((part,)):
        for node in module.nodes:
            if isinstance(node, ast.Constant) and node not in giving:
                if isinstance(node.value, str) and _says(node.value, name):
                    return True
    return False


def _says(text: str, name: str) -> bool:
    """Whether a string holds a name, or is a pattern for it."""
    if name in text:
        return True
    if "*" not in text and "|" not in text:
        return False
    try:
        return re.fullmatch(text, name) is not None
    except re.error:
        return False


def _saves_any_name(project: Project) -> bool:
    """Whether some policy saves what bears any name."""
    return any(
        names.role == "excluded"
        for module in project.mentioning(("checkpoint_policies", "save_any"))
        for _, policy in factory_calls(project, module)
        for names in policy.names
    )
