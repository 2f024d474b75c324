"""RMT405: a policy lists a name that nothing bears.

https://docs.jax.dev/en/latest/_autosummary/jax.ad_checkpoint.checkpoint_name.html
"""

from __future__ import annotations

from collections.abc import Iterator

from remat_migrate.analysis import Module, Project
from remat_migrate.analysis.policies.checkpoint_names import (
    Listed,
    foreign_packages,
    listed_names,
    names_of,
)
from remat_migrate.analysis.policies.typos import meant
from remat_migrate.codemod.changes import Rename
from remat_migrate.rule import Example, Finding, Fix, Rule, Safety

_USE = (
    "from jax._src.ad_checkpoint import saved_residuals\n"
    "kept = [text for _, text in saved_residuals(f, 1.0) if 'argument' not in text]\n"
)
_BEFORE = (
    "import jax\nfrom jax.ad_checkpoint import checkpoint_name\n\n\n"
    "def block(x):\n"
    '    return jax.numpy.sin(checkpoint_name(jax.numpy.sin(x), "attention_out"))\n\n\n'
    'policy = jax.checkpoint_policies.save_only_these_names("{}")\n'
    "f = jax.checkpoint(block, policy=policy)\n"
)


class UnknownName(Rule):
    """## What it does

    Finds names in the lists of `save_only_these_names`, `save_any_names_but_these` and
    `save_and_offload_only_these_names` that no `checkpoint_name` of the project gives to a value.
    f-strings and constants are followed. Where a name may be given out of sight, by another package
    or by a name that is computed, only a slip of a name that is given is reported.

    ## Why is this bad?

    Nobody says so: the value is not saved, and the checkpoint computes everything again as if it
    had no policy; a name that was to be left out is saved.

    ## Fix

    The name that is meant, where it is a slip of only one. What is saved changes: on request.
    """

    code, name = "RMT405", "unknown-name"
    severity = "warning"
    url = "https://docs.jax.dev/en/latest/_autosummary/jax.ad_checkpoint.checkpoint_name.html"
    wrong = [
        Example(
            _BEFORE.format("atention_out"),
            _BEFORE.format("attention_out"),
            use=_USE,
            shows="assert kept == []\n",
            holds="assert len(kept) == 1\n",
        ),
        Example(
            _BEFORE.format("query"),
            use=_USE,
            shows="assert kept == []\n",
        ),
    ]
    right = [
        Example(
            "import jax\nfrom jax.ad_checkpoint import checkpoint_name\n\n"
            'PREFIX = "layer"\n\n\n'
            "def block(x, i):\n"
            '    return jax.numpy.sin(checkpoint_name(jax.numpy.sin(x), f"{PREFIX}_{i}"))\n\n\n'
            'policy = jax.checkpoint_policies.save_only_these_names("layer_0")\n'
            "f = jax.checkpoint(lambda x: block(x, 0), policy=policy)\n",
            use=_USE,
            holds="assert len(kept) == 1\n",
        ),
        # What this package names cannot be seen.
        "import jax\nfrom attention_kernels import attention\n\n"
        "f = jax.checkpoint(\n"
        '    attention, policy=jax.checkpoint_policies.save_only_these_names("context")\n'
        ")\n",
    ]

    def check(self, module: Module, project: Project) -> Iterator[Finding]:
        """One finding for each name that is listed and not given."""
        for listed in listed_names(project, module):
            names = names_of(project)
            if names.gives(listed.name):
                continue
            slip = meant(listed.name, names.defined.exact)
            unseen = names.defined.open or bool(foreign_packages(project))
            if slip is None and unseen:
                continue
            effect = "saved in silence" if listed.role == "excluded" else "not saved, in silence"
            hint = f": `{slip}` is meant" if slip is not None else ""
            yield self.finding(
                module.source,
                module.span(listed.node),
                f"no `checkpoint_name` gives the name `{listed.name}`{hint}; what it stands for is"
                f" {effect}",
                confidence="low" if unseen else "high" if slip is not None else "medium",
                fix=_fix(listed, slip, unseen),
                reason=_reason(slip, sorted(names.defined.exact)),
            )


def _fix(listed: Listed, slip: str | None, unseen: bool) -> Fix | None:
    if slip is None:
        return None
    module, literal = listed.module, listed.literal
    title = f"write `{slip}`"
    segment = module.segment(literal) if literal is not None else ""
    if unseen or segment[1:-1] != listed.name or not module.editable:
        return Fix(title, Safety.MANUAL)
    assert literal is not None
    return Fix(title, Safety.UNSAFE, (Rename(module, literal, slip),))


def _reason(slip: str | None, given: list[str]) -> str:
    if slip is not None:
        return ""
    if not given:
        return "nothing in the project is named by `checkpoint_name`"
    shown = ", ".join(f"`{name}`" for name in given[:8])
    return f"there are {shown}" + (" and more" if len(given) > 8 else "")
