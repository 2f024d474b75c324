"""Prepare a worker for the imports of a project."""

from __future__ import annotations

from . import caches, definitions, flags, imports, options, projects, waiting


def install(root: str) -> None:
    """Import the modules below a folder with substitutes for what is missing."""
    projects.add(root)
    caches.install()
    imports.install()
    definitions.install()
    flags.install()
    waiting.install()
    options.install()
