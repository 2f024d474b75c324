"""What the code means to JAX: names, Apis, sites, calls, which arguments Python must know."""

from .module import Module
from .project import Project
from .sites import Site

__all__ = ["Module", "Project", "Site"]
