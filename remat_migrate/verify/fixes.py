"""Verify fixes: make them in memory, run both versions, revert what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from ..engine.fingerprint import Key, key_of
from ..engine.fix_rounds import Applied, FixOutcome
from ..engine.run import Progress, silent
from ..rule import Finding
from .copies.import_names import ImportNames
from .copies.sides import State, Task
from .evidence import Outcome, Proof, Unit, UnitKey, Verdict
from .options import VerifyOptions, check_options, find_python
from .project_tests import ProjectTests, project_tests
from .prove import ProofInterrupted, prove
from .units.module_diff import unit_at
from .units.project_diff import all_units, callers, diff_project

# Makes fixes in memory, without the withheld ones.
MakeFixes = Callable[[Callable[[Finding], bool]], FixOutcome]
# A fix to revert, and why.
_Wrong = tuple[Applied, str]
# Unchanged units that may run because they use changed ones.
_MOST_CALLERS = 12


@dataclass(frozen=True, slots=True)
class Reverted:
    """A reverted fix, and why it was reverted."""

    finding: Finding
    reason: str


@dataclass(frozen=True, slots=True)
class Proved:
    """The fixes that verification kept and reverted.

    Attributes:
        outcome: the fixes that were kept.
        proof: the verdicts on them.
        wrong: the verdicts for which fixes were reverted.
        reverted: the reverted fixes.
        unproved: the fixes that were kept although not all that they edit was exercised, each with
            the reason.
    """

    outcome: FixOutcome
    proof: Proof = field(default_factory=Proof)
    wrong: tuple[Verdict, ...] = ()
    reverted: tuple[Reverted, ...] = ()
    unproved: tuple[tuple[Applied, str], ...] = ()

    @property
    def reasons(self) -> Mapping[Key, str]:
        """Why each fix was reverted, by the key of its finding."""
        return {key_of(item.finding): item.reason for item in self.reverted}


def prove_fixes(
    make: MakeFixes,
    root: Path,
    targets: Sequence[Path],
    options: VerifyOptions,
    progress: Progress = silent,
) -> Proved:
    """Make fixes, run the code before and after, and keep the fixes that preserve its results.

    The fixes of a unit that fails or returns other results are reverted, and the others are proved
    again. Fixes that nothing exercised are kept, unless `options.strict`.

    Args:
        make: makes the fixes in memory.
        root: the project's folder.
        targets: the Python files that the user named.
        options: how to verify.
        progress: receives progress reports.

    Raises:
        VerificationError: nothing can be run.
        ProofInterrupted: the run was interrupted.
    """
    check_options(options)
    with project_tests(options) as tests:
        return _Rounds(make, root, targets, options, progress, tests).run()


@dataclass
class _Rounds:
    """Makes, runs and reverts fixes until none is wrong."""

    make: MakeFixes
    root: Path
    targets: Sequence[Path]
    options: VerifyOptions
    progress: Progress
    tests: ProjectTests | None
    reverted: dict[Key, Reverted] = field(default_factory=dict)
    wrong: dict[UnitKey, Verdict] = field(default_factory=dict)

    @cached_property
    def _import_names(self) -> ImportNames:
        return ImportNames(self.root)

    def run(self) -> Proved:
        while True:
            fixed = self.make(lambda finding: key_of(finding) in self.reverted)
            proof = self._prove(fixed)
            wrong = self._wrong_fixes(fixed, proof)
            unproved = () if wrong else tuple(self._unproved(fixed, proof))
            if self.options.strict:
                wrong = wrong or [(applied, f"not proved: {why}") for applied, why in unproved]
            if not wrong:
                return Proved(
                    fixed,
                    proof,
                    tuple(self.wrong.values()),
                    tuple(self.reverted.values()),
                    unproved,
                )
            self.wrong |= {verdict.unit.key: verdict for verdict in proof.wrong}
            for applied, reason in wrong:
                key = key_of(applied.finding)
                self.reverted.setdefault(key, Reverted(applied.finding, reason))

    def _prove(self, fixed: FixOutcome) -> Proof:
        """Run the units that fixes changed, and the callers of those with another signature."""
        changed = diff_project(
            [(c.path, c.before.data, c.after.data) for c in fixed.changes], self._import_names
        )
        texts = {c.path: c.after.data for c in fixed.changes}
        names = self._import_names
        using = callers(changed.units, names.files, names, _MOST_CALLERS, after=texts)
        # A call that does not fit a new signature fails in the caller.
        redefined = {unit.key for unit in changed.units if unit.is_redefined}
        units = (*changed.units, *(u for u in using if not redefined.isdisjoint(u.uses)))
        if not units:
            return Proof(changed.unproved, changed.notes)
        edited = {unit.key for unit in changed.units}

        def is_reported(verdict: Verdict) -> bool:
            return verdict.unit.key in edited or verdict.outcome.is_wrong

        task = Task(
            State(self.root),
            State(self.root, texts),
            units,
            self._python,
            self.options,
            self._known,
            tuple(_place(f) for f in fixed.analysis.findings if f.severity == "error"),
            using,
            is_partial=True,
        )
        proof = prove(task, self.progress, self.tests)
        if proof.interrupted:
            raise ProofInterrupted(proof)
        verdicts = (*filter(is_reported, proof.verdicts), *changed.unproved)
        return replace(proof, verdicts=verdicts, notes=(*proof.notes, *changed.notes))

    @cached_property
    def _python(self) -> Path:
        return find_python(self.options, self.root)

    @cached_property
    def _known(self) -> tuple[str, ...]:
        cases = self.options.cases
        return tuple(all_units(self.targets, self._import_names, cases)) if cases else ()

    def _wrong_fixes(self, fixed: FixOutcome, proof: Proof) -> Sequence[_Wrong]:
        """Return the fixes to revert in this round, each with its reason."""
        if not proof.wrong:
            ends = proof.command.wrong if proof.command else ""
            reason = f"a fix changes how the command ends: {ends}"
            return [(a, reason) for a in fixed.applied if _edits_python(a)] if ends else ()
        by_unit: dict[UnitKey, list[Applied]] = {}
        for applied in fixed.applied:
            for key in self._units_of(applied):
                by_unit.setdefault(key, []).append(applied)
        suspects = [(verdict, _fixes_of(verdict.unit, by_unit)) for verdict in proof.wrong]
        # Without the fixes that are certainly wrong, other units may be right.
        certain = [(fixes[0], _reason(v)) for v, fixes in suspects if len(fixes) == 1]
        if certain:
            return certain
        wrong = [(applied, _reason(verdict)) for verdict, fixes in suspects for applied in fixes]
        reason = "; ".join(map(_reason, proof.wrong[:2]))
        return wrong or [(applied, reason) for applied in fixed.applied if _edits_python(applied)]

    def _units_of(self, applied: Applied) -> list[UnitKey]:
        changes = [(path, old.data, new.data) for path, (old, new) in applied.texts.items()]
        found = diff_project(changes, self._import_names)
        return [unit.key for unit in (*found.units, *(verdict.unit for verdict in found.unproved))]

    def _unproved(self, fixed: FixOutcome, proof: Proof) -> Iterator[tuple[Applied, str]]:
        """Yield the fixes of which a unit is not equal, each with the reason."""
        by_unit = proof.by_unit
        for applied in fixed.applied:
            keys = self._units_of(applied)
            reasons = [
                f"{verdict.unit.name}: {verdict.difference or verdict.detail}"
                for key in keys
                if (verdict := by_unit.get(key)) and verdict.outcome is not Outcome.EQUAL
            ]
            if reasons or not any(key in by_unit for key in keys):
                yield applied, reasons[0] if reasons else "no unit that it edits can be run"


def _fixes_of(unit: Unit, by_unit: Mapping[UnitKey, list[Applied]]) -> list[Applied]:
    """Return the fixes that edit a unit, those made there if there are any, or what it uses.

    A fix that is made elsewhere may only edit a call.
    """
    fixes = by_unit.get(unit.key, [])
    at_home = [
        applied
        for applied in fixes
        for finding in [applied.finding]
        if (finding.path, unit_at(finding.source.text, finding.span.start)) == unit.key
    ]
    used = (applied for key in unit.uses for applied in by_unit.get(key, ()))
    return at_home or fixes or list({id(applied): applied for applied in used}.values())


def _place(finding: Finding) -> tuple[Path, int, int]:
    """Return the file and the first and last line of a finding."""
    first, last = (finding.source.position(at)[0] for at in (finding.span.start, finding.span.end))
    return finding.path, first, last


def _edits_python(applied: Applied) -> bool:
    return any(path.suffix == ".py" for path in applied.texts)


def _reason(verdict: Verdict) -> str:
    fails = verdict.outcome is Outcome.FAILS_AFTER
    return (
        f"{verdict.unit.name} {'fails' if fails else 'returns different results'}: {verdict.detail}"
    )
