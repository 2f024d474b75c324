"""The settings: `[tool.remat-migrate]` of pyproject.toml, and options that override it."""

from .nearest import NearestSettings
from .reading import load_settings
from .settings import (
    NEWEST_JAX,
    SEVERITIES,
    Globs,
    Options,
    PerFileIgnore,
    Settings,
    Severity,
    Wrapper,
    check_codes,
    did_you_mean,
    fails_run,
)

__all__ = [
    "NEWEST_JAX",
    "SEVERITIES",
    "Globs",
    "NearestSettings",
    "Options",
    "PerFileIgnore",
    "Settings",
    "Severity",
    "Wrapper",
    "check_codes",
    "did_you_mean",
    "fails_run",
    "load_settings",
]
