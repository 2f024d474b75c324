"""Which files a run looks at: paths from the command line to targets, project root and context.

In a git repository git itself says what is ignored; elsewhere folders are walked and `.gitignore`
files honoured. Symbolic links that are met on the way are not followed, so that neither a loop nor
a link to another tree changes what a run does; what a user names is taken, link or not.
"""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path

from ..errors import UsageError
from ..settings import Settings
from ..text.source_file import may_be_notebook
from .globs import ignore_rules, is_ignored, matcher
from .roots import BUILT, FOREIGN, absolute, find_root, is_foreign, is_too_wide, repository

_PYTHON_SUFFIXES = (".py", ".pyi", ".pyw")
_TEXT_SUFFIXES = (".sh", ".bash", ".yaml", ".yml", ".toml", ".mk", ".env")
_TEXT_NAMES = frozenset({"Makefile", "makefile", "GNUmakefile", ".envrc"})
_TEXT_PREFIXES = ("Dockerfile", "Containerfile", ".env.")
_TEXT_EXTENSIONS = (".dockerfile", ".containerfile")


@dataclass(frozen=True, slots=True)
class Targets:
    """The files that the user asked about, as absolute paths without symbolic links, sorted.

    Attributes:
        python: Python files.
        texts: files of the other kinds in which JAX's flags are set.
        barren: folders that were named and have no Python file.
    """

    python: tuple[Path, ...]
    texts: tuple[Path, ...]
    barren: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class Listing:
    """As `Targets`, with the names of files as texts: to make a path of each takes longer than to
    find them."""

    python: tuple[str, ...]
    texts: tuple[str, ...]
    barren: tuple[Path, ...] = ()


class Scans:
    """What folders hold; each is asked once, though targets and context lie in the same ones."""

    def __init__(self) -> None:
        self._folders: dict[str, _Folder] = {}
        self._by_git: dict[str, bytes | None] = {}

    def folder(self, folder: str) -> _Folder:
        """What is in a folder by name; nothing if it may not be read."""
        if folder not in self._folders:
            try:
                with os.scandir(folder) as listing:
                    entries = sorted(listing, key=attrgetter("name"))
            except OSError:
                entries = []
            inside = [
                (entry.name, entry.path, is_folder)
                for entry in entries
                if (is_folder := entry.is_dir(follow_symlinks=False))
                or entry.is_file(follow_symlinks=False)
            ]
            self._folders[folder] = inside, _MARKS & {entry.name for entry in entries}
        return self._folders[folder]

    def by_git(self, folder: str) -> bytes | None:
        """What git lists below a folder; None where it does not answer."""
        if folder not in self._by_git:
            self._by_git[folder] = _git(
                folder, "ls-files", "-z", "-t", "--cached", "--others", "--exclude-standard"
            )
        return self._by_git[folder]


# What is in a folder, without links: its name, its path, and whether it is a folder; and what of
# `_MARKS` there is.
_Folder = tuple[list[tuple[str, str, bool]], frozenset[str]]
# What says how a folder is to be seen.
_MARKS = frozenset({".gitignore", "pyvenv.cfg"})


def check_paths(paths: Sequence[Path]) -> None:
    """Insist that each path is a file or a folder.

    Raises:
        UsageError: some do not exist or are something else. All such are named.
    """
    missing = [problem for path in paths if (problem := _unusable(path))]
    if missing:
        raise UsageError("\n".join(missing))


def discover(paths: Sequence[Path], settings: Settings, *, force_exclude: bool = False) -> Targets:
    """The files below `paths` that a run looks at; a file that is named is always taken.

    Args:
        paths: files and folders.
        settings: what they exclude is relative to their own folder.
        force_exclude: pass by what is excluded or foreign even where it is named, as a commit hook
            must: it names every file that changed.

    Raises:
        UsageError: as `check_paths` does.
    """
    listed = list_targets(paths, settings, force_exclude=force_exclude)
    return Targets(tuple(map(Path, listed.python)), tuple(map(Path, listed.texts)), listed.barren)


def list_targets(
    paths: Sequence[Path],
    settings: Settings,
    *,
    force_exclude: bool = False,
    scans: Scans | None = None,
) -> Listing:
    """As `discover`; `scans` holds what folders are known to hold.

    Raises:
        UsageError: as `check_paths` does.
    """
    check_paths(paths)
    scans = scans or Scans()
    excluded = matcher(settings.exclude, settings.base)
    python: set[str] = set()
    texts: set[str] = set()
    barren: list[Path] = []
    for path in map(absolute, paths):
        if not path.is_dir():
            if not (force_exclude and (excluded(path) or is_foreign(path, settings.root))):
                (python if is_python(path) else texts).add(str(path))
            continue
        found = _list(str(path), _can_matter, scans)
        if settings.exclude:
            found = [file for file in found if not excluded(Path(file))]
        below = {file for file in found if _is_named_python(file) or is_python(Path(file))}
        python |= below
        # Markdown that is no notebook is neither.
        rest = (file for file in found if file not in below)
        texts.update(file for file in rest if _is_text_name(os.path.basename(file)))
        if not below:
            barren.append(path)
    return Listing(_in_order(python), _in_order(texts), tuple(barren))


def context_files(root: Path, targets: Targets) -> tuple[Path, ...]:
    """Every Python file of the project: callers of a target's functions may stand in any of them.

    Excluded files are among them: they are read, never changed. For files that belong to no project
    it is the targets alone.
    """
    return tuple(map(Path, list_context(root, map(str, targets.python))))


def list_context(root: Path, python: Iterable[str], scans: Scans | None = None) -> tuple[str, ...]:
    """As `context_files`, for the names of the Python targets."""
    python = tuple(python)
    if is_too_wide(root):
        return python
    # In a repository of several packages a caller may stand in another one.
    found = _list(str(repository(root)), lambda name: name.endswith(".py"), scans or Scans())
    return _in_order({*python, *found})


def _in_order(files: Iterable[str]) -> tuple[str, ...]:
    """Names of files in the order that their paths have: a folder's files stand together."""
    return tuple(sorted(files, key=lambda file: os.path.normcase(file).replace(os.sep, "\0")))


def _is_named_python(file: str) -> bool:
    """Whether a file is Python by its name; one that is called `.py` has no suffix."""
    return file.endswith(_PYTHON_SUFFIXES) and file[file.rfind(os.sep) + 1 :].rfind(".") > 0


def is_python(path: Path, data: bytes | None = None) -> bool:
    """Whether a file is read as Python: by its name, or a script by its first line.

    A notebook is, and of Markdown what is one; `data` is its content, if it is not to be read.
    """
    if path.suffix in _PYTHON_SUFFIXES:
        return True
    if may_be_notebook(path):
        return _is_notebook(path, data)
    if path.suffix or _is_text_name(path.name):
        return False
    try:
        with path.open("rb") as file:
            first = file.readline(200)
    except OSError:
        return False
    return first.startswith(b"#!") and b"python" in first


def can_matter(path: Path) -> bool:
    """Whether a file is of a kind that a run over its folder looks at."""
    return is_python(path) or _can_matter(path.name)


def list_files(folder: Path, wanted: Callable[[str], bool]) -> Iterator[Path]:
    """Regular files below `folder`, by base name, without those that are ignored or foreign."""
    return map(Path, _list(str(folder), wanted, Scans()))


def _list(folder: str, wanted: Callable[[str], bool], scans: Scans) -> list[str]:
    listed = _list_by_git(folder, wanted, scans)
    if listed is None:
        return _walk(folder, wanted, scans)
    found: list[str] = []
    for path in listed:
        # Tracked files may have been deleted; a link's target is found where it really lies.
        try:
            mode = os.lstat(path).st_mode
        except OSError:
            continue
        if stat.S_ISREG(mode):
            found.append(path)
        elif stat.S_ISDIR(mode):  # a submodule, or a repository within a repository
            found += _list(path, wanted, scans)
    return found


def run_git(
    folder: str | Path, *arguments: str, data: bytes = b""
) -> subprocess.CompletedProcess[bytes] | None:
    """Run a git command in a folder, with `data` as its input; None if there is no git."""
    # A hook sets GIT_DIR and GIT_INDEX_FILE for the folder it runs in, which may not be this one.
    environment = {name: value for name, value in os.environ.items() if name[:4] != "GIT_"}
    try:
        return subprocess.run(
            # The file system monitor is a command that the repository itself may name; so is the
            # way to a remote from which git would fetch what is missing.
            [
                *("git", "-c", "core.fsmonitor=false", "-c", "protocol.allow=never"),
                *("-C", str(folder), *arguments),
            ],
            input=data,
            capture_output=True,
            check=False,
            env={**environment, "GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1"},
        )
    except OSError:
        return None


def _unusable(path: Path) -> str:
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        hint = " (a broken symbolic link)" if path.is_symlink() else ""
        return f"{path}: no such file or folder{hint}"
    except (OSError, ValueError) as error:
        return f"{path}: {getattr(error, 'strerror', None) or error}"
    if stat.S_ISDIR(mode) or stat.S_ISREG(mode):
        return ""
    return f"{path}: is neither a file nor a folder"


def _is_notebook(path: Path, data: bytes | None) -> bool:
    if path.suffix.lower() == ".ipynb":
        return True
    from ..text.markdown_cells import is_notebook

    try:
        return is_notebook(path.read_bytes() if data is None else data)
    except (OSError, UnicodeEncodeError):  # of a name that is none for this system, the latter
        return False


def _can_matter(name: str) -> bool:
    return name.endswith(".py") or _is_text_name(name) or may_be_notebook(Path(name))


def _is_text_name(name: str) -> bool:
    return (
        name.endswith(_TEXT_SUFFIXES)
        or name.startswith(_TEXT_PREFIXES)
        or name in _TEXT_NAMES
        or name.lower().endswith(_TEXT_EXTENSIONS)
    )


def _list_by_git(folder: str, wanted: Callable[[str], bool], scans: Scans) -> list[str] | None:
    """What git lists below `folder`; None where git does not answer for it."""
    if not any(os.path.lexists(above / ".git") for above in (Path(folder), *Path(folder).parents)):
        return None
    output = scans.by_git(folder)
    if output is None:
        return None
    if not output and _git(folder, "check-ignore", "-q", folder) is not None:
        return None  # the user named a folder that git ignores
    paths: dict[str, None] = {}
    for entry in output.decode("utf-8", "surrogateescape").split("\0"):
        tag, _, name = entry.partition(" ")
        if not name:
            continue
        *folders, base = name.rstrip("/").split("/")
        if not (wanted(base) or _may_be_folder(folder, name, base)):
            continue
        if not FOREIGN.isdisjoint(folders):
            continue
        if tag == "?" and not BUILT.isdisjoint(folders):
            continue
        paths[name.rstrip("/")] = None
    return [os.path.join(folder, name) for name in paths]


def _may_be_folder(folder: str, name: str, base: str) -> bool:
    """Whether git's entry is a repository of its own, which it lists as one name."""
    if name.endswith("/"):
        return base not in FOREIGN and base not in BUILT
    # A submodule has no slash. Names with a dot are files but for very few.
    return "." not in base and os.path.exists(os.path.join(folder, name, ".git"))


def _git(folder: str, *arguments: str) -> bytes | None:
    """What a git command prints; None if it fails or there is no git."""
    ran = run_git(folder, *arguments)
    return None if ran is None or ran.returncode else ran.stdout


def _walk(folder: str, wanted: Callable[[str], bool], scans: Scans) -> list[str]:
    """Files below `folder` by a walk, without what `.gitignore` files leave out."""
    above = [
        rules
        for parent in reversed(_parents_in_project(Path(folder)))
        if (rules := ignore_rules(str(parent)))
    ]
    # The folder itself was asked for; rules of folders above that ignore it do not count.
    if any(ignores(folder + os.sep) for ignores in above):
        above = []
    found: list[str] = []
    _walk_folder(folder, wanted, above, scans, found)
    return found


def _walk_folder(
    folder: str,
    wanted: Callable[[str], bool],
    rules: list[Callable[[str], bool | None]],
    scans: Scans,
    found: list[str],
) -> None:
    entries, marks = scans.folder(folder)
    if "pyvenv.cfg" in marks:
        return  # a virtual environment under any name
    if ".gitignore" in marks and (more := ignore_rules(folder)):
        rules = [*rules, more]
    for name, path, is_folder in entries:
        if is_folder:
            if name in FOREIGN or name in BUILT or is_ignored(rules, path + os.sep):
                continue
            _walk_folder(path, wanted, rules, scans, found)
        elif wanted(name) and not is_ignored(rules, path):
            found.append(path)


def _parents_in_project(folder: Path) -> list[Path]:
    root = find_root([folder])
    return [parent for parent in folder.parents if parent == root or root in parent.parents]
