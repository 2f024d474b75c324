"""Check out a revision of a git repository: no hooks, filters, or submodules, within limits."""

from __future__ import annotations

import itertools
import operator
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..discovery.listing import git_program
from ..report.terminal.display import pluralize
from .limited import Ended, Limits, SourceFailed, Status, run_limited
from .sources import Source, without_credentials

# What a file or a folder takes at least. A small repository can have any number of them.
_BLOCK = 4096
_HASH = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
# Nothing that a repository, or the user's configuration of hooks and filters, would execute.
_SETTINGS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.attributesFile=/dev/null",
    "filter.lfs.smudge=",
    "filter.lfs.process=",
    "filter.lfs.required=false",
    "fetch.recurseSubmodules=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "protocol.ext.allow=never",
    "submodule.recurse=false",
    "advice.detachedHead=false",
)
_ENVIRONMENT = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "true",
    "GIT_SSH_COMMAND": "ssh -oBatchMode=yes",
    "GIT_LFS_SKIP_SMUDGE": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "file:git:http:https:ssh",
    "LC_ALL": "C",
}
_NOT_THERE = re.compile(
    r"not found|does not exist|not appear to be a git|unable to access|could not read"
    r"|couldn't find remote ref|not our ref|unknown revision|resolve host|Connection|denied",
    re.IGNORECASE,
)


class Git:
    """Runs git for one source.

    Attributes:
        scratch: the temporary folder of the run.
        limits: what each command may use.
        credentials: environment variables that add the source's credentials to its address, which
            appear neither in arguments, which all users see, nor in what is stored.
    """

    def __init__(self, scratch: Path, limits: Limits, source: Source) -> None:
        self.scratch = scratch
        self.limits = limits
        self.credentials: dict[str, str] = {}
        if source.credentials:
            self.credentials = {
                "GIT_CONFIG_COUNT": "1",
                "GIT_CONFIG_KEY_0": f"url.{source.with_credentials}.insteadOf",
                "GIT_CONFIG_VALUE_0": source.address,
            }

    def run(self, folder: Path, *arguments: str, growing: Path | None = None) -> Ended:
        """Run a git command in a folder; `growing` is a folder whose size is limited.

        Raises:
            SourceFailed: it reached a limit, or git is not installed.
        """
        program = git_program()
        if program is None:
            raise SourceFailed(Status.FAILED, "git is not installed")
        options = [part for setting in _SETTINGS for part in ("-c", setting)]
        return run_limited(
            (program, *options, *arguments),
            folder,
            self.scratch,
            self.limits,
            environment={**_ENVIRONMENT, **self.credentials},
            is_beyond=lambda: growing is not None and size_of(growing) > self.limits.size,
        )

    def output(self, folder: Path, *arguments: str, growing: Path | None = None) -> str:
        """Return the output of a git command.

        Raises:
            SourceFailed: it failed.
        """
        done = self.run(folder, *arguments, growing=growing)
        if done.code:
            lines = [line for line in done.messages.splitlines() if line.strip()]
            fatal = [line for line in lines if line.startswith(("fatal:", "error:"))]
            reason = (fatal or lines or [f"git {arguments[0]} ended with {done.code}"])[0]
            is_missing = _NOT_THERE.search(done.messages)
            failed = Status.MISSING if is_missing else Status.FAILED
            raise SourceFailed(failed, without_credentials(reason))
        return done.output.decode(errors="surrogateescape")


def is_repository(source: Source) -> bool:
    """Return whether a revision has to be checked out; else a folder is checked as it is.

    Raises:
        SourceFailed: there is no such folder.
    """
    if not source.is_folder:
        return True
    folder = Path(source.address)
    if not folder.is_dir():
        raise SourceFailed(Status.MISSING, "no such folder")
    is_bare = (folder / "HEAD").is_file() and (folder / "objects").is_dir()
    return bool(source.revision) or is_bare


def find_commit(source: Source, git: Git) -> str:
    """Return the hash of the commit that a source names.

    Raises:
        SourceFailed: there is no such repository or revision.
    """
    revision = source.revision or "HEAD"
    if _HASH.fullmatch(revision):
        return revision
    refs = dict(_refs(git.output(git.scratch, "ls-remote", "--", source.address)))
    for name in (revision, f"refs/tags/{revision}^{{}}", f"refs/tags/{revision}"):
        if name in refs:
            return refs[name]
    if commit := refs.get(f"refs/heads/{revision}"):
        return commit
    if re.fullmatch("[0-9a-f]{4,39}", revision):
        fetched = {commit for commit in refs.values() if commit.startswith(revision)}
        if len(fetched) == 1:
            return fetched.pop()
    lacks = f"branch, tag, or whole hash {revision}" if refs else "commits"
    raise SourceFailed(Status.MISSING, f"the repository has no {lacks}")


def _refs(listing: str) -> Iterator[tuple[str, str]]:
    for line in listing.splitlines():
        commit, _, name = line.partition("\t")
        if name:
            yield name, commit


def check_out(source: Source, commit: str, folder: Path, git: Git) -> Sequence[str]:
    """Check a commit out into a new folder.

    Args:
        source: the repository.
        commit: the hash of the commit.
        folder: the folder to create.
        git: runs git.

    Returns:
        Notes about files that the repository does not have.

    Raises:
        SourceFailed: the commit cannot be fetched, or is too large.
    """
    git.output(git.scratch, "init", "--quiet", "--template=", str(folder))
    git.output(folder, "remote", "add", "origin", source.address)
    if source.is_folder:
        where = git.output(git.scratch, "-C", source.address, "rev-parse", "--git-common-dir")
        objects = Path(source.address, where.strip(), "objects")
        alternates = folder / ".git" / "objects" / "info" / "alternates"
        alternates.parent.mkdir(exist_ok=True)
        alternates.write_text(f"{objects}\n")
    else:
        _fetch(commit, folder, git)
    size = tree_size(git.output(folder, "ls-tree", "-r", "-l", "-z", commit))
    if size > git.limits.size:
        reason = f"{size >> 20:,} MiB of files, more than {git.limits.size >> 20:,}"
        raise SourceFailed(Status.TOO_LARGE, reason)
    git.output(folder, "update-ref", "--no-deref", "HEAD", commit)
    git.output(folder, "read-tree", commit)
    done = git.run(folder, "checkout-index", "--all", "--force", "--index", "--quiet")
    absent = done.messages.count("unable to read")
    if done.code and not absent:
        raise SourceFailed(
            Status.FAILED, without_credentials(done.messages).strip().rpartition("\n")[2]
        )
    return [f"the repository lacks the contents of {pluralize(absent, 'file')}"] if absent else []


def _fetch(commit: str, folder: Path, git: Git) -> None:
    shallow = ("fetch", "--quiet", "--depth=1", "--no-tags", "origin", commit)
    if git.run(folder, *shallow, growing=folder).code:
        # Some servers send only commits that have a name.
        git.output(folder, "fetch", "--quiet", "origin", growing=folder)


def tree_size(listing: str) -> int:
    """Return the bytes on disk of the files and folders that `git ls-tree -r -l -z` lists."""
    total = 0
    above: list[str] = []
    for entry in filter(None, listing.split("\0")):
        about, _, path = entry.partition("\t")
        *folders, _ = path.split("/")
        known = sum(1 for _ in itertools.takewhile(bool, map(operator.eq, folders, above)))
        size = about.split()[-1]
        total += _BLOCK * (len(folders) - known)
        total += max(_BLOCK, int(size) if size.isdecimal() else 0)
        above = folders
    return total


def size_of(folder: Path) -> int:
    """Return the bytes of all files below a folder that exist now."""
    total, waiting = 0, [str(folder)]
    while waiting:
        try:
            entries = list(os.scandir(waiting.pop()))
        except OSError:
            continue  # removed meanwhile
        for entry in entries:
            try:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                else:
                    total += entry.stat(follow_symlinks=False).st_size
            except OSError:
                continue
    return total
