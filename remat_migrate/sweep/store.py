"""The folder of a sweep's results."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..discovery.named_outputs import write_named
from ..errors import RematMigrateError


class StoreFailed(RematMigrateError):
    """The results of a sweep cannot be read or written."""


@dataclass(frozen=True, slots=True)
class Store:
    """The folder of a sweep's results. Its methods raise StoreFailed."""

    folder: Path

    @contextmanager
    def _opened(self, name: str) -> Iterator[Path]:
        path = self.folder / name
        try:
            yield path
        except OSError as error:
            raise StoreFailed(f"{path}: {error.strerror or error}") from error

    def write(self, name: str, data: bytes) -> None:
        """Write a file as a whole: readers see the old one, or the new one."""
        with self._opened(name) as path:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_named(path, data)

    def write_json(self, name: str, value: object) -> None:
        """Write a value as JSON."""
        self.write(name, (json.dumps(value, indent=1, sort_keys=True) + "\n").encode())

    def read_json(self, name: str) -> Any:
        """Return the value in a JSON file; None if there is none, or if it is not JSON."""
        with self._opened(name) as path:
            try:
                return json.loads(path.read_bytes())
            except (FileNotFoundError, ValueError):
                return None

    def remove(self, name: str) -> None:
        """Remove a file or a folder, if there is one."""
        with self._opened(name) as path:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
