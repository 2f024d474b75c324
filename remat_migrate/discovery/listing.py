"""Listing the files below a folder, without ignored, built, and third-party files.

In a git repository git lists them, without those that it ignores; elsewhere folders are walked.
Symbolic links are not followed.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from operator import attrgetter
from pathlib import Path

from ..errors import UsageError
from .roots import BUILT, FOREIGN, absolute, is_too_wide

# Listing a million files takes less.
_GIT_SECONDS = 60
_GIT_BYTES = 4 << 30


def list_files(folder: Path, wanted: Callable[[str], bool]) -> Iterator[Path]:
    """Yield the regular files below `folder` whose names are wanted."""
    return map(Path, list_names(str(folder), wanted))


def list_names(folder: str, wanted: Callable[[str], bool]) -> list[str]:
    """Return the names of the regular files below `folder` whose base names are wanted."""
    found: dict[str, None] = {}
    inside = {folder: True}
    mode_of = cache(_mode)
    repositories = {folder}
    waiting = [folder]
    while waiting:
        repository = waiting.pop()
        listed = _list_by_git(repository, wanted)
        if listed is None:
            found |= dict.fromkeys(_walk(repository, wanted))
            continue
        for path in listed:
            if not _is_inside(os.path.dirname(path), inside, mode_of):
                continue
            mode = mode_of(path)  # none for a tracked file that was deleted
            if stat.S_ISREG(mode):
                found[path] = None
            elif _is_inside(path, inside, mode_of) and path not in repositories:
                repositories.add(path)  # a submodule or nested repository
                waiting.append(path)
    return list(found)


def _is_inside(folder: str, inside: dict[str, bool], mode_of: Callable[[str], int]) -> bool:
    """Return whether a folder is below one that is known to be, and not behind a link.

    An index can name anything, such as `../file` or a file in a folder that is now a link.
    """
    unknown = []
    while folder not in inside:
        unknown.append(folder)
        above, name = os.path.split(folder)
        if above == folder or name in ("", os.curdir, os.pardir):
            inside[folder] = False
            break
        folder = above
    answer = inside[folder]
    for folder in reversed(unknown):
        answer = inside[folder] = answer and stat.S_ISDIR(mode_of(folder))
    return answer


def _mode(path: str) -> int:
    """Return the mode of a file, or of a link itself; 0 if there is none."""
    try:
        return os.lstat(path).st_mode
    except OSError:
        return 0


# -- git


def git_program() -> str | None:
    """Return the path of git, which must not be that of a program in the current folder."""
    here = absolute(Path.cwd())
    # Below the root of the file system, where containers start, are all programs.
    folders = [
        folder
        for folder in os.get_exec_path()
        if is_too_wide(here) or not absolute(Path(folder)).is_relative_to(here)
    ]
    path = shutil.which("git", path=os.pathsep.join(filter(os.path.isabs, folders)))
    return path if path and os.path.isabs(path) else None


def run_git(
    folder: str | Path, *arguments: str, data: bytes = b""
) -> subprocess.CompletedProcess[bytes] | None:
    """Run a git command in a folder, with `data` as stdin; None if git is not installed.

    Raises:
        UsageError: git takes too long.
    """
    program = git_program()
    if program is None:
        return None
    # Hooks set GIT_DIR and GIT_INDEX_FILE, possibly for another folder.
    environment = {name: value for name, value in os.environ.items() if name[:4] != "GIT_"}
    command = [
        # A repository can configure the file system monitor, and the transport for fetching missing
        # objects, as commands to execute.
        *(program, "-c", "core.fsmonitor=false", "-c", "protocol.allow=never"),
        *("-C", str(folder), *arguments),
    ]
    try:
        with subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**environment, "GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1"},
        ) as process:
            _limit_memory(process.pid)
            try:
                output, errors = process.communicate(data, _GIT_SECONDS)
            except BaseException:
                process.kill()
                raise
    except OSError:
        return None
    except subprocess.TimeoutExpired as error:
        raise UsageError(
            f"git {arguments[0]} in {folder} took longer than {_GIT_SECONDS} s; a pipe in the place"
            " of .gitignore or of a file in .git makes git wait for ever"
        ) from error
    return subprocess.CompletedProcess(command, process.returncode, output, errors)


def _limit_memory(process: int) -> None:
    """Limit the memory of a process, where the system can do so.

    Git reads a link to /dev/zero in the place of some of its files to the end.
    """
    if sys.platform == "linux":
        import resource

        with suppress(OSError):  # It ended, or a container forbids it.
            resource.prlimit(process, resource.RLIMIT_DATA, (_GIT_BYTES, _GIT_BYTES))


def _git_output(folder: str, *arguments: str) -> bytes | None:
    ran = run_git(folder, *arguments)
    return None if ran is None or ran.returncode else ran.stdout


def _list_by_git(folder: str, wanted: Callable[[str], bool]) -> list[str] | None:
    """Return what git lists below `folder`; None if git is not responsible for it."""
    if not any(os.path.lexists(above / ".git") for above in (Path(folder), *Path(folder).parents)):
        return None
    output = _git_output(
        folder, "ls-files", "-z", "-t", "--cached", "--others", "--exclude-standard"
    )
    if output is None:
        return None
    if not output and _git_output(folder, "check-ignore", "-q", folder) is not None:
        return None  # an ignored folder that the user asked for
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
    """Return whether an entry of git may be a nested repository, which git lists as one name."""
    if name.endswith("/"):
        return base not in FOREIGN and base not in BUILT
    # Submodules have no slash. Almost all names with a dot are files.
    return "." not in base and os.path.exists(os.path.join(folder, name, ".git"))


# -- walking


def _walk(folder: str, wanted: Callable[[str], bool]) -> list[str]:
    found: list[str] = []
    waiting = [folder]
    while waiting:
        entries = entries_of(waiting.pop())
        if any(name == "pyvenv.cfg" for name, _, _ in entries):
            continue  # a virtual environment of any name
        for name, path, is_folder in entries:
            if not is_folder:
                found += [path] if wanted(name) else []
            elif name not in FOREIGN and name not in BUILT:
                waiting.append(path)
    return found


def entries_of(folder: str) -> list[tuple[str, str, bool]]:
    """Return the name and path of each entry that is no link, by name, and whether it is a folder.

    Of a folder that cannot be read, there are none.
    """
    try:
        with os.scandir(folder) as listing:
            entries = sorted(listing, key=attrgetter("name"))
    except OSError:
        entries = []
    return [
        (entry.name, entry.path, is_folder)
        for entry in entries
        if (is_folder := entry.is_dir(follow_symlinks=False))
        or entry.is_file(follow_symlinks=False)
    ]
