"""A sweep: each source is checked out, checked, and verified, and its results are written."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing.pool import ThreadPool
from pathlib import Path
from typing import Any

from .. import __version__
from ..discovery.listing import list_files
from ..settings import Options
from ..verify.scratch import scratch_folder
from .checkout import Git, check_out, find_commit, is_repository, size_of
from .limited import Ended, Limits, SourceFailed, Status, run_limited
from .record import DONE, PATCH, RECORD, REPORT, SARIF, Brief, folder_of, record_of
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
        store: where the results go.
        options: the options of the analysis.
        limits: what a source may use.
        unsafe: whether patches include unsafe fixes.
        verify: the options of verification; None without it.
        measure: whether to measure the targets that the settings of a source name.
        again: whether to check sources that have not changed since the last sweep.
    """

    store: Store
    options: Options
    limits: Limits
    unsafe: bool = False
    verify: tuple[str, ...] | None = None
    measure: bool = False
    again: bool = False

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


def run_sweep(
    sources: Sequence[Source], plan: Plan, workers: int, decided: Callable[[Brief], None]
) -> None:
    """Check sources, several at a time, and call `decided` with each result.

    Raises:
        StoreFailed: results cannot be written.
    """
    # Threads suffice: a source runs in processes of its own.
    with ThreadPool(workers) as pool:
        for brief in pool.imap_unordered(partial(sweep_source, plan=plan), sources):
            decided(brief)


def sweep_source(source: Source, plan: Plan) -> Brief:
    """Check a source and write its results, unless an earlier sweep has.

    A source that cannot be checked gets a record that says why.

    Raises:
        StoreFailed: that cannot be written.
    """
    with scratch_folder() as scratch:
        git = Git(scratch, plan.limits, source)
        try:
            commit = find_commit(source, git) if is_repository(source) else ""
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
            written = replace(written, notes=(*notes, *written.notes))
            return _write_results(source, commit, root, written, digest, plan)
        except Exception as error:
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
    # -P: a source may have a package of the same name.
    done = run_limited(
        (sys.executable, "-P", "-m", "remat_migrate", *plan.arguments, *outputs),
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


def _write_results(
    source: Source, commit: str, root: Path, written: Written, digest: str, plan: Plan
) -> Brief:
    """Write the results of a source; the file that marks them as complete comes last."""
    report = json.loads(_without(written.files[REPORT].decode(), root))
    sarif = json.loads(_without(written.files[SARIF].decode(), root))
    patch = written.files[PATCH]
    brief = Brief(source, Status.CHECKED)
    if written.code == _ERROR:
        reason = "a rule failed; see the notifications in the SARIF file"
        brief = Brief(source, Status.FAILED, reason)
    store, folder = plan.store, folder_of(source)
    store.remove(f"{folder}/{DONE}")
    store.write_json(f"{folder}/{REPORT}", report)
    store.write(f"{folder}/{SARIF}", encode_sarif(sarif, source, commit))
    if patch:
        store.write(f"{folder}/{PATCH}", patch)
    else:
        store.remove(f"{folder}/{PATCH}")
    record = record_of(
        brief,
        commit=commit,
        report=report,
        exit_code=written.code,
        patch=patch,
        notes=written.notes,
    )
    store.write_json(f"{folder}/{RECORD}", record)
    store.write_json(f"{folder}/{DONE}", {"digest": digest})
    return brief


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
    brief = Brief(source, status, reason)
    store.write_json(f"{folder}/{RECORD}", record_of(brief))
    return brief
