"""Settings: `[tool.remat-migrate]` of pyproject.toml as one frozen value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Wrapper:
    """A user's own function that applies a checkpoint, as named in the settings.

    `name` is the qualified name (`mypkg.layers.maybe_remat`), `like` the Api whose options and
    counting of static arguments it follows.
    """

    name: str
    like: str = "jax.checkpoint"


@dataclass(frozen=True, slots=True)
class Settings:
    """What a run is asked to do. Codes in `select` and `ignore` are prefixes (`RMT1`)."""

    root: Path = field(default_factory=Path.cwd)
    select: tuple[str, ...] = ("RMT",)
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    per_file_ignores: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    exclude: tuple[str, ...] = ()
    jax_version: tuple[int, ...] = (0, 12, 0)
    jobs: int = 0
    search_path: tuple[Path, ...] = ()
    wrappers: tuple[Wrapper, ...] = ()
