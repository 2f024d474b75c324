"""Regression test on real repositories: are the findings and fixes the recorded ones?

    python tests/real_code.py FOLDER                 # compare every repository in a folder
    python tests/real_code.py FOLDER --record        # record the current results

A repository is a subfolder of FOLDER: a clone, identified by the `owner/name` of its origin and its
commit, or any other folder, identified by its name and a digest of its files. Each is copied. On
the copy run a check, `--diff`, `--fix` twice, `undo`, and the same with `--unsafe-fixes`. The
findings and fixes are compared with the recorded table.

Some properties must hold for every repository, recorded or not: no run crashes, the order of files,
the working folder and the hash seed make no difference, `--fix` writes what `--diff` shows, the
result parses, a second `--fix` changes nothing, and `undo` restores the old bytes.

Exits with 1 if a result differs or a property is violated, and with 2 on wrong usage.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from regression.table import Table, TableError, differences, read_table, write_table
from regression.trees import Repository, find_repositories, printable
from regression.trial import Broken, Found, try_repository

TABLE = Path(__file__).with_name("real_code.tsv")
SAME, DIFFERENT, MISUSE = 0, 1, 2
# A run on the largest repositories takes a minute or two.
TIMEOUT = 1800.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Try every repository in the folders and return the exit code."""
    chosen = _parser().parse_args(arguments)
    try:
        table = read_table(chosen.table)
        repositories = list(_chosen(chosen.folders, chosen.only))
    except (TableError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return MISUSE
    if not repositories:
        print("error: no repository found", file=sys.stderr)
        return MISUSE
    recorded = Table({**table.records})
    all_found: list[Found] = []
    for found in _try_all(repositories, chosen.jobs, chosen.timeout):
        all_found.append(found)
        print(f"[{len(all_found)}/{len(repositories)}] {_line(found, table)}", flush=True)
        if chosen.record and found.record is not None and not found.repository.is_changed:
            recorded.records[_key(found.repository)] = found.record
            try:  # at once, so that a run that is stopped has not been for nothing
                write_table(recorded, chosen.table)
            except OSError as error:
                print(f"error: {error}", file=sys.stderr)
                return MISUSE
    all_found.sort(key=lambda found: (found.repository.name, found.repository.version))
    wrong = 0
    for found in all_found:
        lines = list(_problems(found, Table() if chosen.record else table))
        wrong += bool(lines)
        print("".join(line + "\n" for line in lines), end="")
    broken = sum(len(found.broken) for found in all_found)
    known = recorded if chosen.record else table
    compared = sum(_key(found.repository) in known.records for found in all_found)
    print(
        f"\nTried {len(all_found)} repositories,"
        f" {'recorded' if chosen.record else 'compared with the table'} {compared}:"
        f" {wrong} with differences, {broken} violations."
    )
    return DIFFERENT if wrong else SAME


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--table", type=Path, default=TABLE, metavar="FILE")
    parser.add_argument("--record", action="store_true", help="write what is found to the table")
    parser.add_argument(
        "--only", action="append", metavar="TEXT", help="repositories that have it in their name"
    )
    parser.add_argument("--jobs", type=_positive, default=os.cpu_count() or 1, metavar="N")
    parser.add_argument(
        "--timeout", type=float, default=TIMEOUT, metavar="SECONDS", help="of each run of the tool"
    )
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


def _chosen(folders: Sequence[Path], only: Sequence[str] | None) -> Iterator[Repository]:
    """Return the repositories in the folders, without duplicates.

    Raises:
        OSError: a folder cannot be read.
    """
    seen = set()
    for folder in folders:
        for repository in find_repositories(folder):
            wanted = not only or any(text in repository.name for text in only)
            if wanted and _key(repository) not in seen:
                seen.add(_key(repository))
                yield repository


def _try_all(repositories: Sequence[Repository], jobs: int, timeout: float) -> Iterator[Found]:
    """Try repositories in parallel, the largest first; yield each result when it is done."""
    largest_first = sorted(repositories, key=lambda one: -len(one.files))
    with ThreadPoolExecutor(jobs) as pool:
        running = [pool.submit(_tried, one, timeout) for one in largest_first]
        for future in as_completed(running):
            yield future.result()


def _tried(repository: Repository, timeout: float) -> Found:
    try:
        return try_repository(repository, timeout)
    except OSError as error:
        return Found(repository, None, (), (Broken("crash", f"it cannot be copied: {error}"),))


def _key(repository: Repository) -> tuple[str, str]:
    return printable(repository.name), repository.version


def _line(found: Found, table: Table) -> str:
    """Summarise the result for one repository in one line."""
    repository, record = found.repository, found.record
    if record is None:
        return f"{repository.label}: FAILED"
    fixed, unsafe = sum(record.fixed.values()), sum(record.unsafe.values())
    counts = (
        f"{record.files} files, {record.sites} sites, {sum(record.findings.values())} findings,"
        f" {fixed} fixed, {unsafe} with --unsafe-fixes"
    )
    if found.broken:
        return f"{repository.label}: {counts}: VIOLATIONS"
    expected = table.records.get(_key(repository))
    if expected is not None:
        same = not list(differences(expected, record))
        return f"{repository.label}: {counts}: {'as recorded' if same else 'DIFFERENT'}"
    known = table.versions(printable(repository.name))
    if known:
        return f"{repository.label}: {counts}: not compared, recorded at {_shorter(known)}"
    return f"{repository.label}: {counts}: not in the table"


def _shorter(versions: Sequence[str]) -> str:
    return ", ".join(version[:12] for version in versions)


def _problems(found: Found, table: Table) -> Iterator[str]:
    """Return the differences and violations as table rows, each with its locations."""
    repository, record = found.repository, found.record
    rows: list[tuple[str, str, str, tuple[str, ...]]] = []
    expected = table.records.get(_key(repository))
    if expected is not None and record is not None:
        messages = {
            (printable(f["path"]), f["line"], f["code"]): f["message"] for f in found.findings
        }
        for difference in differences(expected, record):
            shown = [
                f"+ {place} {printable(messages[place.path, place.line, place.code])}"
                for place in difference.new
            ]
            shown += [f"- {place}" for place in difference.gone]
            rows.append(
                (difference.what, str(difference.expected), str(difference.found), tuple(shown))
            )
    promises = dict.fromkeys(broken.promise for broken in found.broken)
    for promise in promises:
        details = tuple(b.detail for b in found.broken if b.promise == promise)
        rows.append((promise, "0", str(len(details)), details))
    if not rows:
        return
    yield f"\n{repository.label}"
    width = max(len("what"), *(len(row[0]) for row in rows))
    yield f"  {'what':{width}}  expected  found"
    for what, before, now, places in rows:
        yield f"  {what:{width}}  {before:>8}  {now:>5}"
        yield from (f"    {place}" for place in places)


if __name__ == "__main__":
    sys.exit(main())
