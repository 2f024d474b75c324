"""Compare the working tree with a git revision or another folder.

Nothing is checked out: the files that differ are read from the repository, and
`make_workspace(root, destination, base.texts, base.new)` rebuilds the project as it was.
"""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ...discovery.listing import list_files, run_git
from ...errors import UsageError
from .workspace import BIG_FILE

_REGULAR = frozenset({"100644", "100755"})
_SUBMODULE = "160000"
_LFS = b"version https://git-lfs"
_SAME = "both sides use the version in the working tree"


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file that differs between the base and the working tree.

    Attributes:
        path: the file in the working tree, or where it would be.
        before: its bytes in the base; None for a new file.
        after: its bytes now; None for a removed file.
    """

    path: Path
    before: bytes | None
    after: bytes | None


@dataclass(frozen=True, slots=True)
class Base:
    """What the working tree is compared with.

    Attributes:
        root: the project's folder.
        changes: the requested files that differ, sorted by path.
        texts: the base's bytes of all files of the project that differ, for `make_workspace`.
        new: the files of the project that the base does not have.
        notes: which files are the same on both sides although they differ.
    """

    root: Path
    changes: tuple[FileChange, ...] = ()
    texts: Mapping[Path, bytes] = field(default_factory=dict)
    new: frozenset[Path] = frozenset()
    notes: tuple[str, ...] = ()


def find_base(root: Path, base: str, paths: Sequence[Path] = ()) -> Base:
    """Compare the project at `root` with a folder, or else with a git revision.

    Untracked files that git does not ignore are new files; ignored files are on both sides.

    Args:
        root: the project's folder; it may lie within the repository.
        base: a folder with an older state of the project, or any name of a git revision: a branch,
            a tag, a hash, `HEAD~1`.
        paths: the requested files and folders; empty for the whole project.

    Raises:
        UsageError: there is neither such a folder nor such a revision.
    """
    real = Path(os.path.realpath(root))
    requested = [Path(os.path.realpath(path)) for path in paths]
    found = _Differences()
    if os.path.isdir(base):
        _compare_folder(real, Path(os.path.realpath(base)), found)
    else:
        _compare_revision(real, _tree(real, base), found)
    changes = [
        FileChange(path, found.before.get(path), found.after.get(path))
        for path in sorted({*found.before, *found.after})
        if found.before.get(path) != found.after.get(path)
    ]
    return Base(
        real,
        tuple(c for c in changes if not requested or any(map(c.path.is_relative_to, requested))),
        {c.path: c.before for c in changes if c.before is not None},
        frozenset(c.path for c in changes if c.before is None),
        tuple(found.notes),
    )


@dataclass(slots=True)
class _Differences:
    """The files found to differ.

    Attributes:
        before: old bytes by path.
        after: new bytes by path.
        notes: see `Base`.
    """

    before: dict[Path, bytes] = field(default_factory=dict)
    after: dict[Path, bytes] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def skip(self, path: Path, root: Path) -> None:
        """Leave out a file that is too large."""
        self.after.pop(path, None)
        self.notes.append(f"{path.relative_to(root)}: too large to compare; {_SAME}")


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0


def _read(path: Path, root: Path, found: _Differences) -> bytes | None:
    """Return the bytes of a regular file that is not too large; None for anything else."""
    if _size(path) > BIG_FILE:
        found.skip(path, root)
        return None
    try:
        return path.read_bytes() if stat.S_ISREG(path.lstat().st_mode) else None
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from error


# -- a git revision


def _tree(root: Path, base: str) -> str:
    """Return the hash of a revision's tree.

    Raises:
        UsageError: there is no such revision; the message says what to do.
    """
    inside = run_git(root, "rev-parse", "--is-inside-work-tree")
    if inside is None:
        raise UsageError(
            f"--base {base}: no such folder, and git is not installed, which is needed to look up"
            " revisions"
        )
    if inside.returncode or inside.stdout.strip() != b"true":
        raise UsageError(
            f"--base {base}: no such folder, and {root} is not in a git repository"
            f" ({_message(inside.stderr)}); pass a folder with the older state of the project"
        )
    # A name that starts with a dash would be an option.
    named = f"{base}^{{tree}}"
    found = None if base.startswith("-") else run_git(root, "rev-parse", "-q", "--verify", named)
    if found is None or found.returncode:
        shallow = run_git(root, "rev-parse", "--is-shallow-repository")
        hint = "list revisions with `git branch --all` and `git tag`"
        if shallow is not None and shallow.stdout.strip() == b"true":
            hint = "this is a shallow clone: fetch the older commits with `git fetch --unshallow`"
        raise UsageError(f"--base {base}: no such folder or git revision; {hint}")
    return found.stdout.decode().strip()


def _compare_revision(root: Path, tree: str, found: _Differences) -> None:
    options = ["--raw", "-z", "--no-renames", "--no-abbrev", "--relative"]
    options += ["--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty"]
    fields = iter(os.fsdecode(_git(root, "diff", *options, tree, "--", ".")).split("\0"))
    blobs: dict[Path, str] = {}
    for head, name in zip(fields, fields, strict=False):
        old_mode, mode, blob, *_ = head.lstrip(":").split(" ")
        path = root / name
        if _SUBMODULE in (old_mode, mode):
            found.notes.append(f"{name} is a submodule; {_SAME}")
            continue
        after = _read(path, root, found) if mode.strip("0") else None
        if after is not None:
            found.after[path] = after
        elif _size(path) > BIG_FILE:
            continue
        if old_mode in _REGULAR:
            blobs[path] = blob
        elif old_mode.strip("0"):
            found.notes.append(f"{path.relative_to(root)}: was a symbolic link; {_SAME}")
    _read_blobs(root, blobs, found)
    others = _git(root, "ls-files", "-z", "--others", "--exclude-standard")
    for name in os.fsdecode(others).split("\0"):
        path = root / name
        # git lists a repository within this one as a folder.
        if name and not name.endswith("/") and (data := _read(path, root, found)) is not None:
            found.after[path] = data


def _read_blobs(root: Path, blobs: Mapping[Path, str], found: _Differences) -> None:
    """Read objects of the repository, except large ones and Git LFS pointers."""
    if not blobs:
        return
    names = "".join(f"{blob}\n" for blob in blobs.values()).encode()
    output = io.BytesIO(_git(root, "cat-file", "--batch", data=names))
    for path in blobs:
        *_, size = output.readline().split()
        if not size.isdigit():  # "missing"
            raise UsageError(
                f"{path.relative_to(root)}: the repository lacks its old version; try `git fetch`"
            )
        data = output.read(int(size))
        output.readline()
        if len(data) > BIG_FILE or data.startswith(_LFS):
            found.skip(path, root)
        else:
            found.before[path] = data


def _git(root: Path, *arguments: str, data: bytes = b"") -> bytes:
    ran = run_git(root, *arguments, data=data)
    if ran is None or ran.returncode:
        said = _message(ran.stderr) if ran is not None else "git is not installed"
        raise UsageError(f"git {arguments[0]} failed in {root}: {said}")
    return ran.stdout


def _message(output: bytes) -> str:
    """Return the first line of git's error output, without its prefix."""
    lines = output.decode(errors="replace").strip().splitlines() or ["no message"]
    return lines[0].removeprefix("fatal: ").removeprefix("error: ")


# -- a folder


def _compare_folder(root: Path, base: Path, found: _Differences) -> None:
    if root.is_relative_to(base):
        raise UsageError(f"--base {base}: contains the project itself; pass an older copy of it")
    files = {
        path.relative_to(root)
        for path in list_files(root, lambda name: True)
        if not path.is_relative_to(base)
    }
    old_files = {path.relative_to(base) for path in list_files(base, lambda name: True)}
    if not any(name.suffix == ".py" for name in files & old_files):
        raise UsageError(
            f"--base {base}: none of its Python files has a counterpart in {root}; pass a folder"
            f" with the project's layout, or `{base.name}~0` for the git revision of that name"
        )
    for name in files | old_files:
        old, new = base / name, root / name
        shared = name in files and name in old_files
        if shared and _size(old) == _size(new) > BIG_FILE:
            continue  # assume that they are equal rather than read gigabytes
        before = _read(old, base, found) if name in old_files else None
        after = _read(new, root, found) if name in files else None
        if shared and (before is None or after is None):
            continue
        if before is not None and before != after:
            found.before[new] = before
        if after is not None and before != after:
            found.after[new] = after
