"""Which parameters of a project's functions must be concrete at trace time."""

from __future__ import annotations

from ..needs.needs import Needs
from ..project import Project
from ..sites.subclasses import overrides_of
from ..values.overrides import Overrides


def project_needs(project: Project) -> Needs:
    """Return the parameters that must be concrete, where each method is the one that is seen."""
    return project.once(_needs)


def needs_with_overrides(project: Project) -> Needs:
    """Return the same where an object may be an instance of a subclass.

    This takes a search for subclasses, so it is for what is rewritten, not for what is checked.
    """
    return project.once(_needs_with_overrides)


def _needs(project: Project) -> Needs:
    return Needs(Overrides(project.evaluator), project.learned)


def _needs_with_overrides(project: Project) -> Needs:
    return Needs(overrides_of(project), project.learned)
