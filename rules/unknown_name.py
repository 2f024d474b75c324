"""RMT405: a policy lists a name that no value has."""

from __future__ import annotations

from collections.abc import Iterator

from remat_migrate.api import Example, Finding, Fix, Module, Project, Rule, Safety
from remat_migrate.api.changes import Rename
from remat_migrate.api.policies import (
    Listed,
    foreign_packages,
    intended_name,
    listed_names,
    names_of,
    why_unsaved,
)

from .shared.example_uses import RESIDUALS

_BEFORE = (
    "import jax\nfrom jax.ad_checkpoint import checkpoint_name\n\n\n"
    "def block(x):\n"
    '    return jax.numpy.sin(checkpoint_name(jax.numpy.sin(x), "attention_out"))\n\n\n'
    'policy = jax.checkpoint_policies.save_only_these_names("{}")\n'
    "f = jax.checkpoint(block, policy=policy)\n"
)


_NAMED = """\
from functools import partial

import jax
from jax.ad_checkpoint import checkpoint_name


%sdef hidden(x):
    return checkpoint_name(jax.numpy.tanh(x), "h")


@partial(jax.checkpoint, policy=jax.checkpoint_policies.save_only_these_names(%s))
def f(x):
    y = jax.numpy.sin(hidden(x))
    return %s
"""


class UnknownName(Rule):
    """## What it does
    Checks for names in `save_only_these_names`, `save_any_names_but_these`, and
    `save_and_offload_only_these_names` that no `checkpoint_name` in the project gives to a value.
    Constants are resolved. Where another package or a computed name may define it, only typos of
    known names are reported. Also checks for names that only values have which cannot be residuals:
    values inside a function with `jax.custom_vjp` or `jax.custom_jvp`, and values that the
    checkpointed function only returns.

    ## Why is this bad?
    It fails silently. The value is not saved and the checkpoint recomputes everything, or a value
    that should be excluded is saved.

    ## Fix
    Writes the intended name, if only one is similar. The fix changes what is saved, so it is
    unsafe.
    """

    code, name = "RMT405", "unknown-name"
    fix_safety = Safety.UNSAFE
    severity = "warning"
    url = "https://docs.jax.dev/en/latest/_autosummary/jax.ad_checkpoint.checkpoint_name.html"
    wrong = [
        Example(
            _BEFORE.format("atention_out"),
            _BEFORE.format("attention_out"),
            use=RESIDUALS,
            shows="assert kept == []\n",
            holds="assert len(kept) == 1\n",
        ),
        Example(
            _BEFORE.format("query"),
            use=RESIDUALS,
            shows="assert kept == []\n",
        ),
        Example(
            _NAMED % ("@jax.custom_jvp\n", '"h"', "y"),
            use="hidden.defjvps(lambda dx, y, x: dx * (1 - y**2))\n" + RESIDUALS,
            shows="assert kept == []\n",
        ),
        Example(
            _NAMED % ("", '"out"', 'checkpoint_name(y, "out")'),
            use=RESIDUALS,
            shows="assert kept == []\n",
        ),
    ]
    right = [
        Example(_NAMED % ("", '"h"', "y"), use=RESIDUALS, holds="assert len(kept) == 1\n"),
        Example(
            "import jax\nfrom jax.ad_checkpoint import checkpoint_name\n\n"
            'PREFIX = "layer"\n\n\n'
            "def block(x, i):\n"
            '    return jax.numpy.sin(checkpoint_name(jax.numpy.sin(x), f"{PREFIX}_{i}"))\n\n\n'
            'policy = jax.checkpoint_policies.save_only_these_names("layer_0")\n'
            "f = jax.checkpoint(lambda x: block(x, 0), policy=policy)\n",
            use=RESIDUALS,
            holds="assert len(kept) == 1\n",
        ),
        # The names that this package uses are unknown.
        "import jax\nfrom attention_kernels import attention\n\n"
        "f = jax.checkpoint(\n"
        '    attention, policy=jax.checkpoint_policies.save_only_these_names("context")\n'
        ")\n",
    ]

    def check(self, module: Module, project: Project) -> Iterator[Finding]:
        """Report each listed name that is never defined."""
        for listed in listed_names(project, module):
            names = project.once(names_of)
            if listed.name in names.known:
                if not names.is_open and (why := why_unsaved(project, module, listed)):
                    yield self.finding(
                        *module.location(listed.node),
                        f"`{listed.name}` {why[0]}; the policy saves nothing by this name",
                        confidence="medium",
                        reason=why[1],
                    )
                continue
            typo_of = intended_name(listed.name, names.known)
            incomplete = names.is_open or bool(project.once(foreign_packages))
            if typo_of is None and incomplete:
                continue
            effect = "saved" if listed.role == "excluded" else "not saved"
            hint = f"; did you mean `{typo_of}`?" if typo_of is not None else ""
            yield self.finding(
                *module.location(listed.node),
                f"no `checkpoint_name` defines `{listed.name}`, so its value is silently"
                f" {effect}{hint}",
                confidence="low" if incomplete else "high" if typo_of is not None else "medium",
                fix=_fix(module, listed, typo_of, incomplete) if typo_of is not None else None,
                reason=_known(sorted(names.known)) if typo_of is None else "",
            )


def _fix(module: Module, listed: Listed, name: str, incomplete: bool) -> Fix:
    literal = listed.literal
    title = f"write `{name}`"
    segment = module.segment(literal) if literal is not None else ""
    if literal is None or incomplete or segment[1:-1] != listed.name or not module.is_own:
        return Fix.manual(title)
    return Fix(title, Safety.UNSAFE, (Rename(module, literal, name),))


def _known(names: list[str]) -> str:
    if not names:
        return "the project does not use `checkpoint_name`"
    shown = ", ".join(f"`{name}`" for name in names[:8])
    return f"defined names: {shown}" + (" and more" if len(names) > 8 else "")
