"""Copy the user's project, so that its code can run without writing to the project.

Files that git tracks or would track are copied. Ignored files (data, compiled modules, virtual
environments) may be large and are linked; the process that runs the code prevents writes through
these links.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ...discovery.listing import list_files
from ...discovery.roots import FOREIGN
from ...errors import VerificationError

BIG_FILE = 16 << 20
# An ignored folder with up to this many entries becomes a folder of links, so that programs can
# write new files there, such as results, logs, and caches.
_MOST_LINKS = 1_000
# Neither copied nor linked: repositories, caches, and environments made by tools.
_LEFT_OUT = FOREIGN - {".eggs", ".venv", "site-packages", "venv"}
_SHOWN_NOTES = 10


@dataclass(frozen=True)
class Workspace:
    """A copy of a project.

    Attributes:
        root: the project's folder, without symbolic links.
        folder: the copy's.
        notes: how the copy differs from the project.
    """

    root: Path
    folder: Path
    notes: tuple[str, ...] = ()

    def at(self, path: Path) -> Path:
        """Map a path of the project to the copy; leave paths outside of the project unchanged.

        If the project and the copy have the same name, the folder around the project maps to the
        folder around the copy, so that a project that is itself a package can be imported.
        """
        for candidate in (path, Path(os.path.realpath(path))):
            if candidate.is_relative_to(self.root):
                return self.folder / candidate.relative_to(self.root)
        if path == self.root.parent and self.root.name == self.folder.name:
            return self.folder.parent
        return path

    def translate(self, text: str) -> str:
        """Return a message with paths of the project in place of those of the copy."""
        return text.replace(str(self.folder), str(self.root))


def make_workspace(
    root: Path,
    destination: Path,
    texts: Mapping[Path, bytes],
    removed: Collection[Path] = (),
) -> Workspace:
    """Copy the project at `root` to `destination`, which must be empty or not exist.

    Args:
        root: the project's folder.
        destination: the copy's folder, of the same name if the project may be a package.
        texts: new bytes of some files, by path; the files need not exist.
        removed: files to leave out.

    Raises:
        VerificationError: the copy cannot be written, or one of `texts` lies outside the project.
    """
    real = Path(os.path.realpath(root))
    try:
        destination.mkdir(parents=True, exist_ok=True)
        copying = _Copying(real, Path(os.path.realpath(destination)), texts, removed)
        copying.run()
    except OSError as error:
        raise VerificationError(
            f"{error.filename or destination}: the project cannot be copied:"
            f" {error.strerror or error}; if the disk is full, set TMPDIR to another folder"
        ) from error
    return Workspace(real, copying.folder, copying.notes)


class _Copying:
    """Makes one copy."""

    def __init__(
        self,
        root: Path,
        folder: Path,
        texts: Mapping[Path, bytes],
        removed: Collection[Path],
    ) -> None:
        self.root = root
        self.folder = folder
        self._removed = {self._relative(path) for path in removed}
        self._texts = {self._place(path): data for path, data in texts.items()}
        self._notes: list[str] = []

    @property
    def notes(self) -> tuple[str, ...]:
        more = len(self._notes) - _SHOWN_NOTES
        shown = self._notes[:_SHOWN_NOTES]
        return (*shown, f"and {more} more") if more > 0 else tuple(shown)

    def run(self) -> None:
        listed = {self._relative(path) for path in list_files(self.root, lambda name: True)}
        kept = {above for path in (*listed, *self._texts) for above in path.parents}
        waiting = [Path()]
        for place in waiting:
            self._copy_folder(place, listed, kept, waiting)
        for place, data in self._texts.items():
            self._write(place, data)
        # Remove empty folders, inner ones first, because they can be imported.
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
        """Return the real path of a file, unless a link on its path is to be removed."""
        place = self._relative(path)
        if not self._removed.isdisjoint(place.parents):
            return place
        return self._relative(Path(os.path.realpath(self.root / place.parent), place.name))

    # -- folders

    def _copy_folder(
        self, place: Path, listed: set[Path], kept: set[Path], waiting: list[Path]
    ) -> None:
        (self.folder / place).mkdir(parents=True, exist_ok=True)
        for entry in self._entries(place):
            inner = place / entry.name
            if inner in self._texts or inner in self._removed or self._is_left_out(entry, inner):
                continue
            if entry.is_symlink():
                self._copy_link(inner)
            elif entry.is_dir(follow_symlinks=False):
                if inner in kept:
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
                return sorted(listing, key=lambda entry: entry.name)
        except FileNotFoundError:
            return []  # only in `texts`, or removed since it was listed
        except (NotADirectoryError, PermissionError) as error:
            self._notes.append(f"{place}/ is left out: {error.strerror}")
            return []

    def _is_left_out(self, entry: os.DirEntry[str], inner: Path) -> bool:
        return entry.name in _LEFT_OUT or self.root / inner == self.folder

    def _link_folder(self, place: Path) -> None:
        """Link a folder of which nothing is copied, or its entries."""
        entries = self._entries(place)
        virtual = any(entry.name == "pyvenv.cfg" for entry in entries)
        if virtual or len(entries) > _MOST_LINKS:
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
        """Return whether the copy itself is within a folder."""
        return self.folder.is_relative_to(self.root / place)

    # -- files

    def _copy_file(self, place: Path) -> None:
        source, target = self.root / place, self.folder / place
        try:
            if source.lstat().st_size > BIG_FILE:
                self._link(place)
                return
            shutil.copyfile(source, target, follow_symlinks=False)
            shutil.copystat(source, target, follow_symlinks=False)
        except FileNotFoundError:
            return  # removed since it was listed
        except PermissionError as error:
            if error.filename != str(source):
                raise
            self._notes.append(f"{place} is left out: {error.strerror}")

    def _write(self, place: Path, data: bytes) -> None:
        target = self.folder / place
        # The project may no longer have the folder.
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
        """Copy a link; if it leads within the project, the copy leads within the copy."""
        source = self.root / place
        target = Path(os.path.normpath(source.parent / os.readlink(source)))
        real = Path(os.path.realpath(source))
        if not target.is_relative_to(self.root) and real.is_relative_to(self.root):
            target = real
        if target.is_relative_to(self.root):
            target = self.folder / target.relative_to(self.root)
        (self.folder / place).symlink_to(target)
