"""Verify fixes: make them in memory, run both versions, refine or revert what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from ..discovery.listing import list_files
from ..engine.analyse import Analysis
from ..engine.fix_rounds import Applied, FixOutcome
from ..engine.progress import Progress, silent
from ..errors import SourceError
from ..rule import Finding
from .copies.import_names import ImportNames
from .copies.sides import State, Task
from .evidence import Outcome, Proof, Unit, UnitKey, Verdict
from .executed import settled
from .options import VerifyOptions, check_options, find_python
from .project_tests import ProjectTests, project_tests
from .prove import ProofInterrupted, prove
from .schedule import Decided, ignore
from .units.module_diff import unit_at
from .units.project_diff import all_units, caller_levels, diff_project

# Makes fixes in memory, without the withheld ones.
MakeFixes = Callable[[Callable[[Finding], bool]], FixOutcome[Analysis]]
# Identifies a finding across rounds: code, path, unit, and the text of its line.
FindingKey = tuple[str, Path, str, str]
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
        shown: the verdicts that the terminal shows already.
    """

    outcome: FixOutcome[Analysis]
    proof: Proof = field(default_factory=Proof)
    wrong: tuple[Verdict, ...] = ()
    reverted: tuple[Reverted, ...] = ()
    unproved: tuple[tuple[Applied, str], ...] = ()
    shown: tuple[Verdict, ...] = ()

    @property
    def reasons(self) -> Mapping[FindingKey, str]:
        """Why each fix was reverted, by the key of its finding."""
        return {finding_key(item.finding): item.reason for item in self.reverted}


def prove_fixes(
    make: MakeFixes,
    root: Path,
    targets: Sequence[Path],
    options: VerifyOptions,
    progress: Progress = silent,
    decided: Decided = ignore,
) -> Proved:
    """Make fixes, run the code before and after, and keep the fixes that preserve its results.

    If the fixed code fails because an argument is traced, the fix is made again with that argument
    static, once for each argument. A fix that still fails or changes a result is reverted, alone.
    Fixes that nothing exercised are kept, unless `options.strict`.

    Args:
        make: makes the fixes in memory.
        root: the project's folder.
        targets: the Python files that the user named.
        options: how to verify.
        progress: receives progress reports.
        decided: receives each verdict as it comes, including those of fixes that are reverted.

    Raises:
        VerificationError: nothing can be run.
        ProofInterrupted: the run was interrupted.
    """
    check_options(options)
    with project_tests(options) as tests:
        return _Rounds(make, root, targets, options, progress, decided, tests).run()


class _Rounds:
    """Makes, runs and reverts fixes until none is wrong."""

    def __init__(
        self,
        make: MakeFixes,
        root: Path,
        targets: Sequence[Path],
        options: VerifyOptions,
        progress: Progress,
        decided: Decided,
        tests: ProjectTests | None,
    ) -> None:
        self._make = make
        self._root = root
        self._targets = targets
        self._options = options
        self._progress = progress
        self._decided = decided
        self._tests = tests
        self._import_names = ImportNames(root)
        self._python: Path | None = None
        self._reverted: dict[FindingKey, Reverted] = {}
        self._wrong: dict[UnitKey, Verdict] = {}
        # Equal verdicts, each with the changed files that ran.
        self._equal: dict[UnitKey, list[tuple[Mapping[Path, bytes], Verdict]]] = {}
        self._run_with: dict[Path, frozenset[Path]] = {}
        self._last = Proof()
        self._checked = False

    def run(self) -> Proved:
        while True:
            fixed = self._fix(self._reverted)
            proof = self._prove(fixed)
            wrong = self._wrong_fixes(fixed, proof)
            unproved = () if wrong else tuple(self._unproved(fixed, proof))
            if self._options.strict:
                wrong = wrong or [(applied, f"not proved: {why}") for applied, why in unproved]
            if not wrong:
                return Proved(
                    fixed,
                    proof,
                    tuple(self._wrong.values()),
                    tuple(self._reverted.values()),
                    unproved,
                )
            self._wrong |= {verdict.unit.key: verdict for verdict in proof.wrong}
            for applied, reason in wrong:
                self._reverted[finding_key(applied.finding)] = Reverted(applied.finding, reason)

    def _fix(self, withheld: Mapping[FindingKey, object]) -> FixOutcome[Analysis]:
        return self._make(lambda finding: finding_key(finding) in withheld)

    def _fix_without(self, fixes: Sequence[Applied]) -> FixOutcome[Analysis]:
        return self._fix({**self._reverted, **{finding_key(a.finding): None for a in fixes}})

    # -- running

    def _prove(self, fixed: FixOutcome[Analysis], only: UnitKey | None = None) -> Proof:
        """Run the units that fixes changed, except those that were equal with the same files."""
        changed = diff_project(
            [(c.path, c.before.data, c.after.data) for c in fixed.changes], self._import_names
        )
        if not self._checked:
            options = self._options
            options.check_units((*changed.units, *(verdict.unit for verdict in changed.unproved)))
            self._checked = True
        selected, unproved = self._options.selected(changed.units, changed.unproved)
        texts = {c.path: c.after.data for c in fixed.changes}
        levels = caller_levels(
            selected, self._files, self._import_names, _MOST_CALLERS, after=texts
        )
        # A call that does not fit a new signature fails in the caller.
        redefined = {unit.key for unit in selected if unit.is_redefined}
        using = [unit for level in levels[:1] for unit in level]
        units = (*selected, *(unit for unit in using if not redefined.isdisjoint(unit.uses)))
        if only is not None:
            every = (*selected, *(unit for level in levels for unit in level))
            units = tuple(unit for unit in every if unit.key == only)
        edited = {unit.key for unit in selected}

        def decided(verdict: Verdict) -> None:
            if verdict.unit.key in edited or verdict.outcome.is_wrong:
                self._decided(verdict)

        known = self._known(units, texts)
        waiting = tuple(unit for unit in units if unit.key not in known)
        proof = replace(self._last, verdicts=()) if units else Proof()
        if waiting:
            self._last = proof = prove(
                self._task(fixed, waiting, texts, only, levels),
                self._progress,
                decided,
                self._tests,
            )
            if proof.interrupted:
                raise ProofInterrupted(proof)
        for verdict in proof.verdicts:
            if verdict.outcome in (Outcome.EQUAL, Outcome.CLOSE) and not verdict.through:
                ran = self._texts_run_with(verdict.unit, texts)
                self._equal.setdefault(verdict.unit.key, []).append((ran, verdict))
        verdicts = {**proof.by_unit, **known}
        return replace(
            proof,
            verdicts=(
                *(
                    verdict
                    for verdict in settled(tuple(verdicts.values()))
                    if verdict.unit.key in edited or verdict.outcome.is_wrong
                ),
                *unproved,
            ),
            notes=(*proof.notes, *changed.notes),
        )

    def _task(
        self,
        fixed: FixOutcome[Analysis],
        units: tuple[Unit, ...],
        texts: Mapping[Path, bytes],
        only: UnitKey | None,
        levels: tuple[tuple[Unit, ...], ...],
    ) -> Task:
        options = self._options
        if self._python is None:
            self._python = find_python(options, self._root)
        return Task(
            State(self._root),
            State(self._root, texts),
            units,
            self._python,
            options if only is None else replace(options, cases=None),
            tuple(all_units(self._targets, self._import_names, options.cases))
            if options.cases
            else (),
            tuple(_place(f) for f in fixed.analysis.findings if f.severity == "error"),
            levels,
            is_partial=True,
        )

    @cached_property
    def _files(self) -> tuple[Path, ...]:
        return tuple(list_files(self._root, lambda name: name.endswith(".py")))

    def _known(
        self, units: Sequence[Unit], texts: Mapping[Path, bytes]
    ) -> Mapping[UnitKey, Verdict]:
        """Return the verdicts of units that were equal when they ran with the same files."""
        if self._options.command:
            return {}  # the recordings of all units are compared at once
        return {
            unit.key: verdict
            for unit in units
            for ran, verdict in self._equal.get(unit.key, ())
            if ran == self._texts_run_with(unit, texts)
        }

    def _texts_run_with(self, unit: Unit, texts: Mapping[Path, bytes]) -> Mapping[Path, bytes]:
        """Return the changed texts that run with a unit."""
        if unit.path not in self._run_with:
            self._run_with[unit.path] = self._import_names.run_with(unit.path)
        return {path: data for path, data in texts.items() if path in self._run_with[unit.path]}

    # -- blame

    def _wrong_fixes(self, fixed: FixOutcome[Analysis], proof: Proof) -> Sequence[_Wrong]:
        """Return the fixes to revert in this round, each with its reason."""
        if not proof.wrong:
            if proof.command and proof.command.wrong:
                return self._bisect_command(fixed, proof.command.wrong)
            return ()
        by_unit = self._fixes_by_unit(fixed)
        suspects = [(verdict, _fixes_of(verdict.unit, by_unit)) for verdict in proof.wrong]
        # Of several fixes in one unit, rather the one made there than one that edits a call.
        at_home = [
            (verdict, [a for a in fixes if _home(a) == verdict.unit.key])
            for verdict, fixes in suspects
        ]
        for candidates in (suspects, at_home):
            if alone := [(fixes[0], _reason(v)) for v, fixes in candidates if len(fixes) == 1]:
                return alone
        for verdict, fixes in suspects:
            if fixes:
                return [(a, _reason(verdict)) for a in self._culprits(verdict.unit, fixes)]
        reason = "; ".join(map(_reason, proof.wrong[:2]))
        return [(applied, reason) for applied in fixed.applied if _edits_python(applied)]

    def _culprits(self, unit: Unit, fixes: Sequence[Applied]) -> Sequence[Applied]:
        """Return the one fix without which a unit is right, or else all."""
        for applied in fixes:
            if not self._prove(self._fix_without([applied]), unit.key).wrong:
                return [applied]
        return fixes

    def _bisect_command(self, fixed: FixOutcome[Analysis], wrong: str) -> Sequence[_Wrong]:
        """Return the fix that changes how the command ends, where all units are equal."""
        suspects = [applied for applied in fixed.applied if _edits_python(applied)]
        while len(suspects) > 1:
            half = suspects[: len(suspects) // 2]
            proof = self._prove(self._fix_without(half))
            fails = bool(proof.wrong or (proof.command and proof.command.wrong))
            suspects = suspects[len(half) :] if fails else half
        return [(applied, f"it changes how the command ends: {wrong}") for applied in suspects]

    def _fixes_by_unit(self, fixed: FixOutcome[Analysis]) -> Mapping[UnitKey, list[Applied]]:
        found: dict[UnitKey, list[Applied]] = {}
        for applied in fixed.applied:
            for key in self._units_of(applied):
                found.setdefault(key, []).append(applied)
        return found

    def _units_of(self, applied: Applied) -> list[UnitKey]:
        changes = [(path, old.data, new.data) for path, (old, new) in applied.texts.items()]
        found = diff_project(changes, self._import_names)
        return [unit.key for unit in (*found.units, *(verdict.unit for verdict in found.unproved))]

    def _unproved(self, fixed: FixOutcome[Analysis], proof: Proof) -> Iterator[tuple[Applied, str]]:
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
    """Return the fixes that edit a unit, or else what it uses."""
    fixes = (applied for key in unit.uses for applied in by_unit.get(key, ()))
    return by_unit.get(unit.key) or list({id(applied): applied for applied in fixes}.values())


def finding_key(finding: Finding) -> FindingKey:
    """Identify a finding across rounds, in which its position may change."""
    text, start = finding.source.text, finding.span.start
    line = text[text.rfind("\n", 0, start) + 1 : (text + "\n").find("\n", start)].strip()
    return finding.code, finding.path, _unit_name(finding), line


def _unit_name(finding: Finding) -> str:
    try:
        return unit_at(finding.source.text, finding.span.start) or ""
    except (SyntaxError, SourceError):
        return ""  # not Python


def _place(finding: Finding) -> tuple[Path, int, int]:
    """Return the file and the first and last line of a finding."""
    first, last = (finding.source.position(at)[0] for at in (finding.span.start, finding.span.end))
    return finding.path, first, last


def _home(applied: Applied) -> UnitKey:
    return applied.finding.path, _unit_name(applied.finding)


def _edits_python(applied: Applied) -> bool:
    return any(path.suffix == ".py" for path in applied.texts)


def _reason(verdict: Verdict) -> str:
    fails = verdict.outcome is Outcome.FAILS_AFTER
    return (
        f"{verdict.unit.name} {'fails' if fails else 'returns different results'}: {verdict.detail}"
    )
