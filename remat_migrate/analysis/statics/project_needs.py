"""Which parameters of a project's functions must be concrete at trace time."""

from __future__ import annotations

from ..needs.needs import Needs
from ..project import Project
from ..sites.subclasses import overrides_of
from ..values.overrides import Overrides


def project_needs(project: Project) -> Needs:
    """Return the parameters that must be concrete if no subclass overrides a method."""
    return project.once(_needs)


def needs_with_overrides(project: Project) -> Needs:
    """Return the same if an object may be an instance of a subclass.

    This searches the project for subclasses, so fixes use it, but checks do not.
    """
    return project.once(_needs_with_overrides)


def _needs(project: Project) -> Needs:
    return Needs(Overrides(project.evaluator))


def _needs_with_overrides(project: Project) -> Needs:
    return Needs(overrides_of(project))
