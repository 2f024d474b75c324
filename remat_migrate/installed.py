"""Where installed packages are."""

from __future__ import annotations

import os
from pathlib import Path


def environments(root: Path) -> tuple[Path, ...]:
    """The packages' folders of the active virtual environment, and of the project's own."""
    prefixes = [os.environ.get("VIRTUAL_ENV"), root / ".venv", root / "venv"]
    return tuple(
        folder
        for prefix in prefixes
        if prefix
        for folder in sorted(Path(prefix).glob("lib/python*/site-packages"))
    )


def default_search_path(root: Path) -> tuple[Path, ...]:
    """Where the project's imports are looked up: those of `environments`, then our own packages."""
    import sysconfig

    return tuple(dict.fromkeys([*environments(root), Path(sysconfig.get_path("purelib"))]))
