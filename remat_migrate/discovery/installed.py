"""Installed packages: where imports of a project find them."""

from __future__ import annotations

import os
from pathlib import Path


def environments(root: Path) -> tuple[Path, ...]:
    """Return the site-packages of the active and of the project's virtual environments."""
    prefixes = [os.environ.get("VIRTUAL_ENV"), root / ".venv", root / "venv"]
    return tuple(
        folder
        for prefix in prefixes
        if prefix
        for folder in sorted(Path(prefix).glob("lib/python*/site-packages"))
    )


def default_search_path(root: Path) -> tuple[Path, ...]:
    """Return where to look up imports: the `environments`, then this interpreter's packages."""
    import sysconfig

    return tuple(dict.fromkeys([*environments(root), Path(sysconfig.get_path("purelib"))]))
