"""A copy of the user's project in which code can be run without the project being written to.

Files that git knows or would know are copied; what is ignored (data, compiled modules, virtual
environments) is linked, for it may be large and is needed all the same. That nothing is written
through such a link is seen to by the process that runs the code.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ...discovery.discover import list_files
from ...errors import VerificationError

MOST_FILES = 50_000
MOST_BYTES = 1 << 30
BIG_FILE = 16 << 20
# An ignored folder with up to this many entries is made anew with a link for each of them, so that
# programs can write new files there: results, logs, caches of their own.
_MOST_LINKS = 1_000
# What a copy can do without, and must not share: a repository, caches, environments made by tools.
_LEFT_OUT = frozenset(
    {
        ".git",
        ".hg",
        ".ipynb_checkpoints",
        ".mypy_cache",
        ".nox",
        ".pytest_cache",
        ".remat_migrate",
        ".ruff_cache",
        ".svn",
        ".tox",
        "__pycache__",
        "node_modules",
    }
)
_SHOWN_NOTES = 10


@dataclass(frozen=True)
class Workspace:
    """A copy of a project.

    Attributes:
        root: the project's folder, without symbolic links.
        folder: the copy's.
        notes: what is not as in the project, for the reader.
    """

    root: Path
    folder: Path
    notes: tuple[str, ...] = ()

    def at(self, path: Path) -> Path:
        """Where a path of the project is in the copy; paths outside of it stay as they are.

        The folder above the project is the one above the copy if both have the same last name, so
        that a project which is a package itself can be imported.
        """
        return _moved(path, self.root, self.folder)

    def original(self, path: Path) -> Path:
        """Where a path of the copy is in the project."""
        return _moved(path, self.folder, self.root)

    def translate(self, text: str) -> str:
        """A message with paths of the project in place of those of the copy."""
        return self._spelled.sub(lambda _: str(self.root), text)

    @cached_property
    def _spelled(self) -> re.Pattern[str]:
        # Only as a whole: not the start of another name.
        return re.compile(re.escape(str(self.folder)) + r"(?![\w-]|\.\w)")


def make_workspace(
    root: Path,
    destination: Path,
    texts: Mapping[Path, bytes],
    removed: Collection[Path] = (),
    progress: Callable[[int], None] | None = None,
) -> Workspace:
    """Copy the project at `root` to `destination`, which must be empty or not exist.

    Args:
        root: the project's folder.
        destination: the copy's; give it the same last name where the project may be a package.
        texts: the bytes of some files, by path, in place of what they hold; they need not exist.
        removed: files that the copy must not have.
        progress: is told from time to time how many files have been copied.

    Raises:
        VerificationError: the copy cannot be written, or one of `texts` lies outside the project.
    """
    real = Path(os.path.realpath(root))
    try:
        destination.mkdir(parents=True, exist_ok=True)
        copying = _Copying(real, Path(os.path.realpath(destination)), texts, removed, progress)
        copying.run()
    except OSError as error:
        raise VerificationError(
            f"{error.filename or destination}: the project cannot be copied:"
            f" {error.strerror or error}; see that there is room (TMPDIR names another place)"
        ) from error
    return Workspace(real, copying.folder, copying.notes)


def remove_workspace(folder: Path) -> None:
    """Remove a copy, links and not what they point to, also what a program has locked.

    Raises:
        OSError: something cannot be removed.
    """

    if folder.is_symlink():
        folder.unlink()
        return
    with suppress(FileNotFoundError):
        try:
            shutil.rmtree(folder)
        except PermissionError:
            _unlock(folder)
            shutil.rmtree(folder)


def _unlock(folder: Path) -> None:
    # What shutil and tempfile offer for it follows links, and would change the user's files.
    folder.chmod(stat.S_IRWXU)
    for entry in list(os.scandir(folder)):
        if entry.is_dir(follow_symlinks=False):
            _unlock(Path(entry.path))


class _Copying:
    """One copy while it is made."""

    def __init__(
        self,
        root: Path,
        folder: Path,
        texts: Mapping[Path, bytes],
        removed: Collection[Path],
        progress: Callable[[int], None] | None,
    ) -> None:
        self.root = root
        self.folder = folder
        self._removed = {self._relative(path) for path in removed}
        self._texts = {self._place(path): data for path, data in texts.items()}
        self._progress = progress
        self._files = 0
        self._bytes = 0
        self._notes: list[str] = []
        self._full = False

    @property
    def notes(self) -> tuple[str, ...]:
        more = len(self._notes) - _SHOWN_NOTES
        shown = self._notes[:_SHOWN_NOTES]
        return (*shown, f"and {more} more") if more > 0 else tuple(shown)

    def run(self) -> None:
        listed = {self._relative(path) for path in list_files(self.root, lambda name: True)}
        kept = {above for path in (*listed, *self._texts) for above in path.parents}
        forced = {above for path in self._texts for above in path.parents}
        # From the top down, so that a limit is reached in the depths.
        waiting = [Path()]
        for place in waiting:
            self._copy_folder(place, listed, kept, forced, waiting)
        for place, data in self._texts.items():
            self._write(place, data)
        # An empty folder can be imported. Inner ones first; those that are not empty stay.
        emptied = {above for place in self._removed for above in place.parents} - {Path()}
        for place in sorted(emptied, key=lambda place: -len(place.parts)):
            with suppress(OSError):
                (self.folder / place).rmdir()

    def _relative(self, path: Path) -> Path:
        path = path if path.is_absolute() else self.root / path
        for candidate in (path, Path(os.path.realpath(path.parent), path.name)):
            if candidate.is_relative_to(self.root):
                return candidate.relative_to(self.root)
        raise VerificationError(f"{path} lies outside the project {self.root}")

    def _place(self, path: Path) -> Path:
        """Where a file really lies, unless the links that lead there are to be removed."""
        place = self._relative(path)
        if not self._removed.isdisjoint(place.parents):
            return place
        return self._relative(Path(os.path.realpath(self.root / place.parent), place.name))

    # -- folders

    def _copy_folder(
        self,
        place: Path,
        listed: set[Path],
        kept: set[Path],
        forced: set[Path],
        waiting: list[Path],
    ) -> None:
        (self.folder / place).mkdir(parents=True, exist_ok=True)
        for entry in self._entries(place):
            inner = place / entry.name
            if inner in self._texts or inner in self._removed or self._is_left_out(entry, inner):
                continue
            if inner in forced:
                waiting.append(inner)
            elif entry.is_symlink():
                self._copy_link(inner)
            elif entry.is_dir(follow_symlinks=False):
                if inner in kept and not self._full:
                    waiting.append(inner)
                else:
                    self._link_folder(inner)
            elif not entry.is_file(follow_symlinks=False):
                continue  # a socket, a pipe, a device
            elif inner in listed:
                self._copy_file(inner)
            else:
                self._link(inner)

    def _entries(self, place: Path) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(self.root / place) as listing:
                # Files first: when a limit is reached, whole folders are left over.
                return sorted(listing, key=_files_first)
        except FileNotFoundError:
            return []  # made by `texts` alone, or gone since it was listed
        except (NotADirectoryError, PermissionError) as error:
            self._notes.append(f"{place}/ is left out: {error.strerror}")
            return []

    def _is_left_out(self, entry: os.DirEntry[str], inner: Path) -> bool:
        return entry.name in _LEFT_OUT or self.root / inner == self.folder

    def _link_folder(self, place: Path) -> None:
        """A folder of which nothing is copied."""
        entries = self._entries(place)
        virtual = any(entry.name == "pyvenv.cfg" for entry in entries)
        if self._full or virtual or len(entries) > _MOST_LINKS:
            if not self._holds_copy(place):
                self._link(place)
            return
        (self.folder / place).mkdir(exist_ok=True)
        for entry in entries:
            inner = place / entry.name
            if self._is_left_out(entry, inner) or inner in self._removed:
                continue
            if entry.is_symlink():
                self._copy_link(inner)
            elif not self._holds_copy(inner):
                self._link(inner)

    def _holds_copy(self, place: Path) -> bool:
        """Whether the copy itself is made within a folder, as below the root in `.cache/`."""
        return self.folder.is_relative_to(self.root / place)

    # -- files

    def _copy_file(self, place: Path) -> None:
        source, target = self.root / place, self.folder / place
        try:
            size = source.lstat().st_size
            if self._full or size > BIG_FILE:
                self._link(place)
                return
            shutil.copyfile(source, target, follow_symlinks=False)
            shutil.copystat(source, target, follow_symlinks=False)
        except FileNotFoundError:
            return  # gone since it was listed
        except PermissionError as error:
            if error.filename != str(source):
                raise
            self._notes.append(f"{place} is left out: {error.strerror}")
            return
        self._files += 1
        self._bytes += size
        if self._progress is not None and self._files % 100 == 0:
            self._progress(self._files)
        if self._files >= MOST_FILES or self._bytes >= MOST_BYTES:
            self._full = True
            self._notes.append(
                f"the project is large: after {self._files:,} files of"
                f" {self._bytes / (1 << 20):,.0f} MiB the rest is linked, not copied"
            )

    def _write(self, place: Path, data: bytes) -> None:
        target = self.folder / place
        # A folder that the project has no more, or where it has something else now.
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
        with suppress(FileNotFoundError, NotADirectoryError):
            mode = (self.root / place).lstat().st_mode
            if stat.S_ISREG(mode):
                target.chmod(stat.S_IMODE(mode) | stat.S_IWUSR)

    # -- links

    def _link(self, place: Path) -> None:
        (self.folder / place).symlink_to(self.root / place)

    def _copy_link(self, place: Path) -> None:
        """A link that leads within the copy what led within the project, else where it led."""
        source = self.root / place
        written = os.readlink(source)
        target = Path(os.path.normpath(source.parent / written))
        real = Path(os.path.realpath(source))
        if not target.is_relative_to(self.root) and real.is_relative_to(self.root):
            target = real
        link = self.folder / place
        if not target.is_relative_to(self.root):
            link.symlink_to(target)
            return
        there = self.folder / target.relative_to(self.root)
        if os.path.isabs(written):
            link.symlink_to(there)
        elif os.path.normpath(link.parent / written) == str(there):
            link.symlink_to(written)
        else:  # it leaves the project on its way
            link.symlink_to(os.path.relpath(there, link.parent))


def _files_first(entry: os.DirEntry[str]) -> tuple[bool, str]:
    return entry.is_dir(follow_symlinks=False), entry.name


def _moved(path: Path, old: Path, new: Path) -> Path:
    for candidate in (path, Path(os.path.realpath(path))):
        if candidate.is_relative_to(old):
            return new / candidate.relative_to(old)
    if path == old.parent and old.name == new.name:
        return new.parent
    return path
