"""Run the tool on a few files in this process, with access to its findings."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from remat_migrate.discovery.discover import Targets
from remat_migrate.engine.analyse import Analysis, analyse
from remat_migrate.engine.check import fix_in_memory
from remat_migrate.engine.fix_rounds import FixOutcome
from remat_migrate.engine.rules import load_rules
from remat_migrate.engine.run import Run
from remat_migrate.errors import UnreadableCodeError
from remat_migrate.rule import Finding, Rule
from remat_migrate.settings import NearestSettings, Options, Settings

Files = Mapping[str, bytes]


@cache
def rules() -> tuple[Rule, ...]:
    return load_rules()


class Wrong(AssertionError):
    """A violated property: a bug in the tool or in this fuzzer."""


@dataclass(frozen=True, slots=True)
class FixedFiles:
    """The files after `--fix`, and the outcome that produced them."""

    files: dict[str, bytes]
    outcome: FixOutcome[Analysis]

    @property
    def findings(self) -> list[str]:
        return [described(finding) for finding in self.outcome.analysis.findings]


def described(finding: Finding) -> str:
    """Describe a finding in one line, without its edits."""
    safety = finding.fix.safety.value if finding.fix else "-"
    related = [(r.source.path.name, *r.span, r.message) for r in finding.related]
    return (
        f"{finding.path.name}:{finding.span.start}-{finding.span.end} {finding.code}"
        f" {finding.severity} {safety} {finding.message!r} {finding.reason!r} {related}"
    )


class Subject:
    """A folder in which sets of files are analysed, one after the other."""

    def __init__(self, folder: Path) -> None:
        self.folder = Path(os.path.realpath(folder))
        self._there: dict[str, bytes] = {}
        self.select: tuple[str, ...] = ()

    def analysis(self, files: Files) -> Analysis:
        """Analyse the files, replacing the previous ones."""
        found = analyse(self._run(files))
        _no_faults(found)
        return found

    def fixed(self, files: Files, *, unsafe: bool = False) -> FixedFiles:
        """Return the files after all fixes.

        Raises:
            Wrong: a rule failed, a fix was wrong, or fixes oscillate.
        """
        outcome = fix_in_memory(self._run(files), unsafe=unsafe)
        _no_faults(outcome.analysis)
        # If LibCST cannot parse the code, the finding remains.
        failed = [(d, d.finding.fix.written[1] if d.finding.fix else None) for d in outcome.dropped]
        wrong = [d for d, error in failed if not isinstance(error, UnreadableCodeError)]
        if wrong:
            dropped = wrong[0]
            raise Wrong(f"a fix was wrong: {described(dropped.finding)}: {dropped.reason}")
        if outcome.oscillating:
            raise Wrong(f"fixes that oscillate: {[path.name for path in outcome.oscillating]}")
        after = dict(files)
        for change in outcome.changes:
            name = change.path.relative_to(self.folder).as_posix()
            after[name] = change.after.encode(change.after.text)
        return FixedFiles(after, outcome)

    def _run(self, files: Files) -> Run:
        for name in self._there.keys() - files.keys():
            (self.folder / name).unlink()
        for name, data in files.items():
            if self._there.get(name) != data:
                path = self.folder / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
        self._there = dict(files)
        targets = Targets(tuple(sorted(self.folder / name for name in files)), ())
        settings = Settings(root=self.folder, select=self.select)
        return Run(settings, NearestSettings(settings, Options()), targets, (), rules())


def _no_faults(analysis: Analysis) -> None:
    if analysis.faults:
        fault = analysis.faults[0]
        raise Wrong(f"the rule {fault.code} failed: {fault.error}\n{fault.trace}")
