"""What a worker does with one source: check out, check, verify, and write the results."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .. import __version__
from ..discovery.listing import list_files
from ..errors import RematMigrateError
from ..settings import Options
from ..verify.scratch import scratch_folder
from .checkout import Git, check_out, find_commit, is_repository, size_of
from .limited import Ended, Limits, SourceFailed, Status, own_command, run_limited
from .record import DONE, PATCH, RECORD, REPORT, SARIF, Brief, Outcome, folder_of
from .sources import Source, without_credentials
from .store import Store

_ERROR = 2


@dataclass(frozen=True, slots=True)
class Written:
    """What `remat-migrate report` wrote for a source.

    Attributes:
        code: its exit code.
        files: the report, the SARIF log, and the patch.
        notes: what could not be done.
    """

    code: int
    files: Mapping[str, bytes]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """How every source is checked.

    Attributes:
        out: where the results go, for `Store`.
        options: the options of the analysis.
        limits: what a source may use.
        unsafe: whether patches include unsafe fixes.
        verify: the options of verification; None without it.
        measure: whether to measure the targets that the settings of a source name.
        again: whether to check sources that have not changed since the last sweep.
    """

    out: str
    options: Options
    limits: Limits
    unsafe: bool = False
    verify: tuple[str, ...] | None = None
    measure: bool = False
    again: bool = False

    @property
    def store(self) -> Store:
        """Where the results go."""
        return Store(self.out)

    @property
    def arguments(self) -> tuple[str, ...]:
        """The arguments of `remat-migrate report` for every source."""
        given = ["report", ".", "--no-cache", *option_arguments(self.options)]
        given += ["--measure"] if self.measure else []
        given += ["--unsafe-fixes"] if self.unsafe else []
        given += ["--verify", *self.verify] if self.verify is not None else []
        return tuple(given)

    def digest(self, state: str) -> str:
        """Identify how and in which state a source is checked."""
        told = [__version__, *self.arguments, state]
        return hashlib.sha256(json.dumps(told).encode()).hexdigest()


def option_arguments(options: Options) -> list[str]:
    """Return options of the analysis as arguments of the command line."""
    lists = {
        "--select": options.select,
        "--extend-select": options.extend_select,
        "--ignore": options.ignore,
        "--exclude": options.exclude,
    }
    found = [part for name, values in lists.items() if values for part in (name, ",".join(values))]
    for name, value in (("--jax-version", options.jax_version), ("--fail-on", options.fail_on)):
        found += [name, value] if value else []
    for override in (*((str(options.config),) if options.config else ()), *options.overrides):
        found += ["--config", override]
    return found


def sweep_source(source: Source, plan: Plan) -> Brief:
    """Check a source and write its results, unless an earlier sweep has.

    A source that cannot be checked gets a record that says why.

    Raises:
        StoreFailed: that cannot be written.
    """
    with scratch_folder() as scratch:
        git = Git(scratch, plan.limits, source)
        try:
            commit = find_commit(source, git) if is_repository(source, git) else ""
            digest = plan.digest(commit or folder_state(Path(source.address)))
            done = None if plan.again else plan.store.read_json(f"{folder_of(source)}/{DONE}")
            if done == {"digest": digest}:
                return Brief(source, Status.CHECKED, kept=True)
            root = Path(source.address)
            notes: Sequence[str] = ()
            if commit:
                root = scratch / "source"
                notes = check_out(source, commit, root, git)
            written = run_report(root, scratch, plan)
            return write_outcome(outcome_of(source, commit, root, written, notes), digest, plan)
        except (RematMigrateError, OSError) as error:
            return write_failure(source, plan, error)


def folder_state(folder: Path) -> str:
    """Return what changes with the files of a folder: their names, sizes, and times."""
    state = hashlib.sha256()
    for path in sorted(list_files(folder, lambda name: True)):
        try:
            found = os.lstat(path)
        except OSError:
            continue  # removed meanwhile
        if stat.S_ISREG(found.st_mode):
            told = f"{path}\0{found.st_size}\0{found.st_mtime_ns}\0"
            state.update(told.encode(errors="surrogateescape"))
    return state.hexdigest()


def run_report(root: Path, scratch: Path, plan: Plan) -> Written:
    """Run `remat-migrate report` in a process of its own; if verifying fails, without it.

    Raises:
        SourceFailed: it reached a limit, or the tool failed.
    """
    try:
        return _run_report(root, scratch, plan)
    except SourceFailed as error:
        if plan.verify is None:
            raise
        # Without JAX, or with code that eats memory, there are still findings.
        written = _run_report(root, scratch, replace(plan, verify=None))
        return replace(written, notes=(f"not verified: {error}",))


def _run_report(root: Path, scratch: Path, plan: Plan) -> Written:
    folder = scratch / "results"
    folder.mkdir(exist_ok=True)
    outputs = [
        *("--output-format", f"json={folder / REPORT}"),
        *("--output-format", f"sarif={folder / SARIF}"),
        *("--patch", str(folder / PATCH)),
    ]
    done = run_limited(
        own_command(*plan.arguments, *outputs),
        root,
        scratch,
        plan.limits,
        is_beyond=lambda: size_of(folder) > plan.limits.size,
    )
    if done.code < 0:
        raise SourceFailed(Status.MEMORY, f"ended by signal {-done.code}, often for want of memory")
    if done.code >= _ERROR and not (folder / SARIF).exists():
        raise SourceFailed(Status.FAILED, _without(_reason(done), root))
    files = {name: (folder / name).read_bytes() for name in (REPORT, SARIF, PATCH)}
    return Written(done.code, files)


def _reason(done: Ended) -> str:
    """Return why a run failed: its error, or the exception behind it."""
    lines = [line for line in done.messages.splitlines() if line and not line[0].isspace()]
    errors = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    raised = [line for line in lines if re.match(r"[\w.]*(Error|Exception)\b", line)]
    return (raised or errors or [f"exit code {done.code}"])[-1]


def outcome_of(
    source: Source, commit: str, root: Path, written: Written, notes: Sequence[str]
) -> Outcome:
    """Return the outcome of a check from what `remat-migrate report` wrote."""
    report = json.loads(_without(written.files[REPORT].decode(), root))
    sarif = json.loads(_without(written.files[SARIF].decode(), root))
    is_failed = written.code == _ERROR
    return Outcome(
        source,
        Status.FAILED if is_failed else Status.CHECKED,
        "a rule failed; see the notifications in the SARIF file" if is_failed else "",
        commit,
        report,
        written.code,
        written.files[PATCH],
        encode_sarif(sarif, source, commit),
        (*notes, *written.notes),
    )


def encode_sarif(log: dict[str, Any], source: Source, commit: str) -> bytes:
    """Return a SARIF log that names the source instead of the folder where it was checked."""
    for run in log["runs"]:
        for base in run["originalUriBaseIds"].values():
            base.pop("uri", None)
        if commit and not source.is_folder:
            where = {"repositoryUri": source.address, "revisionId": commit}
            run["versionControlProvenance"] = [where]
    return (json.dumps(log, indent=1) + "\n").encode()


def _without(text: str, root: Path) -> str:
    """Return a text in which files of a source have no folder."""
    return re.sub(rf"{re.escape(str(root))}(?:/|\b)", "", text)


def write_outcome(outcome: Outcome, digest: str, plan: Plan) -> Brief:
    """Write the results of a source; the file that marks them as complete comes last.

    Raises:
        StoreFailed: they cannot be written.
    """
    store, folder = plan.store, folder_of(outcome.source)
    store.remove(f"{folder}/{DONE}")
    store.write_json(f"{folder}/{REPORT}", outcome.report)
    store.write(f"{folder}/{SARIF}", outcome.sarif)
    if outcome.patch:
        store.write(f"{folder}/{PATCH}", outcome.patch)
    else:
        store.remove(f"{folder}/{PATCH}")
    store.write_json(f"{folder}/{RECORD}", outcome.record())
    store.write_json(f"{folder}/{DONE}", {"digest": digest})
    return Brief(outcome.source, outcome.status, outcome.reason)


def write_failure(source: Source, plan: Plan, error: Exception) -> Brief:
    """Write the record of a source that cannot be checked; the next sweep tries it again.

    Raises:
        StoreFailed: it cannot be written.
    """
    status = error.status if isinstance(error, SourceFailed) else Status.FAILED
    reason = " ".join(without_credentials(str(error)).split()) or type(error).__name__
    store, folder = plan.store, folder_of(source)
    for name in (DONE, REPORT, SARIF, PATCH):
        store.remove(f"{folder}/{name}")
    store.write_json(f"{folder}/{RECORD}", Outcome(source, status, reason).record())
    return Brief(source, status, reason)
