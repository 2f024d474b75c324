"""The tool on a few files in this process, with everything it says about them."""

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
from remat_migrate.rule import Finding, Rule
from remat_migrate.settings import Settings

Files = Mapping[str, bytes]


@cache
def rules() -> tuple[Rule, ...]:
    return load_rules()


class Wrong(AssertionError):
    """A property that does not hold: a defect of the tool, or of this fuzz."""


@dataclass(frozen=True, slots=True)
class Mended:
    """Files after `--fix`, and the outcome that says how they came to be."""

    files: dict[str, bytes]
    outcome: FixOutcome[Analysis]

    @property
    def findings(self) -> list[str]:
        return [told(finding) for finding in self.outcome.analysis.findings]


def told(finding: Finding) -> str:
    """A finding as one line: all of it but the edits."""
    safety = finding.fix.safety.value if finding.fix else "-"
    related = [(r.source.path.name, *r.span, r.message) for r in finding.related]
    return (
        f"{finding.path.name}:{finding.span.start}-{finding.span.end} {finding.code}"
        f" {finding.severity} {safety} {finding.message!r} {finding.reason!r} {related}"
    )


class Subject:
    """A folder in which one set of files after the other is looked at."""

    def __init__(self, folder: Path) -> None:
        self.folder = Path(os.path.realpath(folder))
        self._there: dict[str, bytes] = {}
        self.select: tuple[str, ...] = ()

    def analysis(self, files: Files) -> Analysis:
        """What the rules make of the files, which take the place of those before them."""
        found = analyse(self._run(files))
        _no_faults(found)
        return found

    def mended(self, files: Files, *, unsafe: bool = False) -> Mended:
        """The files after all fixes.

        Raises:
            Wrong: a rule failed, a fix was wrong, or fixes had no end.
        """
        outcome = fix_in_memory(self._run(files), unsafe=unsafe)
        _no_faults(outcome.analysis)
        # What LibCST cannot parse keeps its finding.
        wrong = [d for d in outcome.dropped if not (d.finding.fix and d.finding.fix.is_unreadable)]
        if wrong:
            dropped = wrong[0]
            raise Wrong(f"a fix was wrong: {told(dropped.finding)}: {dropped.reason}")
        if outcome.oscillating:
            raise Wrong(f"fixes without an end: {[path.name for path in outcome.oscillating]}")
        after = dict(files)
        for change in outcome.changes:
            name = change.path.relative_to(self.folder).as_posix()
            after[name] = change.after.encode(change.after.text)
        return Mended(after, outcome)

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
        return Run(settings, targets, (), rules())


def _no_faults(analysis: Analysis) -> None:
    if analysis.faults:
        fault = analysis.faults[0]
        raise Wrong(f"the rule {fault.code} failed: {fault.error}\n{fault.trace}")
