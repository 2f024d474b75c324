"""Where a sweep writes: a folder or an object store, through fsspec."""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ..discovery.named_outputs import write_named
from ..errors import RematMigrateError, UsageError

_BATCH = 500


class StoreFailed(RematMigrateError):
    """The results of a sweep cannot be read or written."""


@dataclass(frozen=True)
class Store:
    """The folder of a sweep's results.

    Attributes:
        url: a folder, or an address that fsspec knows, such as `s3://bucket/sweep`.
    """

    url: str

    @cached_property
    def _opened(self) -> tuple[Any, str]:
        import fsspec

        try:
            filesystem, path = fsspec.core.url_to_fs(self.url)
        except (ImportError, ValueError) as error:
            raise UsageError(f"--out {self.url}: {error}") from error
        return filesystem, path

    @property
    def is_local(self) -> bool:
        """Whether it is a folder, which other programs can use."""
        return "file" in _protocols(self._opened[0])

    @property
    def checked_url(self) -> str:
        """The address for other processes, which may have another current folder.

        Raises:
            UsageError: nothing can be written there.
        """
        filesystem, path = self._opened
        try:
            with self._reported():
                filesystem.makedirs(path, exist_ok=True)
        except StoreFailed as error:
            raise UsageError(f"--out {error}") from error
        return path if self.is_local else self.url

    @contextmanager
    def _reported(self, name: str = "") -> Iterator[None]:
        try:
            yield
        except Exception as error:  # of the packages that filesystems are made of
            reason = getattr(error, "strerror", None) or f"{error}"
            where = self.address(name) if name else self.url
            raise StoreFailed(f"{where}: {reason}") from error

    def path(self, name: str) -> str:
        """Return the full name of a file or folder within its file system."""
        return posixpath.join(self._opened[1], name)

    def address(self, name: str) -> str:
        """Return the full name of a file or folder, as users write it."""
        path = self.path(name)
        return path if self.is_local else str(self._opened[0].unstrip_protocol(path))

    def write(self, name: str, data: bytes) -> None:
        """Write a file as a whole: readers see the old one, or the new one.

        Raises:
            StoreFailed: it cannot be written.
        """
        with self._reported(name):
            if self.is_local:
                path = Path(self.path(name))
                path.parent.mkdir(parents=True, exist_ok=True)
                write_named(path, data)
            else:  # object stores replace objects atomically
                self._opened[0].pipe_file(self.path(name), data)

    def write_json(self, name: str, value: object) -> None:
        """Write a value as JSON."""
        self.write(name, (json.dumps(value, indent=1, sort_keys=True) + "\n").encode())

    def read(self, name: str) -> bytes | None:
        """Return the content of a file; None if there is none.

        Raises:
            StoreFailed: it cannot be read.
        """
        with self._reported(name):
            try:
                found: bytes = self._opened[0].cat_file(self.path(name))
            except FileNotFoundError:
                return None
            return found

    def read_json(self, name: str) -> Any:
        """Return the value in a JSON file; None if there is none, or if it is not JSON."""
        data = self.read(name)
        try:
            return None if data is None else json.loads(data)
        except ValueError:
            return None

    def read_all(self, names: Iterable[str]) -> Iterator[bytes]:
        """Yield the contents of many files in their order; of an object store, many at a time.

        Raises:
            StoreFailed: one of them cannot be read.
        """
        waiting = list(names)
        for start in range(0, len(waiting), _BATCH):
            batch = [self.path(name) for name in waiting[start : start + _BATCH]]
            with self._reported():
                found: Mapping[str, bytes] = self._opened[0].cat(batch, on_error="raise")
            if isinstance(found, bytes):  # of one file
                found = {batch[0]: found}
            yield from (found[path] for path in batch)

    def remove(self, name: str) -> None:
        """Remove a file or a folder, if there is one.

        Raises:
            StoreFailed: it cannot be removed.
        """
        with self._reported(name):
            if self._opened[0].exists(self.path(name)):
                self._opened[0].rm(self.path(name), recursive=True)


def _protocols(filesystem: Any) -> tuple[str, ...]:
    protocol = filesystem.protocol
    return (protocol,) if isinstance(protocol, str) else tuple(protocol)
