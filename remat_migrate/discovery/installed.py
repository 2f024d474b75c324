"""Installed packages and their entry points.

`importlib.metadata` provides the latter, but takes too long to import for a commit hook.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from functools import reduce
from pathlib import Path
from typing import NamedTuple

# The metadata folders of installed packages, and the file with their entry points.
_DESCRIPTIONS = (".dist-info", ".egg-info")
ENTRY_POINTS = "entry_points.txt"


class Offer(NamedTuple):
    """An entry point.

    Attributes:
        package: the package that declares it.
        name: its name.
        value: `module` or `module:attribute`.
    """

    package: str
    name: str
    value: str

    def load(self) -> object:
        """Import the object, with whatever exceptions that raises."""
        from importlib import import_module

        module, _, attributes = self.value.partition("[")[0].partition(":")
        found = import_module(module.strip())
        return reduce(getattr, filter(None, attributes.strip().split(".")), found)


def offers(group: str) -> list[Offer]:
    """Return the entry points of a group; of packages with the same name, the first counts."""
    packages: dict[str, list[Offer]] = {}
    for folder in sys.path:
        for name in descriptions(folder):
            package = name.rpartition(".")[0].partition("-")[0]
            key = re.sub(r"[-_.]+", "-", package).lower()
            if key not in packages:
                packages[key] = list(_offers(os.path.join(folder, name), key, group))
    return sorted({offer for found in packages.values() for offer in found})


def descriptions(folder: str) -> list[str]:
    """Return the sorted names of the metadata folders in a folder."""
    try:
        names = os.listdir(folder or os.curdir)
    except OSError:  # an archive, or nothing
        return []
    return sorted(name for name in names if name.endswith(_DESCRIPTIONS))


def _offers(description: str, package: str, group: str) -> Iterator[Offer]:
    try:
        with open(os.path.join(description, ENTRY_POINTS), encoding="utf-8") as file:
            lines = [line.strip() for line in file]
    except (OSError, UnicodeDecodeError):
        return  # Most packages have no entry points.
    section = ""
    for line in lines:
        if line.startswith("[") and line.endswith("]"):
            section = line[1:-1].strip()
        elif section == group and "=" in line and not line.startswith(("#", ";")):
            name, _, value = line.partition("=")
            yield Offer(package, name.strip(), value.strip())


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
