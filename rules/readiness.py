"""What the rules about `jax_remat3`, the next implementation of checkpoints, have in common."""

from __future__ import annotations

from typing import ClassVar

from remat_migrate.analysis import Project
from remat_migrate.analysis.policies.jax_remat3 import FLAG, FLAGS_SINCE, uses_next_implementation
from remat_migrate.analysis.policies.known_policies import Version
from remat_migrate.rule import Rule, Severity

_BEHIND = (
    f"{FLAG} is a flag since jax {'.'.join(map(str, FLAGS_SINCE[FLAG]))}, and is to become the"
    " default"
)


class Readiness(Rule):
    """The base of these rules: off by default, as long as the flag is."""

    enabled: ClassVar[bool] = False
    severity: ClassVar[Severity] = "note"
    url: ClassVar[str] = "https://docs.jax.dev/en/latest/_autosummary/jax.checkpoint.html"


def severity(project: Project) -> Severity:
    """How much it matters: today only to projects that set the flag."""
    return "warning" if uses_next_implementation(project) else "note"


def because(more: str) -> str:
    """A reason with what the flag is."""
    return f"{more}; {_BEHIND}"


def judged_by(project: Project) -> Version:
    """The release by whose implementation to judge: the target, if that has the flag."""
    version = project.settings.jax_version
    return version if version >= FLAGS_SINCE[FLAG] else NEWEST


# Newer than any that this knows.
NEWEST: Version = (99,)
