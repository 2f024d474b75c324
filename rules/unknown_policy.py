"""RMT402: a name does not exist in `jax.checkpoint_policies`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from remat_migrate.api import Example, Fails, Finding, Fix, Module, Project, Rule, Safety
from remat_migrate.api.changes import Rename
from remat_migrate.api.code import expects_failure
from remat_migrate.api.policies import (
    NAMESPACE,
    POLICIES,
    Policy,
    PolicyName,
    Version,
    available,
    is_added,
    policy_names_read,
)

_READ = "import jax\n\npolicy = %s\nf = jax.checkpoint(jax.numpy.sin, policy=policy)\n"


class UnknownPolicy(Rule):
    """## What it does
    Checks for names that are read from `jax.checkpoint_policies` but do not exist in the target
    version of JAX: as an attribute, or with `getattr` and a resolvable name. Some names exist in
    other versions only.

    ## Why is this bad?
    It raises `AttributeError`. A `getattr` with a default hides the problem: the policy is the
    default, usually `None`, and everything is recomputed.

    ## Fix
    Writes the intended name, if only one is similar.
    """

    code, name = "RMT402", "unknown-policy"
    url = "https://docs.jax.dev/en/latest/jax.html#jax.checkpoint_policies"
    wrong = [
        Example(
            _READ % "jax.checkpoint_policies.dot_saveable",
            _READ % "jax.checkpoint_policies.dots_saveable",
            use="slope = jax.grad(f)(0.0)\n",
            fails=Fails("AttributeError: .*'dot_saveable'"),
            holds="assert slope == 1.0\n",
        ),
        Example(
            _READ % 'getattr(jax.checkpoint_policies, "nothing_savable", None)',
            _READ % 'getattr(jax.checkpoint_policies, "nothing_saveable", None)',
            use="slope = jax.grad(f)(0.0)\n",
            shows="assert policy is None\n",
            holds="assert policy is jax.checkpoint_policies.nothing_saveable\n",
        ),
    ]
    right = [
        # Handles JAX versions that lack it.
        "import jax\n\n"
        "try:\n"
        "    policy = jax.checkpoint_policies.offload_everything\n"
        "except AttributeError:\n"
        "    policy = None\n",
        "from my_library import checkpoint_policies\n\npolicy = checkpoint_policies.my_own\n",
    ]

    def check(self, module: Module, project: Project) -> Iterator[Finding]:
        """Report each read of such a name."""
        version = project.jax_version(module.source.path)
        for read in policy_names_read(project, module):
            known = POLICIES.get(read.name)
            if known is not None and known.is_in(version):
                continue
            if is_added(project, read.name) or expects_failure(module, read.node):
                continue
            hint = _hint(read, version)
            effect = ""
            if read.default is not None:
                effect = f"; it silently becomes `{module.segment(read.default)}`"
            yield self.finding(
                *module.location(read.node),
                f"{_problem(read, known, version)}{effect}{_suggestion(read, hint)}",
                severity="error" if read.default is None else "warning",
                fix=_fix(module, read, hint),
                reason=hint.reason,
            )


@dataclass(frozen=True, slots=True)
class Hint:
    """The intended name, if there is one, and why it cannot simply be substituted."""

    name: str | None
    reason: str = ""


def _fix(module: Module, read: PolicyName, hint: Hint) -> Fix | None:
    if hint.name is None:
        return None
    title = f"use `{hint.name}`"
    if hint.reason or read.written is None:
        return Fix.manual(title)
    safety = Safety.SAFE if read.default is None else Safety.UNSAFE
    return Fix(title, safety, (Rename(module, read.written, hint.name),))


def _problem(read: PolicyName, known: Policy | None, version: Version) -> str:
    if known is None:
        return f"`{NAMESPACE}` has no `{read.name}`"
    if version < known.since:
        return f"`{NAMESPACE}.{read.name}` does not exist before jax {_text(known.since)}"
    assert known.removed_in is not None
    return f"`{NAMESPACE}.{read.name}` was removed in jax {_text(known.removed_in)}"


def _text(version: Version) -> str:
    return ".".join(map(str, version))


def _hint(read: PolicyName, version: Version) -> Hint:
    known = POLICIES.get(read.name)
    if known is None:
        from difflib import get_close_matches  # it takes as long to import as a small check

        same = {p.name: p.same_as or p.name for p in available(version)}
        near = partial(get_close_matches, read.name, same)
        similar = near(cutoff=0.9) or near(cutoff=0.8)
        if len({same[found] for found in similar}) != 1:
            names = ", ".join(f"`{policy.name}`" for policy in available(version))
            return Hint(None, f"available policies: {names}")
        return Hint(similar[0])
    usual = known.same_as or known.name
    for policy in available(version):
        if usual in (policy.name, policy.same_as) and policy.name != read.name:
            if policy.kind == known.kind:
                return Hint(policy.name)
            return Hint(policy.name, "it takes its arguments differently")
    return Hint(None)


def _suggestion(read: PolicyName, hint: Hint) -> str:
    if hint.name is None:
        return ""
    return f"; use `{hint.name}`" if read.name in POLICIES else f"; did you mean `{hint.name}`?"
