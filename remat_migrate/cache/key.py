"""The cache key: what a run depends on besides files, namely tool, command and environment."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from .. import __version__
from ..discovery.discover import Survey
from ..discovery.installed import environments

# The variables that reports and analysis read; `tests/test_cache.py` looks for others.
VARIABLES = (
    "COLUMNS",
    "FORCE_COLOR",
    "NO_COLOR",
    "TERM",
    "VIRTUAL_ENV",
)


def key_of(command: str, parameters: Mapping[str, object], about: Survey) -> str:
    """Return the key of a run.

    Args:
        command: the name of the command.
        parameters: its parameters.
        about: its settings and folders; its files are not part of the key.
    """
    root = about.settings.root
    parts = (
        (__version__, sys.version, sys.prefix, sys.path, _packages()),
        (command, sorted(parameters.items())),
        (os.getcwd(), _stream(sys.stdout), _stream(sys.stderr)),
        [(name, os.environ.get(name)) for name in VARIABLES],
        about.nearest,
        about.folders,
        # Some formats name files relative to the repository.
        [str(above) for above in (root, *root.parents) if (above / ".git").exists()],
        environments(root),
    )
    return "\n".join(map(repr, parts))


def code_files() -> list[str]:
    """Return the files that implement a run.

    These are the loaded modules, except the standard library, and the files in which packages
    declare entry points.
    """
    own = os.path.dirname(os.__file__) + os.sep
    found = [
        os.path.join(folder, name, "entry_points.txt")
        for folder in sys.path
        for name in _descriptions(folder)
    ]
    found = [file for file in found if os.path.isfile(file)]
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and not (file.startswith(own) and "site-packages" not in file):
            found.append(file)
    templates = Path(__file__).parents[1] / "report" / "pages" / "templates"
    return [*found, *map(str, templates.iterdir())]


def _packages() -> list[list[str]]:
    """Return the packages in each folder of sys.path, any of which may provide rules."""
    return [_descriptions(folder) for folder in sys.path]


def _descriptions(folder: str) -> list[str]:
    """Return the sorted names of the metadata folders of the packages in a folder."""
    with suppress(OSError):  # an archive, or nothing
        names = os.listdir(folder or os.curdir)
        return sorted(name for name in names if name.endswith((".dist-info", ".egg-info")))
    return []


def _stream(stream: TextIO) -> tuple[object, ...]:
    """Return what affects how output looks on a stream."""
    width: int | None = None
    is_terminal = stream.isatty()
    if is_terminal:
        # Same as `report.terminal.display.terminal_width`, which is too slow to import here.
        with suppress(OSError, ValueError):
            width = os.get_terminal_size(stream.fileno()).columns
    return is_terminal, width, stream.encoding, stream.errors
