"""What a project was at a git revision, or in another folder, as far as it differs from today.

Nothing is checked out: the differing files are read from the repository, and
`make_workspace(root, destination, base.texts, base.new)` is the project as it was.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ...discovery.discover import list_files, run_git
from ...errors import UsageError
from ..units.renames import paired
from .workspace import BIG_FILE

_REGULAR = frozenset({"100644", "100755"})
_SUBMODULE = "160000"
_LFS = b"version https://git-lfs"
# A folder with less than this share of the project's Python files is a part of it, not its past.
_WHOLE = 0.5


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file that differs between the base and the working tree.

    Attributes:
        path: the file in the working tree, or where it would be.
        before: its bytes in the base; None for a new file.
        after: its bytes now; None for a removed file.
        old_path: where the base has it, seen from the working tree, if that is elsewhere.
    """

    path: Path
    before: bytes | None
    after: bytes | None
    old_path: Path | None = None


@dataclass(frozen=True, slots=True)
class Base:
    """What to compare the working tree with.

    Attributes:
        root: the project's folder.
        name: the base as the user calls it.
        changes: the files that differ, as far as they were asked for, sorted by path.
        texts: the bytes of all files of the project that the base has and that differ today, by
            path; `make_workspace` takes them.
        new: the files of the project that the base does not have.
        notes: what was taken from the working tree on both sides, for the reader.
    """

    root: Path
    name: str
    changes: tuple[FileChange, ...]
    texts: Mapping[Path, bytes]
    new: frozenset[Path]
    notes: tuple[str, ...] = ()

    @property
    def renamed(self) -> tuple[tuple[Path, Path], ...]:
        """The files that were renamed: old path and new path."""
        return tuple((c.old_path, c.path) for c in self.changes if c.old_path is not None)


def base_texts(root: Path, base: str, paths: Sequence[Path] = ()) -> Base:
    """How the project at `root` differs from a git revision or a folder, which is tried first.

    Untracked files that git does not ignore are new files; ignored ones belong to both sides.

    Args:
        root: the project's folder; it may lie within the repository.
        base: a folder with an older state of the project (or of the one folder in `paths`), or
            whatever git calls a revision: a branch, a tag, a hash, `HEAD~1`.
        paths: the files and folders that are asked for; all of the project without any.

    Raises:
        UsageError: there is neither such a folder nor such a revision.
    """
    real = Path(os.path.realpath(root))
    asked = [Path(os.path.realpath(path)) for path in paths]
    found = _Differences()
    if os.path.isdir(base):
        _compare_folder(real, Path(os.path.realpath(base)), asked, found)
    else:
        _compare_revision(real, _tree(real, base), found)
    changes = sorted(found.changes(), key=lambda change: change.path)
    return Base(
        real,
        base,
        tuple(c for c in changes if not asked or _is_asked(c, asked)),
        {c.old_path or c.path: c.before for c in changes if c.before is not None},
        frozenset(
            c.path
            for c in changes
            if c.path not in found.kept and (c.before is None or c.old_path is not None)
        ),
        tuple(found.notes),
    )


def same_texts(root: Path) -> Base:
    """The project at `root` as its own base."""
    return Base(Path(os.path.realpath(root)), "", (), {}, frozenset())


@dataclass(slots=True)
class _Differences:
    """What was found so far: old and new bytes by path, and renames that git has told."""

    before: dict[Path, bytes] = field(default_factory=dict)
    after: dict[Path, bytes] = field(default_factory=dict)
    renamed: dict[Path, Path] = field(default_factory=dict)
    kept: set[Path] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)

    def changes(self) -> Iterator[FileChange]:
        """What differs, renamed files put together."""
        removed = {p: b for p, b in self.before.items() if p not in self.after}
        added = {p: b for p, b in self.after.items() if p not in self.before}
        for old, new in self.renamed.items():
            removed.pop(old, None)
            added.pop(new, None)
        pairs = {**self.renamed, **paired(removed, added)}
        moved = {new: old for old, new in pairs.items()}
        gone = {old for old in pairs if old not in self.after}
        for path in {*self.before, *self.after} - gone:
            old_path = moved.get(path)
            before = self.before.get(old_path or path)
            after = self.after.get(path)
            if before != after or old_path is not None:
                yield FileChange(path, before, after, old_path)

    def large(self, path: Path, root: Path) -> None:
        """Note a file that is not read."""
        self.notes.append(
            f"{path.relative_to(root)} differs but is large:"
            " it is that of the working tree on both sides"
        )


def _is_asked(change: FileChange, asked: Iterable[Path]) -> bool:
    places = [change.path, change.old_path or change.path]
    return any(place.is_relative_to(path) for place in places for path in asked)


def _read(path: Path) -> bytes | None:
    """The bytes of a regular file; None for anything else."""
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return None
        return path.read_bytes()
    except OSError as error:
        if isinstance(error, FileNotFoundError | NotADirectoryError):
            return None
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from error


# -- a git revision


def _tree(root: Path, base: str) -> str:
    """The hash of the tree that a revision has.

    Raises:
        UsageError: there is none, with what to do about it.
    """
    inside = run_git(root, "rev-parse", "--is-inside-work-tree")
    if inside is None:
        raise UsageError(
            f"--base {base}: there is no folder of that name, and git, which could know a revision"
            " of that name, is not installed"
        )
    if inside.returncode or inside.stdout.strip() != b"true":
        said = _message(inside.stderr)
        raise UsageError(
            f"--base {base}: there is no folder of that name, and {root} is in no git repository"
            f" ({said}); name a folder with the older state of the project"
        )
    # A name that starts with a dash would be an option.
    named = f"{base}^{{tree}}"
    found = None if base.startswith("-") else run_git(root, "rev-parse", "-q", "--verify", named)
    if found is None or found.returncode:
        shallow = run_git(root, "rev-parse", "--is-shallow-repository")
        hint = "`git branch --all` and `git tag` list what there is"
        if shallow is not None and shallow.stdout.strip() == b"true":
            hint = "the repository is a shallow clone: `git fetch --unshallow` gets the rest"
        raise UsageError(
            f"--base {base}: there is no folder of that name, and git knows no such revision;"
            f" {hint}"
        )
    return found.stdout.decode().strip()


def _compare_revision(root: Path, tree: str, found: _Differences) -> None:
    options = ("--raw", "-z", "-M", "--no-abbrev", "--relative", "--no-ext-diff", "--no-textconv")
    output = _ask(root, "diff", *options, "--ignore-submodules=dirty", tree, "--", ".")
    wanted: dict[Path, str] = {}
    parts = iter(os.fsdecode(output).split("\0"))
    for head in parts:
        if not head:
            continue
        old_mode, mode, blob, _, status = head.lstrip(":").split(" ")
        old_path = path = root / next(parts)
        if status[0] in "RC":
            path = root / next(parts)
            found.renamed[old_path] = path
        if _SUBMODULE in (old_mode, mode):
            _compare_submodule(path, blob if old_mode == _SUBMODULE else "", found)
            continue
        after = _read_small(path, root, found) if mode.strip("0") else None
        if after is None and _size(path) > BIG_FILE:
            found.renamed.pop(old_path, None)
            continue
        if after is not None:
            found.after[path] = after
        if old_mode in _REGULAR:
            wanted[old_path] = blob
        elif old_mode.strip("0"):
            found.notes.append(
                f"{path.relative_to(root)} was a symbolic link: it is as in the working tree"
            )
    _read_blobs(root, wanted, found)
    others = _ask(root, "ls-files", "-z", "--others", "--exclude-standard")
    for name in os.fsdecode(others).split("\0"):
        path = root / name
        # git lists a repository within this one as a folder.
        if name and not name.endswith("/") and (data := _read_small(path, root, found)) is not None:
            found.after[path] = data


def _compare_submodule(folder: Path, commit: str, found: _Differences) -> None:
    known = commit and run_git(folder, "rev-parse", "-q", "--verify", f"{commit}^{{tree}}")
    if known and not known.returncode and (folder / ".git").exists():
        _compare_revision(folder, known.stdout.decode().strip(), found)
    else:
        found.notes.append(
            f"{folder.name} is another commit of a submodule that is not here:"
            " it is that of the working tree on both sides"
        )


def _read_blobs(root: Path, wanted: Mapping[Path, str], found: _Differences) -> None:
    """Read objects of the repository; large ones and pointers to files elsewhere are passed by."""
    if not wanted:
        return
    names = "".join(f"{blob}\n" for blob in wanted.values()).encode()
    sizes = _ask(root, "cat-file", "--batch-check=%(objectsize)", data=names).splitlines()
    small: dict[Path, str] = {}
    for (path, blob), size in zip(wanted.items(), sizes, strict=True):
        if not size.isdigit():  # "missing"
            raise UsageError(
                f"the repository lacks {path.relative_to(root)} of that revision (git fetch may"
                " bring it)"
            )
        if int(size) > BIG_FILE:
            _pass_by(path, root, found)
        else:
            small[path] = blob
    names = "".join(f"{blob}\n" for blob in small.values()).encode()
    output = _ask(root, "cat-file", "--batch", data=names)
    at = 0
    for path in small:
        line = output.index(b"\n", at)
        size_here = int(output[at:line].split(b" ")[2])
        data = output[line + 1 : line + 1 + size_here]
        at = line + size_here + 2
        if data.startswith(_LFS):
            _pass_by(path, root, found)
        else:
            found.before[path] = data


def _pass_by(path: Path, root: Path, found: _Differences) -> None:
    found.large(path, root)
    found.after.pop(found.renamed.pop(path, path), None)


def _ask(root: Path, *arguments: str, data: bytes = b"") -> bytes:
    ran = run_git(root, *arguments, data=data)
    if ran is None or ran.returncode:
        said = _message(ran.stderr) if ran is not None else "git is not installed"
        raise UsageError(f"git {arguments[0]} failed in {root}: {said}")
    return ran.stdout


def _message(output: bytes) -> str:
    """The first line of what git says, without its prefix."""
    lines = output.decode(errors="replace").strip().splitlines() or ["no message"]
    return lines[0].removeprefix("fatal: ").removeprefix("error: ")


# -- a folder


def _compare_folder(root: Path, base: Path, asked: Sequence[Path], found: _Differences) -> None:
    if root.is_relative_to(base):
        raise UsageError(f"--base {base}: holds the project itself; name an older copy of it")
    folder, old_folder, old_files = _counterparts(root, base, asked)
    files = {
        path.relative_to(folder)
        for path in list_files(folder, lambda name: True)
        if not path.is_relative_to(base)
    }
    python = sum(name.suffix == ".py" for name in files)
    if sum(name.suffix == ".py" for name in old_files) < _WHOLE * python:
        found.kept = {folder / name for name in files - old_files}
        found.notes.append(
            f"{base} has only a part of the project's files: the others are those of the working"
            " tree on both sides"
        )
    for name in files | old_files:
        old, new = old_folder / name, folder / name
        if name in files and name in old_files and _size(old) == _size(new) > BIG_FILE:
            continue  # taken for equal: reading gigabytes would not make the answer better
        before = _read_small(old, old_folder, found) if name in old_files else None
        after = _read_small(new, folder, found) if name in files else None
        if name in files and name in old_files and (before is None or after is None):
            continue
        if before is not None and before != after:
            found.before[new] = before
        if after is not None and before != after:
            found.after[new] = after


def _counterparts(root: Path, base: Path, asked: Sequence[Path]) -> tuple[Path, Path, set[Path]]:
    """A folder of the project, the one that it is to be compared with, and the latter's files.

    `base` may be an older state of the project, of the one folder that the user named, or of a
    folder around the project: whichever has most files in common with it.
    """
    candidates = [(root, base)]
    candidates += [(root, base / root.relative_to(above)) for above in root.parents]
    if len(asked) == 1 and asked[0].is_dir() and asked[0] != root:
        candidates.append((asked[0], base))
    best: tuple[int, Path, Path, set[Path]] | None = None
    for folder, old in candidates:
        if not old.is_dir() or old == folder:
            continue
        files = {path.relative_to(old) for path in list_files(old, lambda name: True)}
        shared = sum(name.suffix == ".py" and (folder / name).is_file() for name in files)
        if shared and (best is None or shared > best[0]):
            best = shared, folder, old, files
    if best is None:
        raise UsageError(
            f"--base {base}: none of its Python files has a counterpart in {root};"
            " name a folder that is laid out as the project is"
            f" (git's revision of that name is {base.name}~0)"
        )
    return best[1:]


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0


def _read_small(path: Path, root: Path, found: _Differences) -> bytes | None:
    if _size(path) > BIG_FILE:
        found.large(path, root)
        return None
    return _read(path)
