"""Writing in a project without following links, so that nothing is written outside of it.

A repository can contain links, and another process can exchange a folder for a link between two
system calls. An open folder remains the same folder, so all writing in a project goes through
`Folder`. A file that is replaced is complete at any moment, old or new: `tests/kills.py` kills a
run between any two system calls and checks the result.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from .regular_files import read_open

_MOST_BYTES = 2**30
# Windows cannot open folders; there, paths are checked before and after each operation.
_HAS_HANDLES = os.open in os.supports_dir_fd
_HAS_FCHMOD = os.chmod in os.supports_fd
# With O_PATH, the permission to enter a folder suffices to open it.
_FOLDER: int = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0)
_NO_LINK: int = getattr(os, "O_NOFOLLOW", 0)
_NO_BLOCK: int = getattr(os, "O_NONBLOCK", 0)
_BINARY: int = getattr(os, "O_BINARY", 0)
# The file system does not support an operation, or the user may not perform it.
_CANNOT = frozenset({errno.EPERM, errno.EACCES, errno.EINVAL, errno.ENODATA, errno.ENOTSUP})


@contextmanager
def open_folder(path: Path, root: Path, *, create: bool = False) -> Iterator[Folder]:
    """Open a folder without following a link at or below `root`.

    Args:
        path: the folder: `root` or one below it.
        root: a folder; links above it are followed.
        create: whether to create missing folders below `root`.

    Raises:
        OSError: the folder cannot be opened or created, is outside `root`, or is behind a link.
    """
    if not path.is_relative_to(root) or os.pardir in (names := path.relative_to(root).parts):
        raise OSError(errno.EINVAL, f"{path} is outside {root}")
    folder = _opened(root, str(root), None)
    try:
        for name in names:
            above, folder = folder, folder.inner(name, create=create)
            above.close()
        yield folder
    finally:
        folder.close()


def _opened(path: Path, name: str, above: int | None) -> Folder:
    folder = Folder(path, None)
    if not _HAS_HANDLES:
        folder.check()
        if not path.is_dir():
            code = errno.ENOTDIR if path.exists() else errno.ENOENT
            raise OSError(code, os.strerror(code))
        return folder
    try:
        return Folder(path, os.open(name, _FOLDER | _NO_LINK, dir_fd=above))
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            found = os.stat(name, dir_fd=above, follow_symlinks=False)
            if stat.S_ISLNK(found.st_mode):
                raise link_error(path) from error
        raise


def link_error(path: Path) -> OSError:
    """Return the error that something is not written because of a link."""
    return OSError(
        errno.ELOOP, f"{path} is a symbolic link, and links in a project are not followed"
    )


class Folder:
    """An open folder. Its methods take the names of files in it, and raise OSError.

    Attributes:
        path: where it was when it was opened.
    """

    def __init__(self, path: Path, handle: int | None) -> None:
        self.path = path
        self._handle = handle

    def close(self) -> None:
        """Close the folder. Nothing was written to the handle, so an error does not matter."""
        if self._handle is not None:
            with suppress(OSError):
                os.close(self._handle)

    def check(self, name: str = "") -> None:
        """Without handles, check that the folder or a file in it is not behind a link."""
        path = self.path / name
        if self._handle is None and os.path.realpath(path) != str(path):
            raise link_error(path)

    def _at(self, name: str) -> str:
        return name if self._handle is not None else str(self.path / name)

    def inner(self, name: str, *, create: bool = False) -> Folder:
        """Open a folder in this one, which the caller closes."""
        try:
            return _opened(self.path / name, self._at(name), self._handle)
        except FileNotFoundError:
            if not create:
                raise
        with suppress(FileExistsError):  # Another run creates it as well.
            os.mkdir(self._at(name), dir_fd=self._handle)
        self.sync()
        return _opened(self.path / name, self._at(name), self._handle)

    # -- reading

    def stat(self, name: str) -> os.stat_result | None:
        """Return what `lstat` tells about an entry; None if there is none."""
        try:
            return os.stat(self._at(name), dir_fd=self._handle, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def names(self) -> list[str]:
        """Return the names of all entries."""
        if self._handle is None:
            return os.listdir(self.path)
        handle = os.open(".", os.O_RDONLY, dir_fd=self._handle)
        try:
            return os.listdir(handle)
        finally:
            os.close(handle)

    def open(self, name: str, flags: int = os.O_RDONLY, mode: int = 0o666) -> int:
        """Open a regular file and return its descriptor."""
        handle = self.open_unchecked(name, flags, mode)
        try:
            self._check_regular(name, os.fstat(handle))
        except BaseException:
            os.close(handle)
            raise
        return handle

    def open_unchecked(self, name: str, flags: int, mode: int = 0o666) -> int:
        """Open a file of any kind but a link, without waiting for the other end of a pipe."""
        self.check(name)
        flags |= _NO_LINK | _NO_BLOCK | _BINARY
        try:
            handle = os.open(self._at(name), flags, mode, dir_fd=self._handle)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise link_error(self.path / name) from error
            raise
        try:
            self.check(name)
        except BaseException:
            os.close(handle)
            raise
        return handle

    def read(self, name: str) -> bytes:
        """Return the content of a regular file."""
        handle = self.open(name)
        try:
            return read_open(handle, _MOST_BYTES)
        finally:
            os.close(handle)

    def _check_regular(self, name: str, found: os.stat_result) -> None:
        if stat.S_ISLNK(found.st_mode):
            raise link_error(self.path / name)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, f"{self.path / name} is not a regular file")

    # -- writing

    def create(
        self,
        name: str,
        data: bytes,
        *,
        like: str | None = None,
        mode: int | None = None,
        is_synced: bool = True,
    ) -> None:
        """Create a file. If that fails, nothing of it is left.

        Args:
            name: the file, which must not exist.
            data: its content.
            like: a file to copy mode, owner and extended attributes from, as far as permitted.
            mode: without `like`, the permission bits; by default those that the umask leaves.
            is_synced: whether to sync it to disk.
        """
        private = like is not None or mode is not None
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        handle = self.open(name, flags, 0o600 if private else 0o666)
        try:
            try:
                left = memoryview(data)
                while left:
                    left = left[os.write(handle, left) :]
                if like is not None:
                    mode = self._copy_attributes(like, handle)
                if mode is not None:
                    os.chmod(handle if _HAS_FCHMOD else self._at(name), mode)
                if is_synced:
                    os.fsync(handle)
            finally:
                os.close(handle)
        except BaseException:
            self.discard(name)
            raise

    def _copy_attributes(self, name: str, to: int) -> int:
        """Copy owner and extended attributes to an open file, and return the mode."""
        handle = self.open(name)
        try:
            wanted = os.fstat(handle)
            if os.name == "posix":
                # Changing the owner requires root; changing the group, membership in it.
                for owner, group in ((wanted.st_uid, -1), (-1, wanted.st_gid)):
                    with suppress(PermissionError):
                        os.chown(to, owner, group)
            if hasattr(os, "listxattr"):
                for attribute in _attributes(handle):
                    try:
                        os.setxattr(to, attribute, os.getxattr(handle, attribute))
                    except OSError as error:
                        if error.errno not in _CANNOT:
                            raise
        finally:
            os.close(handle)
        return stat.S_IMODE(wanted.st_mode)

    def rename(self, old: str, new: str) -> None:
        """Rename a file, which may replace another one."""
        self.check()
        os.replace(self._at(old), self._at(new), src_dir_fd=self._handle, dst_dir_fd=self._handle)
        self.check()

    def replace(self, temporary: str, name: str) -> None:
        """Replace a file by a temporary file, which is removed if that fails."""
        try:
            self.rename(temporary, name)
        except OSError:
            self.discard(temporary)
            raise

    def write(self, name: str, data: bytes) -> None:
        """Create or replace a regular file atomically, and sync it to disk."""
        import hashlib

        found = self.stat(name)
        if found is not None:
            self._check_regular(name, found)
        short = hashlib.sha256(os.fsencode(name)).hexdigest()[:16]
        temporary = f".remat-{os.getpid():x}-{short}.tmp"
        self.discard(temporary)  # left by a killed run
        self.create(temporary, data, like=None if found is None else name)
        self.replace(temporary, name)
        self.sync()

    def remove(self, name: str) -> None:
        """Remove a file or a link."""
        self.check()
        os.unlink(self._at(name), dir_fd=self._handle)

    def discard(self, name: str) -> None:
        """Remove a temporary file if possible; otherwise the next run does."""
        with suppress(OSError):
            self.remove(name)

    def sync(self) -> None:
        """Sync the entries of the folder to disk, where the system supports it."""
        if self._handle is None:
            return
        try:
            handle = os.open(".", os.O_RDONLY, dir_fd=self._handle)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
        except OSError as error:
            # The folder is writable but not readable, or the file system cannot sync folders.
            if error.errno not in _CANNOT:
                raise


def _attributes(handle: int) -> list[str]:
    try:
        return os.listxattr(handle)
    except OSError as error:
        if error.errno not in _CANNOT:
            raise
        return []
