"""A glance at single files: most of those that a commit hook hands over cannot matter.

To say so takes neither rules nor model, whose import costs more than a hook should take.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .discover import find_root
from .settings import Settings, load_settings
from .source.words import SCAN_WORDS, WORDS

# With more files than this a full run is worth its start.
_MOST_FILES = 50


def cannot_matter(paths: Sequence[Path]) -> bool:
    """Whether `paths` are files in which there is nothing to find, by their bytes and the settings.

    False whenever that takes a closer look: for folders, for what cannot be read or decoded, and
    where the settings hold something that needs checking.

    Raises:
        SettingsError: the settings are wrong.
    """
    if not 0 < len(paths) <= _MOST_FILES or not all(path.is_file() for path in paths):
        return False
    if not all(map(_has_nothing, paths)):
        return False
    start = Path(paths[0]).resolve()
    return _is_plain(load_settings(find_root(paths), start))


def _has_nothing(path: Path) -> bool:
    try:
        data = path.read_bytes()
    except OSError:
        return False
    # An alias of a checkpoint may have any name, but then the option gives it away.
    if b"\0" in data or b"concrete" in data or any(word in data for word in WORDS):
        return False
    if all(word in data for word in SCAN_WORDS):
        return False
    if data.isascii():
        return True
    if any(b"coding" in line for line in data.split(b"\n", 2)[:2]):
        return False
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _is_plain(settings: Settings) -> bool:
    """Whether settings name neither codes nor wrappers, which only rules and model can check."""
    return not (
        settings.select
        or settings.extend_select
        or settings.ignore
        or settings.per_file_ignores
        or settings.wrappers
        or settings.scans
    )
