"""The base of the rules about `jax_remat3`, the next implementation of `jax.checkpoint`."""

from __future__ import annotations

from remat_migrate.analysis import Module, Project
from remat_migrate.analysis.policies.jax_remat3 import FLAG, FLAGS_SINCE, uses_next_implementation
from remat_migrate.analysis.policies.known_policies import Version
from remat_migrate.rule import Confidence, Finding, Fix, Related, Rule
from remat_migrate.text import SourceFile, Span

# Newer than every known release.
NEWEST: Version = (99,)

_OPT_IN = (
    f"`{FLAG}` is opt-in since jax {'.'.join(map(str, FLAGS_SINCE[FLAG]))} and planned to become"
    " the default"
)


class NextImplementationRule(Rule):
    """A rule about code that `jax_remat3` breaks. Off by default, as long as the flag is."""

    enabled = False
    severity = "note"
    url = "https://docs.jax.dev/en/latest/_autosummary/jax.checkpoint.html"

    def next_finding(
        self,
        project: Project,
        location: tuple[SourceFile, Span],
        message: str,
        advice: str,
        *,
        confidence: Confidence = "high",
        fix: Fix | None = None,
        related: tuple[Related, ...] = (),
    ) -> Finding:
        """Return a finding, which is a warning in projects that set the flag."""
        return self.finding(
            *location,
            message,
            severity="warning" if uses_next_implementation(project) else "note",
            confidence=confidence,
            fix=fix,
            related=related,
            reason="" if fix else f"{advice}; {_OPT_IN}",
        )


def judged_release(project: Project, module: Module) -> Version:
    """Return the release whose implementation counts: the target version if it has the flag."""
    version = project.jax_version(module.source.path)
    return version if version >= FLAGS_SINCE[FLAG] else NEWEST
