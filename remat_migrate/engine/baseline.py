"""Baselines: files of known findings, so that only new findings are reported.

A baseline is sorted JSON with an entry for each statement that has findings of a rule. Entries are
matched by what `fingerprint.py` compares, so lines may move. Their paths are relative to the folder
of the baseline.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ..discovery.named_outputs import resolve_named, write_named
from ..errors import UsageError
from ..text.regular_files import read_regular, write_obstacle

if TYPE_CHECKING:
    from ..rule import Finding
    from ..settings import Settings
    from .fingerprint import Identity

VERSION = 2
# Never known: a file that was not read may contain anything.
NEVER_KNOWN = "RMT000"


@dataclass(frozen=True, slots=True, order=True)
class Entry:
    """The findings of one rule in one statement.

    Attributes:
        path: the file, relative to the folder of the baseline, with `/`.
        code: the code of the rule.
        within: the dotted name of the enclosing definition; empty at module level.
        statement: the statement.
        count: the number of findings.
    """

    path: str
    code: str
    within: str
    statement: str
    count: int


@dataclass(frozen=True, slots=True)
class Baseline:
    """The numbers of known findings, and the real path of the file that holds them."""

    file: Path
    counts: Mapping[Identity, int] = field(default_factory=dict)

    def where(self, identity: Identity) -> Path:
        """Return the absolute path of the file of a finding."""
        return Path(os.path.normpath(self.file.parent / identity[0]))


@dataclass(frozen=True, slots=True)
class Coverage:
    """The files, complete folders, and rules that a run covers."""

    files: frozenset[Path]
    folders: tuple[Path, ...]
    codes: frozenset[str]

    def includes(self, path: Path, code: str) -> bool:
        """Return whether the run would have found a rule's findings in a file."""
        if code not in self.codes:
            return False
        if path in self.files:
            return True
        # A deleted file has no findings.
        return any(map(path.is_relative_to, self.folders)) and not os.path.lexists(path)


@dataclass(frozen=True, slots=True)
class Comparison:
    """A baseline compared with the findings of a run.

    Attributes:
        file: the baseline.
        stale: the entries with fewer findings than listed, although the run covers them; `count` is
            the number of missing findings.
    """

    file: Path
    stale: tuple[Entry, ...]

    @property
    def stale_count(self) -> int:
        """Return the number of findings that the baseline lists and that no longer exist."""
        return sum(entry.count for entry in self.stale)


@dataclass(frozen=True, slots=True)
class BaselineChoice:
    """The baseline options: the file to use, and the file to write."""

    file: Path | None = None
    write: Path | None = None

    def check(self) -> None:
        """Check, before anything is done, that the options agree and a baseline can be written.

        Raises:
            UsageError: they do not agree, or it cannot.
        """
        if self.file and self.write:
            raise UsageError("--baseline cannot be combined with --write-baseline")
        if self.write is not None:
            _existing(self.write)

    def used(self, settings: Settings) -> Path | None:
        """Return the baseline to compare with, if any."""
        return None if self.write else self.file or settings.baseline

    def concerns(self, paths: Sequence[Path], settings: Settings) -> bool:
        """Return whether the baseline matters for a run over these files without findings.

        Raises:
            UsageError: see `read_baseline`.
        """
        if self.write is not None:
            return True
        if (file := self.used(settings)) is None:
            return False
        baseline = read_baseline(file)
        files = {Path(os.path.realpath(path)) for path in paths}
        return any(baseline.where(one) in files for one in baseline.counts)


class KnownFindings:
    """Splits findings into new ones and those in a baseline, in rounds of fixes.

    Of findings that agree, the first ones are known, as many as the baseline counts. A fix changes
    statements, so after the first round, a finding in a definition with known ones is known unless
    it was new in the first round.
    """

    def __init__(self, baseline: Baseline) -> None:
        self._baseline = baseline
        self._known_places: set[tuple[str, ...]] = set()
        self._first_new: set[Identity] | None = None

    def split(self, findings: Sequence[Finding]) -> tuple[list[Finding], list[Finding]]:
        """Return the new findings and the known ones."""
        known: dict[Finding, Identity] = {}
        new: dict[Finding, Identity] = {}
        left = Counter(self._baseline.counts)
        for finding, one in _identities(findings, self._baseline.file).items():
            is_changed = one[:3] in self._known_places and one not in (self._first_new or ())
            is_known = finding.code != NEVER_KNOWN and (left[one] > 0 or is_changed)
            left[one] -= 1
            (known if is_known else new)[finding] = one
        if self._first_new is None:
            self._known_places = {one[:3] for one in known.values()}
            self._first_new = set(new.values())
        return [f for f in findings if f not in known], [f for f in findings if f in known]


def compared(baseline: Baseline, known: Sequence[Finding], covered: Coverage) -> Comparison:
    """Compare a baseline with a run that found the `known` findings again."""
    missing = Counter(baseline.counts) - Counter(_identities(known, baseline.file).values())
    stale = (
        Entry(*one, count)
        for one, count in missing.items()
        if covered.includes(baseline.where(one), one[1])
    )
    return Comparison(baseline.file, tuple(sorted(stale)))


def write_baseline(file: Path, findings: Sequence[Finding], covered: Coverage) -> Baseline:
    """Write findings as known, and keep the entries that the run does not cover.

    Raises:
        UsageError: the file cannot be written.
    """
    old = _existing(file)
    kept = {
        one: count
        for one, count in old.counts.items()
        if not covered.includes(old.where(one), one[1])
    }
    now = _identities([one for one in findings if one.code != NEVER_KNOWN], old.file)
    baseline = Baseline(old.file, kept | Counter(now.values()))
    import json  # not needed for --help

    entries = [asdict(Entry(*one, count)) for one, count in sorted(baseline.counts.items())]
    data = (json.dumps({"version": VERSION, "findings": entries}, indent=2) + "\n").encode()
    try:
        if not file.exists() or file.read_bytes() != data:
            write_named(old.file, data)
    except OSError as error:
        raise UsageError(f"--write-baseline: {file}: {error.strerror or error}") from error
    return baseline


def _identities(findings: Sequence[Finding], file: Path) -> Mapping[Finding, Identity]:
    from .fingerprint import identities  # not needed by most commit hooks

    return identities(findings, file.parent)


# -- reading


def read_baseline(file: Path) -> Baseline:
    """Read a baseline.

    Raises:
        UsageError: the file cannot be read, or is not a baseline of this version.
    """
    try:
        data = read_regular(file)
    except FileNotFoundError as error:
        hint = f"create it with --write-baseline {file}"
        raise UsageError(f"baseline {file} does not exist; {hint}") from error
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror or error}") from error
    import json  # not needed for --help

    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise _invalid(file, f"not JSON: {error}") from error
    if not isinstance(document, dict) or not isinstance(document.get("findings"), list):
        raise _invalid(file, 'not an object with "version" and "findings"')
    if document.get("version") != VERSION:
        raise _invalid(file, f'"version" is not {VERSION}')
    # Merging branches may leave an entry twice; the last one has the larger count.
    entries = (_entry(file, *one) for one in enumerate(document["findings"], 1))
    return Baseline(Path(os.path.realpath(file)), dict(sorted(entries)))


def _existing(file: Path) -> Baseline:
    """Read the baseline that is to be written; an empty one if there is none.

    Raises:
        UsageError: it cannot be written, or is not a baseline.
    """
    if not file.absolute().parent.is_dir():
        raise UsageError(f"--write-baseline: folder {file.parent} does not exist")
    try:
        real, _ = resolve_named(file)
    except OSError as error:
        raise UsageError(f"--write-baseline: {file}: {error.strerror or error}") from error
    if os.path.lexists(file) and (obstacle := write_obstacle(file)):
        raise UsageError(f"--write-baseline: {file} {obstacle}")
    return read_baseline(file) if file.exists() and file.stat().st_size else Baseline(real)


def _entry(file: Path, number: int, item: object) -> tuple[Identity, int]:
    match item:
        case {
            "path": str(path),
            "code": str(code),
            "within": str(within),
            "statement": str(statement),
            "count": int(count),
        } if path and "\0" not in path and count > 0:
            return (path, code, within, statement), count
    raise _invalid(file, f"entry {number} has no path, code, statement, or positive count")


def _invalid(file: Path, reason: str) -> UsageError:
    return UsageError(
        f"{file}: invalid baseline: {reason}; delete the file and recreate it with --write-baseline"
    )
