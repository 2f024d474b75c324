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
from pathlib import Path

from .errors import UsageError
from .globs import matcher
from .settings import Settings
from .source.text import may_be_notebook

# Folders of other people's code and of caches: passed by even where they are committed.
_FOREIGN = frozenset(
    {
        ".eggs",
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
        ".venv",
        "__pycache__",
        "node_modules",
        "site-packages",
        "venv",
    }
)
# What a build writes. A file in such a folder that is committed is source: JAX keeps its build
# scripts in `build/`.
_BUILT = frozenset({"build", "dist"})
ROOT_MARKERS = ("pyproject.toml", "setup.py", "setup.cfg", ".git")
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


def find_root(paths: Sequence[Path]) -> Path:
    """The project's folder: the nearest one above all of `paths` that has a project's marker.

    Without a marker it is the folder that the paths have in common. The home folder and the top of
    the file system are no projects, whatever lies in them.
    """
    folders = [path if path.is_dir() else path.parent for path in map(_absolute, paths)]
    common = Path(os.path.commonpath(folders)) if folders else Path.cwd()
    for folder in (common, *common.parents):
        if is_too_wide(folder):
            break
        if any((folder / marker).exists() for marker in ROOT_MARKERS):
            return folder
    return common


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
    check_paths(paths)
    excluded = matcher(settings.exclude, settings.base)
    python: set[Path] = set()
    texts: set[Path] = set()
    barren: list[Path] = []
    for path in map(_absolute, paths):
        if not path.is_dir():
            if not (force_exclude and (excluded(path) or is_foreign(path, settings.root))):
                (python if is_python(path) else texts).add(path)
            continue
        found = [file for file in list_files(path, _can_matter) if not excluded(file)]
        below = {file for file in found if is_python(file)}
        python |= below
        # Markdown that is no notebook is neither.
        texts.update(file for file in found if file not in below and _is_text_name(file.name))
        if not below:
            barren.append(path)
    return Targets(tuple(sorted(python)), tuple(sorted(texts)), tuple(barren))


def context_files(root: Path, targets: Targets) -> tuple[Path, ...]:
    """Every Python file of the project: callers of a target's functions may stand in any of them.

    Excluded files are among them: they are read, never changed. For files that belong to no project
    it is the targets alone.
    """
    if is_too_wide(root):
        return targets.python
    # In a repository of several packages a caller may stand in another one.
    root = repository(root)
    return tuple(sorted({*targets.python, *list_files(root, lambda name: name.endswith(".py"))}))


def is_python(path: Path, data: bytes | None = None) -> bool:
    """Whether a file is read as Python: by its name, or a script by its first line.

    A notebook is, and of Markdown what is one; `data` is its content, if it is not to be read.
    """
    if path.suffix in (".py", ".pyi", ".pyw"):
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
    listed = _list_by_git(folder, wanted)
    found = _walk(folder, wanted) if listed is None else iter(listed)
    for path in found:
        # Tracked files may have been deleted; a link's target is found where it really lies.
        try:
            mode = os.lstat(path).st_mode
        except OSError:
            continue
        if stat.S_ISREG(mode):
            yield path
        elif stat.S_ISDIR(mode):  # a submodule, or a repository within a repository
            yield from list_files(path, wanted)


def run_git(
    folder: Path, *arguments: str, data: bytes = b""
) -> subprocess.CompletedProcess[bytes] | None:
    """Run a git command in a folder, with `data` as its input; None if there is no git."""
    # A hook sets GIT_DIR and GIT_INDEX_FILE for the folder it runs in, which may not be this one.
    environment = {name: value for name, value in os.environ.items() if name[:4] != "GIT_"}
    try:
        return subprocess.run(
            # The file system monitor is a command that the repository itself may name.
            ["git", "-c", "core.fsmonitor=false", "-C", str(folder), *arguments],
            input=data,
            capture_output=True,
            check=False,
            env={**environment, "GIT_OPTIONAL_LOCKS": "0"},
        )
    except OSError:
        return None


def _absolute(path: Path) -> Path:
    return Path(os.path.realpath(path))


def is_too_wide(folder: Path) -> bool:
    """Whether a folder is no project, whatever lies in it: the home folder, or the top."""
    return folder.parent == folder or folder == _home()


def _home() -> Path | None:
    try:
        return _absolute(Path.home())
    except RuntimeError:
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


def repository(root: Path) -> Path:
    """The repository that a project belongs to; the project's own folder if to none."""
    for folder in (root, *root.parents):
        if not is_too_wide(folder) and (folder / ".git").exists():
            return folder
    return root


def is_foreign(path: Path, root: Path) -> bool:
    """Whether a file lies in a folder that a run over all of the project passes by."""
    root = repository(root)
    folders = path.relative_to(root).parent.parts if path.is_relative_to(root) else ()
    return not _FOREIGN.isdisjoint(folders)


def _is_notebook(path: Path, data: bytes | None) -> bool:
    if path.suffix.lower() == ".ipynb":
        return True
    from .source.markdown_cells import is_notebook

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


def _list_by_git(folder: Path, wanted: Callable[[str], bool]) -> list[Path] | None:
    """What git lists below `folder`; None where git does not answer for it."""
    if not any(os.path.lexists(above / ".git") for above in (folder, *folder.parents)):
        return None
    output = _git(folder, "ls-files", "-z", "-t", "--cached", "--others", "--exclude-standard")
    if output is None:
        return None
    if not output and _git(folder, "check-ignore", "-q", str(folder)) is not None:
        return None  # the user named a folder that git ignores
    paths: dict[str, None] = {}
    for entry in output.decode("utf-8", "surrogateescape").split("\0"):
        tag, _, name = entry.partition(" ")
        if not name:
            continue
        *folders, base = name.rstrip("/").split("/")
        if not (wanted(base) or _may_be_folder(folder, name, base)):
            continue
        if not _FOREIGN.isdisjoint(folders):
            continue
        if tag == "?" and not _BUILT.isdisjoint(folders):
            continue
        paths[name.rstrip("/")] = None
    return [folder / name for name in paths]


def _may_be_folder(folder: Path, name: str, base: str) -> bool:
    """Whether git's entry is a repository of its own, which it lists as one name."""
    if name.endswith("/"):
        return base not in _FOREIGN and base not in _BUILT
    # A submodule has no slash. Names with a dot are files but for very few.
    return "." not in base and (folder / name / ".git").exists()


def _git(folder: Path, *arguments: str) -> bytes | None:
    """What a git command prints; None if it fails or there is no git."""
    ran = run_git(folder, *arguments)
    return None if ran is None or ran.returncode else ran.stdout


def _walk(folder: Path, wanted: Callable[[str], bool]) -> Iterator[Path]:
    """Files below `folder` by a walk, without what `.gitignore` files leave out."""
    above = [
        rules
        for parent in reversed(_parents_in_project(folder))
        if (rules := _ignore_rules(str(parent)))
    ]
    # The folder itself was asked for; rules of folders above that ignore it do not count.
    if any(ignores(str(folder) + os.sep) for ignores in above):
        above = []
    yield from _walk_folder(str(folder), wanted, above)


def _walk_folder(
    folder: str, wanted: Callable[[str], bool], rules: list[Callable[[str], bool | None]]
) -> Iterator[Path]:
    try:
        with os.scandir(folder) as listing:
            entries = sorted(listing, key=lambda entry: entry.name)
    except OSError:
        return  # a folder that may not be read
    names = {entry.name for entry in entries}
    if "pyvenv.cfg" in names:
        return  # a virtual environment under any name
    if ".gitignore" in names and (more := _ignore_rules(folder)):
        rules = [*rules, more]
    for entry in entries:
        if entry.is_symlink():
            continue
        if entry.is_dir():
            name = entry.name
            if name in _FOREIGN or name in _BUILT or _ignored(rules, entry.path + os.sep):
                continue
            yield from _walk_folder(entry.path, wanted, rules)
        elif wanted(entry.name) and not _ignored(rules, entry.path):
            yield Path(entry.path)


def _parents_in_project(folder: Path) -> list[Path]:
    root = find_root([folder])
    return [parent for parent in folder.parents if parent == root or root in parent.parents]


def _ignored(rules: Iterable[Callable[[str], bool | None]], path: str) -> bool:
    """Whether the innermost rules that have something to say about `path` ignore it."""
    ignored = False
    for ignores in rules:
        verdict = ignores(path)
        if verdict is not None:
            ignored = verdict
    return ignored


def _ignore_rules(folder: str) -> Callable[[str], bool | None] | None:
    """What the `.gitignore` of a folder says of a path below it: ignore, keep, or nothing."""
    try:
        with open(os.path.join(folder, ".gitignore"), encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
    except OSError:
        return None
    from pathspec import GitIgnoreSpec

    spec = GitIgnoreSpec.from_lines(lines)
    prefix = len(folder.rstrip(os.sep)) + 1
    return lambda path: spec.check_file(path[prefix:].replace(os.sep, "/")).include
