"""What the outcome of a run depends on, files apart: the tool, the command, the surroundings."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from .. import __version__
from ..discovery.installed import ENTRY_POINTS, descriptions, environments
from ..discovery.survey import Survey

# What reports and analysis read of the environment (`tests/test_cache.py` looks for others).
VARIABLES = (
    "CI_PROJECT_DIR",
    "COLUMNS",
    "FORCE_COLOR",
    "GITHUB_WORKSPACE",
    "NO_COLOR",
    "TERM",
    "VIRTUAL_ENV",
)


def key_of(command: str, parameters: Mapping[str, object], about: Survey) -> str:
    """The key of a run, as text.

    Args:
        command: the command's name.
        parameters: what it was given, by name.
        about: its settings and files; of the files nothing is in the key.
    """
    root = about.settings.root
    parts = (
        (__version__, sys.version, sys.prefix, sys.path, _packages()),
        (command, sorted(parameters.items())),
        (os.getcwd(), _stream(sys.stdout), _stream(sys.stderr)),
        [(name, os.environ.get(name)) for name in VARIABLES],
        about.settings,
        about.folders,
        # Formats name files relative to the repository.
        [str(above) for above in (root, *root.parents) if (above / ".git").exists()],
        environments(root),
    )
    return "\n".join(map(repr, parts))


def code_files() -> list[str]:
    """The files that a run has been computed by: of all modules that are loaded, but for those of
    Python itself; and those by which packages say that they offer rules."""
    own = os.path.dirname(os.__file__) + os.sep
    found = [
        os.path.join(folder, name, ENTRY_POINTS)
        for folder in sys.path
        for name in descriptions(folder)
    ]
    found = [file for file in found if os.path.isfile(file)]
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and not (file.startswith(own) and "site-packages" not in file):
            found.append(file)
    return [*found, *_templates()]


def _templates() -> Iterable[str]:
    """What pages are made of, which is no module."""
    package = Path(__file__).parents[1]
    with suppress(OSError), os.scandir(package / "report" / "templates") as entries:
        return [entry.path for entry in entries]
    return []


def _packages() -> list[list[str]]:
    """The packages in each folder of the search path, of which any may offer rules."""
    return [descriptions(folder) for folder in sys.path]


def _stream(stream: TextIO) -> tuple[object, ...]:
    """What decides how something looks on a stream."""
    width: int | None = None
    is_terminal = stream.isatty()
    if is_terminal:
        # Same as `report.terminal.display.terminal_width`, which is too slow to import here.
        with suppress(OSError, ValueError):
            width = os.get_terminal_size(stream.fileno()).columns
    return is_terminal, width, stream.encoding, stream.errors
