"""Baselines: files of findings that are known, so that only new ones are reported.

A baseline is JSON, sorted, with an entry for each statement that holds findings of a rule. Entries
are told by fingerprints (see `remat_migrate.fingerprint`), so that lines may move; their paths are
relative to the folder that the baseline is in, whatever folder a run is started from.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import UsageError
from ..text.atomic import read_regular, write_obstacle, write_over

if TYPE_CHECKING:
    from ..rule import Finding
    from ..settings import Settings
    from .fingerprint import Identity

VERSION = 1
# A file that was not looked at is never known: anything may be in it.
NEVER_KNOWN = "RMT000"

_FINGERPRINT = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class Entry:
    """Findings of one rule in one statement.

    Attributes:
        path: the file, relative to the baseline's folder, with `/`.
        code: the rule's code.
        count: how many findings.
        within: the dotted name of the definition around them; empty in the module itself.
        statement: the statement, for a reader.
        fingerprint: what they are told by.
    """

    path: str
    code: str
    count: int
    within: str
    statement: str
    fingerprint: str


@dataclass(frozen=True, slots=True)
class Baseline:
    """Known findings, and the file that holds them (absolute, without symbolic links)."""

    file: Path
    entries: tuple[Entry, ...] = ()

    def where(self, entry: Entry) -> Path:
        """The absolute path of an entry's file."""
        return Path(os.path.normpath(self.file.parent / entry.path))


@dataclass(frozen=True, slots=True)
class Coverage:
    """What a run can say something about: files, folders with all that was in them, and rules."""

    files: frozenset[Path]
    folders: tuple[Path, ...]
    codes: frozenset[str]

    def holds(self, path: Path, code: str) -> bool:
        """Whether the run would have found what is in a file; one that is gone has nothing."""
        if code not in self.codes:
            return False
        if path in self.files:
            return True
        return any(map(path.is_relative_to, self.folders)) and not os.path.lexists(path)


@dataclass(frozen=True, slots=True)
class Comparison:
    """What a baseline says of a run.

    Attributes:
        file: the baseline.
        known: the findings that are in it, sorted.
        stale: the entries that nothing was found for, though the run covers them; `count` is how
            many findings are missing.
    """

    file: Path
    known: tuple[Finding, ...]
    stale: tuple[Entry, ...]

    @property
    def stale_count(self) -> int:
        """How many findings are in the baseline that are no more in the code."""
        return sum(entry.count for entry in self.stale)


def read_baseline(file: Path) -> Baseline:
    """Read a baseline.

    Raises:
        UsageError: it cannot be read, is no baseline, or is one of a later version.
    """
    try:
        data = read_regular(file, linked=True)
    except FileNotFoundError as error:
        raise UsageError(
            f"{file}: there is no such baseline; --write-baseline {file} writes one"
        ) from error
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror or error}") from error
    import json  # which --help does not wait for

    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise _broken(file, f"it is not JSON: {error}") from error
    if not isinstance(document, dict) or not isinstance(document.get("findings"), list):
        raise _broken(file, 'it is not an object with "version" and "findings"')
    version = document.get("version")
    if type(version) is int and version > VERSION:
        raise UsageError(
            f"{file}: is a baseline of version {version}, of a newer remat-migrate; this one reads"
            f" version {VERSION}: update it, or write the baseline anew"
        )
    if type(version) is not int or version != VERSION:
        raise _broken(file, f'its "version" is not {VERSION}')
    entries: dict[str, Entry] = {}
    for number, item in enumerate(document["findings"], 1):
        entry = _entry(file, number, item)
        # Two branches that were merged may have brought the same one.
        if (other := entries.get(entry.fingerprint)) is None or other.count < entry.count:
            entries[entry.fingerprint] = entry
    return Baseline(_real(file), tuple(entries.values()))


@dataclass(frozen=True, slots=True)
class BaselineChoice:
    """What the command line says about baselines: which is used, that none is, which is written."""

    file: Path | None = None
    none: bool = False
    write: Path | None = None

    def check(self) -> None:
        """Insist, before anything is done, that the options agree and a baseline can be written.

        Raises:
            UsageError: they do not, or it cannot.
        """
        if self.file and (self.none or self.write):
            other = "--no-baseline" if self.none else "--write-baseline, which takes in all,"
            raise UsageError(f"--baseline and {other} exclude each other")
        if self.write is None:
            return
        if not self.write.absolute().parent.is_dir():
            raise UsageError(f"--write-baseline: folder {self.write.parent} does not exist")
        if os.path.lexists(self.write):
            if obstacle := write_obstacle(self.write):
                raise UsageError(f"--write-baseline: {self.write} {obstacle}")
            # What is in it of other files is kept, so it must be read.
            _existing(self.write)

    def used(self, settings: Settings) -> Path | None:
        """The baseline that a run is compared with, if any."""
        return None if self.none or self.write else self.file or settings.baseline

    def concerns(self, paths: Sequence[Path], settings: Settings) -> bool:
        """Whether a run over these files has something to say about a baseline.

        Raises:
            UsageError: as `read_baseline` does.
        """
        if self.write is not None:
            return True
        if (file := self.used(settings)) is None:
            return False
        baseline = read_baseline(file)
        files = set(map(_real, paths))
        return any(baseline.where(entry) in files for entry in baseline.entries)


class BaselineFilter:
    """Parts findings into new ones and those that a baseline knows.

    Of several that are alike as many are known as the baseline counts, the first ones. Fixes change
    statements, and with them what a finding is known by: one that was known before the first round
    must not be taken for new in the second, and be fixed. So a sieve is for one run of rounds.
    """

    def __init__(self, baseline: Baseline) -> None:
        self._folder = baseline.file.parent
        self._counts = {entry.fingerprint: entry.count for entry in baseline.entries}
        self._places: frozenset[tuple[str, str, str]] | None = None
        self._new: frozenset[str] = frozenset()
        self._spared: frozenset[Finding] = frozenset()

    def split(self, findings: Sequence[Finding]) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
        """The new ones of `findings`, and the known ones."""
        identities = _identities(findings, self._folder)
        known = tuple(
            finding
            for finding, one in identities.items()
            if one.code != NEVER_KNOWN and one.number <= self._counts.get(one.alike, 0)
        )
        kept = frozenset(known)
        new = tuple(finding for finding in findings if finding not in kept)
        if self._places is None:
            self._places = frozenset(_place(identities[finding]) for finding in known)
            self._new = frozenset(identities[finding].alike for finding in new)
        self._spared = frozenset(
            finding
            for finding in new
            if _place(one := identities[finding]) in self._places and one.alike not in self._new
        )
        return new, known

    def spares(self, finding: Finding) -> bool:
        """Whether a finding of the last parting may be a known one whose statement was changed."""
        return finding in self._spared


def compared(baseline: Baseline, known: Sequence[Finding], covered: Coverage) -> Comparison:
    """What a baseline says of a run in which it knows the findings `known`."""
    found = Counter(one.alike for one in _identities(known, baseline.file.parent).values())
    stale = [
        replace(entry, count=missing)
        for entry in baseline.entries
        if (missing := entry.count - found[entry.fingerprint]) > 0
        and covered.holds(baseline.where(entry), entry.code)
    ]
    return Comparison(baseline.file, tuple(known), tuple(sorted(stale, key=_order)))


@dataclass(frozen=True, slots=True)
class Written:
    """A baseline that was written.

    Attributes:
        baseline: the baseline.
        dropped: how many findings were in it before that are no more in the code.
        kept: how many are of what the run says nothing about.
    """

    baseline: Baseline
    dropped: int
    kept: int


def write_baseline(file: Path, findings: Sequence[Finding], covered: Coverage) -> Written:
    """Write findings as known; entries of what the run does not cover stay as they were.

    The file is whole at any moment, and the same findings give the same bytes.

    Raises:
        UsageError: it cannot be written.
    """
    file = _real(file)
    old = _existing(file)
    kept = [e for e in old.entries if not covered.holds(old.where(e), e.code)]
    merged = {entry.fingerprint: entry for entry in (*kept, *_entries(findings, file.parent))}
    baseline = Baseline(file, tuple(sorted(merged.values(), key=_order)))
    data = render(baseline).encode()
    try:
        _replace(file, data)
    except OSError as error:
        raise UsageError(f"--write-baseline: {file}: {error.strerror or error}") from error
    counts = {entry.fingerprint: entry.count for entry in baseline.entries}
    dropped = sum(max(0, e.count - counts.get(e.fingerprint, 0)) for e in old.entries)
    return Written(baseline, dropped, sum(entry.count for entry in kept))


def render(baseline: Baseline) -> str:
    """A baseline as text: JSON with one key a line, sorted, in ASCII."""
    import json

    entries = [asdict(entry) for entry in sorted(baseline.entries, key=_order)]
    return json.dumps({"version": VERSION, "findings": entries}, indent=2) + "\n"


def _entries(findings: Sequence[Finding], folder: Path) -> list[Entry]:
    identities = _identities(findings, folder)
    known = [one for one in identities.values() if one.code != NEVER_KNOWN]
    counts = Counter(one.alike for one in known)
    return [
        Entry(one.path, one.code, counts[one.alike], one.within, one.statement, one.alike)
        for one in known
        if one.number == 1
    ]


def _identities(findings: Sequence[Finding], folder: Path) -> Mapping[Finding, Identity]:
    # Not loaded by a commit hook whose files are in no baseline.
    from .fingerprint import identities

    return identities(findings, folder)


def _place(one: Identity) -> tuple[str, str, str]:
    return (one.path, one.code, one.within)


def _order(entry: Entry) -> tuple[str, str, str, str, str]:
    return (entry.path, entry.code, entry.within, entry.statement, entry.fingerprint)


def _existing(file: Path) -> Baseline:
    """The baseline that is to be written anew; an empty one where there is none."""
    if not file.exists() or not file.stat().st_size:
        return Baseline(file)
    return read_baseline(file)


def _replace(file: Path, data: bytes) -> None:
    if not file.exists() or file.read_bytes() != data:
        write_over(file, data)


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _entry(file: Path, number: int, item: object) -> Entry:
    """One entry as it stands in the file, checked."""
    if not isinstance(item, dict):
        raise _broken(file, f"entry {number} is not an object")
    for key in ("path", "code", "within", "statement", "fingerprint"):
        if not isinstance(item.get(key), str):
            raise _broken(file, f'entry {number} has no text "{key}"')
    count = item.get("count")
    if type(count) is not int or count < 1:
        raise _broken(file, f'entry {number}: "count" is not a number from 1')
    if not _FINGERPRINT.fullmatch(item["fingerprint"]):
        raise _broken(file, f'entry {number}: "fingerprint" is not 32 hexadecimal digits')
    if not item["path"] or "\0" in item["path"]:
        raise _broken(file, f'entry {number}: "path" is not a path')
    return Entry(
        item["path"], item["code"], count, item["within"], item["statement"], item["fingerprint"]
    )


def _broken(file: Path, reason: str) -> UsageError:
    return UsageError(
        f"{file}: is not a baseline: {reason}; delete it and write it anew with --write-baseline"
    )
