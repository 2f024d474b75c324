"""What the code means to JAX: names, sites, calls, and arguments that must be concrete."""

from .names.module import Module
from .project import Project
from .sites.calls import uses_of
from .sites.find_sites import sites_in, sites_of
from .sites.site import Site

__all__ = ["Module", "Project", "Site", "sites_in", "sites_of", "uses_of"]
