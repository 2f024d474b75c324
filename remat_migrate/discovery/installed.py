"""Where installed packages are, and what they offer to others.

`importlib.metadata` tells the latter, too, but its import takes longer than a commit hook may.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from functools import reduce
from pathlib import Path
from typing import NamedTuple

# The folders in which an installed package describes itself, and the file of what it offers.
_DESCRIPTIONS = (".dist-info", ".egg-info")
ENTRY_POINTS = "entry_points.txt"


class Offer(NamedTuple):
    """An entry point: what a package offers to a group.

    Attributes:
        package: the package that offers it.
        name: its name in the group.
        value: where it is: `module` or `module:attribute`.
    """

    package: str
    name: str
    value: str

    def load(self) -> object:
        """Import what is offered; errors are those of the import."""
        from importlib import import_module

        module, _, attributes = self.value.partition("[")[0].partition(":")
        found = import_module(module.strip())
        return reduce(getattr, filter(None, attributes.strip().split(".")), found)


def offers(group: str) -> list[Offer]:
    """What the packages on the import path offer to a group; of two of one name, the first."""
    packages: dict[str, list[Offer]] = {}
    for folder in sys.path:
        for name in descriptions(folder):
            package = name.rpartition(".")[0].partition("-")[0]
            key = re.sub(r"[-_.]+", "-", package).lower()
            if key not in packages:
                packages[key] = list(_offers(os.path.join(folder, name), key, group))
    return sorted({offer for found in packages.values() for offer in found})


def descriptions(folder: str) -> list[str]:
    """The names of the folders in which the packages of a folder describe themselves, sorted."""
    try:
        names = os.listdir(folder or os.curdir)
    except OSError:  # no folder: an archive, or nothing
        return []
    return sorted(name for name in names if name.endswith(_DESCRIPTIONS))


def _offers(description: str, package: str, group: str) -> Iterator[Offer]:
    try:
        with open(os.path.join(description, ENTRY_POINTS), encoding="utf-8") as file:
            lines = [line.strip() for line in file]
    except (OSError, UnicodeDecodeError):
        return  # most packages offer nothing
    section = ""
    for line in lines:
        if line.startswith("[") and line.endswith("]"):
            section = line[1:-1].strip()
        elif section == group and "=" in line and not line.startswith(("#", ";")):
            name, _, value = line.partition("=")
            yield Offer(package, name.strip(), value.strip())


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
