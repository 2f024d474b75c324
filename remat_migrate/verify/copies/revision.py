"""Compare the working tree with a git revision or another folder.

Nothing is checked out: the files that differ are read from the repository, and
`make_workspace(root, destination, base.texts, base.new)` rebuilds the project as it was.
"""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
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


# None for no file, or a link; the size of a large file, which is compared by nothing else.
_Content = bytes | int | None
_Pairs = Iterator[tuple[Path, _Content, _Content]]


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
    changes: list[FileChange] = []
    notes: list[str] = []
    if os.path.isdir(base):
        pairs = _with_folder(real, Path(os.path.realpath(base)))
    else:
        pairs = _with_revision(real, _tree(real, base), notes)
    for name, before, after in pairs:
        if before == after:
            continue
        if isinstance(before, int) or isinstance(after, int):
            notes.append(f"{name}: too large to compare; {_SAME}")
        else:
            changes.append(FileChange(real / name, before, after))
    changes.sort(key=lambda change: change.path)
    return Base(
        real,
        tuple(c for c in changes if not requested or any(map(c.path.is_relative_to, requested))),
        {c.path: c.before for c in changes if c.before is not None},
        frozenset(c.path for c in changes if c.before is None),
        tuple(notes),
    )


def _read(path: Path) -> _Content:
    try:
        found = path.lstat()
        if not stat.S_ISREG(found.st_mode):
            return None
        return found.st_size if found.st_size > BIG_FILE else path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from error


# -- a folder


def _with_folder(root: Path, base: Path) -> _Pairs:
    """Yield the files of a folder or the project, with their contents in both."""
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
        before = _read(base / name) if name in old_files else None
        yield name, before, _read(root / name) if name in files else None


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


def _with_revision(root: Path, tree: str, notes: list[str]) -> _Pairs:
    """Yield the files that differ from a revision, with their contents in both."""
    options = ["--raw", "-z", "--no-renames", "--no-abbrev", "--relative"]
    options += ["--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty"]
    fields = iter(os.fsdecode(_git(root, "diff", *options, tree, "--", ".")).split("\0"))
    blobs: dict[str, str] = {}
    names: list[str] = []
    for head, name in zip(fields, fields, strict=False):
        old_mode, mode, blob, *_ = head.lstrip(":").split(" ")
        if _SUBMODULE in (old_mode, mode):
            notes.append(f"{name} is a submodule; {_SAME}")
            continue
        names.append(name)
        if old_mode in _REGULAR:
            blobs[name] = blob
        elif old_mode.strip("0"):
            notes.append(f"{name}: was a symbolic link; {_SAME}")
    others = os.fsdecode(_git(root, "ls-files", "-z", "--others", "--exclude-standard"))
    # git lists a repository within this one as a folder.
    names += [name for name in others.split("\0") if name and not name.endswith("/")]
    old = _read_blobs(root, blobs)
    for name in dict.fromkeys(names):
        yield Path(name), old.get(name), _read(root / name)


def _read_blobs(root: Path, blobs: Mapping[str, str]) -> Mapping[str, _Content]:
    """Return objects of the repository by name; Git LFS pointers stand for large files."""
    found: dict[str, _Content] = {}
    listed = "".join(f"{blob}\n" for blob in blobs.values()).encode()
    output = io.BytesIO(_git(root, "cat-file", "--batch", data=listed) if blobs else b"")
    for name in blobs:
        *_, size = output.readline().split()
        if not size.isdigit():  # "missing"
            raise UsageError(f"{name}: the repository lacks its old version; try `git fetch`")
        data = output.read(int(size))
        output.readline()
        is_large = len(data) > BIG_FILE or data.startswith(_LFS)
        found[name] = -1 if is_large else data  # git says that it differs
    return found


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
