"""The settings of each file of a run: those in the nearest pyproject.toml that has some."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from .reading import has_settings, settings_in
from .settings import Options, Settings

_NAME = "pyproject.toml"


class NearestSettings:
    """The settings of the files of a run.

    Attributes:
        main: those of the run, for what does not belong to one file: what to verify and measure,
            and where packages are looked up.
    """

    def __init__(self, main: Settings, options: Options) -> None:
        """Start from the settings of the run; `read` finds those of folders."""
        self.main = main
        self._options = options
        self._is_fixed = bool(options.config)
        # By folder: the settings that are in it, or None.
        self._in: dict[str, Settings | None] = {}
        self._of: dict[str, Settings] = {}
        if main.config is not None and not self._is_fixed:
            self._in[str(main.config.parent)] = main

    def __repr__(self) -> str:
        """Return what results depend on."""
        return repr((self.main, sorted((k, v) for k, v in self._in.items() if v is not None)))

    def read(self, folders: Iterable[str]) -> None:
        """Read the settings that files in `folders` have.

        Raises:
            SettingsError: they are invalid.
        """
        if self._is_fixed:
            return
        for folder in folders:
            while folder not in self._in:
                file = os.path.join(folder, _NAME)
                found = None
                if os.path.lexists(file) and has_settings(Path(file)):
                    found = settings_in(Path(file), self.main.root, self._options)
                self._in[folder] = found
                folder = os.path.dirname(folder)

    @property
    def every(self) -> tuple[Settings, ...]:
        """All settings, those of the run first."""
        found = {id(one): one for one in (self.main, *self._of.values())}
        found |= {id(one): one for one in self._in.values() if one is not None}
        return tuple(found.values())

    def of(self, path: Path) -> Settings:
        """Return the settings of a file."""
        return self.of_folder(os.path.dirname(path))

    def of_folder(self, folder: str) -> Settings:
        """Return the settings of the files in a folder."""
        if self._is_fixed:
            return self.main
        if folder not in self._of:
            known = self._in.get(folder)
            above = os.path.dirname(folder)
            if known is None:
                known = self._default() if above == folder else self.of_folder(above)
            self._of[folder] = known
        return self._of[folder]

    def around(self, folder: Path) -> Settings | None:
        """Return the settings of the folder above one that has its own; else None."""
        if self._is_fixed or self._in.get(str(folder)) is None:
            return None
        return self.of_folder(os.path.dirname(folder))

    def _default(self) -> Settings:
        """Return the settings of files that have none."""
        if self.main.config is None:
            return self.main
        return settings_in(None, self.main.root, self._options)

    def of_run(self) -> Settings:
        """Return the settings of the run with what all others say about functions."""
        every = self.every
        if len(every) == 1:
            return self.main

        def merged(name: str) -> tuple[object, ...]:
            return tuple(dict.fromkeys(one for each in every for one in getattr(each, name)))

        names = ("wrappers", "scans", "search_path")
        return replace(self.main, **{name: merged(name) for name in names})  # type: ignore[arg-type]
