"""Repositories in a folder: their names, copies and content."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from remat_migrate.discovery.file_kinds import can_matter
from remat_migrate.discovery.listing import run_git

_OURS = frozenset({".git", ".remat_migrate"})
# `https://host/owner/name.git`, `git@host:owner/name`; not a local path.
_REMOTE = re.compile(
    r"(?:https?://|ssh://|git://|\w+@)[^/:]+[/:](?:.*/)?([^/]+/[^/]+?)(?:\.git)?/?"
)
# Enough digits to identify a commit.
SHOWN_DIGITS = 12
_CHANGED = "+changes"

State = dict[str, tuple[int, str]]


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository in a folder.

    Attributes:
        folder: its path; nothing is written there.
        name: `owner/name` of its origin, else the name of the folder.
        version: the commit, or a digest of the files if it is not a git repository.
        files: relative paths, sorted: those that git tracks, or all.
    """

    folder: Path
    name: str
    version: str
    files: tuple[str, ...]

    @property
    def label(self) -> str:
        """The name and version on one line."""
        version = self.version if self.version.startswith("tree-") else self.short_version
        return printable(f"{self.name} {version}")

    @property
    def is_changed(self) -> bool:
        """Whether the files differ from the commit."""
        return self.version.endswith(_CHANGED)

    @property
    def short_version(self) -> str:
        """The abbreviated version."""
        commit, mark, more = self.version.partition("+")
        return commit[:SHOWN_DIGITS] + mark + more


def find_repositories(folder: Path) -> list[Repository]:
    """Return the subfolders of a folder, sorted by name and version."""
    found = [
        read_repository(below)
        for below in folder.iterdir()
        if below.is_dir() and not below.is_symlink() and not below.name.startswith(".")
    ]
    return sorted(found, key=lambda repository: (repository.name, repository.version))


def read_repository(folder: Path) -> Repository:
    """Read a folder, with git if it is the top of a git repository."""
    listed = _git(folder, "ls-files", "-z") if (folder / ".git").exists() else None
    commit = _git(folder, "rev-parse", "--verify", "HEAD") if listed is not None else None
    if listed is None or commit is None:
        files = tuple(sorted(_below(folder)))
        return Repository(folder, folder.name, f"tree-{_digest(folder, files)}", files)
    names = sorted({os.fsdecode(name) for name in listed.split(b"\0") if name})
    files = tuple(name for name in names if _is_file(folder / name))
    version = commit.decode("ascii").strip()
    if _is_changed(folder):
        version += _CHANGED
    remote = (_git(folder, "remote", "get-url", "origin") or b"").decode(errors="replace").strip()
    known = _REMOTE.fullmatch(remote)
    return Repository(folder, known.group(1) if known else folder.name, version, files)


def copy_repository(repository: Repository, to: Path) -> None:
    """Copy the files to a git repository that tracks all of them."""
    to.mkdir(parents=True)
    for name in repository.files:
        path = to / name
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(repository.folder / name, path, follow_symlinks=False)
    # The files only have to be tracked, so their content need not be stored.
    for arguments in (("init", "-q"), ("add", "--all", "--force", "--intent-to-add")):
        ended = run_git(to, *arguments)
        if ended is None or ended.returncode:
            why = ended.stderr.decode(errors="replace") if ended else "there is no git"
            raise OSError(f"git {arguments[0]}: {why}")


def state_of(folder: Path) -> State:
    """Return the mode and content of every file below a folder, without the data of git and the
    journal.
    """
    return {name: _content(folder / name) for name in _below(folder)}


def changed_files(before: State, after: State) -> list[str]:
    """Return the files that are missing from one of two states or differ, sorted."""
    return sorted(
        name for name in before.keys() | after.keys() if before.get(name) != after.get(name)
    )


def printable(text: str) -> str:
    """Escape line breaks and control characters."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def _git(folder: Path, *arguments: str) -> bytes | None:
    """Return the output of a git command, or None if it fails."""
    ended = run_git(folder, *arguments)
    return ended.stdout if ended is not None and ended.returncode == 0 else None


def _is_changed(folder: Path) -> bool:
    """Return whether a checked file differs from the commit or is missing."""
    names = (_git(folder, "diff", "--name-only", "-z", "HEAD") or b"").split(b"\0")
    return any(can_matter(folder / os.fsdecode(name)) for name in names if name)


def _is_file(path: Path) -> bool:
    """Return whether a path is a file or a link, not a submodule or a deleted file."""
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return False
    return stat.S_ISREG(mode) or stat.S_ISLNK(mode)


def _below(folder: Path) -> Iterator[str]:
    for above, folders, files in os.walk(folder):
        linked = [name for name in folders if os.path.islink(os.path.join(above, name))]
        folders[:] = [name for name in folders if name not in _OURS and name not in linked]
        for name in (*files, *linked):
            path = Path(above, name)
            if _is_file(path):
                yield path.relative_to(folder).as_posix()


def _content(path: Path) -> tuple[int, str]:
    mode = os.lstat(path).st_mode
    data = os.fsencode(os.readlink(path)) if stat.S_ISLNK(mode) else path.read_bytes()
    return mode, hashlib.sha256(data).hexdigest()


def _digest(folder: Path, files: tuple[str, ...]) -> str:
    total = hashlib.sha256()
    for name in files:
        _, content = _content(folder / name)
        total.update(os.fsencode(name) + b"\0" + content.encode())
    return total.hexdigest()[:SHOWN_DIGITS]
