"""Installed packages: where they are described, and where imports of a project find them."""

from __future__ import annotations

import os
from pathlib import Path

# The metadata folders of installed packages, and the file with their entry points.
_DESCRIPTIONS = (".dist-info", ".egg-info")
ENTRY_POINTS = "entry_points.txt"


def descriptions(folder: str) -> list[str]:
    """Return the sorted names of the metadata folders in a folder."""
    try:
        names = os.listdir(folder or os.curdir)
    except OSError:  # an archive, or nothing
        return []
    return sorted(name for name in names if name.endswith(_DESCRIPTIONS))


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
