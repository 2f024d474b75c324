"""The recorded results of repositories, as two files of tab-separated values.

One has a row of counts for each repository and version; the other has the location of every
finding, so that new and missing findings can be shown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

Key = tuple[str, str]
Codes = Mapping[str, int]

_COUNTS = ("repository", "version", "files", "unread", "sites", "findings", "fixed", "unsafe")
_PLACES = ("repository", "version", "code", "path", "line")
_NONE = "-"


class TableError(Exception):
    """A table cannot be read; the message says where and why."""


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """The location of a finding."""

    path: str
    line: int
    code: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.code}"


@dataclass(frozen=True, slots=True)
class Record:
    """The results of a run on one repository.

    Attributes:
        files: the number of files checked.
        unread: the number of files that could not be read.
        sites: the number of checkpoint applications.
        findings: the number of findings by rule.
        fixed: the number of findings fixed by `--fix`, by rule.
        unsafe: the number of findings fixed by `--fix --unsafe-fixes`, by rule.
        places: the location of each finding, sorted.
    """

    files: int
    unread: int
    sites: int
    findings: Codes
    fixed: Codes
    unsafe: Codes
    places: tuple[Place, ...] = ()


@dataclass(frozen=True, slots=True)
class Difference:
    """A count that differs from the recorded one.

    Attributes:
        what: `sites`, `findings RMT301`.
        expected: the recorded count.
        found: the current count.
        new: locations of findings that were not recorded.
        gone: recorded locations without a finding.
    """

    what: str
    expected: int
    found: int
    new: tuple[Place, ...] = ()
    gone: tuple[Place, ...] = ()


@dataclass(slots=True)
class Table:
    """The records of repositories, by name and version."""

    records: dict[Key, Record] = field(default_factory=dict)

    def versions(self, name: str) -> list[str]:
        """Return the recorded versions of a repository, sorted."""
        return sorted(version for known, version in self.records if known == name)


def differences(expected: Record, found: Record) -> Iterator[Difference]:
    """Yield the differences between two records, in the order of the table's columns."""
    for what, before, now in (
        ("files", expected.files, found.files),
        ("unread", expected.unread, found.unread),
        ("sites", expected.sites, found.sites),
    ):
        if before != now:
            yield Difference(what, before, now)
    for code in sorted({*expected.findings, *found.findings}):
        then = Counter(place for place in expected.places if place.code == code)
        today = Counter(place for place in found.places if place.code == code)
        counts = expected.findings.get(code, 0), found.findings.get(code, 0)
        if then != today or counts[0] != counts[1]:
            new, gone = sorted((today - then).elements()), sorted((then - today).elements())
            yield Difference(f"findings {code}", *counts, tuple(new), tuple(gone))
    for what, codes, codes_now in (
        ("fixed", expected.fixed, found.fixed),
        ("unsafe", expected.unsafe, found.unsafe),
    ):
        for code in sorted({*codes, *codes_now}):
            if codes.get(code, 0) != codes_now.get(code, 0):
                yield Difference(f"{what} {code}", codes.get(code, 0), codes_now.get(code, 0))


def places_file(file: Path) -> Path:
    """Return the file with the locations of the findings that a table counts."""
    return file.with_name(f"{file.stem}_places{file.suffix}")


def read_table(file: Path) -> Table:
    """Read a table and its locations; a missing file is an empty table.

    Raises:
        TableError: the file is not a valid table.
    """
    if not file.exists():
        return Table()
    places: dict[Key, list[Place]] = {}
    for number, (name, version, code, path, line) in _rows(places_file(file), _PLACES):
        at = _number(line, places_file(file), number)
        places.setdefault((name, version), []).append(Place(path, at, code))
    table = Table()
    for number, (name, version, *cells) in _rows(file, _COUNTS):
        files, unread, sites = (_number(cell, file, number) for cell in cells[:3])
        findings, fixed, unsafe = (_codes(cell, file, number) for cell in cells[3:])
        found = tuple(sorted(places.get((name, version), [])))
        record = Record(files, unread, sites, findings, fixed, unsafe, found)
        if found and Counter(place.code for place in found) != findings:
            raise TableError(f"{file}:{number}: does not match the findings in {places_file(file)}")
        table.records[name, version] = record
    return table


def write_table(table: Table, file: Path) -> None:
    """Write a table and its locations, sorted.

    Raises:
        OSError: a file cannot be written.
    """
    counts: list[Sequence[str]] = [_COUNTS]
    places: list[Sequence[str]] = [_PLACES]
    for key, record in sorted(table.records.items()):
        numbers = (str(record.files), str(record.unread), str(record.sites))
        codes = (_cell(record.findings), _cell(record.fixed), _cell(record.unsafe))
        counts.append((*key, *numbers, *codes))
        places += ((*key, p.code, p.path, str(p.line)) for p in sorted(record.places))
    for path, rows in ((places_file(file), places), (file, counts)):
        text = "".join("\t".join(row) + "\n" for row in rows)
        path.write_text(text, encoding="utf-8", newline="\n")


def _rows(file: Path, heading: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """Return the rows below a heading, with their line numbers."""
    try:
        lines = file.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise TableError(f"{file}: cannot be read: {error}") from error
    if lines[0].split("\t") != [*heading]:
        raise TableError(f"{file}:1: the columns are not {', '.join(heading)}")
    for number, line in enumerate(lines[1:], start=2):
        cells = line.split("\t")
        if line and len(cells) != len(heading):
            raise TableError(f"{file}:{number}: {len(cells)} columns instead of {len(heading)}")
        if line:
            yield number, cells


def _number(cell: str, file: Path, line: int) -> int:
    if not cell.isdecimal():
        raise TableError(f"{file}:{line}: {cell!r} is not a number")
    return int(cell)


def _codes(cell: str, file: Path, line: int) -> dict[str, int]:
    pairs = [part.partition("=") for part in cell.split(" ")] if cell != _NONE else []
    return {code: _number(number, file, line) for code, _, number in pairs}


def _cell(codes: Codes) -> str:
    return " ".join(f"{code}={number}" for code, number in sorted(codes.items()) if number) or _NONE
