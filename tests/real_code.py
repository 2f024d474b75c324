"""Regression test on real repositories: are the findings and fixes the recorded ones?

    python tests/real_code.py FOLDER                 # compare every repository in a folder
    python tests/real_code.py FOLDER --record        # record the current results

A repository is a subfolder of FOLDER, a git clone, identified by the `owner/name` of its origin and
its commit. On a copy run a check, `--diff`, `--fix` twice, `undo`, and the same with
`--unsafe-fixes`. The findings and fixes are compared with the recorded table.

Some properties must hold for every repository, recorded or not: no run crashes, the order of files
and the hash seed make no difference, `--fix` writes what `--diff` shows, the result parses, a
second `--fix` changes nothing, and `undo` restores the old bytes.

Exits with 1 if a result differs or a property is violated.
"""

from __future__ import annotations

import argparse
import ast
import csv
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from support import git, read_files

TABLE = Path(__file__).with_name("real_code.tsv")
PLACES = Path(__file__).with_name("real_code_places.tsv")
COUNTS = ("files", "unread", "sites", "findings", "fixed", "unsafe")
# A run on the largest repositories takes a minute or two.
TIMEOUT = 1800
# Without -P, a repository's own `click.py` would be imported.
TOOL = (sys.executable, "-P", "-m", "remat_migrate")

Row = dict[str, str]
# The counts of a repository by column, and its findings as `CODE path:line`.
Record = tuple[Row, list[str]]


class Violation(Exception):
    """A property that does not hold."""


class Copy:
    """A copy of a repository to run the tool in."""

    def __init__(self, repository: Path, folder: Path, tool: Sequence[str] = TOOL) -> None:
        self.folder = folder
        self.tool = tool
        git(folder.parent, "clone", "-q", "--no-hardlinks", str(repository), str(folder))
        self.files = read_files(folder)

    def run(self, *arguments: str, seed: int = 0) -> bytes:
        """Return what a run prints."""
        done = subprocess.run(
            [*self.tool, *arguments],
            cwd=self.folder,
            env={**os.environ, "PYTHONHASHSEED": str(seed), "PYTHONDONTWRITEBYTECODE": "1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TIMEOUT,
        )
        if done.returncode not in (0, 1) or b"Traceback (most recent" in done.stderr:
            said = done.stderr.decode(errors="replace")[-800:]
            raise Violation(f"{' '.join(arguments[:5])} ended with {done.returncode}: {said}")
        return done.stdout

    def report(self, command: str, *arguments: str, seed: int = 0) -> dict[str, Any]:
        """Return what a run reports."""
        shown = self.run(command, "--no-cache", "--output-format", "json", *arguments, seed=seed)
        report: dict[str, Any] = json.loads(shown)
        return report

    def record(self) -> Record:
        """Do every run.

        Raises:
            Violation: a property does not hold.
        """
        first = self.report("report", ".")
        found = first["findings"]
        names = [name for name in self.files if name.endswith((".py", ".ipynb"))]
        random.Random(0).shuffle(names)
        if names and len(names) < 5000:
            named = self.report("check", "--force-exclude", "--", *names, seed=1)["findings"]
            here = [one for one in found if one["path"] in set(names)]
            if sorted(map(json.dumps, named)) != sorted(map(json.dumps, here)):
                raise Violation("other findings if the files are named in another order")
        fixed = self.fixes()
        row = {
            "files": str(first["summary"]["files"]),
            "unread": str(sum(one["code"] == "RMT000" for one in found)),
            "sites": str(len(first["sites"])),
            "findings": _cell(Counter(one["code"] for one in found)),
            "fixed": _cell(fixed),
            "unsafe": _cell(self.fixes("--unsafe-fixes")),
        }
        return row, sorted(f"{one['code']} {one['path']}:{one['line']}" for one in found)

    def fixes(self, *options: str) -> dict[str, int]:
        """Return how many findings `--fix` fixes, by rule, and undo it."""
        patch = self.run("check", "--no-cache", "--diff", *options, ".", seed=2)
        self.expect(self.files, "--diff writes")
        said = self.run("check", "--fix", *options, "--output-format", "concise", ".").decode()
        [line] = re.findall(r"^Fixed \d+: (.*)", said, re.MULTILINE) or [""]
        fixed = {code: int(number) for number, code in re.findall(r"(\d+) (RMT\d+)", line)}
        after = read_files(self.folder)
        for name, data in after.items():
            if name.endswith(".py") and data != self.files[name]:
                ast.parse(data)
        if after != self.files:
            self.run("check", "--fix", *options, ".")
            self.expect(after, "a second --fix changes")
            self.run("undo", ".")
            self.expect(self.files, "undo does not restore")
            for direction, state in (((), after), (("--reverse",), self.files)):
                command = ["git", "apply", "--whitespace=nowarn", *direction, "-"]
                subprocess.run(command, input=patch, cwd=self.folder, check=True)
                self.expect(state, "--diff is not what --fix writes:")
        return fixed

    def expect(self, files: dict[str, bytes], problem: str) -> None:
        """Check what is in the folder."""
        now = read_files(self.folder)
        differing = [n for n in sorted(now.keys() | files.keys()) if now.get(n) != files.get(n)]
        if differing:
            raise Violation(f"{problem} {', '.join(differing[:5])}")


def _cell(codes: dict[str, int]) -> str:
    return " ".join(f"{code}={number}" for code, number in sorted(codes.items())) or "-"


def tried(repository: Path, tool: Sequence[str] = TOOL) -> tuple[str, str, Record | str]:
    """Return the name and the version of a repository, and its record or what is violated."""
    version = git(repository, "rev-parse", "HEAD").strip()
    origin = git(repository, "config", "--default", "", "remote.origin.url").strip()
    known = re.search(r"[/:]([^/:]+/[^/]+?)(\.git)?$", origin)
    name = known[1] if known else repository.name
    with tempfile.TemporaryDirectory(prefix="remat-migrate-") as folder:
        try:
            return name, version, Copy(repository, Path(folder, "copy"), tool).record()
        except Exception as error:
            return name, version, f"{type(error).__name__}: {error}"


def read_table(table: Path = TABLE, places: Path = PLACES) -> dict[tuple[str, str], Record]:
    """Return the recorded results by repository and version."""
    found: dict[tuple[str, str], Record] = {}
    for row in _rows(table):
        found[row.pop("repository"), row.pop("version")] = (row, [])
    for row in _rows(places):
        place = f"{row['code']} {row['path']}:{row['line']}"
        found[row["repository"], row["version"]][1].append(place)
    return found


def _rows(file: Path) -> list[Row]:
    if not file.exists():
        return []
    with file.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream, dialect="excel-tab"))


def write_table(
    records: dict[tuple[str, str], Record], table: Path = TABLE, places: Path = PLACES
) -> None:
    """Write the results, sorted."""
    rows: dict[Path, list[Sequence[str]]] = {
        table: [("repository", "version", *COUNTS)],
        places: [("repository", "version", "code", "path", "line")],
    }
    for key, (row, found) in sorted(records.items()):
        rows[table].append((*key, *(row[name] for name in COUNTS)))
        for place in found:
            code, _, where = place.partition(" ")
            rows[places].append((*key, code, *where.rsplit(":", 1)))
    for file, lines in rows.items():
        with file.open("w", encoding="utf-8", newline="") as stream:
            csv.writer(stream, dialect="excel-tab", lineterminator="\n").writerows(lines)


def differences(expected: Record, record: Record) -> Iterator[str]:
    """Yield what differs, with the places of new and missing findings."""
    for name in COUNTS:
        if expected[0][name] != record[0][name]:
            yield f"{name}: {expected[0][name]} recorded, {record[0][name]} found"
    before, now = Counter(expected[1]), Counter(record[1])
    yield from (f"  + {place}" for place in sorted((now - before).elements()))
    yield from (f"  - {place}" for place in sorted((before - now).elements()))


def main() -> int:
    """Try every repository in the folder and return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--record", action="store_true", help="write the table")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    records = read_table()
    wrong = compared = 0
    repositories = sorted(path.parent for path in given.folder.glob("*/.git"))
    with ThreadPoolExecutor(given.jobs) as pool:
        for name, version, result in pool.map(tried, repositories):
            expected = records.get((name, version))
            compared += expected is not None
            lines: list[str] = []
            if isinstance(result, str):
                lines = [result]
            elif given.record:
                records[name, version] = result
            elif expected is not None:
                lines = list(differences(expected, result))
            wrong += bool(lines)
            state = "DIFFERENT" if lines else "as recorded" if expected else "not recorded"
            print(f"{name} {version[:12]}: {state}", *lines, sep="\n  ", flush=True)
    if given.record:
        write_table(records)
    print(f"Tried {len(repositories)} repositories, compared {compared}: {wrong} with differences.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
