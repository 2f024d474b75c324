"""The settings: `[tool.remat-migrate]` of pyproject.toml, and options that override it."""

from .nearest import NearestSettings
from .reading import load_settings
from .settings import Options, Settings

__all__ = ["NearestSettings", "Options", "Settings", "load_settings"]
