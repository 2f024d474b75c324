"""What the code means to JAX: names, Apis, sites, calls, which arguments Python must know."""

from .names.module import Module
from .project import Project
from .sites.site import Site

__all__ = ["Module", "Project", "Site"]
