"""Fixes that are proved: made in memory, run, and taken back or refined where they are wrong."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..analysis.names.scopes import parameters
from ..analysis.needs.need import Learned
from ..engine.analyse import Analysis
from ..engine.apply import Applied, Outcome
from ..engine.progress import Progress, silent
from ..errors import SourceError
from ..rule import Finding
from ..text import first_line
from .copies.places import Places
from .copies.sides import State, Task
from .evidence import Failure, Proof, Unit, Verdict
from .evidence import Outcome as Said
from .options import VerifyOptions, check_options, find_python
from .prove import prove
from .units.module_diff import unit_at
from .units.project_diff import ProjectDiff, all_units, diff_project

# Makes the fixes in memory: without those withheld, with needs that were learned.
Mend = Callable[[Callable[[Finding], bool], frozenset[Learned]], Outcome[Analysis]]

# What names a finding in every round.
FindingKey = tuple[str, Path, str, str]
_UnitKey = tuple[Path, str]
# A fix to take back, and why.
_Guilty = tuple[Applied, str]


@dataclass(frozen=True, slots=True)
class TakenBack:
    """A fix that was not kept, and why."""

    finding: Finding
    reason: str


@dataclass(frozen=True, slots=True)
class Proved:
    """What is left of the fixes after they were tried.

    Attributes:
        outcome: the fixes that were kept.
        proof: the verdicts on them.
        wrong: the verdicts for which fixes were taken back.
        taken_back: those fixes.
        unproved: the fixes that were kept and that nothing exercised.
        refined: the needs that failures have shown.
    """

    outcome: Outcome[Analysis]
    proof: Proof = field(default_factory=Proof)
    wrong: tuple[Verdict, ...] = ()
    taken_back: tuple[TakenBack, ...] = ()
    unproved: tuple[Applied, ...] = ()
    refined: frozenset[Learned] = frozenset()

    @property
    def reasons(self) -> Mapping[FindingKey, str]:
        """Why the fix of a finding was taken back, by what names the finding."""
        return {finding_key(item.finding): item.reason for item in self.taken_back}


def prove_fixes(
    mend: Mend,
    root: Path,
    targets: Sequence[Path],
    options: VerifyOptions,
    progress: Progress = silent,
) -> Proved:
    """Make fixes, run the code before and after, and keep those that leave its results the same.

    A fix after which code fails for want of an argument's value is made again with that argument,
    once for each. One that still fails, or that changes a result, is taken back, alone. Fixes of
    which no unit was exercised are kept, unless `options.strict`.

    Args:
        mend: makes the fixes in memory.
        root: the project's folder.
        targets: the Python files that the user named.
        options: how to verify.
        progress: is told what is being done.

    Raises:
        VerificationError: nothing can be run.
    """
    check_options(options)
    return _Trial(mend, root, targets, options, progress).run()


class _Trial:
    """The rounds of making, running and taking back."""

    def __init__(
        self,
        mend: Mend,
        root: Path,
        targets: Sequence[Path],
        options: VerifyOptions,
        progress: Progress,
    ) -> None:
        self._mend = mend
        self._root = root
        self._targets = targets
        self._options = options
        self._progress = progress
        self._places = Places(root)
        self._python: Path | None = None
        self._learned: frozenset[Learned] = frozenset()
        self._withheld: dict[FindingKey, TakenBack] = {}
        self._wrong: dict[_UnitKey, Verdict] = {}
        self._equal: dict[_UnitKey, list[tuple[Mapping[Path, bytes], Verdict]]] = {}
        self._run_with: dict[Path, frozenset[Path]] = {}
        self._last = Proof()

    def run(self) -> Proved:
        while True:
            outcome = self._made(self._withheld)
            changed = self._difference(outcome)
            proof = self._prove(outcome, changed)
            if lessons := self._lessons(outcome, proof):
                self._learned |= lessons
                continue
            guilty = self._guilty(outcome, proof)
            if not guilty and self._options.strict:
                guilty = [(a, "nothing exercised it") for a in self._unproved(outcome, proof)]
            if not guilty:
                return self._result(outcome, proof)
            for verdict in proof.wrong:
                self._wrong[verdict.unit.key] = verdict
            for applied, reason in guilty:
                self._withheld[finding_key(applied.finding)] = TakenBack(applied.finding, reason)

    def _made(self, withheld: Mapping[FindingKey, object]) -> Outcome[Analysis]:
        return self._mend(lambda finding: finding_key(finding) in withheld, self._learned)

    def _result(self, outcome: Outcome[Analysis], proof: Proof) -> Proved:
        return Proved(
            outcome,
            proof,
            tuple(self._wrong.values()),
            tuple(self._withheld.values()),
            tuple(self._unproved(outcome, proof)),
            self._learned,
        )

    # -- running

    def _difference(self, outcome: Outcome[Analysis]) -> ProjectDiff:
        return diff_project(
            [(c.path, c.before.data, c.after.data) for c in outcome.changes], self._places
        )

    def _prove(
        self,
        outcome: Outcome[Analysis],
        changed: ProjectDiff,
        only: frozenset[_UnitKey] | None = None,
    ) -> Proof:
        units = tuple(unit for unit in changed.units if only is None or unit.key in only)
        if not units:
            return Proof(changed.unproved, changed.notes)
        if self._python is None:
            self._python = find_python(self._options, self._root)
        options = self._options
        texts = {c.path: c.after.data for c in outcome.changes}
        known = self._still_known(units, texts)
        waiting = tuple(unit for unit in units if unit.key not in known)
        if not waiting:
            proof = replace(self._last, verdicts=())
            return self._whole(proof, units, known, changed)
        task = Task(
            State(self._root),
            State(self._root, texts),
            waiting,
            self._python,
            options if only is None else replace(options, cases=None),
            tuple(all_units(self._targets, self._places, options.cases)) if options.cases else (),
            any(finding.severity == "error" for finding in outcome.remaining),
        )
        self._last = proof = prove(task, self._progress)
        for verdict in proof.verdicts:
            if verdict.outcome is Said.EQUAL:
                ran = self._texts_of(verdict.unit, texts)
                self._equal.setdefault(verdict.unit.key, []).append((ran, verdict))
        return self._whole(proof, units, known, changed)

    def _whole(
        self,
        proof: Proof,
        units: Sequence[Unit],
        known: Mapping[_UnitKey, Verdict],
        changed: ProjectDiff,
    ) -> Proof:
        """A proof with the verdicts of rounds before, and what there is to say besides."""
        verdicts = {**proof.by_unit, **known}
        ordered = [verdicts[unit.key] for unit in units if unit.key in verdicts]
        return replace(
            proof,
            verdicts=(*ordered, *changed.unproved),
            notes=(*proof.notes, *changed.notes),
        )

    def _still_known(
        self, units: Sequence[Unit], texts: Mapping[Path, bytes]
    ) -> Mapping[_UnitKey, Verdict]:
        """The units that were equal with the same texts of all that they run."""
        if self._options.command:
            return {}  # what is recorded is compared for all of the project
        found = {}
        for unit in units:
            ran = self._texts_of(unit, texts)
            for before, verdict in self._equal.get(unit.key, ()):
                if before == ran:
                    found[unit.key] = verdict
        return found

    def _texts_of(self, unit: Unit, texts: Mapping[Path, bytes]) -> Mapping[Path, bytes]:
        """The changed texts that run with a unit."""
        if unit.path not in self._run_with:
            self._run_with[unit.path] = self._places.run_with(unit.path)
        return {path: data for path, data in texts.items() if path in self._run_with[unit.path]}

    # -- learning

    def _lessons(self, outcome: Outcome[Analysis], proof: Proof) -> frozenset[Learned]:
        """What the failures say that Python needs, as far as it has not been tried yet."""
        texts = {change.path: change.after.text for change in outcome.changes}
        found = {
            Learned(verdict.failure.place[0], name, argument)
            for verdict in proof.wrong
            if verdict.failure and verdict.failure.place
            for argument in verdict.failure.arguments
            for name in _functions_at(verdict.failure, argument, texts)
        }
        return frozenset(found) - self._learned

    # -- taking back

    def _guilty(self, outcome: Outcome[Analysis], proof: Proof) -> Sequence[_Guilty]:
        """The fixes to take back now, each with its reason."""
        if not proof.wrong:
            if proof.command and proof.command.wrong:
                return self._guilty_of_command(outcome, proof.command.wrong)
            return ()
        by_unit = self._fixes_by_unit(outcome)
        suspects = [(v, by_unit.get(v.unit.key, [])) for v in proof.wrong]
        alone = [(fixes[0], _reason(v)) for v, fixes in suspects if len(fixes) == 1]
        if alone:
            return alone
        # Several fixes in one unit: the one that stands there, rather than one that edits a call.
        at_home = [
            (own[0], _reason(v))
            for v, fixes in suspects
            if len(own := [a for a in fixes if _home(a) == v.unit.key]) == 1
        ]
        if at_home:
            return at_home
        for verdict, fixes in suspects:
            if fixes:
                return [(a, _reason(verdict)) for a in self._culprits(verdict.unit, fixes)]
        reason = "; ".join(_reason(v) for v in proof.wrong[:2])
        return [(applied, reason) for applied in outcome.applied if _edits_python(applied)]

    def _culprits(self, unit: Unit, fixes: Sequence[Applied]) -> Sequence[Applied]:
        """The one fix without which a unit is right, or all."""
        for applied in fixes:
            outcome = self._made({**self._withheld, finding_key(applied.finding): None})
            proof = self._prove(outcome, self._difference(outcome), frozenset({unit.key}))
            if not proof.wrong:
                return [applied]
        return fixes

    def _guilty_of_command(self, outcome: Outcome[Analysis], wrong: str) -> Sequence[_Guilty]:
        """The fix that changes how the command ends, found by halving; all units are equal."""
        suspects = [applied for applied in outcome.applied if _edits_python(applied)]
        while len(suspects) > 1:
            half = suspects[: len(suspects) // 2]
            withheld = {**self._withheld, **{finding_key(a.finding): None for a in half}}
            tried = self._made(withheld)
            proof = self._prove(tried, self._difference(tried))
            fails = bool(proof.wrong or (proof.command and proof.command.wrong))
            suspects = suspects[len(half) :] if fails else half
        return [(applied, f"with it the command ends otherwise: {wrong}") for applied in suspects]

    def _fixes_by_unit(self, outcome: Outcome[Analysis]) -> Mapping[_UnitKey, list[Applied]]:
        found: dict[_UnitKey, list[Applied]] = {}
        for applied in outcome.applied:
            for key in self._units_of(applied):
                found.setdefault(key, []).append(applied)
        return found

    def _units_of(self, applied: Applied) -> Iterator[_UnitKey]:
        changes = [(path, old.data, new.data) for path, (old, new) in applied.texts.items()]
        found = diff_project(changes, self._places)
        for unit in (*found.units, *(verdict.unit for verdict in found.unproved)):
            yield unit.key

    def _unproved(self, outcome: Outcome[Analysis], proof: Proof) -> Iterator[Applied]:
        """The fixes of which no unit ran on both sides."""
        verdicts = proof.by_unit
        for applied in outcome.applied:
            said = [verdicts[key].outcome for key in self._units_of(applied) if key in verdicts]
            if Said.EQUAL not in said:
                yield applied


def finding_key(finding: Finding) -> FindingKey:
    """What names a finding in every round: where it stands moves, its line and its unit do not."""
    text, start = finding.source.text, finding.span.start
    line = text[text.rfind("\n", 0, start) + 1 : (text + "\n").find("\n", start)].strip()
    return finding.code, finding.path, _unit_name(finding), line


def _unit_name(finding: Finding) -> str:
    try:
        return unit_at(finding.source.text, finding.span.start) or ""
    except (SyntaxError, SourceError):
        return ""  # not Python


def _home(applied: Applied) -> _UnitKey:
    return applied.finding.path, _unit_name(applied.finding)


def _edits_python(applied: Applied) -> bool:
    return any(path.suffix == ".py" for path in applied.texts)


def _reason(verdict: Verdict) -> str:
    what = "fails with it" if verdict.outcome is Said.FAILS_AFTER else "gives other results with it"
    return f"{verdict.unit.name} {what}: {verdict.detail}"


def _functions_at(failure: Failure, argument: str, texts: Mapping[Path, str]) -> Iterator[str]:
    """The qualified names of the function that failed, and of those around it that it may replace.

    A closing form is an inner function that the old code does not have: what it needs, the function
    around it needs. All have a parameter of the name.
    """
    assert failure.place is not None
    path, line = failure.place
    if path not in texts:
        return
    names: list[str] = []
    node: ast.AST = ast.parse(texts[path])
    while True:
        inner = next((n for n in _definitions(node) if first_line(n) <= line <= _last(n)), None)
        if inner is None:
            return
        names.append(inner.name)
        node = inner
        if isinstance(node, ast.ClassDef):
            continue
        if any(parameter.arg == argument for parameter in parameters(node)):
            yield ".".join(names)


_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def _definitions(node: ast.AST) -> Iterator[_Definition]:
    """The definitions directly within a node, under `if` and `with` as well."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _Definition):
            yield child
        elif not isinstance(child, ast.expr):
            yield from _definitions(child)


def _last(node: _Definition) -> int:
    return node.end_lineno or node.lineno
