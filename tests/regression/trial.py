"""Run the tool on one repository: record its findings and check general properties.

The properties hold for any code: no run crashes; the order of the files and the working folder make
no difference; `--fix` writes what `--diff` shows, and the result parses; a second `--fix` changes
nothing; `undo` restores the old bytes.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from remat_migrate.discovery.discover import discover
from remat_migrate.discovery.listing import run_git
from remat_migrate.discovery.survey import nearest_settings
from remat_migrate.settings import Options

from .syntax import broken_syntax
from .table import Place, Record
from .trees import (
    Repository,
    State,
    changed_files,
    copy_repository,
    printable,
    state_of,
)

# A name that no message contains by chance; it is removed from the output of runs in other folders.
_COPY = "copy-that-is-tried"
_UNREAD = "RMT000"
# Without -P, a repository's own `click.py` would be imported.
_INSTALLED = (sys.executable, "-P", "-m", "remat_migrate")
_UNSAFE = "--unsafe-fixes"
# How many of a run's last lines to show.
_MOST_LINES = 8

Finding = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Broken:
    """A violated property, with details."""

    promise: str
    detail: str


@dataclass(frozen=True, slots=True)
class Found:
    """The result for one repository.

    Attributes:
        repository: the repository.
        record: the results, or None if the first run failed.
        findings: the findings, in the `json` format.
        broken: the violated properties.
    """

    repository: Repository
    record: Record | None
    findings: tuple[Finding, ...]
    broken: tuple[Broken, ...]


@dataclass(frozen=True, slots=True)
class _Ended:
    """The exit code and output of a finished run."""

    code: int
    output: bytes
    errors: str


def try_repository(
    repository: Repository, timeout: float, tool: Sequence[str] = _INSTALLED
) -> Found:
    """Try the tool on a copy of a repository.

    Args:
        repository: the repository; it is only read.
        timeout: the time limit of each run in seconds.
        tool: the command line without options.

    Raises:
        OSError: it cannot be copied.
    """
    with tempfile.TemporaryDirectory(prefix="remat-migrate-") as folder:
        copy = Path(folder, _COPY)
        copy_repository(repository, copy)
        return _Trial(repository, copy, timeout, tool).run()


@dataclass(slots=True)
class _Trial:
    """The runs on one copy, which is restored after each group of runs."""

    repository: Repository
    copy: Path
    timeout: float
    tool: Sequence[str]
    broken: list[Broken] = field(default_factory=list)

    def run(self) -> Found:
        """Do every run and return the results."""
        first = self._report("report", ".", in_folder=self.copy)
        if first is None:
            return Found(self.repository, None, (), tuple(self.broken))
        findings: list[Finding] = first["findings"]
        self._compare_elsewhere(first)
        safeties = {f["fix"]["safety"] for f in findings if f["fix"] and f["fix"]["edits"]}
        fixed = self._fixed(expected=bool(safeties & {"safe"}))
        unsafe = fixed
        if "unsafe" in safeties:
            unsafe = self._fixed(_UNSAFE, expected=True)
        codes = Counter(finding["code"] for finding in findings)
        places = sorted(Place(printable(f["path"]), f["line"], f["code"]) for f in findings)
        sites = len(first["sites"])
        record = Record(
            first["summary"]["files"],
            codes[_UNREAD],
            sites,
            dict(codes),
            dict(fixed),
            dict(unsafe),
            tuple(places),
        )
        return Found(self.repository, record, tuple(findings), tuple(self.broken))

    def _compare_elsewhere(self, first: Mapping[str, Any]) -> None:
        """Check the same files in another order, from another folder, with another hash seed."""
        targets = discover([self.copy], nearest_settings([self.copy], Options()))
        real = Path(os.path.realpath(self.copy)).parent
        named = [str(path.relative_to(real)) for path in (*targets.python, *targets.texts)]
        if not named:
            return
        random.Random(self.repository.name).shuffle(named)
        options = ("--force-exclude", "--")
        again = self._report("check", *options, *named, in_folder=self.copy.parent, seed=1)
        if again is None:
            return
        moved = json.loads(json.dumps(again["findings"]).replace(f"{_COPY}/", ""))
        here, there = (Counter(map(_canonical, f)) for f in (first["findings"], moved))
        for sign, finding in _signed(here, there):
            self._miss("order and folder", f"{sign} {_shown(json.loads(finding))}")
        files = first["summary"]["files"], again["summary"]["files"]
        if files[0] != files[1]:
            self._miss("order and folder", f"{files[0]} files, but {files[1]} if they are named")

    def _fixed(self, *options: str, expected: bool) -> Mapping[str, int]:
        """Return how many findings `--fix` fixes, by rule, and restore the copy."""
        old = state_of(self.copy)
        fixed = self._fix_and_undo(old, options, expected)
        if changed_files(old, state_of(self.copy)):  # what went wrong must not go on from here
            shutil.rmtree(self.copy)
            copy_repository(self.repository, self.copy)
        return fixed

    def _fix_and_undo(
        self, old: State, options: tuple[str, ...], expected: bool
    ) -> Mapping[str, int]:
        shown = None
        if expected:
            shown = self._tool(
                "check", "--no-cache", "--diff", *options, ".", in_folder=self.copy, seed=2
            )
            self._expect_same("diff", old)
        fixed = self._fix(*options)
        new = state_of(self.copy)
        changed = changed_files(old, new)
        self._check_written(changed, old, new)
        if expected != bool(changed):
            files = ", ".join(changed) or "no file"
            self._miss("fix", f"{files} changed, with{'' if expected else 'out'} a finding to fix")
        if not changed:
            return fixed
        again = self._fix(*options)
        if again:
            self._miss("second fix", f"fixes {dict(again)}")
        self._expect_same("second fix", new)
        self._undo(old, rounds=1 + bool(changed_files(new, state_of(self.copy))))
        if shown is not None:
            self._compare_with_patch(shown.output, old, new)
        return fixed

    def _check_written(self, changed: list[str], old: State, new: State) -> None:
        for name in changed:
            if name not in old or name not in new:
                self._miss("fix", f"{name}: file created or deleted")
                continue
            before = (self.repository.folder / name).read_bytes()
            after = (self.copy / name).read_bytes()
            if problem := broken_syntax(name, before, after):
                self._miss("parse", f"{name}: {problem}")

    def _undo(self, old: State, rounds: int) -> None:
        for _ in range(rounds):
            self._tool("undo", ".", in_folder=self.copy)
        self._expect_same("undo", old)

    def _compare_with_patch(self, patch: bytes, old: State, new: State) -> None:
        """Check that `git apply` turns the output of `--diff` into what `--fix` writes."""
        for direction, state in (((), new), (("--reverse",), old)):
            options = ("--whitespace=nowarn", *direction)
            ended = run_git(self.copy, "apply", *options, "-", data=patch)
            if ended is None or ended.returncode:
                why = ended.stderr.decode(errors="replace") if ended else "there is no git"
                self._miss("diff", f"git apply: {why}")
                return
            self._expect_same("diff", state)

    def _expect_same(self, promise: str, state: State) -> None:
        for name in changed_files(state, state_of(self.copy)):
            self._miss(promise, f"{name} differs")

    def _fix(self, *options: str) -> Mapping[str, int]:
        """Run `--fix` and return how many findings it fixed, by rule."""
        with tempfile.TemporaryDirectory(dir=self.copy.parent) as folder:
            log = Path(folder, "fixed.sarif")
            written = ("--output-format", f"sarif={log}")
            if self._report("check", "--fix", *options, *written, ".", in_folder=self.copy) is None:
                return {}
            fixed = json.loads(log.read_bytes())["runs"][0]["properties"]["fixed"]
            return {code: number for code, number in fixed.items() if number}

    def _report(
        self, command: str, *arguments: str, in_folder: Path, seed: int = 0
    ) -> dict[str, Any] | None:
        """Return the JSON report of a run, or None if it failed."""
        formats = ("--no-cache", "--output-format", "json")
        ended = self._tool(command, *formats, *arguments, in_folder=in_folder, seed=seed)
        if ended is None:
            return None
        try:
            document: dict[str, Any] = json.loads(ended.output)
        except ValueError as error:
            self._miss("crash", f"{command}: stdout is not JSON: {error}")
            return None
        return document

    def _tool(self, command: str, *arguments: str, in_folder: Path, seed: int = 0) -> _Ended | None:
        """Run the tool; return None if it failed."""
        line = [*self.tool, command, *arguments]
        environment = {name: value for name, value in os.environ.items() if name[:4] != "GIT_"}
        environment |= {"PYTHONHASHSEED": str(seed), "PYTHONDONTWRITEBYTECODE": "1"}
        environment.pop("FORCE_COLOR", None)
        shown = " ".join((command, *arguments[:6], *(["..."] if arguments[6:] else [])))
        try:
            run = subprocess.run(
                line,
                cwd=in_folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
                timeout=self.timeout,
            )
        except subprocess.TimeoutExpired:
            self._miss("crash", f"{shown}: timed out after {self.timeout:g} s")
            return None
        ended = _Ended(run.returncode, run.stdout, run.stderr.decode(errors="backslashreplace"))
        lines = ended.errors.splitlines()
        crashed = "Traceback (most recent call last):" in lines
        faults = [] if crashed else [line for line in lines if line.startswith("error: ")]
        for fault in faults:
            self._miss("fault", f"{shown}: {fault}")
        if crashed or (ended.code not in (0, 1) and not faults):
            end = " | ".join(line.strip() for line in lines[-_MOST_LINES:])
            self._miss("crash", f"{shown}: exit code {ended.code}: {end}")
        if crashed or ended.code not in (0, 1):
            return None
        return ended

    def _miss(self, promise: str, detail: str) -> None:
        self.broken.append(Broken(promise, printable(detail)))


def _canonical(finding: Finding) -> str:
    return json.dumps(finding, sort_keys=True)


def _signed(here: Counter[str], there: Counter[str]) -> Iterator[tuple[str, str]]:
    yield from (("lost there:", finding) for finding in (here - there).elements())
    yield from (("new there:", finding) for finding in (there - here).elements())


def _shown(finding: Finding) -> str:
    return f"{finding['path']}:{finding['line']}: {finding['code']} {finding['message']}"
