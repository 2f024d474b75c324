"""Prepare a worker for the imports of a project."""

from __future__ import annotations

from . import caches, flags, projects, stand_ins, successors


def install(root: str) -> None:
    """Import the modules below a folder with stand-ins for what is missing."""
    projects.add(root)
    caches.install()
    successors.install()
    stand_ins.install()
    flags.install()
