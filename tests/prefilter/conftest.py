"""Projects for tests of the prefilter."""

from analysis.conftest import OpenProject, open_project

__all__ = ["OpenProject", "open_project"]
